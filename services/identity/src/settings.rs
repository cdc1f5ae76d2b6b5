//! What an [`Authenticator`](crate::Authenticator) is to take.
//!
//! Owns the settings' types, not their defaults nor their names in a file.
//! Invariant: nothing is taken that is not set up here.

use std::path::PathBuf;
use std::time::Duration;

use crate::certificate::CertificateRule;
use crate::jwks::JwksSource;
use crate::role::{Grant, Role};
use crate::secret::Secret;
use crate::text::{Hash, TokenId, mint};

/// What is taken as proof of who calls. The default takes nothing.
#[derive(Debug, Default)]
pub struct AuthSettings {
    /// What a caller without any credentials may do.
    pub anonymous: Option<Role>,
    /// The token of the discovery record.
    pub local: Option<LocalToken>,
    /// The token file; it may be absent, and may come later.
    pub tokens: Option<PathBuf>,
    /// Which client certificates are whose. Without any, certificates say
    /// nothing about who calls.
    pub certificates: Vec<CertificateRule>,
    /// What principals get besides what their credentials give them.
    pub bindings: Vec<Binding>,
    /// Whose JWTs are taken.
    pub oidc: Option<OidcSettings>,
}

/// A grant to a principal by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name in full, such as `oidc:alice`.
    pub principal: String,
    /// What it gets.
    pub grant: Grant,
}

/// The token that a gateway makes for its own host each time it starts.
#[derive(Debug, Clone)]
pub struct LocalToken {
    text: Secret,
    pub(crate) hash: Hash,
}

impl LocalToken {
    /// Makes a new one.
    pub fn mint() -> Self {
        let (text, hash) = mint(&TokenId::local());
        Self { text, hash }
    }

    /// What stands in the discovery record.
    pub fn text(&self) -> &Secret {
        &self.text
    }
}

/// Whose JWTs are taken (RFC 7519), and how they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// Whose: the claim `iss`, to the letter.
    pub issuer: String,
    /// For whom: one of these must be in the claim `aud`. At least one.
    pub audience: Vec<String>,
    /// Where the issuer's keys are.
    pub jwks: JwksSource,
    /// By how much the issuer's clock may differ from this one: at most ten
    /// minutes.
    pub leeway: Duration,
    /// The claim that names the principal: `alice` there is `oidc:alice`.
    pub principal_claim: String,
    /// The claim whose words `viewer`, `operator` and `admin` are roles on the
    /// whole fleet: a text with spaces between words, or a list of texts. A
    /// claim within claims is written with dots, such as
    /// `realm_access.roles`.
    pub roles_claim: Option<String>,
}

impl OidcSettings {
    /// By how much the issuer's clock may differ unless it is said.
    pub const LEEWAY: Duration = Duration::from_secs(30);
    /// The claim that names the principal unless it is said.
    pub const PRINCIPAL_CLAIM: &'static str = "sub";
}
