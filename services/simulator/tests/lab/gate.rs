//! Budgets and the watchdog gate, on a paused clock.

use std::time::Duration;

use fleetgate_simulator::{Fault, Injection};
use serde_json::json;
use tokio::time::Instant;

use crate::wire::{Bench, SETTINGS, tap};

fn slow(by: Duration) -> Fault {
    Fault::from(Injection::Slow { by })
}

#[tokio::test(start_paused = true)]
async fn each_class_is_abandoned_at_its_budget() {
    let cases = [
        (json!({"command": "type", "text": "x"}), 55),
        (json!({"command": "tap", "x": 1, "y": 1}), 75),
        (json!({"command": "longPress", "x": 1, "y": 1}), 75),
        (
            json!({"command": "drag", "fromX": 1, "fromY": 1, "toX": 2, "toY": 2}),
            75,
        ),
        (json!({"command": "snapshot"}), 30),
        (json!({"command": "viewport"}), 30),
        (json!({"command": "keyboardReturn"}), 30),
        (json!({"command": "button", "button": "volumeUp"}), 30),
        (json!({"command": "screenshot"}), 30),
    ];
    for (mut body, budget) in cases {
        let bench = Bench::new();
        bench.focus().await;
        bench.phone.fault(Injection::NeverEnds);
        body["appBundleId"] = json!(SETTINGS);
        let start = Instant::now();
        let reply = bench.exchange(body.clone()).await;
        assert_eq!(reply.code(), "COMMAND_TIMED_OUT", "{body}");
        assert_eq!(start.elapsed().as_secs(), budget, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn budgets_follow_the_time_scale() {
    let bench =
        Bench::of("time_scale = 0.01\n[[phones]]\nfaults = [{ inject = \"never_ends\" }]\n");
    let start = Instant::now();
    assert_eq!(bench.exchange(tap("t")).await.code(), "COMMAND_TIMED_OUT");
    assert_eq!(start.elapsed().as_millis(), 750);
}

#[tokio::test(start_paused = true)]
async fn abandoned_work_drains_and_has_its_effect_all_the_same() {
    let bench = Bench::new();
    bench.phone.fault(slow(Duration::from_secs(100)));
    assert_eq!(
        bench.exchange(tap("late")).await.code(),
        "COMMAND_TIMED_OUT"
    );
    assert_eq!(
        (bench.effects_of("late"), bench.state().await.as_str()),
        (0, "busy")
    );

    let refused = bench.exchange(tap("meanwhile")).await;
    assert_eq!(refused.code(), "RUNNER_BUSY");
    assert_eq!(bench.journal("meanwhile").await["errorCode"], "RUNNER_BUSY");

    bench.until(|phone| !phone.effects.is_empty()).await;
    assert_eq!(bench.state().await, "idle");
    assert_eq!(bench.exchange(tap("after")).await.status, 200);
    let counts = ["late", "meanwhile", "after"].map(|id| bench.effects_of(id));
    assert_eq!(counts, [1, 0, 1]);
    let entry = bench.journal("late").await;
    assert_eq!(
        (&entry["state"], &entry["errorCode"]),
        (&json!("failed"), &json!("COMMAND_TIMED_OUT"))
    );
}

#[tokio::test(start_paused = true)]
async fn work_stuck_for_more_than_120_seconds_wedges_the_runner() {
    let bench = Bench::new();
    bench.phone.fault(Injection::NeverEnds);
    assert_eq!(
        bench.exchange(tap("stuck")).await.code(),
        "COMMAND_TIMED_OUT"
    );
    tokio::time::sleep(Duration::from_secs(119)).await;
    assert_eq!(bench.state().await, "busy");
    assert_eq!(bench.exchange(tap("t1")).await.code(), "RUNNER_BUSY");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.state().await, "wedged");
    for body in [
        tap("t2"),
        json!({"command": "screenshot"}),
        json!({"command": "shutdown"}),
    ] {
        assert_eq!(
            bench.exchange(body.clone()).await.code(),
            "RUNNER_WEDGED",
            "{body}"
        );
    }
    assert_eq!(bench.phone.effects(), []);

    bench.phone.restart_runner(8100);
    assert_eq!(bench.exchange(tap("t3")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_command_within_its_budget_leaves_the_runner_idle() {
    let bench = Bench::new();
    bench.phone.fault(slow(Duration::from_secs(60)));
    let pending = bench.send(&tap("t")).await;
    bench.until(|phone| phone.in_flight == 1).await;
    assert_eq!(bench.state().await, "idle");
    drop(pending);
}

#[tokio::test(start_paused = true)]
async fn time_in_the_queue_is_not_time_of_the_budget() {
    let bench = Bench::new();
    bench.phone.fault(slow(Duration::from_secs(60)).times(2));
    let first = bench.send(&tap("t1")).await;
    bench.until(|phone| phone.in_flight == 1).await;
    assert_eq!(bench.exchange(tap("t2")).await.status, 200);
    drop(first);
    assert_eq!(bench.phone.max_in_flight(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_time_out_after_the_app_came_to_the_front_says_so() {
    let bench = Bench::of("[[phones]]\napps = { \"com.example.mail\" = \"background\" }\n");
    bench.phone.fault(Injection::NeverEnds);
    let mut body = tap("t");
    body["appBundleId"] = json!("com.example.mail");
    let reply = bench.exchange(body).await;
    assert_eq!(
        (reply.code(), &reply.envelope["reactivated"]),
        ("COMMAND_TIMED_OUT", &json!(true))
    );
}
