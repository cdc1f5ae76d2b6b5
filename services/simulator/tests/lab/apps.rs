//! Apps in front, behind and gone, and the life of a runner.

use fleetgate_simulator::ui::AppState;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Duration;

use crate::commands::{app, with};
use crate::wire::{Bench, PORT_8100, SETTINGS, pipe, post, read_all, read_reply, tap, try_pipe};

const MAIL: &str = "com.example.mail";

#[tokio::test(start_paused = true)]
async fn a_backgrounded_app_is_brought_to_the_front_and_the_reply_says_so() {
    let bench = Bench::of("[[phones]]\napps = { \"com.example.mail\" = \"background\" }\n");
    let mail = with(tap("m1"), json!({"appBundleId": MAIL}));
    let reply = bench.exchange(mail.clone()).await;
    assert_eq!(
        (&reply.envelope["ok"], &reply.envelope["reactivated"]),
        (&json!(true), &json!(true))
    );
    let report = bench.phone.report();
    assert_eq!(report.screen.front.unwrap().as_str(), MAIL);
    assert_eq!(report.refronts, 1);
    let again = bench.exchange(mail).await;
    assert!(
        again.envelope.get("reactivated").is_none(),
        "encoded only when true"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_app_came_to_the_front_says_so_too() {
    let bench = Bench::of("[[phones]]\napps = { \"com.example.mail\" = \"background\" }\n");
    let typed = with(app("type"), json!({"appBundleId": MAIL, "text": "x"}));
    let reply = bench.exchange(typed).await;
    assert_eq!(reply.code(), "TEXT_INPUT_NOT_FOCUSED");
    assert_eq!(reply.envelope["reactivated"], true);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_never_brings_an_app_to_the_front() {
    let bench = Bench::of("[[phones]]\napps = { \"com.example.mail\" = \"background\" }\n");
    let reply = bench
        .exchange(with(app("snapshot"), json!({"appBundleId": MAIL})))
        .await;
    assert_eq!(reply.code(), "APP_BACKGROUNDED");
    assert!(
        reply.envelope["error"]["message"]
            .as_str()
            .unwrap()
            .contains(MAIL)
    );
    assert_eq!(bench.phone.screen().front.unwrap().as_str(), SETTINGS);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_does_not_run_is_not_launched() {
    let bench = Bench::new();
    for command in ["viewport", "tap", "snapshot", "keyboardReturn"] {
        let body = with(app(command), json!({"appBundleId": MAIL, "x": 1, "y": 1}));
        assert_eq!(
            bench.exchange(body).await.code(),
            "APP_NOT_AVAILABLE",
            "{command}"
        );
    }
    bench
        .phone
        .set_app_state(&SETTINGS.parse().unwrap(), AppState::NotRunning);
    assert_eq!(
        bench.exchange(app("viewport")).await.code(),
        "APP_NOT_AVAILABLE"
    );
}

#[tokio::test(start_paused = true)]
async fn on_a_locked_phone_only_the_apps_cannot_be_reached() {
    let bench = Bench::of("[[phones]]\nlocked = true\n");
    let reply = bench.exchange(tap("t")).await;
    assert_eq!(reply.code(), "APP_NOT_AVAILABLE");
    assert!(
        reply.envelope["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("unlock")
    );
    assert_eq!(bench.state().await, "idle");
    assert_eq!(
        bench
            .exchange(json!({"command": "screenshot"}))
            .await
            .status,
        200
    );
    bench.phone.set_locked(false);
    assert_eq!(bench.exchange(tap("t")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_by_itself_after_24_hours() {
    let bench = Bench::of("[[phones]]\nuptime = \"86399s\"\n");
    let mut pipe = pipe(&bench.lab, 1).await;
    tokio::time::sleep(Duration::from_millis(1001)).await;
    assert_eq!(read_all(&mut pipe).await, b"");
    assert_eq!(try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(), 3);
}

#[tokio::test(start_paused = true)]
async fn another_runner_starts_young_and_with_an_empty_journal() {
    let bench = Bench::of("[[phones]]\nuptime = \"2h\"\n");
    bench.exchange(tap("t1")).await;
    bench.phone.restart_runner(8200);
    assert_eq!(try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(), 3);
    let runner = bench.phone.report().runner.unwrap();
    assert_eq!((runner.port, runner.uptime), (8200, Duration::ZERO));
    // 8200 in network byte order.
    let mut pipe = try_pipe(&bench.lab, 1, 2080).await.unwrap();
    let look_up = r#"{"command":"status","statusCommandId":"t1"}"#;
    pipe.write_all(&post(look_up)).await.unwrap();
    let data = read_reply(&mut pipe).await.data().clone();
    assert_eq!(data, json!({"commandId": "t1", "state": "notAccepted"}));
}
