//! Without a gateway.

use Severity::{Error, Warning};

use super::*;

#[test]
fn a_gateway_that_is_not_there_is_the_first_of_what_is_wrong() {
    let phones = Mux::Phones {
        cabled: 1,
        networked: 0,
    };
    assert_eq!(kinds(&on_this_host(phones)), [(Error, "NO_GATEWAY")]);
    let odd = Evidence {
        gateway: Err(NoGateway::Odd("UNIMPLEMENTED".to_owned())),
        local: None,
        ..answers(Vec::new())
    };
    assert_eq!(kinds(&odd), [(Error, "GATEWAY_ODD")]);
}

#[test]
fn a_configuration_that_cannot_be_read_hides_all_that_it_would_name() {
    let evidence = no_gateway(Err("line 2: unknown field `speed`".to_owned()));
    assert_eq!(
        kinds(&evidence),
        [(Error, "NO_GATEWAY"), (Error, "CONFIG_UNUSABLE")]
    );
    assert_eq!(findings(&evidence)[1].places, ["/etc/fleetgate.toml"]);
}

#[test]
fn a_usbmuxd_on_this_host_is_missing_or_refuses_or_is_silent_or_none() {
    for (mux, code) in [
        (Mux::Missing, "USBMUXD_MISSING"),
        (Mux::Refused, "USBMUXD_REFUSES"),
        (Mux::Forbidden, "USBMUXD_REFUSES"),
        (Mux::Silent, "USBMUXD_SILENT"),
        (Mux::Odd("HTTP".to_owned()), "USBMUXD_ODD"),
    ] {
        let evidence = on_this_host(mux);
        assert_eq!(kinds(&evidence), [(Error, "NO_GATEWAY"), (Error, code)]);
        assert!(
            findings(&evidence)[1].places[0].contains("/var/run/usbmuxd"),
            "{code}"
        );
    }
}

#[test]
fn a_usbmuxd_without_a_phone_by_cable_has_no_phones() {
    let evidence = on_this_host(Mux::Phones {
        cabled: 0,
        networked: 3,
    });
    assert_eq!(
        kinds(&evidence),
        [(Error, "NO_GATEWAY"), (Error, "NO_PHONES")]
    );
}

#[test]
fn a_ledger_that_could_not_be_written_or_would_soon_be_full_is_found_without_a_gateway() {
    for (ledger, severity, code) in [
        (file(Some("denied"), 9 * GIB), Error, "LEDGER_UNWRITABLE"),
        (file(None, GIB), Warning, "DISK_LOW"),
        (file(None, 1000), Error, "DISK_FULL"),
    ] {
        let evidence = no_gateway(Ok(Parts {
            hosts: Vec::new(),
            ledger,
        }));
        assert_eq!(kinds(&evidence), [(Error, "NO_GATEWAY"), (severity, code)]);
    }
}
