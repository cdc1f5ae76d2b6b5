//! What befalls a phone as a whole: locked, not trusted, plugged in anew.

use std::time::Duration;

use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, Lab, Replug, Scenario, Transport};
use serde_json::json;
use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::wire::{
    Bench, PORT_8100, SETTINGS, ask, assert_silent, plist, receive, result, tap, try_pipe,
};

/// A connection that listens and has been told of this many attachments.
async fn listener(lab: &Lab, attached: usize) -> DuplexStream {
    let mut listener = lab.connect();
    assert_eq!(
        result(&ask(&mut listener, 3, &plist("Listen", "")).await),
        0
    );
    for _ in 0..attached {
        event(&mut listener).await;
    }
    listener
}

/// What a listener is told next: the type and the number.
async fn event(listener: &mut DuplexStream) -> (String, u32) {
    let (tag, event) = receive(listener).await;
    assert_eq!(tag, 0);
    let after = |key: &str| {
        let (_, rest) = event.split_once(&format!("<key>{key}</key>")).unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        rest.split_once('<').unwrap().0.to_owned()
    };
    (after("MessageType"), after("DeviceID").parse().unwrap())
}

fn told(message: &str, device: u32) -> (String, u32) {
    (message.to_owned(), device)
}

#[tokio::test(start_paused = true)]
async fn a_replug_tells_of_the_old_number_first_unless_it_is_told_otherwise() {
    let bench = Bench::new();
    let mut listener = listener(&bench.lab, 1).await;
    bench.phone.replug();
    assert_eq!(event(&mut listener).await, told("Detached", 1));
    assert_eq!(event(&mut listener).await, told("Attached", 2));
    bench.phone.replug_so(Replug {
        attached_first: true,
        gap: Duration::ZERO,
    });
    assert_eq!(event(&mut listener).await, told("Attached", 3));
    assert_eq!(event(&mut listener).await, told("Detached", 2));
    assert!(try_pipe(&bench.lab, 3, PORT_8100).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn between_the_two_events_of_a_replug_there_are_both_numbers_or_none() {
    let bench = Bench::new();
    let mut listener = listener(&bench.lab, 1).await;
    let gap = Duration::from_secs(3);
    let start = Instant::now();
    bench.phone.replug_so(Replug {
        attached_first: true,
        gap,
    });
    assert_eq!(event(&mut listener).await, told("Attached", 2));
    for device in [1, 2] {
        assert!(try_pipe(&bench.lab, device, PORT_8100).await.is_ok());
    }
    assert_eq!(event(&mut listener).await, told("Detached", 1));
    assert_eq!(start.elapsed(), gap);

    bench.phone.replug_so(Replug {
        attached_first: false,
        gap,
    });
    assert_eq!(event(&mut listener).await, told("Detached", 2));
    assert_eq!(bench.phone.report().plugged, []);
    assert_eq!(event(&mut listener).await, told("Attached", 3));
    assert_eq!(bench.phone.report().plugged, [Transport::Usb]);
    assert_eq!(start.elapsed(), 2 * gap);
}

#[tokio::test(start_paused = true)]
async fn a_restart_between_the_two_events_leaves_the_number_to_whom_it_was_given() {
    let lab = Lab::start(Scenario::fleet(2));
    lab.phones()[0].replug_so(Replug {
        attached_first: true,
        gap: Duration::from_secs(3),
    });
    lab.start_usbmuxd(fleetgate_simulator::Ids::Reused);
    tokio::time::sleep(Duration::from_secs(4)).await;
    for device in [1, 2] {
        assert!(try_pipe(&lab, device, PORT_8100).await.is_ok(), "{device}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_comes_to_trust_this_host_is_told_of_as_paired() {
    let bench = Bench::of("[[phones]]\ntrusted = false\nconnection = [\"usb\", \"network\"]\n");
    let mut listener = listener(&bench.lab, 2).await;
    let id = format!(
        "<key>PairRecordID</key><string>{}</string>",
        bench.phone.udid()
    );
    let read = plist("ReadPairRecord", &id);
    assert_eq!(result(&ask(&mut bench.lab.connect(), 1, &read).await), 2);

    bench.phone.set_trusted(true);
    assert_eq!(event(&mut listener).await, told("Paired", 1));
    assert_eq!(event(&mut listener).await, told("Paired", 2));
    let record = ask(&mut bench.lab.connect(), 1, &read).await;
    assert!(record.contains("<key>PairRecordData</key>"), "{record}");

    bench.phone.set_trusted(true);
    bench.phone.set_trusted(false);
    assert_silent(&mut listener, Duration::from_secs(600)).await;
    assert_eq!(result(&ask(&mut bench.lab.connect(), 1, &read).await), 2);
}

#[tokio::test(start_paused = true)]
async fn a_locked_phone_can_let_commands_run_out_of_time_and_stays_idle() {
    let bench = Bench::new();
    bench.phone.lock_and_stall();
    let start = Instant::now();
    assert_eq!(bench.exchange(tap("t")).await.code(), "COMMAND_TIMED_OUT");
    assert_eq!(start.elapsed(), Duration::from_secs(75));
    bench
        .until(|phone| {
            let runner = phone.runner.as_ref().unwrap();
            runner.state == fleetgate_runner::RunnerState::Idle
        })
        .await;
    let picture = bench.exchange(json!({"command": "screenshot"})).await;
    assert_eq!(picture.status, 200);
    assert_eq!(bench.effects_of("t"), 0);

    bench.phone.set_locked(true);
    let viewport = json!({"command": "viewport", "appBundleId": SETTINGS});
    assert_eq!(bench.exchange(viewport).await.code(), "APP_NOT_AVAILABLE");
    bench.phone.set_locked(false);
    bench.exchange(tap("u")).await.data();
    assert_eq!(bench.phone.report().arrivals_of(CommandKind::Tap), 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_restart_has_the_same_port_small_uptime_and_an_empty_journal() {
    let bench = Bench::of("[[phones]]\nuptime = \"2h\"\n");
    bench.exchange(tap("t")).await;
    assert_eq!(bench.journal("t").await["state"], "completed");
    let before = bench.exchange(json!({"command": "status"})).await.data()["uptimeMs"].clone();
    assert!(bench.phone.restart_runner_silently());
    let after = bench.exchange(json!({"command": "status"})).await.data()["uptimeMs"].clone();
    assert!(
        after.as_f64().unwrap() < before.as_f64().unwrap(),
        "{before} {after}"
    );
    assert_eq!(bench.journal("t").await["state"], "notAccepted");
    bench.phone.kill_runner();
    assert!(!bench.phone.restart_runner_silently(), "there is none");
}

#[tokio::test(start_paused = true)]
async fn two_labs_can_have_the_same_phone() {
    let (here, there) = (Bench::new(), Bench::new());
    assert_eq!(here.phone.udid(), there.phone.udid());
    here.exchange(tap("t")).await;
    assert_eq!((here.effects_of("t"), there.effects_of("t")), (1, 0));
    here.phone.detach();
    assert_eq!(try_pipe(&here.lab, 1, PORT_8100).await.unwrap_err(), 2);
    there.exchange(tap("u")).await;
    assert_eq!((here.effects_of("u"), there.effects_of("u")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_xctest_records_is_counted_whoever_scripts_it() {
    let bench = Bench::new();
    let code = RunnerCode::XctestRecordedFailure;
    bench
        .phone
        .fault(Fault::from(Injection::RecordedFailure).times(2));
    bench.phone.fault(Injection::Error {
        code,
        message: String::new(),
        hint: None,
        after_effect: true,
    });
    for n in 1..=3 {
        let reply = bench.exchange(tap(&format!("t-{n}"))).await;
        assert_eq!(reply.code(), "XCTEST_RECORDED_FAILURE");
        let runner = bench.phone.report().runner.unwrap();
        assert_eq!((runner.recorded_failures, runner.suppressed_issues), (n, 0));
    }
    assert!(bench.phone.set_runner_counters(None, Some(40)));
    let status = bench.exchange(json!({"command": "status"})).await;
    assert_eq!(status.data()["recordedFailures"], 40);
    assert_eq!(status.data()["suppressedIssues"], 0);
}
