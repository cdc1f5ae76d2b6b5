//! Who may call, and who is trusted.

use Severity::{Error, Warning};
use fleetgate_identity::{Grant, NewToken, Role, TokenFile, TokenInfo};

use super::*;
use crate::doctor::credentials::{Credentials, ServerCertificate};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn nothing_wrong() -> Credentials {
    Credentials {
        records: None,
        exposed: None,
        tokens_path: "/var/lib/fleetgate/tokens.toml".into(),
        tokens: Ok(Vec::new()),
        certificate: None,
    }
}

fn seen(credentials: Credentials) -> Evidence {
    Evidence {
        credentials: Some(credentials),
        ..answers(vec![phone()])
    }
}

/// A token that is good until then.
fn token(expires: SystemTime) -> TokenInfo {
    let dir = tempfile::tempdir().unwrap();
    let new = NewToken {
        name: "ci".to_owned(),
        grants: vec![Grant::fleet_wide(Role::Operator)],
        expires: Some(expires),
    };
    let file = TokenFile::at(dir.path().join("tokens.toml"));
    file.create(new).unwrap().0
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)
}

#[test]
fn what_ends_within_two_weeks_is_a_warning() {
    let evidence = |left: Duration| {
        let certificate = ServerCertificate {
            path: "/etc/fleetgate/cert.pem".into(),
            expires: Ok(now() + left),
        };
        seen(Credentials {
            tokens: Ok(vec![token(now() + left)]),
            certificate: Some(certificate),
            ..nothing_wrong()
        })
    };
    assert_eq!(kinds(&evidence(15 * DAY)), []);
    assert_eq!(
        kinds(&evidence(13 * DAY)),
        [(Warning, "TOKEN_EXPIRES"), (Warning, "CERTIFICATE_EXPIRES")]
    );
}

#[test]
fn a_certificate_that_no_client_takes_is_an_error() {
    let with = |expires| {
        seen(Credentials {
            certificate: Some(ServerCertificate {
                path: "/etc/fleetgate/cert.pem".into(),
                expires,
            }),
            ..nothing_wrong()
        })
    };
    assert_eq!(
        kinds(&with(Ok(now() - DAY))),
        [(Error, "CERTIFICATE_EXPIRED")]
    );
    let odd = with(Err("no certificate is in it".to_owned()));
    assert_eq!(kinds(&odd), [(Error, "CERTIFICATE_UNUSABLE")]);
}

#[test]
fn what_keeps_a_gateway_from_starting_or_from_being_found_is_an_error() {
    let evidence = seen(Credentials {
        records: Some("mode 755".to_owned()),
        exposed: Some("0.0.0.0:7700 can be reached".to_owned()),
        tokens: Err("mode 644".to_owned()),
        ..nothing_wrong()
    });
    assert_eq!(
        kinds(&evidence),
        [
            (Error, "RECORDS_UNUSABLE"),
            (Error, "EXPOSED"),
            (Error, "TOKENS_UNUSABLE")
        ]
    );
}

#[test]
fn a_gateway_that_does_not_let_the_caller_in_is_not_taken_for_something_else() {
    let evidence = Evidence {
        gateway: Err(NoGateway::Closed {
            why: "no credentials were given".to_owned(),
            advice: "say who calls".to_owned(),
        }),
        ..answers(Vec::new())
    };
    assert_eq!(kinds(&evidence), [(Error, "NOT_LET_IN")]);
    assert_eq!(findings(&evidence)[0].advice, "say who calls");
}
