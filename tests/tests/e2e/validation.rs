//! Requests for commands that cannot be used: every field of every one is
//! named, nothing reaches a phone and nothing the ledger.

use std::collections::BTreeSet;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::rows;
use fleetgate_tests::plain::{Head, IN_AN_APP, absolute, normalized, send_as};
use fleetgate_tests::{APP, Refusal, Rig, plain, refused};
use prost_types::Duration;
use tonic::Code;

/// Asserts that a refusal names exactly these fields and says that nothing
/// happened.
#[track_caller]
fn assert_names(refusal: &Refusal, fields: &[&str]) {
    assert_eq!(refusal.code, Code::InvalidArgument, "{refusal:?}");
    assert_eq!(refusal.reason, "INVALID_ARGUMENT");
    assert_eq!(refusal.domain, "fleetgate");
    let named: BTreeSet<_> = refusal
        .violations
        .iter()
        .map(|(field, _)| field.as_str())
        .collect();
    assert_eq!(named, fields.iter().copied().collect(), "{refusal:?}");
    assert_eq!(
        named.len(),
        refusal.violations.len(),
        "each once: {refusal:?}"
    );
    for (field, description) in &refusal.violations {
        assert!(
            !description.is_empty() && refusal.message.contains(field),
            "{refusal:?}"
        );
    }
    for (key, value) in [
        ("fate", "NOT_SENT"),
        ("effect", "NONE"),
        ("reactivated", "false"),
    ] {
        assert_eq!(refusal.meta(key), value, "{refusal:?}");
    }
    assert_eq!(refusal.retry_delay, None);
}

/// Asserts that nothing has come to the phone or the ledger.
async fn assert_untouched(rig: &Rig) {
    let report = rig.phone(0).report();
    assert_eq!((report.arrivals, report.effects), (vec![], vec![]));
    assert_eq!(report.connects.usb, 0);
    assert_eq!(rows(rig).await, []);
}

