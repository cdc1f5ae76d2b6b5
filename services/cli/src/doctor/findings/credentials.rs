//! Who may call, and who is trusted.

use std::time::{Duration, SystemTime};

use fleetgate_identity::TokenInfo;

use super::Finding;
use crate::doctor::credentials::{Credentials, ServerCertificate};
use crate::when;

/// What ends within this is about to.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

pub(super) fn examine(found: &Credentials, now: SystemTime, findings: &mut Vec<Finding>) {
    if let Some(why) = &found.records {
        findings.push(
            Finding::error("RECORDS_UNUSABLE", "this host")
                .what(format!("the gateways of this host cannot be found: {why}"))
                .advice(
                    "make the directory this user's only (chmod 700), or name another with \
                     FLEETGATE_RUNTIME_DIR; a gateway that cannot write there does not start, \
                     unless discovery of [auth] is false",
                ),
        );
    }
    if let Some(why) = &found.exposed {
        findings.push(
            Finding::error("EXPOSED", "the configuration")
                .what(why.as_str())
                .advice("mend it: `fleetgate serve` ends with the same error"),
        );
    }
    let path = found.tokens_path.display().to_string();
    match &found.tokens {
        Ok(tokens) => findings.extend(tokens.iter().filter_map(|token| ends(token, &path, now))),
        Err(why) => findings.push(
            Finding::error("TOKENS_UNUSABLE", &path)
                .what(why.as_str())
                .advice("mend it: no token is taken before"),
        ),
    }
    findings.extend(
        found
            .certificate
            .as_ref()
            .and_then(|found| lasts(found, now)),
    );
}

/// A token that is about to expire.
fn ends(token: &TokenInfo, path: &str, now: SystemTime) -> Option<Finding> {
    let expires = token.expires.filter(|expires| *expires < now + SOON)?;
    let at = when::stamp(expires.into()).unwrap_or_default();
    Some(
        Finding::warning("TOKEN_EXPIRES", path)
            .what(format!(
                "the token {} of token:{} expires at {at}",
                token.id, token.name
            ))
            .advice("make another of the same name, and revoke this one when nobody uses it"),
    )
}

/// A certificate that is about to expire, or has.
fn lasts(found: &ServerCertificate, now: SystemTime) -> Option<Finding> {
    let path = found.path.display().to_string();
    let advice = "put another in its place; a gateway that runs takes notice by itself";
    match &found.expires {
        Err(why) => Some(
            Finding::error("CERTIFICATE_UNUSABLE", &path)
                .what(why.as_str())
                .advice("name a PEM file of certificates as certificate of [tls]"),
        ),
        Ok(expires) if *expires <= now => Some(
            Finding::error("CERTIFICATE_EXPIRED", &path)
                .what("the server's certificate has expired: no client takes it")
                .advice(advice),
        ),
        Ok(expires) if *expires < now + SOON => {
            let at = when::stamp((*expires).into()).unwrap_or_default();
            Some(
                Finding::warning("CERTIFICATE_EXPIRES", &path)
                    .what(format!("the server's certificate expires at {at}"))
                    .advice(advice),
            )
        }
        Ok(_) => None,
    }
}
