//! Requests that are well-formed and ask for what is not there, and the reads
//! of fleet and ledger that cannot be understood.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::rows;
use fleetgate_tests::{Refusal, Rig, plain, refused};
use prost_types::Timestamp;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_nobody_knows_is_not_found() {
    let rig = Rig::plain(1).await;
    for name in ["00008110-0000000000000000", "rack-9", "../../etc", "🙂"] {
        for kind in CommandKind::ALL {
            let refusal = refused(plain::send(&rig, name, kind, "an-id").await);
            assert_eq!(
                (refusal.code, refusal.reason.as_str()),
                (Code::NotFound, "DEVICE_UNKNOWN")
            );
            assert_eq!(refusal.domain, "fleetgate");
            for (key, value) in [("device", name), ("fate", "NOT_SENT"), ("effect", "NONE")] {
                assert_eq!(refusal.meta(key), value, "{kind}");
            }
            assert_eq!(
                refusal.meta("command_id") == "an-id",
                !kind.bypasses_queue(),
                "{kind}"
            );
            assert!(refusal.meta("hint").contains("ListDevices"));
            assert_eq!(refusal.retry_delay, None);
        }
    }
    assert_eq!(rows(&rig).await, []);
    assert_eq!(rig.phone(0).report().connects.usb, 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_whose_runner_listens_nobody_knows_where_is_refused() {
    let scenario = fleetgate_simulator::Scenario::fleet(1).scaled(0.02);
    let rig = Rig::configured(scenario, |config| config.runner.port = None).await;
    let udid = rig.udid(0);
    for kind in CommandKind::ALL {
        let refusal = refused(plain::send(&rig, &udid, kind, "an-id").await);
        let what = (refusal.code, refusal.reason.as_str());
        assert_eq!(what, (Code::FailedPrecondition, "RUNNER_PORT_UNKNOWN"));
        assert_eq!(
            (refusal.meta("fate"), refusal.meta("effect")),
            ("NOT_SENT", "NONE")
        );
        assert_eq!(refusal.meta("device"), udid);
        assert!(refusal.meta("hint").contains("runner_port"));
        assert_eq!(refusal.retry_delay, None);
    }
    assert_eq!(rows(&rig).await, []);
    assert_eq!(rig.phone(0).report().connects.usb, 0);
    rig.stop().await;
}

#[track_caller]
fn assert_names(refusal: &Refusal, fields: &[&str]) {
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::InvalidArgument, "INVALID_ARGUMENT")
    );
    let named: Vec<_> = refusal
        .violations
        .iter()
        .map(|(field, _)| field.as_str())
        .collect();
    assert_eq!(named, fields, "{refusal:?}");
    assert_eq!(refusal.retry_delay, None);
}