fn good(rig: &Rig) -> Head {
    Head {
        device: rig.udid(0),
        command_id: Some("an-id".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_requests_share_is_checked_in_each_of_them() {
    let rig = Rig::plain(1).await;
    let lease = Some(pb::LeaseRef {
        id: "no lease".to_owned(),
        epoch: 1,
    });
    for kind in plain::queued() {
        let refusal = refused(
            send_as(
                &rig,
                kind,
                Head {
                    lease: lease.clone(),
                    ..good(&rig)
                },
            )
            .await,
        );
        assert_names(&refusal, &["lease.id"]);
        assert_eq!(
            (refusal.meta("device"), refusal.meta("command_id")),
            (&*rig.udid(0), "an-id")
        );
        // An empty one is one all the same.
        let head = Head {
            lease: Some(pb::LeaseRef::default()),
            ..good(&rig)
        };
        assert_names(&refused(send_as(&rig, kind, head).await), &["lease.id"]);

        for device in ["", "  "] {
            let head = Head {
                device: device.to_owned(),
                ..good(&rig)
            };
            assert_names(&refused(send_as(&rig, kind, head).await), &["device"]);
        }
        for id in [
            "",
            "  ",
            "two words",
            "naïve",
            "line\nbreak",
            &"x".repeat(129),
        ] {
            let head = Head {
                command_id: Some(id.to_owned()),
                ..good(&rig)
            };
            assert_names(&refused(send_as(&rig, kind, head).await), &["command_id"]);
        }
        if IN_AN_APP.contains(&kind) {
            for app in [
                "",
                "  ",
                "com.example/app",
                "two words",
                "com.exämple",
                &"x".repeat(256),
            ] {
                let head = Head {
                    app_bundle_id: app.to_owned(),
                    ..good(&rig)
                };
                assert_names(
                    &refused(send_as(&rig, kind, head).await),
                    &["app_bundle_id"],
                );
            }
        }
        // All at once.
        let head = Head {
            device: String::new(),
            command_id: Some(String::new()),
            lease: lease.clone(),
            app_bundle_id: String::new(),
        };
        let fields = ["device", "command_id", "lease.id", "app_bundle_id"];
        let fields = if IN_AN_APP.contains(&kind) {
            &fields
        } else {
            &fields[..3]
        };
        assert_names(&refused(send_as(&rig, kind, head).await), fields);
    }
    assert_untouched(&rig).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_of_status_need_a_device_and_a_look_up_its_id() {
    let rig = Rig::plain(1).await;
    for kind in [CommandKind::Status, CommandKind::CommandStatus] {
        let head = Head {
            device: " ".to_owned(),
            ..good(&rig)
        };
        assert_names(&refused(send_as(&rig, kind, head).await), &["device"]);
    }
    for id in ["", "two words", &"x".repeat(129)] {
        let head = Head {
            command_id: Some(id.to_owned()),
            ..good(&rig)
        };
        let refusal = refused(send_as(&rig, CommandKind::CommandStatus, head).await);
        assert_names(&refusal, &["command_id"]);
    }
    assert_untouched(&rig).await;
    rig.stop().await;
}

/// Points that cannot be used, and the fields that are wrong in each, below the
/// point's own.
fn bad_points() -> Vec<(Option<pb::Point>, &'static [&'static str])> {
    vec![
        (None, &[""]),
        (Some(pb::Point { place: None }), &[""]),
        (absolute(f64::NAN, 1.0), &[".absolute.x"]),
        (absolute(1.0, f64::INFINITY), &[".absolute.y"]),
        (
            absolute(f64::NEG_INFINITY, f64::NAN),
            &[".absolute.x", ".absolute.y"],
        ),
        (normalized(-0.001, 0.5), &[".normalized.x"]),
        (normalized(0.5, 1.001), &[".normalized.y"]),
        (
            normalized(f64::NAN, f64::INFINITY),
            &[".normalized.x", ".normalized.y"],
        ),
    ]
}

/// Durations that no gesture can have.
fn bad_durations() -> [Option<Duration>; 4] {
    let duration = |seconds, nanos| Some(Duration { seconds, nanos });
    [
        duration(-1, 0),
        duration(0, -1_000_000),
        duration(0, 1_500_000),
        duration(75, 1_000_000),
    ]
}

fn below(field: &str, rest: &[&str]) -> Vec<String> {
    rest.iter().map(|rest| format!("{field}{rest}")).collect()
}

fn tap(rig: &Rig) -> pb::TapRequest {
    let Head {
        device,
        command_id,
        lease,
        app_bundle_id,
    } = good(rig);
    let (point, number_of_taps) = (absolute(1.0, 1.0), None);
    pb::TapRequest {
        device,
        command_id,
        lease,
        app_bundle_id,
        point,
        number_of_taps,
    }
}

fn long_press(rig: &Rig) -> pb::LongPressRequest {
    let Head {
        device,
        command_id,
        lease,
        app_bundle_id,
    } = good(rig);
    let (point, duration) = (absolute(1.0, 1.0), None);
    pb::LongPressRequest {
        device,
        command_id,
        lease,
        app_bundle_id,
        point,
        duration,
    }
}

fn drag(rig: &Rig) -> pb::DragRequest {
    let Head {
        device,
        command_id,
        lease,
        app_bundle_id,
    } = good(rig);
    let (from, to) = (absolute(1.0, 1.0), absolute(2.0, 2.0));
    let (duration, hold, settle) = (None, None, false);
    pb::DragRequest {
        device,
        command_id,
        lease,
        app_bundle_id,
        from,
        to,
        duration,
        hold,
        settle,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_point_of_a_gesture_must_be_a_place() {
    let rig = Rig::plain(1).await;
    let mut client = rig.automation();
    for (point, fields) in bad_points() {
        let assert = |refusal: Refusal, field: &str| {
            let named = below(field, fields);
            assert_names(
                &refusal,
                &named.iter().map(String::as_str).collect::<Vec<_>>(),
            );
        };
        let request = pb::TapRequest { point, ..tap(&rig) };
        assert(refused(client.tap(request).await), "point");
        let request = pb::LongPressRequest {
            point,
            ..long_press(&rig)
        };
        assert(refused(client.long_press(request).await), "point");
        let request = pb::DragRequest {
            from: point,
            ..drag(&rig)
        };
        assert(refused(client.drag(request).await), "from");
        let request = pb::DragRequest {
            to: point,
            ..drag(&rig)
        };
        assert(refused(client.drag(request).await), "to");
    }
    assert_untouched(&rig).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_a_gesture_must_make_sense() {
    let rig = Rig::plain(1).await;
    let mut client = rig.automation();
    let request = pb::TapRequest {
        number_of_taps: Some(0),
        ..tap(&rig)
    };
    assert_names(&refused(client.tap(request).await), &["number_of_taps"]);
    for duration in bad_durations() {
        let request = pb::LongPressRequest {
            duration,
            ..long_press(&rig)
        };
        assert_names(&refused(client.long_press(request).await), &["duration"]);
        let request = pb::DragRequest {
            duration,
            ..drag(&rig)
        };
        assert_names(&refused(client.drag(request).await), &["duration"]);
        let request = pb::DragRequest {
            hold: duration,
            ..drag(&rig)
        };
        assert_names(&refused(client.drag(request).await), &["hold"]);
        // Both, and both points.
        let (from, to) = (None, normalized(2.0, 0.0));
        let request = pb::DragRequest {
            duration,
            hold: duration,
            from,
            to,
            ..drag(&rig)
        };
        let fields = ["from", "to.normalized.x", "duration", "hold"];
        assert_names(&refused(client.drag(request).await), &fields);
    }
    assert_untouched(&rig).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_must_not_be_empty_and_a_button_must_be_one() {
    let rig = Rig::plain(1).await;
    let Head {
        device,
        command_id,
        lease,
        app_bundle_id,
    } = good(&rig);
    let text = String::new();
    let (id, lease) = (command_id.clone(), lease);
    let request = pb::TypeTextRequest {
        device: device.clone(),
        command_id: id,
        lease: lease.clone(),
        app_bundle_id,
        text,
    };
    assert_names(
        &refused(rig.automation().type_text(request).await),
        &["text"],
    );
    for button in [0, 5, 99, -1] {
        let (device, command_id) = (device.clone(), command_id.clone());
        let request = pb::PressButtonRequest {
            device,
            command_id,
            lease: lease.clone(),
            button,
        };
        assert_names(
            &refused(rig.automation().press_button(request).await),
            &["button"],
        );
    }
    assert_untouched(&rig).await;
    rig.stop().await;
}
