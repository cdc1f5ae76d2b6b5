//! Each thing that can go wrong with a launch.

use std::time::Duration;

use fleetgate_simulator::{LaunchEvent, LaunchFault, Mishap};
use tokio::time::Instant;

use super::{
    answers, bench, ending, launch, launch_with, listening, logged, port_of, refused, silent,
};

#[tokio::test(start_paused = true)]
async fn it_can_exit_before_there_is_a_runner() {
    let bench = bench();
    bench.phone.launch_fault(Mishap::Exits {
        code: 66,
        message: "no such test".to_owned(),
    });
    assert_eq!(refused(&bench.phone).await, ("no such test".to_owned(), 66));
    assert_eq!(bench.phone.report().launch_faults, []);
    assert_eq!(bench.phone.report().launch, None);
}

#[tokio::test(start_paused = true)]
async fn it_can_never_listen_or_say_that_it_cannot() {
    let bench = bench();
    bench
        .phone
        .launch_fault(LaunchFault::from(Mishap::NeverListens).times(2));
    for _ in 0..2 {
        let mut events = launch(&bench.phone);
        logged(&mut events).await;
        silent(&mut events).await;
        let report = bench.phone.report();
        assert!(report.launch.is_some() && report.runner.is_none());
    }
    let error = "address in use".to_owned();
    let mut events = launch_with(&bench.phone, [Mishap::ListenerFailed { error }]);
    logged(&mut events).await;
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_LISTENER_FAILED error=address in use"
    );
    silent(&mut events).await;
    assert_eq!(bench.phone.report().runner, None);
}

#[tokio::test(start_paused = true)]
async fn it_can_listen_late() {
    let bench = bench();
    let by = Duration::from_secs(90);
    let mut events = launch_with(&bench.phone, [Mishap::ListensLate { by }]);
    let start = Instant::now();
    listening(&mut events).await;
    assert_eq!(start.elapsed(), by);
}

#[tokio::test(start_paused = true)]
async fn it_can_say_port_0_first() {
    let bench = bench();
    let mut events = launch_with(&bench.phone, [Mishap::PortZero]);
    logged(&mut events).await;
    assert_eq!(logged(&mut events).await, "ARGENT_RUNNER_LISTENING port=0");
    assert_ne!(port_of(&logged(&mut events).await), 0);
}

#[tokio::test(start_paused = true)]
async fn it_can_say_its_port_in_two_parts() {
    let bench = bench();
    let pause = Duration::from_secs(5);
    let mut events = launch_with(&bench.phone, [Mishap::SplitLine { pause }]);
    logged(&mut events).await;
    let start = Instant::now();
    let Some(LaunchEvent::RunnerBegins(begins)) = events.recv().await else {
        panic!("not a part")
    };
    let Some(LaunchEvent::RunnerEnds(ends)) = events.recv().await else {
        panic!("not the rest")
    };
    assert_eq!(start.elapsed(), pause);
    assert!(port_of(&begins) < 1000, "cut within the number: {begins}");
    let port = port_of(&(begins + &ends));
    assert_eq!(answers(&bench, 1, port).await.as_deref(), Ok("idle"));
}

#[tokio::test(start_paused = true)]
async fn it_can_print_a_line_without_end() {
    let bench = bench();
    let bytes = 1024 * 1024;
    let mut events = launch_with(&bench.phone, [Mishap::LongLine { bytes }]);
    logged(&mut events).await;
    let Some(LaunchEvent::Tool(line)) = events.recv().await else {
        panic!("not a line of xcodebuild's")
    };
    assert_eq!(line.len(), bytes);
    port_of(&logged(&mut events).await);
}

#[tokio::test(start_paused = true)]
async fn it_can_die_after_a_while() {
    let bench = bench();
    let after = Duration::from_secs(7);
    let mut events = launch_with(&bench.phone, [Mishap::Dies { after }]);
    listening(&mut events).await;
    let start = Instant::now();
    assert_eq!(ending(&mut events).await.1, 65);
    assert_eq!(start.elapsed(), after);
    assert_eq!(bench.phone.report().runner, None);
}

#[tokio::test(start_paused = true)]
async fn it_can_start_again_on_another_port() {
    let bench = bench();
    let again = Mishap::ListensAgain {
        after: Duration::from_secs(7),
        port: Some(8300),
    };
    let mut events = launch_with(&bench.phone, [again]);
    let first = listening(&mut events).await;
    logged(&mut events).await;
    assert_eq!(
        logged(&mut events).await,
        "ARGENT_RUNNER_LISTENING port=8300"
    );
    assert_eq!(answers(&bench, 1, first).await, Err(3));
    assert_eq!(answers(&bench, 1, 8300).await.as_deref(), Ok("idle"));
}

#[tokio::test(start_paused = true)]
async fn the_process_can_be_told_to_be_hard_to_end() {
    let bench = bench();
    bench.phone.launch_fault(Mishap::LeavesChild);
    let mut events = launch_with(&bench.phone, [Mishap::IgnoresSigterm]);
    events.recv().await;
    assert_eq!(events.recv().await, Some(LaunchEvent::IgnoreSigterm));
    assert_eq!(events.recv().await, Some(LaunchEvent::LeaveChild));
    listening(&mut events).await;
}
