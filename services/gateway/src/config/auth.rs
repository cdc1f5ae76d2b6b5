//! `[auth]`: who may call, and what they may do.
//!
//! Invariant: what is secret is in files of its own; nothing here is.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fleetgate_identity::{
    AuthSettings, Binding, CertificateName, CertificateRule, Grant, IdentityError, LocalToken,
    OidcSettings, Role,
};
use serde::{Deserialize, Deserializer, de};

use super::values::{self, Labels};
use super::{Config, defaults};

/// `[auth]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSection {
    /// What a caller may do that says nothing of who it is. On loopback only. No
    /// default: it may do nothing.
    pub anonymous: Option<Role>,
    /// The file of the tokens, which need not exist. Default
    /// `fleetgate/tokens.toml` below `$XDG_STATE_HOME` or `~/.local/state`.
    pub tokens: Option<PathBuf>,
    /// Whether programs of the same user find the gateway and a token for it, in
    /// an owner-only record below `$FLEETGATE_RUNTIME_DIR`,
    /// `$XDG_RUNTIME_DIR/fleetgate` or `~/.local/state/fleetgate/run`. A gateway
    /// that cannot write it does not start. Default `true`.
    pub discovery: bool,
    /// `[[auth.binding]]`: roles of principals that are named elsewhere.
    pub binding: Vec<BindingConfig>,
    /// `[[auth.certificate]]`: who shows which certificate.
    pub certificate: Vec<CertificateConfig>,
    /// `[auth.oidc]`: whose JWTs are taken.
    pub oidc: Option<OidcConfig>,
}

impl Default for AuthSection {
    fn default() -> Self {
        Self {
            anonymous: None,
            tokens: None,
            discovery: true,
            binding: Vec::new(),
            certificate: Vec::new(),
            oidc: None,
        }
    }
}

/// `[[auth.binding]]`: a role that a principal has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindingConfig {
    /// The principal, such as `oidc:alice`.
    pub principal: PrincipalName,
    /// What it may do.
    pub role: Role,
    /// The labels that a phone must have for that. Default: none, which is the
    /// whole fleet.
    #[serde(default)]
    pub labels: Labels,
}

/// `[[auth.certificate]]`: whoever shows such a certificate is this principal.
/// One of `subject`, `dns`, `uri` and `email` says which.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateConfig {
    /// Its subject, such as `CN=scheduler,O=Lab`.
    pub subject: Option<String>,
    /// A DNS name that it is for.
    pub dns: Option<String>,
    /// A URI that it is for, such as a SPIFFE id.
    pub uri: Option<String>,
    /// An email address that it is for.
    pub email: Option<String>,
    /// The principal is `cert:` and this. Default: what says which.
    pub name: Option<String>,
    /// What it may do.
    pub role: Role,
    /// As with a binding.
    #[serde(default)]
    pub labels: Labels,
}

impl CertificateConfig {
    fn rule(&self) -> Result<CertificateRule, AuthDiscord> {
        let ways = [
            self.subject.clone().map(CertificateName::Subject),
            self.dns.clone().map(CertificateName::Dns),
            self.uri.clone().map(CertificateName::Uri),
            self.email.clone().map(CertificateName::Email),
        ];
        let mut ways = ways.into_iter().flatten();
        let (Some(which), None) = (ways.next(), ways.next()) else {
            return Err(AuthDiscord::WhichCertificate);
        };
        let rule = CertificateRule::new(which, self.name.clone(), grant(self.role, &self.labels));
        rule.map_err(|error| unusable(&error))
    }
}

/// `[auth.oidc]`: an issuer of JWTs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcConfig {
    /// What `iss` of a token must be.
    pub issuer: String,
    /// What `aud` of a token must be, or have among others: a text, or a list of
    /// which one is enough.
    #[serde(deserialize_with = "one_or_more")]
    pub audience: Vec<String>,
    /// Where the issuer's keys are: a file, or a URL with `https`; with `http` on
    /// loopback only.
    pub jwks: String,
    /// How far the issuer's clock may be off. Default `30s`.
    #[serde(default = "leeway", deserialize_with = "values::duration")]
    pub leeway: Duration,
    /// The claim that names the caller: its principal is `oidc:` and this.
    /// Default `sub`.
    #[serde(default = "principal_claim")]
    pub principal_claim: String,
    /// The claim with roles for the whole fleet: `viewer`, `operator` or
    /// `admin`, or a list with such. No default: roles come from bindings.
    pub roles_claim: Option<String>,
}

impl OidcConfig {
    fn settings(&self) -> Result<OidcSettings, AuthDiscord> {
        Ok(OidcSettings {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            jwks: self.jwks.parse().map_err(|error| unusable(&error))?,
            leeway: self.leeway,
            principal_claim: self.principal_claim.clone(),
            roles_claim: self.roles_claim.clone(),
        })
    }
}

fn leeway() -> Duration {
    OidcSettings::LEEWAY
}

