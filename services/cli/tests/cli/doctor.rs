//! What `doctor` finds in a lab in which something is wrong.

use std::path::Path;

use serde_json::Value;

use crate::bench::{APP, Bench, DEVICE, Said, run};

/// The kinds that were found, with how bad they are.
fn found(said: &Said) -> Vec<(String, String)> {
    let view: Value = serde_json::from_slice(&said.stdout).unwrap();
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let findings = view["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| (word(finding, "severity"), word(finding, "code")))
        .collect()
}

fn has(said: &Said, severity: &str, code: &str) -> bool {
    found(said).contains(&(severity.to_owned(), code.to_owned()))
}

/// Examines until this is found, and nothing that is not an error ends with 7.
async fn until(bench: &Bench, severity: &str, code: &str) -> Said {
    loop {
        let said = bench.ask(&["doctor", "-o", "json"]).await;
        let errors = found(&said).iter().any(|(severity, _)| severity == "error");
        assert_eq!(said.code, if errors { 7 } else { 0 }, "{}", said.stderr);
        if has(&said, severity, code) {
            return said;
        }
    }
}

/// An address on which nothing listens, for as long as this lives.
fn nowhere() -> (tokio::net::TcpSocket, String) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let server = socket.local_addr().unwrap().to_string();
    (socket, server)
}

/// Examines a host without a gateway.
async fn alone(config: &Path) -> Said {
    let (_taken, server) = nowhere();
    let config = config.to_str().unwrap();
    let args = [
        "--server", &server, "doctor", "--config", config, "-o", "json",
    ];
    run(args, "").await
}

#[tokio::test]
async fn a_fleet_that_is_well_ends_with_0() {
    let bench = Bench::start().await;
    let said = bench.ask(&["doctor", "-o", "json"]).await;
    assert_eq!(said.code, 0, "{}", said.text());
    assert_eq!(said.json()["errors"], 0);
    let text = bench.ask(&["doctor"]).await;
    assert!(text.text().contains("2 phones: 2 ready"), "{}", text.text());
    bench.end().await;
}

#[tokio::test]
async fn without_a_gateway_this_host_is_examined() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("fleetgate.toml");
    let socket = directory.path().join("usbmuxd");
    let ledger = directory.path().join("state/ledger.db");
    let text = format!("[usbmuxd]\naddress = {socket:?}\n[ledger]\npath = {ledger:?}\n");
    std::fs::write(&config, text).unwrap();
    let said = alone(&config).await;
    assert_eq!(said.code, 7, "{}", said.stderr);
    assert!(has(&said, "error", "NO_GATEWAY"), "{}", said.text());
    assert!(has(&said, "error", "USBMUXD_MISSING"), "{}", said.text());
    assert!(!ledger.parent().unwrap().exists(), "nothing is made");

    drop(tokio::net::UnixListener::bind(&socket).unwrap());
    let refused = alone(&config).await;
    assert!(
        has(&refused, "error", "USBMUXD_REFUSES"),
        "{}",
        refused.text()
    );

    std::fs::write(&config, "[server]\nspeed = 1\n").unwrap();
    let unusable = alone(&config).await;
    assert_eq!(unusable.code, 7);
    assert!(has(&unusable, "error", "CONFIG_UNUSABLE"));
    assert!(unusable.text().contains("line 2"), "{}", unusable.text());
    let missing = alone(&directory.path().join("none.toml")).await;
    assert!(has(&missing, "error", "CONFIG_UNUSABLE"));
}

#[tokio::test]
async fn a_usbmuxd_of_this_host_that_has_phones_is_not_to_blame() {
    let bench = Bench::start().await;
    let said = alone(&bench.directory.path().join("fleetgate.toml")).await;
    let errors: Vec<_> = found(&said)
        .into_iter()
        .filter(|(severity, _)| severity == "error")
        .collect();
    assert_eq!(errors, [("error".to_owned(), "NO_GATEWAY".to_owned())]);
    bench.end().await;
}

#[tokio::test]
async fn a_lost_usbmuxd_is_found_and_its_phones_are_told_as_they_were() {
    let bench = Bench::start().await;
    bench.lab().stop_usbmuxd();
    let said = until(&bench, "error", "USBMUXD_UNREACHABLE").await;
    assert!(has(&said, "warning", "HOST_STALE"), "{}", said.text());
    assert!(!has(&said, "error", "NO_PHONES"), "{}", said.text());
    bench.end().await;
}

