//! Requests that are too large: refused here, before a byte of them is sent,
//! and the connection goes on. What is just small enough is sent whole.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, MAX_REQUEST_BYTES, RunnerCode};
use fleetgate_tests::facts::rows;
use fleetgate_tests::verdict::Verdict;
use fleetgate_tests::{APP, Refusal, Rig, plain, plain_lab, refused};
use tonic::Code;

async fn type_text(rig: &Rig, text: String) -> Refusal {
    let request = pb::TypeTextRequest {
        device: rig.udid(0),
        command_id: Some("long".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        text,
    };
    refused(rig.automation().type_text(request).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_no_runner_takes_is_refused_before_it_is_sent() {
    let rig = Rig::plain(1).await;
    let long = [
        "a".repeat(MAX_REQUEST_BYTES),
        // As long as that once it is JSON: twice, and six times.
        "\"".repeat(MAX_REQUEST_BYTES / 2),
        "\u{1}".repeat(MAX_REQUEST_BYTES / 6 + 1),
        "🙂".repeat(MAX_REQUEST_BYTES / 4),
    ];
    for text in long {
        let refusal = type_text(&rig, text).await;
        assert_eq!(refusal.code, Code::InvalidArgument);
        let fields: Vec<_> = refusal
            .violations
            .iter()
            .map(|(field, _)| field.as_str())
            .collect();
        assert_eq!(fields, ["text"]);
        assert!(refusal.violations[0].1.contains("bytes"), "{refusal:?}");
        assert_eq!(
            (refusal.meta("fate"), refusal.meta("effect")),
            ("NOT_SENT", "NONE")
        );
        assert_eq!(refusal.retry_delay, None);
    }
    assert_eq!(rig.phone(0).report().connects.usb, 0);
    assert_eq!(rows(&rig).await, []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_text_that_is_taken_reaches_the_runner_with_the_longest_names() {
    // Megabytes take their time on a busy machine: windows of seconds.
    let rig = Rig::start(plain_lab(1, 0.2)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    // What the gateway says is the most, whatever that is.
    let refusal = type_text(&rig, "a".repeat(MAX_REQUEST_BYTES)).await;
    let digits = |c: char| !c.is_ascii_digit();
    let most = refusal.violations[0]
        .1
        .split(digits)
        .find(|part| !part.is_empty());
    let most: usize = most.unwrap().parse().unwrap();
    assert!(most > MAX_REQUEST_BYTES - 4096, "{most}");

    let (id, app) = ("x".repeat(128), "y".repeat(255));
    let request = |text| pb::TypeTextRequest {
        device: udid.clone(),
        command_id: Some(id.clone()),
        lease: None,
        app_bundle_id: app.clone(),
        text,
    };
    let over = refused(
        rig.automation()
            .type_text(request("a".repeat(most + 1)))
            .await,
    );
    assert_eq!(over.code, Code::InvalidArgument);
    // The runner has read it, or it could not know that this app is not there.
    let refusal = refused(rig.automation().type_text(request("a".repeat(most))).await);
    assert_eq!(refusal.reason, RunnerCode::AppNotAvailable.as_str());
    let row = rig.find(&id).await.unwrap();
    assert_eq!(row.app_bundle_id.as_ref(), Some(&app));
    assert_eq!(phone.report().arrivals_of(CommandKind::Type), 1);

    // The same in letters that JSON doubles, without focus.
    let refusal = type_text(&rig, "\\".repeat(most / 2)).await;
    let verdict = Verdict::of(&RunnerCode::TextInputNotFocused).saying(
        "nothing has keyboard focus",
        Some("tap the text field first"),
    );
    verdict
        .assert(&rig, &udid, CommandKind::Type, "long", &refusal)
        .await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_five_megabyte_request_is_refused_by_its_size_and_the_connection_stays() {
    let rig = Rig::plain(1).await;
    let refusal = type_text(&rig, "a".repeat(5_000_000)).await;
    // Sizes are gRPC's own business, before a message is read.
    assert!(
        matches!(refusal.code, Code::ResourceExhausted | Code::OutOfRange),
        "{refusal:?}"
    );
    assert!(refusal.message.contains("too large"), "{refusal:?}");
    assert!(
        refusal.message.contains(&(4 * 1024 * 1024).to_string()),
        "{refusal:?}"
    );
    assert_eq!(rig.phone(0).report().connects.usb, 0);
    assert_eq!(rows(&rig).await, []);

    plain::send(&rig, &rig.udid(0), CommandKind::Tap, "after")
        .await
        .unwrap();
    rig.stop().await;
}
