//! The real binary as a process: configurations that it refuses, signals that
//! it obeys, a death that it does not survive, and its demo.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_runner::{CommandId, CommandKind};
use fleetgate_simulator::{Fault, Injection, Lab, Phone, Scenario};
use fleetgate_tests::place::{Place, Said, Server, run};
use fleetgate_tests::{APP, binary, connect, pause, plain, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_used_is_refused_by_file_key_and_line() {
    let place = Place::new();
    let (ledger, file) = (place.path("ledger.db"), place.path("fleetgate.toml"));
    let file = file.to_str().unwrap();
    for (text, variable, words) in [
        ("[server]\nspeed = 1", None, &[file, "speed", "line 2"][..]),
        ("\n[sever]\n", None, &[file, "sever", "line 2"]),
        (
            "[lane]\n\ncapacity = 0",
            None,
            &[file, "capacity", "line 3"],
        ),
        (
            "",
            Some(("FLEETGATE_SERVER__LISTEN", "0.0.0.0:0")),
            &[file, "0.0.0.0:0", "[tls]", "fleetgate token create"],
        ),
        ("[[device]]\nudid = 'x'", None, &[file, "udid", "line 2"]),
        ("[server", None, &[file, "line 1"]),
        (
            "",
            Some(("FLEETGATE_LANE__CAPACITY", "many")),
            &["FLEETGATE_LANE__CAPACITY"],
        ),
        (
            "",
            Some(("FLEETGATE_SERVER__SPEED", "1")),
            &["FLEETGATE_SERVER__SPEED", "speed"],
        ),
        (
            "",
            Some(("FLEETGATE_SERVER__LISTEN", "[::]:0")),
            &["[::]:0", "[tls]", "fleetgate token create"],
        ),
    ] {
        let mut serve = place.serve_with(text);
        serve.env("FLEETGATE_LEDGER__PATH", &ledger);
        if let Some((name, value)) = variable {
            serve.env(name, value);
        }
        let said = run(&mut serve, "").await;
        assert_eq!(
            (said.code, said.text().as_str()),
            (1, ""),
            "{text} {variable:?}"
        );
        assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
        for word in words {
            assert!(said.stderr.contains(word), "{word} in {}", said.stderr);
        }
        assert!(!ledger.exists(), "nothing was begun");
    }
    fs::remove_file(file).unwrap();
    let said = run(binary::command().args(["serve", "--config", file]), "").await;
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains(file), "{}", said.stderr);
}

/// A lab with one phone, and a gateway that has found it.
async fn pair(place: &Place) -> (Lab, Phone, Server) {
    let lab = Lab::start(Scenario::fleet(1).scaled(0.1));
    lab.serve_unix(place.usbmuxd()).await.unwrap();
    let phone = lab.phones().remove(0);
    let server = place.serve().await;
    found(&server).await;
    (lab, phone, server)
}

async fn found(server: &Server) {
    soon("the phone", async {
        while !server.ask(&["devices"]).await.text().contains(" attached ") {
            pause().await;
        }
    })
    .await;
}

/// Sends a tap that takes this long and waits until the phone has it.
async fn tap_in_flight(phone: &Phone, server: &Server, seconds: u64) -> JoinSet<Said> {
    let by = Duration::from_secs(seconds);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let mut tap = binary::command();
    let udid = phone.udid().to_string();
    tap.env("FLEETGATE_SERVER", &server.url)
        .args(["tap", &udid, "--app", APP, "--x", "20", "--y", "30"])
        .args(["-o", "json"]);
    let mut taps = JoinSet::new();
    taps.spawn(async move { run(&mut tap, "").await });
    soon(
        "the tap on the phone",
        phone.wait_until(|phone| phone.in_flight == 1),
    )
    .await;
    taps
}

/// The id of the one tap that the phone has had.
fn only_tap(phone: &Phone) -> CommandId {
    let arrivals = phone.arrivals();
    let mut taps = arrivals
        .iter()
        .filter(|arrival| arrival.kind == CommandKind::Tap);
    let tap = taps.next().unwrap().command_id.clone().unwrap();
    assert_eq!(taps.next(), None, "a tap is sent once");
    tap
}

