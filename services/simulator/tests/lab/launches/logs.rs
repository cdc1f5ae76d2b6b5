//! What a launched runner logs of its commands.

use std::time::Duration;

use fleetgate_simulator::Injection;
use serde_json::json;

use super::{bench, launched_on_8100, logged};
use crate::wire::{SETTINGS, read_reply, tap};

#[tokio::test(start_paused = true)]
async fn commands_are_logged_by_kind_and_id_and_what_is_typed_is_not() {
    let bench = bench();
    let mut events = launched_on_8100(&bench).await;
    bench.exchange(tap("t-1")).await;
    let secret =
        json!({"command": "type", "commandId": "t-2", "appBundleId": SETTINGS, "text": "canary"});
    assert_eq!(
        bench.exchange(secret).await.code(),
        "TEXT_INPUT_NOT_FOCUSED"
    );
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(logged(&mut events).await);
    }
    assert_eq!(
        lines,
        [
            "ARGENT_RUNNER_COMMAND_ACCEPTED command=tap commandId=t-1",
            "ARGENT_RUNNER_COMMAND_FINISHED command=tap commandId=t-1 ok=1",
            "ARGENT_RUNNER_COMMAND_ACCEPTED command=type commandId=t-2",
            "ARGENT_RUNNER_COMMAND_FINISHED command=type commandId=t-2 ok=0",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn duplicates_abandoned_work_and_a_shut_gate_are_logged() {
    let bench = bench();
    let mut events = launched_on_8100(&bench).await;
    bench.phone.fault(Injection::Slow {
        by: Duration::from_secs(300),
    });
    let first = bench.send(&tap("t")).await;
    let accepted = logged(&mut events).await;
    let second = bench.send(&tap("t")).await;
    assert_eq!(
        accepted,
        "ARGENT_RUNNER_COMMAND_ACCEPTED command=tap commandId=t"
    );
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_DUPLICATE_SEND_COALESCED commandId=t"
    );
    for mut reply in [first, second] {
        assert_eq!(read_reply(&mut reply).await.code(), "COMMAND_TIMED_OUT");
    }
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_COMMAND_FINISHED command=tap commandId=t ok=0"
    );
    assert_eq!(bench.exchange(tap("u")).await.code(), "RUNNER_BUSY");
    logged(&mut events).await;
    let busy = logged(&mut events).await;
    assert!(
        busy.starts_with("ARGENT_RUNNER_BUSY command=tap abandonedFor="),
        "{busy}"
    );
    logged(&mut events).await;

    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!(bench.exchange(tap("v")).await.code(), "RUNNER_WEDGED");
    logged(&mut events).await;
    let wedged = logged(&mut events).await;
    assert!(
        wedged.starts_with("ARGENT_RUNNER_WEDGED abandonedFor=15"),
        "{wedged}"
    );
    logged(&mut events).await;
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_ABANDONED_WORK_DRAINED"
    );
}