#[tokio::test]
async fn a_rack_without_phones_is_found() {
    let bench = Bench::start().await;
    for phone in bench.lab().phones() {
        phone.detach();
    }
    let said = until(&bench, "error", "NO_PHONES").await;
    assert!(has(&said, "info", "DETACHED"), "{}", said.text());
    bench.end().await;
}

#[tokio::test]
async fn a_phone_that_does_not_trust_its_host_is_found() {
    let bench = Bench::start().await;
    bench.phone().set_trusted(false);
    bench.phone().replug();
    let said = until(&bench, "error", "UNTRUSTED").await;
    assert!(said.text().contains(DEVICE), "{}", said.text());
    bench.end().await;
}

#[tokio::test]
async fn a_phone_whose_runner_nobody_knows_is_found() {
    let bench = Bench::open("").await;
    until(&bench, "error", "RUNNER_PORT_UNKNOWN").await;
    bench.end().await;
}

#[tokio::test]
async fn a_runner_that_does_not_answer_is_found() {
    let bench = Bench::open("[runner]\nport = 8101\n[health]\nprobe_interval = \"100ms\"\n").await;
    until(&bench, "error", "RUNNER_UNREACHABLE").await;
    bench.end().await;
}

#[tokio::test]
async fn a_runner_that_is_stuck_is_found() {
    let bench = Bench::scaled(
        0.01,
        "[runner]\nport = 8100\n[health]\nprobe_interval = \"100ms\"\n",
    )
    .await;
    bench.until_table(" ready ", 2).await;
    bench.plant(serde_json::json!({ "on": "tap", "inject": "never_ends" }));
    bench
        .ask(&["tap", DEVICE, "--app", APP, "--x", "1", "--y", "1"])
        .await;
    until(&bench, "error", "RUNNER_WEDGED").await;
    bench.end().await;
}

#[tokio::test]
async fn a_phone_that_was_given_up_is_found_with_the_tail_of_its_log() {
    let bench = Bench::open(
        "[[launch]]\nname = \"broken\"\nlabels = {}\n\
         argv = [\"sh\", \"-c\", \"echo Developer Mode is off; exit 65\"]\n\
         [health]\nquarantine_after = 2\nbackoff_initial = \"10ms\"\n",
    )
    .await;
    let said = until(&bench, "error", "QUARANTINED").await;
    assert!(
        said.text().contains("Developer Mode is off"),
        "{}",
        said.text()
    );
    bench.end().await;
}

#[tokio::test]
async fn failures_that_are_recorded_and_never_suppressed_are_a_warning() {
    let bench = Bench::open(
        "[runner]\nport = 8100\n[health]\nprobe_interval = \"100ms\"\ndrift_failures = 1\n",
    )
    .await;
    bench.until_table(" ready ", 2).await;
    assert!(bench.phone().set_runner_counters(Some(0), Some(5)));
    until(&bench, "warning", "RUNNER_DRIFT").await;
    let table = bench.ask(&["devices"]).await;
    assert!(table.text().contains("RUNNER_DRIFT"), "{}", table.text());
    bench.end().await;
}

#[tokio::test]
async fn a_ledger_whose_file_is_gone_is_found() {
    let bench = Bench::start().await;
    let ledger = bench.directory.path().join("ledger.db");
    let away = bench.directory.path().join("away.db");
    std::fs::rename(&ledger, &away).unwrap();
    until(&bench, "error", "LEDGER_FAILING").await;
    std::fs::rename(&away, &ledger).unwrap();
    bench.end().await;
}

#[tokio::test]
async fn a_cordon_is_a_note_and_no_error() {
    let bench = Bench::start().await;
    bench
        .ask(&["cordon", DEVICE, "--reason", "new battery"])
        .await;
    let said = until(&bench, "info", "CORDONED").await;
    assert_eq!(said.code, 0, "{}", said.text());
    let text = bench.ask(&["doctor"]).await;
    assert!(text.text().contains("new battery"), "{}", text.text());
    bench.end().await;
}
