//! From what a caller shows to who it is.
//!
//! Owns the order in which credentials are looked at: a token that is shown
//! counts, and nothing else then; without one a certificate does, if any
//! certificates are known here; without either the caller is anonymous, if
//! that is allowed. Refuses to guess: a credential that is not valid is never
//! passed over for a lesser one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use subtle::Choice;

use crate::certificate::{self, CertificateRule};
use crate::error::{AuthError, IdentityError, Invalid};
use crate::jwt::Jwts;
use crate::principal::Principal;
use crate::role::{Grant, Role};
use crate::settings::{AuthSettings, LocalToken};
use crate::text::{Hash, Presented, TokenId};
use crate::tokens::Watched;

/// What a caller shows.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The value of the header `authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The client certificate, in DER, once TLS has verified it.
    pub certificate: Option<&'a [u8]>,
}

impl std::fmt::Debug for Credentials<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("authorization", &self.authorization.map(|_| "[secret]"))
            .field("certificate", &self.certificate.map(<[u8]>::len))
            .finish()
    }
}

/// Knows callers by what they show. Clones are cheap, and are the same one.
#[derive(Debug, Clone)]
pub struct Authenticator(Arc<Ways>);

#[derive(Debug)]
struct Ways {
    anonymous: Option<Role>,
    local: Option<Hash>,
    tokens: Option<Arc<Watched>>,
    certificates: Vec<CertificateRule>,
    bindings: HashMap<String, Vec<Grant>>,
    jwts: Option<Jwts>,
}

impl Authenticator {
    /// Sets up what is taken as proof. A token file that cannot be used is an
    /// error; one that is absent is not. With [`AuthSettings::oidc`] it must
    /// be called within a tokio runtime, and the issuer's keys are fetched
    /// for as long as this or a clone of it is there.
    pub fn new(settings: AuthSettings) -> Result<Self, IdentityError> {
        let mut bindings: HashMap<String, Vec<Grant>> = HashMap::new();
        for binding in settings.bindings {
            let grants = bindings.entry(binding.principal).or_default();
            grants.push(binding.grant);
        }
        Ok(Self(Arc::new(Ways {
            anonymous: settings.anonymous,
            local: settings.local.as_ref().map(|token: &LocalToken| token.hash),
            tokens: settings
                .tokens
                .map(Watched::begin)
                .transpose()?
                .map(Arc::new),
            certificates: settings.certificates,
            bindings,
            jwts: settings.oidc.map(Jwts::begin).transpose()?,
        })))
    }

    /// Says who calls.
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Principal, AuthError> {
        let ways = &*self.0;
        let principal = match credentials {
            Credentials {
                authorization: Some(header),
                ..
            } => ways.bearer(header).await?,
            Credentials {
                certificate: Some(der),
                ..
            } if !ways.certificates.is_empty() => {
                certificate::whose(&ways.certificates, der, SystemTime::now())?
            }
            Credentials { .. } => {
                let role = ways.anonymous.ok_or(AuthError::Missing)?;
                Principal::anonymous(role)
            }
        };
        let more = ways.bindings.get(principal.name());
        Ok(principal.and(more.into_iter().flatten().cloned()))
    }
}

impl Ways {
    async fn bearer(&self, header: &[u8]) -> Result<Principal, AuthError> {
        let credential = credential_in(header).ok_or(Invalid::Header)?;
        if !Presented::is_meant(credential) {
            let jwts = self.jwts.as_ref().ok_or(Invalid::Unsupported)?;
            return jwts.whose(credential).await;
        }
        let presented = Presented::read(credential).ok_or(Invalid::Token)?;
        if presented.id == TokenId::local() {
            let hash = self.local.unwrap_or(Hash::NONE);
            let is_right: Choice = hash.is(&presented.hash);
            return if is_right.into() {
                Ok(Principal::local())
            } else {
                Err(Invalid::Token.into())
            };
        }
        let tokens = self.tokens.as_ref().ok_or(Invalid::Unsupported)?;
        tokens.whose(&presented, SystemTime::now()).await
    }
}

/// The credential in `Bearer <credential>` (RFC 6750); the scheme's letters
/// may be of either case.
fn credential_in(header: &[u8]) -> Option<&str> {
    let (scheme, credential) = str::from_utf8(header).ok()?.split_once(' ')?;
    let credential = credential.trim_matches(' ');
    let is_one = !credential.is_empty() && credential.bytes().all(|byte| byte.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && is_one).then_some(credential)
}
