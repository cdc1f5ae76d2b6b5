//! What there is to do about a refusal, where the gateway does not say.

use std::error::Error;
use std::io;

use tokio_rustls::rustls::{self, AlertDescription};
use tonic::Code;

use crate::client::NotInPlain;

/// About a connection that was not made.
pub(super) fn unreachable(error: &(dyn Error + 'static)) -> &'static str {
    if wants_certificate(error) {
        return "say who calls by a certificate that the gateway knows: --cert and --key";
    }
    if error.is::<NotInPlain>() {
        return "does it speak TLS? then https://";
    }
    match of_tls(error) {
        // rustls has no name of its own for it.
        Some(rustls::Error::InvalidCertificate(why))
            if format!("{why:?}").contains("CaUsedAsEndEntity") =>
        {
            "its certificate is one of an authority, which no server may show: make another, with \
             basicConstraints = CA:FALSE"
        }
        Some(rustls::Error::InvalidCertificate(_)) => {
            "name the authority of its certificate with --ca, and the name in it with \
             --server-name if it is not the one of --server"
        }
        Some(rustls::Error::InvalidMessage(_)) => "does it speak TLS at all? then not: http://",
        Some(_) | None => {
            "start one with `fleetgate serve` or `fleetgate demo`, or name another with --server"
        }
    }
}

/// Whether the gateway wants another certificate of this side, or one at all.
pub(super) fn wants_certificate(error: &(dyn Error + 'static)) -> bool {
    let alert = match of_tls(error) {
        Some(rustls::Error::AlertReceived(alert)) => *alert,
        Some(_) | None => return false,
    };
    let about_certificates = [
        AlertDescription::CertificateRequired,
        AlertDescription::BadCertificate,
        AlertDescription::UnsupportedCertificate,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateUnknown,
        AlertDescription::UnknownCA,
        AlertDescription::AccessDenied,
    ];
    about_certificates.contains(&alert)
}

/// What TLS has against it.
fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    // What an I/O error wraps is not among its sources.
    let wrapped = error.downcast_ref::<io::Error>()?.get_ref()?;
    wrapped.downcast_ref()
}

/// About a call that was not let in.
pub(super) fn refused<'a>(
    code: Code,
    reason: Option<&str>,
    fact: impl Fn(&str) -> Option<&'a String>,
) -> Option<&'static str> {
    let words = match reason {
        Some("CREDENTIALS_MISSING") => {
            "say who calls: --token-file FILE, FLEETGATE_TOKEN, or --cert and --key; on the \
             gateway's host `fleetgate token create` makes a token"
        }
        Some("CREDENTIALS_INVALID") => {
            "the gateway does not know this token or certificate, or has forgotten it: \
             `fleetgate token list` on its host tells which it knows"
        }
        Some("CREDENTIALS_EXPIRED") => "get a new one: `fleetgate token create` on its host",
        Some("ROLE_TOO_LOW") if fact("needed").is_some_and(|role| role == "admin") => {
            "an admin may; the role comes with the token or certificate"
        }
        Some("ROLE_TOO_LOW") => "the role comes with the token or certificate",
        Some("DEVICE_OUT_OF_SCOPE") => {
            "what these credentials may is limited to phones with other labels"
        }
        Some("LEASE_REQUIRED") if fact("lease").is_some() => {
            "name your lease: --lease and --epoch, as `fleetgate lease show` has them"
        }
        Some("LEASE_REQUIRED") => {
            "have the phone to yourself: fleetgate lease run --device DEVICE -- fleetgate ..."
        }
        Some("LEASE_HELD_BY_OTHER") => {
            "wait for it: fleetgate lease run --device DEVICE -- fleetgate ..."
        }
        Some("LEASE_EXPIRED" | "LEASE_REVOKED" | "LEASE_RELEASED" | "LEASE_EPOCH_STALE") => {
            "the lease is over: ask for another"
        }
        Some("LEASE_OTHER_DEVICE") => {
            "this lease is for other phones; in a `lease run`, it is where --lease comes from"
        }
        None if code == Code::Unauthenticated => "something before the gateway wants credentials",
        Some(_) | None => return None,
    };
    Some(words)
}
