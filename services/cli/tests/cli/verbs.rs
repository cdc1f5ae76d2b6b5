//! What each verb says, and what it does to the phone.

use std::collections::HashSet;
use std::process::Stdio;

use fleetgate_identity::Role;
use fleetgate_proto::v1::GetRunnerStatusRequest;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Endpoint;

use crate::bench::{APP, Bench, DEVICE, STATIC, fleetgate};

/// Typed as if it were a password.
const SECRET: &str = "canary-7f3a";

#[tokio::test]
async fn devices_are_listed_with_their_aliases() {
    let bench = Bench::start().await;
    let listed = bench.ask(&["devices", "-o", "json"]).await.json();
    let devices = listed["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    assert_eq!(devices[0]["udid"], bench.phone().udid().to_string());
    assert_eq!(devices[0]["alias"], DEVICE);
    assert_eq!(devices[1]["alias"], serde_json::Value::Null);
    assert_eq!(devices[0]["state_reason"], "RUNNER_READY");
    let table = bench.ask(&["devices"]).await;
    for line in table.text().lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    bench.end().await;
}

#[tokio::test]
async fn a_tap_lands_once_and_its_fate_can_be_looked_up() {
    let bench = Bench::start().await;
    let tapped = bench
        .ask(&[
            "tap",
            DEVICE,
            "--app",
            APP,
            "--at-normalized",
            "0.5,0.5",
            "-o",
            "json",
        ])
        .await
        .json();
    assert_eq!(tapped["receipt"]["fate"], "completed");
    assert_eq!(tapped["receipt"]["effect"], "applied");
    let id = tapped["receipt"]["command_id"].as_str().unwrap();
    assert_eq!(bench.phone().effects_of(&id.parse().unwrap()), 1);

    let shown = bench
        .ask(&["command", "show", id, "-o", "json"])
        .await
        .json();
    assert_eq!(shown["command_id"], id);
    assert_eq!(shown["kind"], "tap");
    assert_eq!(shown["fate"], "completed");
    assert!(
        bench
            .ask(&["command", "show", id])
            .await
            .text()
            .contains("fate:       completed")
    );
    bench.end().await;
}

#[tokio::test]
async fn a_command_that_is_asked_for_twice_with_one_id_is_done_once() {
    let bench = Bench::start().await;
    let args = [
        "tap",
        DEVICE,
        "--app",
        APP,
        "--x",
        "200",
        "--y",
        "20",
        "--command-id",
        "tap-1",
        "-o",
        "json",
    ];
    for _ in 0..2 {
        let tapped = bench.ask(&args).await.json();
        assert_eq!(tapped["receipt"]["command_id"], "tap-1");
        assert_eq!(tapped["receipt"]["fate"], "completed");
    }
    assert_eq!(bench.phone().effects().len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_double_tap_is_two_taps_of_one_command() {
    let bench = Bench::start().await;
    let udid = bench.phone().udid().to_string().to_lowercase();
    let args = [
        "tap", &udid, "--app", APP, "--x", "200", "--y", "20", "--taps", "2",
    ];
    let said = bench.ask(&args).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(bench.phone().screen().gestures.taps, 2);
    assert_eq!(bench.phone().effects().len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn text_from_stdin_is_typed_and_kept_nowhere() {
    let bench = Bench::start().await;
    bench.focus().await;
    let typed = bench
        .ask_with(&["type", DEVICE, "--app", APP, "-"], &format!("{SECRET}\n"))
        .await;
    assert_eq!(typed.code, 0, "{}", typed.stderr);
    let on_screen = bench.phone().screen().texts;
    assert_eq!(on_screen.values().collect::<Vec<_>>(), [SECRET]);

    let history = bench
        .ask(&["history", "--kind", "type", "-o", "json"])
        .await;
    assert_eq!(
        history.json()["commands"][0]["parameters"]["textLength"],
        SECRET.len()
    );
    for said in [typed, history] {
        assert!(!said.text().contains(SECRET) && !said.stderr.contains(SECRET));
    }
    bench.end().await;
}

#[tokio::test]
async fn a_tree_is_indented_on_a_terminal_and_whole_in_json() {
    let bench = Bench::start().await;
    let text = bench.ask(&["tree", DEVICE, "--app", APP]).await;
    let first: Vec<_> = text.text().lines().take(2).collect();
    assert!(
        first[0].starts_with("Application \"Settings\""),
        "{first:?}"
    );
    assert!(first[1].starts_with("  NavigationBar"), "{first:?}");
    let json = bench
        .ask(&["tree", DEVICE, "--app", APP, "--output", "json"])
        .await
        .json();
    assert_eq!(
        json["nodes"].as_array().unwrap().len(),
        text.text().lines().count()
    );
    assert_eq!(json["quality"]["state"], "healthy");
    bench.end().await;
}

#[tokio::test]
async fn a_screenshot_goes_to_a_file_or_to_stdout() {
    let bench = Bench::start().await;
    let path = bench.directory.path().join("screen.png");
    std::fs::write(&path, "old").unwrap();
    let file = path.to_str().unwrap();
    let saved = bench
        .ask(&["screenshot", DEVICE, "-o", file, "--output", "json"])
        .await
        .json();
    let png = std::fs::read(&path).unwrap();
    assert_eq!(saved["size_bytes"], png.len());
    assert_eq!(saved["file"], file);

    let piped = bench.ask(&["screenshot", DEVICE, "-o", "-"]).await;
    assert!(piped.stdout.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(
        piped.stderr.contains("fate:    completed"),
        "{}",
        piped.stderr
    );
    bench.end().await;
}

#[tokio::test]
async fn a_history_is_filtered_limited_and_newest_first() {
    let bench = Bench::start().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let args = [
            "tap", DEVICE, "--app", APP, "--x", "200", "--y", "20", "-o", "json",
        ];
        let tapped = bench.ask(&args).await.json();
        ids.push(tapped["receipt"]["command_id"].as_str().unwrap().to_owned());
    }
    bench.ask(&["tree", DEVICE, "--app", APP]).await;
    let listed = async |filters: &[&str]| {
        let args = [&["history", "-o", "json"], filters].concat();
        let history = bench.ask(&args).await.json();
        let ids = history["commands"].as_array().unwrap().iter();
        ids.map(|command| command["command_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        listed(&["--kind", "tap", "--limit", "2"]).await,
        [ids[2].clone(), ids[1].clone()]
    );
    assert_eq!(
        listed(&["--kind", "tap", "--kind", "snapshot", "--since", "1h"])
            .await
            .len(),
        4
    );
    assert_eq!(listed(&["--until", "1h"]).await.len(), 0);
    assert_eq!(listed(&["--fate", "unknown"]).await.len(), 0);
    assert_eq!(listed(&["--principal", "local"]).await.len(), 4);
    assert_eq!(listed(&["--principal", "token:ci"]).await.len(), 0);
    assert_eq!(listed(&["--lease", "l-1"]).await.len(), 0);
    let other = bench.ask(&["devices", "-o", "json"]).await.json()["devices"][1]["udid"].clone();
    assert_eq!(
        listed(&["--device", other.as_str().unwrap()]).await.len(),
        0
    );
    bench.end().await;
}

#[tokio::test]
async fn a_history_longer_than_a_page_comes_whole_and_each_command_once() {
    const CALLERS: usize = 4;
    const EACH: usize = 252;
    const COMMANDS: usize = CALLERS * EACH;
    // All of it at once is more than one caller may.
    let more = "[limits]\ncalls_per_second = 10000\ncall_burst = 10000\n";
    let bench = Bench::configured(&format!("{STATIC}{more}")).await;
    let token = bench.token_of("ci", Role::Operator).await;
    let token = std::fs::read_to_string(token).unwrap();
    let bearer: AsciiMetadataValue = format!("Bearer {token}").parse().unwrap();
    let channel = Endpoint::from_shared(bench.server.clone()).unwrap();
    let client = AutomationServiceClient::with_interceptor(
        channel.connect().await.unwrap(),
        move |mut request: Request<()>| {
            request
                .metadata_mut()
                .insert("authorization", bearer.clone());
            Ok(request)
        },
    );
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let mut client = client.clone();
        callers.spawn(async move {
            for _ in 0..EACH {
                let request = GetRunnerStatusRequest {
                    device: DEVICE.to_owned(),
                };
                client.get_runner_status(request).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    let history = bench
        .ask(&["history", "--limit", "5000", "-o", "json"])
        .await
        .json();
    let commands = history["commands"].as_array().unwrap();
    let ids: HashSet<_> = commands
        .iter()
        .map(|command| command["command_id"].as_str())
        .collect();
    assert_eq!((commands.len(), ids.len()), (COMMANDS, COMMANDS));
    let limited = bench
        .ask(&["history", "--limit", "1001", "-o", "json"])
        .await
        .json();
    assert_eq!(
        limited["commands"].as_array().unwrap().as_slice(),
        &commands[..1_001]
    );
    bench.end().await;
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::start().await;
    let args = ["--server", &bench.server, "tree", DEVICE, "--app", APP];
    let mut child = fleetgate()
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    bench.end().await;
}
