//! What is large: pictures, trees and words, through clients with the limits
//! that every client has by default.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::capture_screenshot_response::Part;
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Injection, Scenario};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::lane::{tap, tap_request};
use fleetgate_tests::{APP, Rig, plain, refused, screen, soon};
use tonic::Streaming;
use tonic::transport::Channel;

/// A phone in its own time with a picture of more than 6 MB.
async fn photographic() -> Rig {
    let mut scenario = Scenario::fleet(1);
    scenario.phones[0].screen.noise = true;
    scenario.phones[0].screen.scale = 3;
    Rig::start(scenario).await
}

async fn begin(
    client: &mut AutomationServiceClient<Channel>,
    device: &str,
) -> (
    pb::ScreenshotHeader,
    Streaming<pb::CaptureScreenshotResponse>,
) {
    let request = pb::CaptureScreenshotRequest {
        device: device.to_owned(),
        command_id: None,
        lease: None,
    };
    let mut parts = client
        .capture_screenshot(request)
        .await
        .unwrap()
        .into_inner();
    match parts.message().await.unwrap().and_then(|first| first.part) {
        Some(Part::Header(header)) => (header, parts),
        first => panic!("a header, not {first:?}"),
    }
}

async fn finish(mut parts: Streaming<pb::CaptureScreenshotResponse>) -> Vec<u8> {
    let mut picture = Vec::new();
    while let Some(part) = parts.message().await.unwrap() {
        match part.part {
            Some(Part::Chunk(chunk)) => picture.extend_from_slice(&chunk),
            other => panic!("a chunk, not {other:?}"),
        }
    }
    picture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_six_megabytes_arrives_as_the_phone_drew_it() {
    let rig = photographic().await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let drawn = phone.with_screen(|screen| screen.screenshot());
    assert!(drawn.len() >= 6_000_000, "{} bytes", drawn.len());

    let (header, parts) = begin(&mut rig.automation(), &udid).await;
    let picture = finish(parts).await;

    assert_eq!(header.size_bytes, u64::try_from(drawn.len()).unwrap());
    assert_eq!((header.width, header.height), (1179, 2556));
    assert!(
        picture == drawn,
        "{} bytes of {}",
        picture.len(),
        drawn.len()
    );
    let id = header.receipt.clone().unwrap().command_id;
    clean(header.receipt, &id);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_a_picture_slowly_holds_up_nobody_else() {
    let rig = photographic().await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let drawn = phone.with_screen(|screen| screen.screenshot());
    let mut slow = AutomationServiceClient::new(rig.connect().await);
    let (_, unread) = begin(&mut slow, &udid).await;

    // Others drive the same phone, and take its picture, meanwhile.
    for n in 0..5 {
        let id = format!("tap-{n}");
        let reply = soon("a reply", tap(&rig, &id)).await.unwrap();
        clean(reply.receipt, &id);
    }
    let changed = phone.with_screen(|screen| screen.screenshot());
    let (_, parts) = begin(&mut rig.automation(), &udid).await;
    let picture = soon("a picture", finish(parts)).await;
    assert!(
        picture == changed && picture != drawn,
        "the taps can be seen"
    );
    // Even on the connection of the slow one, small replies have room.
    let reply = slow.tap(tap_request(&udid, "beside")).await.unwrap();
    clean(reply.into_inner().receipt, "beside");

    assert!(
        soon("the rest", finish(unread)).await == drawn,
        "every byte"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_1500_nodes_arrives_whole_and_says_that_it_was_cut() {
    let mut scenario = Scenario::fleet(1);
    scenario.phones[0].screen.dense = true;
    scenario.phones[0].screen.rows = 1000;
    let rig = Rig::start(scenario).await;
    let phone = rig.phone(0);
    let shown = phone.with_screen(|screen| screen.snapshot(&screen::app()));
    let request = pb::CaptureSnapshotRequest {
        device: rig.udid(0),
        command_id: Some("tree".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    let reply = rig
        .automation()
        .capture_snapshot(request)
        .await
        .unwrap()
        .into_inner();

    assert_eq!((reply.nodes.len(), shown.nodes.len()), (1500, 1500));
    for (told, node) in reply.nodes.iter().zip(&shown.nodes) {
        assert_eq!(
            (
                told.index,
                &told.r#type,
                &told.label,
                &told.identifier,
                told.parent_index
            ),
            (
                node.index,
                &node.kind,
                &node.label,
                &node.identifier,
                node.parent_index
            )
        );
        let rect = told.rect.unwrap();
        assert_eq!((rect.x, rect.y), (node.rect.x, node.rect.y));
    }
    let quality = reply.quality.unwrap();
    assert_eq!(quality.state(), pb::SnapshotState::Degraded);
    assert_eq!(quality.reason_code.as_deref(), Some("node_cap"));
    clean(reply.receipt, "tree");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runners_many_words_are_cut_to_what_a_status_can_carry() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    // The last ones take more room on the wire than in memory.
    for (at, words) in ["x", "ж", "🙂", "\n%"].into_iter().enumerate() {
        let long = words.repeat(100_000 / words.len());
        phone.fault(Injection::Error {
            code: RunnerCode::CommandFailed,
            message: long.clone(),
            hint: Some(long.clone()),
            after_effect: true,
        });
        let id = format!("wordy-{at}");
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, &id).await);

        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (tonic::Code::Unknown, "COMMAND_FAILED")
        );
        assert_eq!(
            (refusal.meta("fate"), refusal.meta("effect")),
            ("FAILED", "UNKNOWN")
        );
        let told = refusal.message.strip_prefix("COMMAND_FAILED: ").unwrap();
        assert!(refusal.message.len() <= 2048, "{}", refusal.message.len());
        assert!(told.len() > 500 && long.starts_with(told), "{told}");
        let hint = refusal.meta("hint");
        assert!(!hint.is_empty() && long.starts_with(hint), "{hint}");
        let row = rig.find(&id).await.unwrap();
        let kept = row.message.unwrap();
        assert!(
            kept.len() <= 2048 && kept.starts_with("COMMAND_FAILED: "),
            "{kept}"
        );
        assert_eq!(effects(&phone, &id).len(), 1);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_with_many_words_arrives_with_all_of_them() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    rig.phone(0)
        .fault(Injection::LongMessage { bytes: 100_000 });
    let reply = tap(&rig, "wordy").await.unwrap();
    assert_eq!(reply.message.len(), 100_000);
    assert!(reply.message.starts_with("tapped."));
    clean(reply.receipt, "wordy");
    rig.stop().await;
}
