//! Each fault: what the client sees of it, and what the phone knows.

use std::time::Duration;

use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::wire::{
    Bench, PORT_8100, SETTINGS, ask, assert_silent, connect, pipe, plist, post, read_all, tap,
    try_pipe,
};

/// The state of the journal and the number of effects after one tap `t`.
async fn aftermath(bench: &Bench) -> (String, usize) {
    let state = bench.journal("t").await["state"]
        .as_str()
        .unwrap()
        .to_owned();
    (state, bench.effects_of("t"))
}

fn after(state: &str, effects: usize) -> (String, usize) {
    (state.to_owned(), effects)
}

#[tokio::test(start_paused = true)]
async fn a_connect_result_is_given_as_often_as_asked() {
    let bench = Bench::new();
    for number in [1, 3, 4, 99] {
        bench.phone.fault(Injection::ConnectResult { number });
        assert_eq!(
            try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(),
            number
        );
    }
    assert!(try_pipe(&bench.lab, 1, PORT_8100).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_reads_nothing() {
    let bench = Bench::new();
    bench.phone.fault(Injection::DropConnection);
    assert_eq!(read_all(&mut pipe(&bench.lab, 1).await).await, b"");
    assert_eq!(bench.phone.arrivals(), []);
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_stays_silent_and_runs_nothing() {
    let bench = Bench::new();
    bench.phone.fault(Injection::HalfOpen);
    assert_silent(&mut bench.send(&tap("t")).await, Duration::from_secs(600)).await;
    assert_eq!(aftermath(&bench).await, after("notAccepted", 0));
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_restart_ends_the_connect_and_the_ids() {
    let bench = Bench::new();
    bench
        .phone
        .fault(Injection::UsbmuxdRestart { reuse_ids: false });
    let mut stream = bench.lab.connect();
    let request = crate::wire::packet(1, &connect(1, PORT_8100));
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .unwrap();
    assert_eq!(read_all(&mut stream).await, b"");
    assert_eq!(try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(), 2);
    assert!(try_pipe(&bench.lab, 2, PORT_8100).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_replug_makes_the_id_stale() {
    let bench = Bench::new();
    bench.phone.fault(Injection::Replug);
    assert_eq!(try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(), 2);
    let list = ask(&mut bench.lab.connect(), 1, &plist("ListDevices", "")).await;
    assert!(
        list.contains("<key>DeviceID</key><integer>2</integer>"),
        "{list}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_lost_before_execution_leaves_no_trace() {
    let bench = Bench::new();
    bench.phone.fault(Injection::ReplyLostBeforeExecution);
    bench.exchange_lost(tap("t")).await;
    assert_eq!(aftermath(&bench).await, after("notAccepted", 0));
    assert_eq!(bench.phone.report().arrivals_of(CommandKind::Tap), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reply_lost_during_execution_leaves_the_command_running() {
    let bench = Bench::new();
    bench.phone.fault(Injection::ReplyLostDuringExecution);
    bench.phone.fault(Injection::Slow {
        by: Duration::from_secs(10),
    });
    bench.exchange_lost(tap("t")).await;
    assert_eq!(aftermath(&bench).await, after("started", 0));
    bench.until(|phone| phone.in_flight == 0).await;
    assert_eq!(aftermath(&bench).await, after("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn a_reply_lost_after_execution_is_in_the_journal() {
    let bench = Bench::new();
    bench.phone.fault(Injection::ReplyLostAfterExecution);
    bench.exchange_lost(tap("t")).await;
    assert_eq!(aftermath(&bench).await, after("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_whose_id_was_evicted_looks_as_if_nothing_had_run() {
    let bench = Bench::new();
    bench.phone.fault(Injection::JournalEvicted);
    bench.phone.fault(Injection::ReplyLostAfterExecution);
    bench.exchange_lost(tap("t")).await;
    assert_eq!(aftermath(&bench).await, after("notAccepted", 1));
}

#[tokio::test(start_paused = true)]
async fn busy_turns_away_as_often_as_asked_and_runs_nothing() {
    let bench = Bench::new();
    bench.phone.fault(Fault::from(Injection::Busy).times(2));
    // A fault of the reply waits for a command that runs.
    bench.phone.fault(Injection::ReplyLostAfterExecution);
    for _ in 0..2 {
        assert_eq!(bench.exchange(tap("t")).await.code(), "RUNNER_BUSY");
        assert_eq!(aftermath(&bench).await, after("failed", 0));
    }
    bench.exchange_lost(tap("t")).await;
    assert_eq!(aftermath(&bench).await, after("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn slow_delays_by_the_phones_time() {
    let bench = Bench::of(
        "time_scale = 0.1\n[[phones]]\nfaults = [{ inject = { slow = { by = \"20s\" } } }]\n",
    );
    let start = Instant::now();
    assert_eq!(bench.exchange(tap("t")).await.status, 200);
    assert!((2000..2100).contains(&start.elapsed().as_millis()));
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_before_or_after_the_effect() {
    for (after_effect, effects) in [(false, 0), (true, 1)] {
        let bench = Bench::new();
        bench.phone.fault(Injection::Error {
            code: RunnerCode::Other("GREMLINS".to_owned()),
            message: "they did it".to_owned(),
            hint: Some("feed them".to_owned()),
            after_effect,
        });
        let reply = bench.exchange(tap("t")).await;
        let error = json!({"code": "GREMLINS", "message": "they did it", "hint": "feed them"});
        assert_eq!((reply.status, &reply.envelope["error"]), (500, &error));
        assert_eq!(aftermath(&bench).await, after("failed", effects));
    }
}

#[tokio::test(start_paused = true)]
async fn echoed_text_is_in_the_error_and_in_no_log_of_the_phone() {
    let bench = Bench::new();
    bench.focus().await;
    bench.phone.fault(Injection::EchoText);
    let body =
        json!({"command": "type", "commandId": "t", "appBundleId": SETTINGS, "text": "s3cret"});
    let reply = bench.exchange(body.clone()).await;
    assert_eq!(reply.code(), "COMMAND_FAILED");
    assert!(
        reply.envelope["error"]["message"]
            .as_str()
            .unwrap()
            .contains("s3cret")
    );
    bench.exchange(body).await;
    let report = bench.phone.report();
    assert!(!format!("{:?} {:?}", report.effects, report.arrivals).contains("s3cret"));
}

#[tokio::test(start_paused = true)]
async fn an_app_may_fail_to_come_to_the_front() {
    let bench = Bench::of("[[phones]]\napps = { \"com.example.mail\" = \"background\" }\n");
    bench.phone.fault(Injection::ActivationFails);
    let mut body = tap("t");
    body["appBundleId"] = json!("com.example.mail");
    let start = Instant::now();
    let reply = bench.exchange(body).await;
    assert_eq!(
        (reply.code(), start.elapsed().as_secs()),
        ("APP_NOT_AVAILABLE", 15)
    );
    assert!(reply.envelope.get("reactivated").is_none());
    assert_eq!(bench.phone.screen().front.unwrap().as_str(), SETTINGS);
}

#[tokio::test(start_paused = true)]
async fn a_recorded_failure_turns_a_mutations_success_into_an_error_and_no_reads() {
    let bench = Bench::new();
    bench
        .phone
        .fault(Fault::from(Injection::RecordedFailure).times(2));
    assert_eq!(
        bench.exchange(tap("t")).await.code(),
        "XCTEST_RECORDED_FAILURE"
    );
    assert_eq!(aftermath(&bench).await, after("failed", 1));
    let read = bench
        .exchange(json!({"command": "viewport", "appBundleId": SETTINGS}))
        .await;
    assert_eq!(read.status, 200);
    let status = bench.exchange(json!({"command": "status"})).await;
    assert_eq!(status.data()["recordedFailures"], 2);
    assert_eq!(status.data()["suppressedIssues"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_suppressed_issue_warns_on_a_mutations_success_and_on_nothing_else() {
    let bench = Bench::new();
    bench
        .phone
        .fault(Fault::from(Injection::SuppressedIssue).times(3));
    let reply = bench.exchange(tap("t")).await;
    assert!(reply.envelope["warning"].is_string(), "{reply:?}");
    let read = bench
        .exchange(json!({"command": "snapshot", "appBundleId": SETTINGS}))
        .await;
    assert!(read.envelope.get("warning").is_none());
    let failed = bench
        .exchange(json!({"command": "keyboardReturn", "appBundleId": SETTINGS}))
        .await;
    assert!(failed.envelope.get("warning").is_none());
    let clean = bench.exchange(tap("t2")).await;
    assert_eq!(clean.status, 200);
    let status = bench.exchange(json!({"command": "status"})).await;
    assert_eq!(status.data()["recordedFailures"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_captured_once_more_when_it_throws() {
    let bench = Bench::new();
    let snapshot = json!({"command": "snapshot", "appBundleId": SETTINGS});
    bench.phone.fault(Injection::SnapshotFlaky);
    bench.phone.fault(Injection::SnapshotFailed);
    let start = Instant::now();
    assert_eq!(bench.exchange(snapshot.clone()).await.status, 200);
    assert!(start.elapsed() >= Duration::from_millis(400));
    assert_eq!(bench.exchange(snapshot).await.code(), "SNAPSHOT_FAILED");
}

#[tokio::test(start_paused = true)]
async fn a_runner_dies_before_or_after_the_effect() {
    for (after_effect, effects) in [(false, 0), (true, 1)] {
        let bench = Bench::new();
        bench.phone.fault(Injection::Killed {
            after_effect,
            restart_on: None,
        });
        bench.exchange_lost(tap("t")).await;
        assert_eq!(bench.effects_of("t"), effects);
        assert_eq!(try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(), 3);
        let report = bench.until(|phone| phone.in_flight == 0).await;
        assert_eq!(report.runner, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_runner_may_come_back_elsewhere_and_remembers_nothing() {
    let bench = Bench::new();
    bench.phone.fault(Injection::Killed {
        after_effect: true,
        restart_on: Some(8100),
    });
    bench.exchange_lost(tap("t")).await;
    assert_eq!(aftermath(&bench).await, after("notAccepted", 1));
    assert_eq!(bench.phone.report().incarnations, 2);
}

#[tokio::test(start_paused = true)]
async fn replies_can_be_garbage_of_every_kind_while_the_journal_knows_better() {
    let whole = br#"{"ok":true,"data":{"message":"tapped"}}"#.len();
    let cases = [
        (Injection::GarbageReply, None),
        (Injection::NotJson, Some("<html>it works</html>")),
        (Injection::NotAnEnvelope, Some(r#"{"ok":"yes"}"#)),
        (
            Injection::ReplyBody {
                body: "it works".to_owned(),
            },
            Some("it works"),
        ),
        (Injection::TruncatedReply, Some("")),
    ];
    for (fault, body) in cases {
        let bench = Bench::new();
        bench.phone.fault(fault.clone());
        let bytes = read_all(&mut bench.send(&tap("t")).await).await;
        let text = String::from_utf8_lossy(&bytes);
        match (body, &fault) {
            (None, _) => assert!(!text.starts_with("HTTP/"), "{text}"),
            (Some(_), Injection::TruncatedReply) => {
                assert!(
                    text.contains(&format!("Content-Length: {whole}\r\n")),
                    "{text}"
                );
                assert_eq!(text.split_once("\r\n\r\n").unwrap().1.len(), 10);
            }
            (Some(body), _) => {
                assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
                assert_eq!(text.split_once("\r\n\r\n").unwrap().1, body);
            }
        }
        assert_eq!(aftermath(&bench).await, after("completed", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_partial_reply_is_followed_by_silence() {
    let bench = Bench::new();
    bench.phone.fault(Injection::PartialReply);
    let mut pipe = bench.send(&tap("t")).await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(pipe.read_u8().await.unwrap());
    }
    let mut first = [0; 10];
    pipe.read_exact(&mut first).await.unwrap();
    assert_eq!(first[0], b'{');
    assert_silent(&mut pipe, Duration::from_secs(600)).await;
    assert_eq!(aftermath(&bench).await, after("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn an_oversize_reply_is_good_json_of_that_size() {
    let bench = Bench::new();
    let bytes = 5 * 1024 * 1024;
    bench
        .phone
        .fault(Fault::from(Injection::OversizeReply { bytes }).on(CommandKind::Snapshot));
    let body = json!({"command": "snapshot", "appBundleId": SETTINGS}).to_string();
    let mut pipe = pipe(&bench.lab, 1).await;
    tokio::io::AsyncWriteExt::write_all(&mut pipe, &post(&body))
        .await
        .unwrap();
    let reply = read_all(&mut pipe).await;
    let at = reply
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert_eq!(reply.len() - at, bytes);
    let envelope: serde_json::Value = serde_json::from_slice(&reply[at..]).unwrap();
    assert_eq!(envelope["ok"], true);
}

#[tokio::test(start_paused = true)]
async fn a_fault_can_befall_the_look_up_itself() {
    let bench = Bench::new();
    bench.phone.fault(Injection::ReplyLostAfterExecution);
    bench
        .phone
        .fault(Fault::from(Injection::NotJson).on(CommandKind::CommandStatus));
    bench.exchange_lost(tap("t")).await;
    let look_up = json!({"command": "status", "statusCommandId": "t"});
    let bytes = read_all(&mut bench.send(&look_up).await).await;
    assert!(bytes.ends_with(b"</html>"));
    assert_eq!(aftermath(&bench).await, after("completed", 1));
}
