//! Launches: what the process that launches is told, and what there is on the
//! phone meanwhile.

use std::time::Duration;

use fleetgate_simulator::{
    Injection, LaunchEvent, LaunchRequest, Mishap, Phone, Replug, Transport,
};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout};

use crate::wire::{Bench, post, read_reply, tap, try_pipe};

mod logs;
mod mishaps;

type Events = Receiver<LaunchEvent>;

/// A lab whose phone has no runner.
fn bench() -> Bench {
    Bench::of("[[phones]]\nrunner = false\n")
}

fn launch(phone: &Phone) -> Events {
    phone.launch(LaunchRequest::default())
}

fn launch_with(phone: &Phone, mishaps: impl IntoIterator<Item = Mishap>) -> Events {
    phone.launch(LaunchRequest {
        port: 0,
        mishaps: mishaps.into_iter().collect(),
    })
}

/// What the runner logs next; everything else is passed over.
async fn logged(events: &mut Events) -> String {
    loop {
        match events.recv().await.expect("the launch has ended") {
            LaunchEvent::Runner(line) => return line,
            LaunchEvent::Exit(code) => panic!("it exited with {code}"),
            LaunchEvent::Tool(_)
            | LaunchEvent::Error(_)
            | LaunchEvent::RunnerBegins(_)
            | LaunchEvent::RunnerEnds(_)
            | LaunchEvent::IgnoreSigterm
            | LaunchEvent::LeaveChild => {}
        }
    }
}