async fn shown(server: &Server, id: &CommandId) -> serde_json::Value {
    let said = server
        .ask(&["command", "show", id.as_str(), "-o", "json"])
        .await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    said.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_tap_end_and_the_fate_outlives_the_process() {
    let place = Place::new();
    let (lab, phone, server) = pair(&place).await;
    let mut taps = tap_in_flight(&phone, &server, 30).await;
    assert_eq!(server.end().await, Some(0));
    let said = taps.join_next().await.unwrap().unwrap();
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.json()["receipt"]["fate"], "completed");
    let id = only_tap(&phone);
    assert_eq!(phone.effects_of(&id), 1);

    let server = place.serve().await;
    assert_eq!(shown(&server, &id).await["fate"], "completed");
    assert_eq!(server.end().await, Some(0));
    assert_eq!(phone.effects_of(&id), 1);
    lab.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_drain_at_once() {
    let place = Place::new();
    let (lab, phone, server) = pair(&place).await;
    let mut taps = tap_in_flight(&phone, &server, 70).await;
    let Server { mut running, url } = server;
    running.terminate().await;
    // The first signal is taken once the door is closed.
    let address = url.replace("http://", "");
    soon("a closed door", async {
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            pause().await;
        }
    })
    .await;
    running.terminate().await;
    let ended = soon("the end", running.child.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(1));
    assert_eq!(phone.report().in_flight, 1, "long before the tap");
    let said = taps.join_next().await.unwrap().unwrap();
    assert_eq!(said.code, 6, "{}", said.stderr);
    lab.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_leaves_the_intent_and_nothing_is_sent_again() {
    let place = Place::new();
    let (lab, phone, server) = pair(&place).await;
    let mut taps = tap_in_flight(&phone, &server, 20).await;
    let Server { mut running, .. } = server;
    running.child.start_kill().unwrap();
    soon("the end", running.child.wait()).await.unwrap();
    let said = taps.join_next().await.unwrap().unwrap();
    assert_eq!(said.code, 6, "{}", said.stderr);
    let told: serde_json::Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!(told["error"]["fate"], "unknown");
    let id = only_tap(&phone);
    assert_eq!(told["error"]["command_id"], id.as_str());
    phone.wait_until(|phone| phone.effects_total == 1).await;

    let server = place.serve().await;
    found(&server).await;
    // The runner may have been asked about it by now; nobody else can know.
    let row = shown(&server, &id).await;
    let fate = row["fate"].as_str().unwrap();
    assert!(["pending", "completed"].contains(&fate), "{row}");
    assert_eq!(row["kind"], "tap");
    let history = server.ask(&["history"]).await.text();
    assert!(history.contains(id.as_str()), "{history}");

    // Its id is used, whatever came of it.
    let mut client = AutomationServiceClient::new(connect(&server.url).await);
    let request = pb::TapRequest {
        device: phone.udid().to_string(),
        command_id: Some(id.to_string()),
        app_bundle_id: APP.to_owned(),
        point: plain::absolute(40.0, 50.0),
        ..pb::TapRequest::default()
    };
    let refusal = refused(client.tap(request).await);
    assert_eq!(refusal.code, Code::AlreadyExists, "{refusal:?}");
    drop(client);
    let tap = [
        "tap",
        phone.udid().as_str(),
        "--app",
        APP,
        "--x",
        "1",
        "--y",
        "2",
    ];
    assert_eq!(server.ask(&tap).await.code, 0, "others go their way");
    assert_eq!(phone.effects_of(&id), 1);
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 2);
    assert_eq!(server.end().await, Some(0));
    lab.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_has_every_effect_and_names_a_picture_that_is_there() {
    let place = Place::new();
    let kept = place.path("kept");
    let mut demo = binary::command();
    demo.args(["demo", "--once", "--port", "0", "--keep"])
        .arg(&kept);
    let said = run(&mut demo, "").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let text = said.text();
    assert!(text.ends_with("Every step had its effect.\n"), "{text}");
    let picture = text
        .split_whitespace()
        .map(|word| word.trim_end_matches([':', ',', '.']))
        .find(|word| {
            Path::new(word)
                .extension()
                .is_some_and(|kind| kind == "png")
        });
    let picture = Path::new(picture.unwrap_or_else(|| panic!("no picture in {text}")));
    let png = fs::read(picture).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(kept.join("ledger.db").is_file());
}
