//! Masses of what is large, and of readers that do not read, against the real
//! binary: nobody else notices, and its memory is bounded.

use std::fs;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, Phone, Scenario};
use fleetgate_tests::bystander::Bystander;
use fleetgate_tests::facts::clean;
use fleetgate_tests::lane::tap_request;
use fleetgate_tests::process::Process;
use fleetgate_tests::scene::{Scene, send};
use fleetgate_tests::{APP, connect, plain_lab, refused, soon};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Streaming};

const MEGABYTE: u64 = 1 << 20;

/// What a process has grown by, in megabytes.
fn grown(now: u64, before: u64) -> u64 {
    now.saturating_sub(before) / MEGABYTE
}

/// A request of five megabytes.
async fn too_large(channel: Channel, device: String) {
    let request = pb::TypeTextRequest {
        device,
        command_id: None,
        lease: None,
        app_bundle_id: APP.to_owned(),
        text: "x".repeat(5 << 20),
    };
    let refusal = refused(
        AutomationServiceClient::new(channel)
            .type_text(request)
            .await,
    );
    assert_eq!(refusal.code, Code::OutOfRange, "{refusal:?}");
}

/// A request with 64 KiB of metadata.
async fn too_wordy(channel: Channel, device: String) {
    let mut request = Request::new(tap_request(&device, "wordy"));
    let value = "m".repeat(64 << 10).parse().unwrap();
    request.metadata_mut().insert("x-large", value);
    let refusal = refused(AutomationServiceClient::new(channel).tap(request).await);
    assert_eq!(refusal.code, Code::ResourceExhausted, "{refusal:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_requests_that_are_too_large_harm_no_other_not_even_on_their_connection() {
    const EACH: usize = 40;
    let scene = Scene::start(Scenario::fleet(2).scaled(0.02)).await;
    let process = Process::new(scene.pid());
    let (phone, bystander) = (
        scene.phone(0),
        Bystander::start(&scene, scene.phone(1)).await,
    );
    let (mut after, mut taps) = (Vec::new(), 0);
    for _ in 0..3 {
        let mut calls = JoinSet::new();
        for _ in 0..2 {
            let channel = connect(&scene.server.url).await;
            for _ in 0..EACH / 2 {
                let (device, channel) = (phone.udid().to_string(), channel.clone());
                calls.spawn(too_large(channel.clone(), device.clone()));
                calls.spawn(too_wordy(channel, device));
            }
            // In their midst, on their connection.
            taps += 1;
            let id = format!("fits-{taps}");
            let tap = send(channel, &phone, CommandKind::Tap, &id);
            calls.spawn(async move {
                clean(Some(tap.await.unwrap()), &id);
            });
        }
        while let Some(ended) = soon("a refusal", calls.join_next()).await {
            ended.unwrap();
        }
        after.push(process.resident());
    }
    bystander.assert_unharmed().await;
    // Of two hundred megabytes each time, none stays.
    let more = grown(after[2], after[0]);
    assert!(more < 100, "{more} MB more by the same again");
    assert_eq!(phone.report().effects_total, taps, "what fits, and no more");
    assert_eq!(phone.arrivals().len() as u64, taps);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_of_many_words_fills_neither_memory_nor_ledger() {
    const TAPS: usize = 600;
    let scene = Scene::start(Scenario::fleet(2).scaled(0.02)).await;
    let process = Process::new(scene.pid());
    let (phone, bystander) = (
        scene.phone(0),
        Bystander::start(&scene, scene.phone(1)).await,
    );
    let long = Fault::from(Injection::LongMessage { bytes: 100_000 });
    phone.fault(long.times(u32::try_from(TAPS).unwrap()));
    let mut client = AutomationServiceClient::new(scene.channel());
    let mut early = 0;
    for n in 0..TAPS {
        let id = format!("wordy-{n}");
        let reply = client.tap(tap_request(phone.udid().as_str(), &id)).await;
        let reply = reply.unwrap().into_inner();
        assert_eq!(reply.message.len(), 100_000);
        clean(reply.receipt, &id);
        if n == TAPS / 6 {
            early = process.resident();
        }
    }
    bystander.assert_unharmed().await;
    // Fifty megabytes of words later.
    let more = grown(process.resident(), early);
    assert!(more < 25, "{more} MB more");
    let ledger = fs::metadata(scene.ledger_path()).unwrap().len() / MEGABYTE;
    assert!(ledger < 20, "a ledger of {ledger} MB");
    assert_eq!(phone.effects().len(), TAPS);
    scene.end().await;
}

/// A connection that takes in little that nobody reads.
async fn lazy(scene: &Scene) -> Channel {
    Endpoint::from_shared(scene.server.url.clone())
        .unwrap()
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(64 << 10)
        .connect()
        .await
        .unwrap()
}

async fn picture(channel: Channel, phone: &Phone) -> Streaming<pb::CaptureScreenshotResponse> {
    let request = pb::CaptureScreenshotRequest {
        device: phone.udid().to_string(),
        command_id: None,
        lease: None,
    };
    let mut client = AutomationServiceClient::new(channel);
    let parts = soon("a picture", client.capture_screenshot(request)).await;
    parts.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_that_nobody_reads_cost_their_size_and_are_gone_with_their_reader() {
    const UNREAD: usize = 16;
    // At the phones' own pace: pictures are drawn by real work.
    let mut scenario = plain_lab(3, 1.0);
    for phone in &mut scenario.phones[..2] {
        phone.screen.noise = true;
        phone.screen.scale = 2;
    }
    let scene = Scene::start(scenario).await;
    let process = Process::new(scene.pid());
    let sockets = process.sockets();
    let bystander = Bystander::start(&scene, scene.phone(2)).await;
    let size = scene
        .phone(0)
        .with_screen(|screen| screen.screenshot())
        .len() as u64;
    assert!(size > 2 * MEGABYTE, "a picture of {size} bytes");
    let all = size * UNREAD as u64 / MEGABYTE;
    let before = process.resident();
    let mut after = Vec::new();
    for _ in 0..3 {
        let mut unread = Vec::new();
        for n in 0..UNREAD {
            // One connection each, so that none is in another's way.
            let channel = lazy(&scene).await;
            unread.push(picture(channel, &scene.phone(n % 2)).await);
        }
        drop(unread);
        after.push(process.resident());
    }
    bystander.assert_unharmed().await;
    let peak = grown(process.peak(), before);
    assert!(peak < 2 * all + 64, "{peak} MB for {all} MB of pictures");
    let more = grown(after[2], after[0]);
    assert!(more < all, "{more} MB more by twice {all} MB");
    process.until_sockets(sockets).await;
    scene.end().await;
}

async fn tail(channel: Channel) -> Streaming<pb::TailCommandsResponse> {
    let request = pb::TailCommandsRequest::default();
    let mut client = LedgerServiceClient::new(channel);
    client.tail_commands(request).await.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_nobody_reads_are_kept_by_the_ledger_alone() {
    const READERS: usize = 64;
    const PHONES: usize = 6;
    const TAPS: usize = 250;
    let scene = Scene::start(Scenario::fleet(7).scaled(0.02)).await;
    let process = Process::new(scene.pid());
    let bystander = Bystander::start(&scene, scene.phone(PHONES)).await;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(tail(lazy(&scene).await).await);
    }
    let mut callers = JoinSet::new();
    for n in 0..PHONES {
        let (phone, channel) = (scene.phone(n), scene.channel());
        // Its words are kept, as many as a row holds.
        let wordy = Fault::from(Injection::Error {
            code: RunnerCode::CommandFailed,
            message: "w".repeat(2_000),
            hint: Some("h".repeat(2_000)),
            after_effect: true,
        });
        phone.fault(wordy.times(u32::try_from(TAPS).unwrap()));
        callers.spawn(async move {
            for at in 0..TAPS {
                let id = format!("event-{n}-{at}");
                let told = send(channel.clone(), &phone, CommandKind::Tap, &id).await;
                let status = told.unwrap_err();
                assert_eq!(status.code(), Code::Unknown, "{status:?}");
            }
        });
    }
    let before = process.resident();
    soon("the events", callers.join_all()).await;
    let more = grown(process.resident(), before);
    bystander.assert_unharmed().await;
    // Two kilobytes for each tap and reader.
    let unread = (READERS * PHONES * TAPS * 2_000) as u64 / MEGABYTE;
    println!("{more} MB more for {unread} MB that nobody has read");
    assert!(more < unread / 3, "{more} MB more");

    // Whoever reads in the end has missed nothing.
    for mut reader in readers.drain(..2) {
        let mut seq = 0;
        while seq < (2 * PHONES * TAPS) as u64 {
            let message = soon("an event", reader.message()).await.unwrap().unwrap();
            match message.item {
                Some(Item::Event(event)) => {
                    assert_eq!(event.seq, seq + 1);
                    seq = event.seq;
                }
                Some(Item::Heartbeat(_)) => {}
                Some(Item::Gap(_)) | None => panic!("a gap after {seq}"),
            }
        }
    }
    drop(readers);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_pings_every_second_is_served_while_idle_and_during_a_tap() {
    let scene = Scene::start(Scenario::fleet(1).scaled(0.1)).await;
    let phone = scene.phone(0);
    let channel = Endpoint::from_shared(scene.server.url.clone())
        .unwrap()
        .http2_keep_alive_interval(Duration::from_secs(1))
        .keep_alive_timeout(Duration::from_secs(20))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .unwrap();
    let by = Duration::from_secs(30);
    for id in ["after-idling", "again"] {
        phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
        // Idle for two pings, and at the tap for three: that is what is tried.
        tokio::time::sleep(Duration::from_millis(2_200)).await;
        let receipt = send(channel.clone(), &phone, CommandKind::Tap, id).await;
        clean(Some(receipt.unwrap()), id);
    }
    assert_eq!(phone.effects().len(), 2);
    drop(channel);
    scene.end().await;
}