fn principal_claim() -> String {
    OidcSettings::PRINCIPAL_CLAIM.to_owned()
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum Given {
        One(String),
        More(Vec<String>),
    }
    let given = match Given::deserialize(deserializer)? {
        Given::One(one) => vec![one],
        Given::More(more) => more,
    };
    if given.is_empty() || given.iter().any(String::is_empty) {
        return Err(de::Error::custom(
            "expected one at least, and none without a letter",
        ));
    }
    Ok(given)
}

fn grant(role: Role, labels: &Labels) -> Grant {
    let labels = labels.get().clone();
    Grant { role, labels }
}

fn unusable(error: &IdentityError) -> AuthDiscord {
    AuthDiscord::Unusable(error.to_string())
}

/// Who calls, as the ledger names it: `token:ci`, `cert:scheduler`,
/// `oidc:alice`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PrincipalName(String);

impl PrincipalName {
    /// The longest name in bytes.
    pub const MAX: usize = 256;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PrincipalName {
    type Error = values::UnusableValue;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let known = ["token:", "cert:", "oidc:"];
        let is_known = known.iter().any(|kind| {
            let name = text.strip_prefix(kind);
            name.is_some_and(|name| !name.is_empty())
        });
        if is_known && text.len() <= Self::MAX && !text.contains(char::is_control) {
            Ok(Self(text))
        } else {
            Err(values::UnusableValue::Principal(text))
        }
    }
}

/// What cannot be meant in `[auth]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthDiscord {
    /// A rule for certificates that says not which, or says it twice.
    #[error(
        "an [[auth.certificate]] says which certificates it is about by one of subject, dns, uri \
         and email"
    )]
    WhichCertificate,
    /// Something that no caller can be known by.
    #[error("[auth]: {0}")]
    Unusable(String),
    /// Rules for certificates that nobody is asked for.
    #[error(
        "[[auth.certificate]] is of no use unless callers are asked for certificates: set \
         client_ca and client_certificate of [tls]"
    )]
    Unasked,
    /// Callers that nobody knows.
    #[error(
        "{listen} of [server] is an address that others than this host can reach, which takes TLS \
         and a way to know callers by: {}; or listen on 127.0.0.1",
        .missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Exposed {
        /// Where the server would listen.
        listen: SocketAddr,
        /// What to do about it.
        missing: BTreeSet<Missing>,
    },
}

/// What a server needs that others can reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Missing {
    /// It speaks plain text.
    #[error("set certificate and key of [tls] to PEM files")]
    Tls,
    /// It knows nobody.
    #[error(
        "make a token with `fleetgate token create` ({} does not exist), or set [auth.oidc], or \
         client_ca of [tls] with [[auth.certificate]]",
        .0.display()
    )]
    Authentication(PathBuf),
    /// It lets everybody in.
    #[error("take anonymous out of [auth]")]
    NoAnonymous,
}

impl AuthSection {
    /// Where the tokens are.
    pub fn tokens_path(&self) -> PathBuf {
        self.tokens.clone().unwrap_or_else(defaults::tokens_path)
    }

    /// What callers are known by.
    pub(crate) fn settings(&self, local: Option<LocalToken>) -> Result<AuthSettings, AuthDiscord> {
        let binding = |binding: &BindingConfig| Binding {
            principal: binding.principal.as_str().to_owned(),
            grant: grant(binding.role, &binding.labels),
        };
        let certificates = self.certificate.iter().map(CertificateConfig::rule);
        Ok(AuthSettings {
            anonymous: self.anonymous,
            local,
            tokens: Some(self.tokens_path()),
            certificates: certificates.collect::<Result<_, _>>()?,
            bindings: self.binding.iter().map(binding).collect(),
            oidc: self.oidc.as_ref().map(OidcConfig::settings).transpose()?,
        })
    }

    /// What cannot be meant, if anything.
    pub(super) fn discord(&self, asks_for_certificates: bool) -> Option<AuthDiscord> {
        let is_unasked = !self.certificate.is_empty() && !asks_for_certificates;
        let unasked = is_unasked.then_some(AuthDiscord::Unasked);
        self.settings(None).err().or(unasked)
    }
}

impl Config {
    /// Why nothing may be served where the configuration says: others could
    /// reach it, and it could not tell them apart.
    pub fn exposure(&self) -> Option<AuthDiscord> {
        if self.server.listen.is_loopback() {
            return None;
        }
        let mut missing = BTreeSet::new();
        if self.tls.certificate.is_none() || self.tls.key.is_none() {
            missing.insert(Missing::Tls);
        }
        let tokens = self.auth.tokens_path();
        let knows_callers =
            self.auth.oidc.is_some() || !self.auth.certificate.is_empty() || tokens.exists();
        if !knows_callers {
            missing.insert(Missing::Authentication(tokens));
        }
        if self.auth.anonymous.is_some() {
            missing.insert(Missing::NoAnonymous);
        }
        let listen = self.server.listen.address();
        (!missing.is_empty()).then_some(AuthDiscord::Exposed { listen, missing })
    }
}
