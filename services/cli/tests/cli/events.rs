//! The ledger as a whole: exported, followed, and checked for tampering.

use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::bench::{APP, Bench, DEVICE, Said, fleetgate, run};

async fn tap(bench: &Bench) -> String {
    let args = [
        "tap", DEVICE, "--app", APP, "--x", "200", "--y", "20", "-o", "json",
    ];
    let tapped = bench.ask(&args).await.json();
    tapped["receipt"]["command_id"].as_str().unwrap().to_owned()
}

/// JSON Lines as values.
fn lines(said: &Said) -> Vec<Value> {
    assert_eq!(said.code, 0, "{}", said.stderr);
    said.text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A follower and what it says.
fn follow(bench: &Bench, more: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = fleetgate()
        .args(["--server", &bench.server, "history", "--follow"])
        .args(more)
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, said)
}

/// The next line about a command. What the phones went through is on record a
/// moment after they did, and comes in between.
async fn of_a_command(said: &mut Lines<BufReader<ChildStdout>>) -> String {
    loop {
        let line = said.next_line().await.unwrap().unwrap();
        if line.contains("intended") || line.contains("concluded") {
            return line;
        }
    }
}

#[tokio::test]
async fn an_export_is_one_event_a_line_the_oldest_first_and_goes_on_after_any() {
    let bench = Bench::start().await;
    let ids = [tap(&bench).await, tap(&bench).await];
    let whole = lines(&bench.ask(&["history", "--export"]).await);
    // What the phones went through before they were ready is in it too.
    let export: Vec<_> = whole
        .iter()
        .filter(|line| line["event"] != "transition")
        .collect();
    assert!(export.len() < whole.len());
    let told: Vec<_> = export
        .iter()
        .map(|line| {
            (
                line["event"].as_str().unwrap(),
                &line["command"]["command_id"],
            )
        })
        .collect();
    let id = |n: usize| Value::from(ids[n].clone());
    assert_eq!(
        told,
        [
            ("operation", &Value::Null),
            ("intended", &id(0)),
            ("concluded", &id(0)),
            ("intended", &id(1)),
            ("concluded", &id(1)),
        ]
    );
    assert_eq!(export[4]["command"]["fate"], "completed");

    let cursor = export[2]["cursor"].as_str().unwrap();
    let args = ["history", "--export", "--after", cursor];
    let at = whole.iter().position(|line| line == export[2]).unwrap();
    assert_eq!(lines(&bench.ask(&args).await), whole[at + 1..]);
    let last = export[4]["cursor"].as_str().unwrap();
    let args = ["history", "--export", "--after", last];
    assert_eq!(lines(&bench.ask(&args).await), [] as [Value; 0]);

    let refused = bench.ask(&["history", "--export", "--after", "x"]).await;
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("after_cursor"),
        "{}",
        refused.stderr
    );
    let alone = bench.ask(&["history", "--after", "x"]).await;
    assert_eq!(alone.code, 2, "{}", alone.stderr);
    bench.end().await;
}

#[tokio::test]
async fn a_follower_sees_what_is_recorded_as_it_is() {
    let bench = Bench::start().await;
    let first = tap(&bench).await;
    let export = lines(&bench.ask(&["history", "--export"]).await);
    let intended = export.iter().find(|line| line["event"] == "intended");
    let cursor = intended.unwrap()["cursor"].as_str().unwrap();
    let (mut child, mut said) = follow(&bench, &["--after", cursor]);
    let told = of_a_command(&mut said).await;
    assert!(
        told.contains("concluded") && told.contains(&first),
        "{told}"
    );
    let second = tap(&bench).await;
    for word in ["intended", "concluded"] {
        let told = of_a_command(&mut said).await;
        assert!(told.contains(word) && told.contains(&second), "{told}");
    }

    // Nobody reads any more: the next event ends it, without an error.
    drop(said);
    tap(&bench).await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    bench.end().await;
}