fn port_of(line: &str) -> u16 {
    let port = line.strip_prefix("ARGENT_RUNNER_LISTENING port=");
    port.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// Everything to the port that it listens on, and the line behind it.
async fn listening(events: &mut Events) -> u16 {
    assert_eq!(
        logged(events).await,
        "ARGENT_RUNNER_STARTING requestedPort=0"
    );
    let port = port_of(&logged(events).await);
    assert_eq!(logged(events).await, "ARGENT_RUNNER_SERVING");
    port
}

/// All that is left to say, and the exit code.
async fn ending(events: &mut Events) -> (Vec<LaunchEvent>, u8) {
    let mut said = Vec::new();
    while let Some(event) = events.recv().await {
        if let LaunchEvent::Exit(code) = event {
            assert_eq!(events.recv().await, None, "nothing comes after the exit");
            return (said, code);
        }
        said.push(event);
    }
    panic!("it ended without an exit code: {said:?}")
}

async fn silent(events: &mut Events) {
    let hour = Duration::from_secs(60 * 60);
    let more = timeout(hour, events.recv()).await;
    assert!(more.is_err(), "{more:?}");
}

/// The exit code of a launch that comes to nothing, and what is wrong.
async fn refused(phone: &Phone) -> (String, u8) {
    let (said, code) = ending(&mut launch(phone)).await;
    let Some(LaunchEvent::Error(why)) = said.last() else {
        panic!("{said:?}")
    };
    (why.clone(), code)
}

/// What the runner on this port answers.
async fn answers(bench: &Bench, device: u32, port: u16) -> Result<String, u32> {
    let mut pipe = try_pipe(&bench.lab, device, port.swap_bytes().into()).await?;
    let status = post(r#"{"command":"status"}"#);
    tokio::io::AsyncWriteExt::write_all(&mut pipe, &status)
        .await
        .unwrap();
    let reply = read_reply(&mut pipe).await;
    Ok(reply.data()["state"].as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_launched_runner_says_where_it_listens_and_lives_as_long_as_it_is_listened_to() {
    let bench = bench();
    assert_eq!(answers(&bench, 1, 8100).await, Err(3));
    let mut events = launch(&bench.phone);
    let port = listening(&mut events).await;
    assert_eq!(answers(&bench, 1, port).await.as_deref(), Ok("idle"));
    let report = bench.phone.report();
    assert_eq!((report.launch, report.launches), (Some(1), 1));
    assert_eq!(report.runner.unwrap().launch, Some(1));

    drop(events);
    bench
        .until(|phone| phone.runner.is_none() && phone.launch.is_none())
        .await;
    assert_eq!(answers(&bench, 1, port).await, Err(3));
}

#[tokio::test(start_paused = true)]
async fn each_launch_has_another_port_an_empty_journal_and_counters_of_its_own() {
    let bench = bench();
    let mut events = launch(&bench.phone);
    let first = listening(&mut events).await;
    assert!(bench.phone.set_runner_counters(Some(7), Some(3)));
    drop(events);
    bench.until(|phone| phone.launch.is_none()).await;

    let mut events = launch(&bench.phone);
    let second = listening(&mut events).await;
    assert_ne!(first, second);
    let runner = bench.phone.report().runner.unwrap();
    assert_eq!((runner.suppressed_issues, runner.recorded_failures), (0, 0));
    assert!(runner.uptime < Duration::from_secs(1));
    assert_eq!(runner.launch, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_asked_for_is_taken() {
    let bench = bench();
    let mut events = bench.phone.launch(LaunchRequest {
        port: 8100,
        mishaps: Vec::new(),
    });
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_STARTING requestedPort=8100"
    );
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_LISTENING port=8100"
    );
    assert_eq!(bench.state().await, "idle");
}

/// The runner on port 8100 of a bench, launched, with its first lines read.
async fn launched_on_8100(bench: &Bench) -> Events {
    let mut events = bench.phone.launch(LaunchRequest {
        port: 8100,
        mishaps: Vec::new(),
    });
    for _ in 0..3 {
        logged(&mut events).await;
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_shuts_down_ends_its_launch_as_a_success() {
    let bench = bench();
    let mut events = launched_on_8100(&bench).await;
    bench
        .exchange(json!({"command": "shutdown", "commandId": "s"}))
        .await;
    let (said, code) = ending(&mut events).await;
    let stopped = LaunchEvent::Runner("ARGENT_RUNNER_STOPPED outcome=shutdown".to_owned());
    assert!(said.contains(&stopped), "{said:?}");
    assert_eq!(code, 0);
    assert_eq!(bench.phone.report().launch, None);
}

#[tokio::test(start_paused = true)]
async fn a_runner_ends_by_itself_at_24_hours() {
    let bench = bench();
    let uptime = Duration::from_millis(86_399_000);
    let mut events = launch_with(&bench.phone, [Mishap::Aged { uptime }]);
    let port = listening(&mut events).await;
    assert_eq!(answers(&bench, 1, port).await.as_deref(), Ok("idle"));
    let start = Instant::now();
    let (said, code) = ending(&mut events).await;
    assert_eq!(code, 0);
    assert!(start.elapsed() <= Duration::from_secs(1));
    assert!(
        format!("{said:?}").contains("ARGENT_RUNNER_STOPPED outcome=expired"),
        "{said:?}"
    );
    assert_eq!(answers(&bench, 1, port).await, Err(3));
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_cannot_be_tested_on_is_no_destination() {
    let bench = bench();
    let phone = &bench.phone;
    for (spoil, mend, word) in [
        (
            (|phone| phone.detach()) as fn(&Phone),
            (|phone| phone.attach()) as fn(&Phone),
            "plugged in",
        ),
        (
            |phone| phone.set_trusted(false),
            |phone| phone.set_trusted(true),
            "trust",
        ),
        (
            |phone| phone.set_locked(true),
            |phone| phone.set_locked(false),
            "locked",
        ),
    ] {
        spoil(phone);
        let (why, code) = refused(phone).await;
        assert!(why.contains(word), "{why}");
        assert_eq!(code, 70);
        mend(phone);
    }
    bench.lab.stop_usbmuxd();
    assert_eq!(refused(phone).await.1, 70);
    assert_eq!(phone.report().launches, 0, "nothing was started");
}

#[tokio::test(start_paused = true)]
async fn a_phone_on_the_network_alone_is_no_destination() {
    let bench = bench();
    bench.phone.attach_over(Transport::Network);
    bench.phone.detach();
    assert_eq!(refused(&bench.phone).await.1, 70);
}

#[tokio::test(start_paused = true)]
async fn another_launch_ends_the_one_before_and_its_runner() {
    let bench = bench();
    let mut first = launch(&bench.phone);
    let old = listening(&mut first).await;
    let mut second = launch(&bench.phone);
    let new = listening(&mut second).await;
    assert_eq!(ending(&mut first).await.1, 65);
    assert_eq!(answers(&bench, 1, old).await, Err(3));
    assert_eq!(answers(&bench, 1, new).await.as_deref(), Ok("idle"));
    assert_eq!(bench.phone.report().launch, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_launch_takes_the_place_of_a_runner_that_was_there_by_itself() {
    let bench = Bench::new();
    assert_eq!(bench.state().await, "idle");
    let mut events = launch(&bench.phone);
    let port = listening(&mut events).await;
    assert_eq!(answers(&bench, 1, 8100).await, Err(3));
    assert_eq!(answers(&bench, 1, port).await.as_deref(), Ok("idle"));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_dies_ends_its_launch_and_one_that_restarts_does_not() {
    let bench = bench();
    let mut events = launched_on_8100(&bench).await;
    bench.phone.fault(Injection::Killed {
        after_effect: true,
        restart_on: Some(8200),
    });
    bench.exchange_lost(tap("t")).await;
    logged(&mut events).await;
    for line in [
        "ARGENT_RUNNER_STARTING requestedPort=8200",
        "ARGENT_RUNNER_LISTENING port=8200",
        "ARGENT_RUNNER_SERVING",
    ] {
        assert_eq!(logged(&mut events).await, line);
    }
    assert!(bench.phone.restart_runner_silently());
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_STARTING requestedPort=8200"
    );
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_LISTENING port=8200"
    );

    bench.phone.kill_runner();
    let (said, code) = ending(&mut events).await;
    assert!(
        !format!("{said:?}").contains("STOPPED"),
        "the dead log nothing: {said:?}"
    );
    assert_eq!(code, 65);
    assert_eq!(bench.effects_of("t"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wedge_is_over_when_another_runner_is_launched() {
    let bench = bench();
    let events = launched_on_8100(&bench).await;
    bench.phone.fault(Injection::NeverEnds);
    assert_eq!(bench.exchange(tap("t")).await.code(), "COMMAND_TIMED_OUT");
    tokio::time::sleep(Duration::from_secs(121)).await;
    assert_eq!(bench.exchange(tap("u")).await.code(), "RUNNER_WEDGED");
    drop(events);
    let _events = launched_on_8100(&bench).await;
    assert_eq!(bench.state().await, "idle");
    assert_eq!(bench.exchange(tap("v")).await.data()["message"], "tapped");
    assert_eq!(bench.journal("t").await["state"], "notAccepted");
}

#[tokio::test(start_paused = true)]
async fn with_the_cable_goes_what_was_launched_through_it() {
    let bench = bench();
    for unplug in [
        (|phone| phone.detach()) as fn(&Phone),
        |phone| phone.replug(),
        |phone| {
            phone.replug_so(Replug {
                attached_first: true,
                gap: Duration::ZERO,
            });
        },
        |phone| phone.fault(Injection::Replug),
    ] {
        bench.phone.attach();
        let mut events = launch(&bench.phone);
        listening(&mut events).await;
        unplug(&bench.phone);
        if !bench.phone.report().faults.is_empty() {
            try_pipe(&bench.lab, 4, 1).await.unwrap_err();
        }
        assert_eq!(ending(&mut events).await.1, 65);
        assert_eq!(bench.phone.report().runner, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_restarts_ends_no_runner() {
    let bench = bench();
    let mut events = launch(&bench.phone);
    let port = listening(&mut events).await;
    bench.lab.start_usbmuxd(fleetgate_simulator::Ids::Fresh);
    assert_eq!(answers(&bench, 2, port).await.as_deref(), Ok("idle"));
}

#[tokio::test(start_paused = true)]
async fn a_runner_can_be_told_to_outlive_its_cable() {
    let bench = bench();
    let mut events = launch_with(&bench.phone, [Mishap::StaysWhenUnplugged]);
    let port = listening(&mut events).await;
    bench.phone.replug();
    assert_eq!(answers(&bench, 2, port).await.as_deref(), Ok("idle"));
}

#[tokio::test(start_paused = true)]
async fn a_lab_that_ends_ends_its_launches() {
    let bench = bench();
    let mut events = launch(&bench.phone);
    listening(&mut events).await;
    bench.lab.shutdown().await;
    assert_eq!(events.recv().await, None);
}
