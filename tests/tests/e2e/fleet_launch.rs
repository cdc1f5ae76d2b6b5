//! Runners that the gateway launches: up, killed, recycled, given up and ended,
//! as real processes, with the phone's history as the evidence.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{DeviceState, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Mishap};
use fleetgate_tests::facts::{effects, moment};
use fleetgate_tests::lane::{device, in_hand, queued, tap};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, launching, pause, plain, plain_lab, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

mod programs;

async fn rig(phones: u32) -> Rig {
    launching::rig(plain_lab(phones, 0.02), |_| {}).await
}

fn pid_of(device: &pb::Device) -> u32 {
    device.runner.as_ref().unwrap().pid.expect("a process")
}

/// As long as a process has not been reaped.
fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn recycle(rig: &Rig, force: bool) -> pb::Device {
    let request = pb::RecycleRunnerRequest {
        device: rig.udid(0),
        reason: "it looks odd".to_owned(),
        force,
    };
    let recycled = rig.fleet().recycle_runner(request).await.unwrap();
    recycled.into_inner().device.unwrap()
}

async fn until_launches(mirror: &mut Mirror, udid: &str, launches: u32) -> pb::Device {
    let is = |seen: &fleetgate_tests::mirror::Seen| {
        seen.devices.get(udid).is_some_and(|device| {
            let runner = device.runner.as_ref();
            let is_nth = runner.is_some_and(|runner| runner.launches == launches);
            device.state() == DeviceState::Ready && is_nth
        })
    };
    let what = format!("launch {launches}");
    let mut seen = mirror.until(&what, is).await;
    seen.devices.remove(udid).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_plugged_in_gets_a_runner_and_loses_it_with_the_gateway() {
    let rig = rig(2).await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    let mut pids = Vec::new();
    for n in 0..2 {
        let udid = rig.udid(n);
        let ready = mirror.until_state(&udid, DeviceState::Ready).await;
        let runner = ready.runner.clone().unwrap();
        assert_eq!(runner.launch_kind(), pb::LaunchKind::Command);
        assert_eq!((runner.launches, runner.failures), (1, 0));
        assert!(runner.launch_time.is_some() && runner.last_failure.is_none());
        let log = std::fs::read_to_string(runner.log_path.as_ref().unwrap()).unwrap();
        let port = ready.runner_port.unwrap();
        assert!(log.contains(&format!("ARGENT_RUNNER_LISTENING port={port}")));
        let id = format!("tap-{n}");
        plain::send(&rig, &udid, CommandKind::Tap, &id)
            .await
            .unwrap();
        assert_eq!(effects(&rig.phone(n), &id).len(), 1);
        pids.push(pid_of(&ready));
    }
    rig.stop().await;
    for pid in pids {
        assert!(!lives(pid), "{pid} lives on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_runners_are_launched_at_once_than_may_be() {
    let mut lab = plain_lab(2, 0.02);
    let by = Duration::from_secs(50);
    for phone in &mut lab.phones {
        phone.launch_faults.push(Mishap::ListensLate { by }.into());
    }
    let rig = launching::rig(lab, |config| {
        config.runner.max_launches = NonZeroUsize::MIN;
    })
    .await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    let mut launched = Vec::new();
    for n in 0..2 {
        let ready = mirror.until_state(&rig.udid(n), DeviceState::Ready).await;
        launched.push(moment(ready.runner.unwrap().launch_time));
    }
    launched.sort_unstable();
    let apart = launched[1].duration_since(launched[0]).unwrap();
    // Of a second, which is what each takes to listen.
    assert!(apart > Duration::from_millis(500), "{apart:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_wait_for_the_next_runner_in_their_order_when_one_is_killed() {
    let rig = rig(1).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let ready = until_launches(&mut mirror, &udid, 1).await;
    let pid = pid_of(&ready).to_string();
    let killed = Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.unwrap().success());
    mirror.until_state(&udid, DeviceState::Recycling).await;
    let mut calls = JoinSet::new();
    for n in 0..3 {
        calls.spawn(tap(&rig, &format!("patient-{n}")));
    }
    while let Some(told) = calls.join_next().await {
        let receipt = told.unwrap().unwrap().receipt.unwrap();
        assert_eq!((receipt.fate(), receipt.attempts), (Fate::Completed, 1));
    }
    let again = until_launches(&mut mirror, &udid, 2).await;
    assert_eq!(again.runner.as_ref().unwrap().failures, 1);
    assert_ne!(pid_of(&again), pid_of(&ready));
    let told = mirror.look(|seen| seen.reasons(&udid).join(" "));
    assert!(
        told.ends_with("RUNNER_DIED LAUNCHING RUNNER_READY"),
        "{told}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_is_recycled_after_what_is_in_flight_and_before_what_waits() {
    let rig = launching::rig(plain_lab(1, 0.05), |_| {}).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let first = until_launches(&mut mirror, &udid, 1).await;
    let by = Duration::from_secs(10);
    rig.phone(0)
        .fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "in-flight"));
    in_hand(&rig).await;
    calls.spawn(tap(&rig, "waits"));
    queued(&rig, 1).await;

    recycle(&rig, false).await;
    let held = mirror.until_state(&udid, DeviceState::Recycling).await;
    assert_eq!(held.state_reason, "RECYCLE_REQUESTED");
    assert_eq!(held.state_detail.as_deref(), Some("it looks odd"));
    assert_eq!(held.command_in_flight.as_deref(), Some("in-flight"));
    assert_eq!(held.queued_commands, 1);
    while let Some(told) = calls.join_next().await {
        let receipt = told.unwrap().unwrap().receipt.unwrap();
        assert_eq!(
            (receipt.fate(), receipt.recovered),
            (Fate::Completed, false)
        );
    }
    let second = until_launches(&mut mirror, &udid, 2).await;
    assert_ne!(pid_of(&second), pid_of(&first));
    assert_eq!(second.runner.unwrap().failures, 0);
    for id in ["in-flight", "waits"] {
        assert_eq!(effects(&rig.phone(0), id).len(), 1, "{id}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_recycled_by_force_takes_the_reply_of_its_command_along() {
    let rig = launching::rig(plain_lab(1, 0.05), |_| {}).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    until_launches(&mut mirror, &udid, 1).await;
    let by = Duration::from_secs(60);
    rig.phone(0)
        .fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "lost"));
    in_hand(&rig).await;
    recycle(&rig, true).await;
    let told = refused(calls.join_next().await.unwrap().unwrap());
    assert_eq!((told.code, &*told.reason), (Code::Unknown, "FATE_UNKNOWN"));
    until_launches(&mut mirror, &udid, 2).await;
    plain::send(&rig, &udid, CommandKind::Tap, "next")
        .await
        .unwrap();
    assert!(effects(&rig.phone(0), "lost").len() <= 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_does_not_come_up_is_given_up_and_an_operator_gives_it_another_chance() {
    let mut lab = plain_lab(1, 0.02);
    lab.phones[0].locked = true;
    let rig = launching::rig(lab, |_| {}).await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    let left = mirror.until_state(&udid, DeviceState::Quarantined).await;
    let runner = left.runner.as_ref().unwrap();
    assert_eq!((runner.launches, runner.failures), (5, 5));
    let failure = runner.last_failure.as_ref().unwrap();
    assert_eq!(failure.reason, "EXITED");
    assert!(!failure.log_tail.is_empty(), "{failure:?}");
    assert!(left.state_detail.unwrap().contains("5 failures in a row"));

    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "early").await);
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::Unavailable, "DEVICE_QUARANTINED")
    );
    assert_eq!(refusal.meta("fate"), "NOT_SENT");
    assert!(refusal.retry_delay.is_some() && !refusal.meta("hint").is_empty());

    // It outlives the gateway.
    let rig = rig.restart_gateway().await;
    let again = device(&rig, &udid).await;
    assert_eq!(again.state(), DeviceState::Quarantined);
    let mut mirror = Mirror::follow(rig.channel()).await;

    phone.set_locked(false);
    recycle(&rig, false).await;
    let ready = until_launches(&mut mirror, &udid, 1).await;
    assert_eq!(ready.runner.unwrap().last_failure, None);
    plain::send(&rig, &udid, CommandKind::Tap, "now")
        .await
        .unwrap();
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replug_ends_a_quarantine() {
    let rig = rig(1).await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    until_launches(&mut mirror, &udid, 1).await;
    for _ in 0..5 {
        phone.launch_fault(Mishap::Exits {
            code: 65,
            message: "no".to_owned(),
        });
    }
    recycle(&rig, false).await;
    mirror.until_state(&udid, DeviceState::Quarantined).await;
    phone.detach();
    mirror.until_state(&udid, DeviceState::Detached).await;
    phone.attach();
    mirror.until_state(&udid, DeviceState::Ready).await;
    let reasons = mirror.look(|seen| seen.reasons(&udid).join(" "));
    assert!(
        reasons.ends_with("UNPLUGGED PLUGGED QUARANTINE_LEFT LAUNCHING RUNNER_READY"),
        "{reasons}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wedged_runner_is_replaced_and_what_waits_is_carried_out_by_the_next() {
    let rig = rig(1).await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    until_launches(&mut mirror, &udid, 1).await;
    phone.fault(Fault::from(Injection::NeverEnds).on(CommandKind::Tap));
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "stuck").await);
    assert_eq!(refusal.reason, "COMMAND_TIMED_OUT");
    mirror.until_state(&udid, DeviceState::Draining).await;
    mirror.until_state(&udid, DeviceState::Recycling).await;
    plain::send(&rig, &udid, CommandKind::Tap, "then")
        .await
        .unwrap();
    until_launches(&mut mirror, &udid, 2).await;
    let reasons = mirror.look(|seen| seen.reasons(&udid).join(" "));
    assert!(
        reasons.ends_with("RUNNER_BUSY RUNNER_WEDGED RUNNER_WEDGED LAUNCHING RUNNER_READY"),
        "{reasons}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_unplugged_takes_its_runner_along_and_gets_another() {
    let rig = rig(1).await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    let first = until_launches(&mut mirror, &udid, 1).await;
    phone.detach();
    mirror.until_state(&udid, DeviceState::Detached).await;
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "away").await);
    assert_eq!(refusal.reason, "DEVICE_UNATTACHED");
    let pid = pid_of(&first);
    soon("the end of the process", async {
        while lives(pid) {
            pause().await;
        }
    })
    .await;
    phone.attach();
    // It may have been launched for a moment before it was seen to be gone.
    let second = mirror.until_state(&udid, DeviceState::Ready).await;
    let runner = second.runner.unwrap();
    assert!(runner.launches >= 2, "{runner:?}");
    assert_eq!(runner.failures, 0, "nobody's fault");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aged_runner_is_replaced_when_nobody_is_served_and_not_before() {
    let mut lab = plain_lab(1, 0.05);
    let uptime = Duration::from_secs(23 * 3600 + 60);
    lab.phones[0]
        .launch_faults
        .push(Mishap::Aged { uptime }.into());
    let rig = launching::rig(lab, |config| {
        config.health.probe_interval = Duration::from_millis(500);
    })
    .await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let by = Duration::from_secs(30);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let mut mirror = Mirror::follow(rig.channel()).await;
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "long"));
    in_hand(&rig).await;
    // It is known to be that old, and is left to what it does.
    let asked = phone.report().arrivals_of(CommandKind::Status);
    phone
        .wait_until(|phone| phone.arrivals_of(CommandKind::Status) > asked + 1)
        .await;
    let busy = device(&rig, &udid).await;
    assert_eq!(busy.state(), DeviceState::Ready);
    assert_eq!(busy.command_in_flight.as_deref(), Some("long"));
    let told = calls.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(told.receipt.unwrap().fate(), Fate::Completed);

    let young = until_launches(&mut mirror, &udid, 2).await;
    assert_eq!(young.runner.unwrap().failures, 0);
    let told = mirror.look(|seen| seen.reasons(&udid).join(" "));
    assert!(
        told.ends_with("RUNNER_AGE LAUNCHING RUNNER_READY"),
        "{told}"
    );
    rig.stop().await;
}
