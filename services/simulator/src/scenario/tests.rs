//! Scenario files: everything that can be said, and where complaints point.

use fleetgate_runner::CommandKind;

use super::*;
use crate::fault::Injection;
use crate::launch::Mishap;
use crate::stray::EntryKey;

fn complaint(text: &str) -> String {
    text.parse::<Scenario>().unwrap_err().to_string()
}

#[test]
fn everything_that_can_be_said_is_read() {
    let scenario: Scenario = r#"
        time_scale = 0.01

        [[phones]]
        udid = "00008110000978540290401e"
        serial = "00008110000978540290401e"
        name = "iPhone 13"
        model = "iPhone14,4"
        os_version = "17.0"
        port = 8200
        connection = ["network", "usb"]
        runner = false
        uptime = "23h 59m"
        locked = true
        trusted = false
        lockdown = "silent"
        apps = { "com.example.mail" = "background" }
        screen = { rows = 750, dense = true, action_button = true }
        faults = [
          { on = "tap", inject = "reply_lost_after_execution" },
          { times = 3, skip = 1, inject = "busy" },
          { on = "type", inject = { slow = { by = "2s" } } },
          { inject = { error = { code = "COMMAND_FAILED", message = "no", hint = "look" } } },
          { inject = { killed = { after_effect = true, restart_on = 8300 } } },
        ]
        launch_faults = [
          { times = 2, inject = "never_listens" },
          { skip = 1, inject = { exits = { message = "no" } } },
          { inject = { listens_again = { after = "3s", port = 8400 } } },
        ]

        [[strays]]
        serial = "odd"
        lacks = ["device_id", "properties"]
    "#
    .parse()
    .unwrap();
    let [phone] = &scenario.phones[..] else {
        panic!("one phone")
    };
    assert!((scenario.time_scale - 0.01).abs() < f64::EPSILON);
    assert_eq!(phone.udid.as_str(), "00008110-000978540290401E");
    assert_eq!(phone.serial, "00008110000978540290401e");
    assert_eq!(phone.connection, [Transport::Network, Transport::Usb]);
    assert_eq!(phone.uptime, Duration::from_secs((23 * 60 + 59) * 60));
    assert_eq!(
        (phone.port, phone.runner, phone.locked),
        (8200, false, true)
    );
    assert_eq!(
        phone.apps.values().copied().collect::<Vec<_>>(),
        [AppState::Background]
    );
    assert!(phone.screen.dense && phone.screen.action_button);
    assert_eq!(
        (phone.model.as_str(), phone.os_version.as_str()),
        ("iPhone14,4", "17.0")
    );
    assert_eq!((phone.trusted, phone.lockdown), (false, Lockdown::Silent));
    let message = "no".to_owned();
    let port = Some(8400);
    let after = Duration::from_secs(3);
    assert_eq!(
        phone.launch_faults,
        [
            LaunchFault::from(Mishap::NeverListens).times(2),
            LaunchFault::from(Mishap::Exits { code: 65, message }).skip(1),
            Mishap::ListensAgain { after, port }.into(),
        ]
    );
    let lacks = vec![EntryKey::DeviceId, EntryKey::Properties];
    let serial = "odd".to_owned();
    let stray = Stray {
        serial,
        lacks,
        ..Stray::default()
    };
    assert_eq!(scenario.strays, [stray]);
    assert_eq!(
        phone.faults[..3],
        [
            Fault::from(Injection::ReplyLostAfterExecution).on(CommandKind::Tap),
            Fault::from(Injection::Busy).times(3).skip(1),
            Fault::from(Injection::Slow {
                by: Duration::from_secs(2)
            })
            .on(CommandKind::Type),
        ]
    );
    let Injection::Killed {
        after_effect: true,
        restart_on: Some(8300),
    } = phone.faults[4].inject
    else {
        panic!("killed, after its effect, with another runner");
    };
}

#[test]
fn a_count_makes_phones_whose_udids_never_change() {
    let text = "[[phones]]\ncount = 50\nname = \"rack\"\n[[phones]]\n";
    let scenario: Scenario = text.parse().unwrap();
    assert_eq!(scenario.phones.len(), 51);
    assert_eq!(
        scenario.phones[49].udid.as_str(),
        "00008110-00F1EE7000000032"
    );
    assert_eq!(scenario.phones[49].name, "rack 50");
    assert_eq!(
        scenario.phones[50].udid.as_str(),
        "00008110-00F1EE7000000033"
    );
    assert_eq!(text.parse::<Scenario>().unwrap(), scenario);
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let complaint = complaint("time_scale = 1.0\n[[phones]]\nlabel = \"x\"\n");
    assert!(complaint.contains("line 3"), "{complaint}");
    assert!(complaint.contains("label"), "{complaint}");
}

#[test]
fn an_unknown_key_inside_a_fault_is_named_with_its_line() {
    let complaint = complaint(
        "[[phones]]\nfaults = [\n  { inject = \"busy\" },\n  { inject = { slow = { bye = \"1s\" } } },\n]\n",
    );
    assert!(complaint.contains("line 4"), "{complaint}");
    assert!(complaint.contains("bye"), "{complaint}");
}

#[test]
fn an_unknown_fault_is_named_with_its_line() {
    let complaint = complaint("[[phones]]\nfaults = [{ inject = \"gremlins\" }]\n");
    assert!(complaint.contains("line 2"), "{complaint}");
    assert!(complaint.contains("gremlins"), "{complaint}");
}

#[test]
fn values_that_make_no_sense_are_named_with_their_line() {
    let cases = [
        (
            "time_scale = 0.0",
            "line 1: `time_scale`: expected a positive number, got 0",
        ),
        ("[[phones]]\nport = 0", "line 2: `port`: 0 is not a port"),
        (
            "[[phones]]\ncount = 2\nudid = \"00008110-000978540290401E\"",
            "line 3: `udid`: `count` and `udid` exclude each other",
        ),
        (
            "[[phones]]\nconnection = [\"usb\", \"usb\"]",
            "line 2: `connection`: a phone hangs on each transport at most once",
        ),
        (
            "[[phones]]\nfaults = [\n  { on = \"tap\", inject = \"replug\" },\n]",
            "line 3: `faults`: this fault befalls a connection, before its command is known: \
             `on` cannot be given",
        ),
        (
            "[[phones]]\nlaunch_faults = [\n  { times = 0, inject = \"port_zero\" },\n]",
            "line 3: `launch_faults`: `times` must be at least 1",
        ),
        (
            "[[phones]]\nudid = \"00008110-000978540290401E\"\n\
             [[phones]]\nudid = \"00008110000978540290401e\"",
            "line 4: `udid`: another phone has the UDID 00008110-000978540290401E",
        ),
        (
            "[[phones]]\n[[phones]]\nudid = \"00008110-00F1EE7000000001\"",
            "line 3: `udid`: another phone has the UDID 00008110-00F1EE7000000001",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(complaint(text), expected);
    }
}

#[test]
fn the_demo_has_three_phones_and_one_action_button() {
    let demo = Scenario::demo();
    let buttons: Vec<_> = demo
        .phones
        .iter()
        .map(|phone| phone.screen.action_button)
        .collect();
    assert_eq!(buttons, [true, false, false]);
}
