//! Callers that leave: thousands of calls that are reset, hundreds of
//! connections that are cut, against the real binary. Nobody else notices, what
//! was sent has its fate, and nothing of them stays.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Phone, Scenario};
use fleetgate_tests::bystander::Bystander;
use fleetgate_tests::facts::clean;
use fleetgate_tests::lane::tap_request;
use fleetgate_tests::process::Process;
use fleetgate_tests::raw::{DATA, GOAWAY, Raw, call, reset};
use fleetgate_tests::scene::Scene;
use fleetgate_tests::soon;
use prost::Message;

const TAP: &str = "/fleetgate.v1.AutomationService/Tap";

/// More than the memory of a process may grow by chance.
const NOISE: u64 = 48 << 20;

fn tap(stream: u32, phone: &Phone, command_id: &str) -> Vec<u8> {
    call(stream, TAP, &tap_request(phone.udid().as_str(), command_id))
}

/// How many of these taps were done; each of them is as the ledger says.
async fn done(scene: &Scene, phone: &Phone, ids: &[String]) -> usize {
    let mut done = 0;
    for id in ids {
        let story = scene.story(phone, CommandKind::Tap, id, Vec::new()).await;
        done += story.on_phone.effects.len();
    }
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_resets_harm_no_other_call_not_even_on_their_connection() {
    const RESETS: u32 = 2_000;
    let scene = Scene::start(Scenario::fleet(3).scaled(0.02)).await;
    let process = Process::new(scene.pid());
    let bystander = Bystander::start(&scene, scene.phone(2)).await;
    let (patient, phone) = (scene.phone(0), scene.phone(1));
    let memory = process.resident();

    let mut raw = Raw::to(&scene.server.url).await;
    let by = Duration::from_secs(70);
    patient.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    raw.send(&tap(1, &patient, "patient")).await;
    soon("a tap", patient.wait_until(|phone| phone.in_flight == 1)).await;
    let ids: Vec<_> = (0..RESETS).map(|n| format!("reset-{n}")).collect();
    for (stream, id) in (3..).step_by(2).zip(&ids) {
        let bytes = [tap(stream, &phone, id), reset(stream)].concat();
        raw.send(&bytes).await;
    }
    // The one that waits is answered, on the same connection.
    let reply = loop {
        let frame = soon("a frame", raw.frame()).await.expect("a reply");
        assert_ne!(frame.kind, GOAWAY, "{frame:?}");
        if (frame.kind, frame.stream) == (DATA, 1) {
            break pb::TapResponse::decode(&frame.payload[5..]).unwrap();
        }
    };
    clean(reply.receipt, "patient");
    bystander.assert_unharmed().await;

    let done = done(&scene, &phone, &ids).await;
    println!("{done} of {RESETS} taps were done before word came that nobody waits");
    assert_eq!(phone.effects().len(), done);
    assert_eq!(phone.max_in_flight(), 1);
    let grown = process.resident().saturating_sub(memory);
    assert!(grown < NOISE, "{grown} bytes more");
    drop(raw);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_connections_that_are_cut_leave_fates_and_no_sockets() {
    const CALLERS: u32 = 300;
    let scene = Scene::start(Scenario::fleet(2).scaled(0.02)).await;
    let process = Process::new(scene.pid());
    let phone = scene.phone(0);
    let sockets = process.sockets();
    let bystander = Bystander::start(&scene, scene.phone(1)).await;
    let ids: Vec<_> = (0..CALLERS).map(|n| format!("cut-{n}")).collect();
    let mut open = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        let mut raw = Raw::to(&scene.server.url).await;
        raw.send(&tap(1, &phone, id)).await;
        // Every third stays until all have called.
        if n % 3 == 0 {
            open.push(raw);
        }
    }
    soon(
        "some taps",
        phone.wait_until(|phone| phone.effects_total > 20),
    )
    .await;
    drop(open);
    let done = done(&scene, &phone, &ids).await;
    println!("{done} of {CALLERS} taps were done");
    assert_eq!(phone.effects().len(), done);
    assert_eq!(phone.max_in_flight(), 1);
    bystander.assert_unharmed().await;
    // The tests' own connection was there before.
    process.until_sockets(sockets).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_changes_nothing_about_what_was_sent() {
    let scene = Scene::start(Scenario::fleet(1).scaled(0.02)).await;
    let phone = scene.phone(0);
    let mut raw = Raw::to(&scene.server.url).await;
    let mut ids = Vec::new();
    for stream in (1..200).step_by(2) {
        let id = format!("cancelled-{stream}");
        let before = phone.arrivals().len();
        raw.send(&tap(stream, &phone, &id)).await;
        soon(
            "the tap",
            phone.wait_until(|phone| phone.arrivals.len() > before),
        )
        .await;
        raw.send(&reset(stream)).await;
        ids.push(id);
    }
    assert_eq!(done(&scene, &phone, &ids).await, ids.len(), "each was sent");
    drop(raw);
    scene.end().await;
}