#[tokio::test]
async fn a_follower_is_told_where_to_go_on_when_the_gateway_stops() {
    let bench = Bench::start().await;
    let export = lines(&bench.ask(&["history", "--export"]).await);
    let cursor = export.last().unwrap()["cursor"].as_str().unwrap();
    tap(&bench).await;
    let (child, mut said) = follow(&bench, &["--after", cursor, "-o", "json"]);
    let mut last = Value::Null;
    for _ in ["intended", "concluded"] {
        last = serde_json::from_str(&of_a_command(&mut said).await).unwrap();
    }
    bench.end().await;
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(4), "unavailable");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let go_on = format!("--after {}", last["cursor"].as_str().unwrap());
    assert!(stderr.contains(&go_on), "{stderr}");
}

async fn verify(ledger: &Path, more: &[&str]) -> Said {
    let args = ["ledger", "verify", "--path", ledger.to_str().unwrap()];
    run(args.iter().chain(more), "").await
}

#[tokio::test]
async fn a_ledger_is_intact_until_somebody_writes_into_it() {
    let bench = Bench::start().await;
    tap(&bench).await;
    let export = lines(&bench.ask(&["history", "--export"]).await);
    let intended = export.iter().find(|line| line["event"] == "intended");
    let intended = intended.unwrap()["seq"].clone();
    let ledger = bench.directory.path().join("ledger.db");
    let live = verify(&ledger, &["-o", "json"]).await.json();
    assert_eq!(
        (&live["intact"], &live["commands"]),
        (&true.into(), &1.into())
    );

    let directory = bench.end_and_keep().await;
    let ledger = directory.path().join("ledger.db");
    let head = live["head"].as_str().unwrap();
    let known = verify(&ledger, &["--known", head]).await;
    assert_eq!(known.code, 0, "{}", known.stderr);
    assert!(known.text().contains("intact"), "{}", known.text());
    assert!(known.text().contains("is in the chain"), "{}", known.text());
    let (seq, _) = head.split_once(':').unwrap();
    let another = format!("{seq}:{}", "0".repeat(64));
    let rewritten = verify(&ledger, &["--known", &another]).await;
    assert_eq!(rewritten.code, 1, "{}", rewritten.text());
    assert!(
        rewritten.text().contains("is not in the chain"),
        "{}",
        rewritten.text()
    );

    // One byte of what was sent: where it was tapped.
    let mut file = std::fs::read(&ledger).unwrap();
    let (was, is) = (b"\"x\":200.0", b"\"x\":100.0");
    let at = file
        .windows(was.len())
        .position(|window| window == was)
        .unwrap();
    file[at..at + was.len()].copy_from_slice(is);
    std::fs::write(&ledger, file).unwrap();
    let broken = verify(&ledger, &[]).await;
    assert_eq!(broken.code, 1, "{}", broken.text());
    assert!(broken.text().contains("first break:"), "{}", broken.text());
    assert!(
        broken.stderr.contains("is not what was written"),
        "{}",
        broken.stderr
    );
    let json = verify(&ledger, &["-o", "json"]).await;
    assert_eq!(json.code, 1);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&json["intact"], &json["first_break"]["seq"]),
        (&false.into(), &intended)
    );

    let missing = verify(&directory.path().join("none.db"), &[]).await;
    assert_eq!(missing.code, 1);
}

#[tokio::test]
async fn a_command_is_shown_with_what_was_said_of_its_fate() {
    let bench = Bench::start().await;
    let id = tap(&bench).await;
    let shown = bench
        .ask(&["command", "show", &id, "-o", "json"])
        .await
        .json();
    assert_eq!(shown["history"].as_array().unwrap().len(), 1);
    assert_eq!(shown["history"][0]["fate"], "completed");
    let never = bench.ask(&["command", "show", "never-used"]).await;
    assert_eq!(never.code, 3);
    assert!(never.stderr.contains("NEVER_SENT"), "{}", never.stderr);
    bench.end().await;
}
