//! What `status` with an id answers.

use std::time::Duration;

use fleetgate_runner::RunnerCode;
use fleetgate_simulator::{Fault, Injection};
use serde_json::{Value, json};

use crate::wire::{Bench, SETTINGS, tap};

#[tokio::test(start_paused = true)]
async fn an_unknown_id_is_not_accepted_and_nothing_else() {
    let bench = Bench::new();
    assert_eq!(
        bench.journal("x").await,
        json!({"commandId": "x", "state": "notAccepted"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_is_accepted_then_started_then_completed_with_its_envelope() {
    let bench = Bench::new();
    bench.phone.fault(
        Fault::from(Injection::Slow {
            by: Duration::from_secs(5),
        })
        .times(2),
    );
    let first = bench.send(&tap("t1")).await;
    bench.until(|phone| phone.in_flight == 1).await;
    let second = bench.send(&tap("t2")).await;
    bench.until(|phone| phone.in_flight == 2).await;
    let started = json!({"commandId": "t1", "state": "started", "command": "tap"});
    assert_eq!(bench.journal("t1").await, started);
    assert_eq!(bench.journal("t2").await["state"], "accepted");
    drop((first, second));

    bench.until(|phone| phone.in_flight == 0).await;
    let entry = bench.journal(" t1 ").await;
    assert_eq!(
        (&entry["state"], &entry["responseOk"]),
        (&json!("completed"), &json!(true))
    );
    let retained: Value = serde_json::from_str(entry["responseJson"].as_str().unwrap()).unwrap();
    assert_eq!(retained, json!({"ok": true, "data": {"message": "tapped"}}));
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_its_code_its_words_and_its_hint() {
    let bench = Bench::new();
    let reply = bench
        .exchange(json!({"command": "keyboardReturn", "commandId": "k", "appBundleId": SETTINGS}))
        .await;
    let entry = bench.journal("k").await;
    assert_eq!(
        (&entry["state"], &entry["responseOk"]),
        (&json!("failed"), &json!(false))
    );
    let error = &reply.envelope["error"];
    assert_eq!(entry["errorCode"], "TEXT_INPUT_NOT_FOCUSED");
    assert_eq!(entry["errorMessage"], error["message"]);
    assert_eq!(entry["errorHint"], error["hint"]);
    let retained: Value = serde_json::from_str(entry["responseJson"].as_str().unwrap()).unwrap();
    assert_eq!(retained, reply.envelope);
}

#[tokio::test(start_paused = true)]
async fn newer_ids_evict_older_ones_reads_included_and_look_ups_do_not_help() {
    let bench = Bench::new();
    bench.exchange(tap("old")).await;
    for n in 0..63 {
        let body =
            json!({"command": "viewport", "commandId": format!("v{n}"), "appBundleId": SETTINGS});
        bench.exchange(body).await;
        assert_eq!(bench.journal("old").await["state"], "completed");
    }
    bench
        .exchange(json!({"command": "button", "commandId": "b", "button": "volumeUp"}))
        .await;
    assert_eq!(
        bench.journal("old").await,
        json!({"commandId": "old", "state": "notAccepted"})
    );
    assert_eq!(bench.journal("v0").await["state"], "completed");
    assert_eq!(bench.effects_of("old"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reply_over_16_kib_and_any_snapshot_leave_their_fate_only() {
    let bench = Bench::new();
    let message = "x".repeat(20_000);
    bench.phone.fault(Injection::Error {
        code: RunnerCode::CommandFailed,
        message: message.clone(),
        hint: None,
        after_effect: false,
    });
    bench.exchange(tap("big")).await;
    let entry = bench.journal("big").await;
    assert_eq!(
        (&entry["state"], &entry["errorMessage"]),
        (&json!("failed"), &json!(message))
    );
    assert!(entry.get("responseJson").is_none());

    bench.phone.fault(Injection::LongMessage { bytes: 20_000 });
    let reply = bench.exchange(tap("long")).await;
    let message = reply.data()["message"].as_str().unwrap();
    assert!(message.starts_with("tapped.") && message.len() == 20_000);
    let entry = bench.journal("long").await;
    assert_eq!(
        (&entry["state"], &entry["responseOk"]),
        (&json!("completed"), &json!(true))
    );
    assert!(entry.get("responseJson").is_none());

    bench
        .exchange(json!({"command": "snapshot", "commandId": "s", "appBundleId": SETTINGS}))
        .await;
    let entry = bench.journal("s").await;
    assert_eq!(
        (&entry["state"], entry.get("responseJson")),
        (&json!("completed"), None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_id_runs_and_is_not_journaled() {
    let bench = Bench::new();
    let body =
        json!({"command": "tap", "commandId": "  ", "appBundleId": SETTINGS, "x": 390, "y": 1});
    assert_eq!(bench.exchange(body).await.status, 200);
    assert_eq!(bench.phone.effects()[0].command_id, None);
}

#[tokio::test(start_paused = true)]
async fn a_finished_id_that_is_sent_again_runs_again() {
    let bench = Bench::new();
    bench.exchange(tap("t")).await;
    bench.exchange(tap("t")).await;
    assert_eq!(bench.effects_of("t"), 2);
}