async fn list(rig: &Rig, request: pb::ListCommandsRequest) -> Refusal {
    refused(rig.ledger().list_commands(request).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_the_ledger_is_checked_field_by_field() {
    type Change = fn(&mut pb::ListCommandsRequest);
    let rig = Rig::plain(1).await;
    let none = pb::ListCommandsRequest::default();
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let bad: [(Change, &str); 8] = [
        (|request| request.kinds = vec![2, 0], "kinds"),
        (|request| request.kinds = vec![99], "kinds"),
        (|request| request.fates = vec![1, 99], "fates"),
        (|request| request.page_size = -1, "page_size"),
        (
            |request| request.page_token = "nonsense".to_owned(),
            "page_token",
        ),
        (
            |request| request.page_token = "e30".to_owned(),
            "page_token",
        ),
        (
            |request| request.page_token = "x".repeat(10_000),
            "page_token",
        ),
        (|request| request.page_token = " ".to_owned(), "page_token"),
    ];
    for (change, field) in bad {
        let mut request = none.clone();
        change(&mut request);
        assert_names(&list(&rig, request).await, &[field]);
    }
    for (start_time, end_time, field) in [
        (at(i64::MIN), None, "start_time"),
        (None, at(i64::MIN), "end_time"),
        (at(2), at(1), "end_time"),
    ] {
        let request = pb::ListCommandsRequest {
            start_time,
            end_time,
            ..none.clone()
        };
        assert_names(&list(&rig, request).await, &[field]);
    }
    let all = pb::ListCommandsRequest {
        device: rig.udid(0),
        kinds: vec![0],
        fates: vec![99],
        start_time: at(2),
        end_time: at(1),
        page_size: -1,
        page_token: "nonsense".to_owned(),
        ..pb::ListCommandsRequest::default()
    };
    let fields = ["kinds", "fates", "end_time", "page_size", "page_token"];
    assert_names(&list(&rig, all).await, &fields);

    let device = "rack-9".to_owned();
    let refusal = list(
        &rig,
        pb::ListCommandsRequest {
            device,
            ..none.clone()
        },
    )
    .await;
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::NotFound, "DEVICE_UNKNOWN")
    );
    // A phone that was never seen here may have been before.
    let device = "00008110-0000000000000000".to_owned();
    let request = pb::ListCommandsRequest { device, ..none };
    let page = rig
        .ledger()
        .list_commands(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page, pb::ListCommandsResponse::default());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_is_of_no_use_with_other_filters() {
    let rig = Rig::plain(2).await;
    for n in 0..4 {
        let id = format!("row-{n}");
        plain::send(&rig, &rig.udid(0), CommandKind::Button, &id)
            .await
            .unwrap();
    }
    let first = pb::ListCommandsRequest {
        page_size: 2,
        ..pb::ListCommandsRequest::default()
    };
    let page = rig
        .ledger()
        .list_commands(first.clone())
        .await
        .unwrap()
        .into_inner();
    let next = pb::ListCommandsRequest {
        page_token: page.next_page_token,
        ..first
    };
    for other in [
        pb::ListCommandsRequest {
            device: rig.udid(0),
            ..next.clone()
        },
        pb::ListCommandsRequest {
            kinds: vec![pb::CommandKind::Button.into()],
            ..next.clone()
        },
        pb::ListCommandsRequest {
            fates: vec![pb::Fate::Completed.into()],
            ..next.clone()
        },
        pb::ListCommandsRequest {
            start_time: Some(Timestamp::default()),
            ..next.clone()
        },
    ] {
        assert_names(&list(&rig, other).await, &["page_token"]);
    }
    let page = rig.ledger().list_commands(next).await.unwrap().into_inner();
    let ids: Vec<_> = page
        .commands
        .into_iter()
        .map(|row| row.command_id)
        .collect();
    assert_eq!(ids, ["row-1", "row-0"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_is_looked_up_by_an_id_that_can_be_one_and_is_there() {
    let rig = Rig::plain(1).await;
    for id in ["", "two words", &"x".repeat(129)] {
        let request = pb::GetCommandRequest {
            command_id: id.to_owned(),
        };
        assert_names(
            &refused(rig.ledger().get_command(request).await),
            &["command_id"],
        );
    }
    let request = pb::GetCommandRequest {
        command_id: "never".to_owned(),
    };
    let refusal = refused(rig.ledger().get_command(request).await);
    let what = (refusal.code, refusal.reason.as_str());
    assert_eq!(what, (Code::NotFound, "NEVER_SENT"));
    let facts = (refusal.meta("fate"), refusal.meta("effect"));
    assert_eq!(
        facts,
        ("NOT_SENT", "NONE"),
        "no mutation is sent without a record"
    );
    assert_eq!(refusal.meta("command_id"), "never");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_read_by_pages_and_names_that_can_be_such() {
    let rig = Rig::plain(2).await;
    for (page_size, page_token, fields) in [
        (-1, "", &["page_size"][..]),
        (0, "nonsense", &["page_token"]),
        (i32::MIN, "rack-9", &["page_size", "page_token"]),
    ] {
        let request = pb::ListDevicesRequest {
            page_size,
            page_token: page_token.to_owned(),
        };
        assert_names(&refused(rig.fleet().list_devices(request).await), fields);
    }
    for device in ["", "  "] {
        let request = pb::GetDeviceRequest {
            device: device.to_owned(),
        };
        assert_names(&refused(rig.fleet().get_device(request).await), &["device"]);
    }
    let request = pb::GetDeviceRequest {
        device: "rack-9".to_owned(),
    };
    let refusal = refused(rig.fleet().get_device(request).await);
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::NotFound, "DEVICE_UNKNOWN")
    );
    rig.stop().await;
}
