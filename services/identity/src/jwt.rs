//! JWTs: whose they are.
//!
//! Owns what is demanded of a JWT (RFC 7519, RFC 8725): signed with a key that
//! its issuer publishes now, by an algorithm of that key's kind; of this
//! issuer, for this audience, and at this time. Refuses algorithms by which
//! who can verify can also sign, and JWTs that are not signed at all. Invariant:
//! nothing that a JWT says is looked at before its signature is verified, but
//! for which key and algorithm it names.

mod claims;
mod fetch;
mod keeper;
mod keys;
mod provider;

use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};

use crate::error::{AuthError, IdentityError, Invalid};
use crate::principal::{Kind, Principal};
use crate::settings::OidcSettings;

use keeper::Keeper;
use keys::{Found, Keys};

/// More than any header of a call is.
const MAX_LENGTH: usize = 16 << 10;
const MAX_LEEWAY: Duration = Duration::from_secs(600);

/// Whose JWTs are taken, and the keys that they are signed with.
#[derive(Debug)]
pub(crate) struct Jwts {
    settings: OidcSettings,
    keeper: Keeper,
}

impl Jwts {
    /// Begins to keep the issuer's keys.
    pub(crate) fn begin(settings: OidcSettings) -> Result<Self, IdentityError> {
        if let Some((value, reason)) = fault(&settings) {
            return Err(IdentityError::Setting {
                what: "the OIDC setting",
                value,
                reason: reason.to_owned(),
            });
        }
        provider::install();
        let keeper = Keeper::begin(&settings.jwks)?;
        Ok(Self { settings, keeper })
    }

    /// Whose JWT this is.
    pub(crate) async fn whose(&self, jwt: &str) -> Result<Principal, AuthError> {
        if jwt.len() > MAX_LENGTH {
            return Err(Invalid::Jwt.into());
        }
        let header = jsonwebtoken::decode_header(jwt);
        let header = header.map_err(|error| invalid(error.kind()))?;
        if !keys::is_asymmetric(header.alg) {
            return Err(Invalid::Algorithm.into());
        }
        let key = self.key(header.kid.as_deref(), header.alg).await?;
        let decoded = jsonwebtoken::decode(jwt, &key, &self.validation(header.alg));
        let claims: Map<String, Value> = match decoded {
            Ok(decoded) => decoded.claims,
            Err(error) if *error.kind() == ErrorKind::ExpiredSignature => {
                return Err(AuthError::EXPIRED_JWT);
            }
            Err(error) => return Err(invalid(error.kind()).into()),
        };
        if claims::is_of_the_future(&claims, self.settings.leeway) {
            return Err(Invalid::Claims.into());
        }
        let name =
            claims::name(&claims, &self.settings.principal_claim).ok_or(Invalid::Nameless)?;
        let roles = self.settings.roles_claim.as_deref();
        let grants = roles.map_or_else(Vec::new, |claim| claims::grants(&claims, claim));
        let name = format!("{}:{name}", Kind::Oidc.as_str());
        Ok(Principal::new(Kind::Oidc, name, grants))
    }

    /// The key that a JWT names, if need be from keys that are fetched now.
    async fn key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<jsonwebtoken::DecodingKey, AuthError> {
        let find = |keys: Option<&Keys>| keys.map(|keys| keys.find(id, algorithm));
        let mut found = find(self.keeper.keys().as_deref());
        if !matches!(found, Some(Found::Key(_) | Found::OtherAlgorithm)) {
            self.keeper.refresh().await;
            found = find(self.keeper.keys().as_deref());
        }
        match found {
            Some(Found::Key(key)) => Ok(key),
            Some(Found::OtherAlgorithm) => Err(Invalid::Algorithm.into()),
            Some(Found::Unknown) => Err(Invalid::Key.into()),
            None => Err(AuthError::Unavailable),
        }
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&self.settings.audience);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.validate_nbf = true;
        validation.leeway = self.settings.leeway.as_secs();
        validation
    }
}

/// What cannot be used, and why.
fn fault(settings: &OidcSettings) -> Option<(String, &'static str)> {
    if settings.issuer.is_empty() {
        return Some(("issuer".to_owned(), "it is empty"));
    }
    if settings.audience.is_empty() || settings.audience.iter().any(String::is_empty) {
        let reason = "without an audience, JWTs for any other service would be taken";
        return Some(("audience".to_owned(), reason));
    }
    if settings.principal_claim.is_empty() {
        return Some(("principal_claim".to_owned(), "it is empty"));
    }
    if settings.leeway > MAX_LEEWAY {
        return Some(("leeway".to_owned(), "it is more than ten minutes"));
    }
    None
}

fn invalid(error: &ErrorKind) -> Invalid {
    if matches!(error, ErrorKind::InvalidSignature) {
        Invalid::Signature
    } else if matches!(
        error,
        ErrorKind::InvalidAlgorithm
            | ErrorKind::InvalidAlgorithmName
            | ErrorKind::UnsupportedAlgorithm
            | ErrorKind::InvalidKeyFormat
    ) {
        Invalid::Algorithm
    } else if matches!(
        error,
        ErrorKind::MissingRequiredClaim(_)
            | ErrorKind::InvalidClaimFormat(_)
            | ErrorKind::ImmatureSignature
            | ErrorKind::InvalidIssuer
            | ErrorKind::InvalidAudience
    ) {
        Invalid::Claims
    } else {
        Invalid::Jwt
    }
}
