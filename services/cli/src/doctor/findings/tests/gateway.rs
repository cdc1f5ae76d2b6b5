//! A gateway, its usbmuxds and its ledger.

use Severity::{Error, Info, Warning};

use super::*;

#[test]
fn a_usbmuxd_that_the_gateway_cannot_reach_is_named_with_the_reason() {
    let evidence = about_gateway(|gateway| {
        gateway.mux_hosts = vec![MuxHost {
            connected: false,
            last_error: Some("connection refused".to_owned()),
            ..host()
        }];
    });
    let finding = only(&evidence);
    assert_eq!(
        (finding.severity, finding.code),
        (Error, "USBMUXD_UNREACHABLE")
    );
    assert!(finding.what.contains("connection refused"));
    assert!(finding.places[0].contains("/var/run/usbmuxd"));
}

#[test]
fn no_phones_is_said_only_of_a_usbmuxd_that_is_heard() {
    assert_eq!(kinds(&answers(Vec::new())), [(Error, "NO_PHONES")]);
    let gone = Device {
        state: DeviceState::Detached.into(),
        ..phone()
    };
    assert_eq!(
        kinds(&answers(vec![gone])),
        [(Error, "NO_PHONES"), (Info, "DETACHED")]
    );
    let mut unheard = answers(Vec::new());
    if let Ok(answers) = &mut unheard.gateway {
        answers.gateway.mux_hosts[0].connected = false;
    }
    assert_eq!(kinds(&unheard), [(Error, "USBMUXD_UNREACHABLE")]);
}

#[test]
fn a_ledger_that_fails_is_an_error_and_one_with_little_room_a_warning() {
    let failing = about_gateway(|gateway| {
        gateway.ledger = Some(LedgerHealth {
            writable: false,
            last_error: Some("database or disk is full".to_owned()),
            free_bytes: Some(4096),
            ..ledger()
        });
    });
    let finding = only(&failing);
    assert_eq!((finding.severity, finding.code), (Error, "LEDGER_FAILING"));
    assert!(finding.what.contains("disk is full"), "{}", finding.what);
    assert!(finding.what.contains("4.0 KiB"), "{}", finding.what);

    let with_free = |free: u64| {
        about_gateway(|gateway| {
            gateway.ledger = Some(LedgerHealth {
                free_bytes: Some(free),
                ..ledger()
            });
        })
    };
    assert_eq!(kinds(&with_free(500 << 20)), []);
    assert_eq!(kinds(&with_free((500 << 20) - 1)), [(Warning, "DISK_LOW")]);
    assert_eq!(kinds(&with_free(4096)), [(Error, "DISK_FULL")]);
}

#[test]
fn on_the_gateways_own_host_a_twentieth_of_the_disk_is_little_too() {
    let with_space = |free: u64| Evidence {
        space: Some(Space {
            free,
            total: 100 * GIB,
        }),
        ..answers(vec![phone()])
    };
    assert_eq!(kinds(&with_space(5 * GIB)), []);
    assert_eq!(kinds(&with_space(5 * GIB - 1)), [(Warning, "DISK_LOW")]);
}

#[test]
fn a_gateway_that_drains_or_is_of_another_version_says_so() {
    let evidence = about_gateway(|gateway| {
        gateway.draining = true;
        "0.0.1".clone_into(&mut gateway.version);
        gateway.mux_hosts[0].ignored_entries = 2;
    });
    assert_eq!(
        kinds(&evidence),
        [
            (Warning, "GATEWAY_DRAINING"),
            (Info, "VERSIONS_DIFFER"),
            (Info, "ENTRIES_IGNORED")
        ]
    );
}
