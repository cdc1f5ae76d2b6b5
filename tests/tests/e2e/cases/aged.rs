//! Case 13: a runner whose session is about to be 24 hours old is replaced
//! before that, between two commands.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_gateway::Config;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, LaunchFault, Mishap, Scenario};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::lane::{queued, tap};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::{Rig, launching, plain_lab};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{LAUNCHED, LAUNCHING, OFTEN, PLUGGED, assert_history, lands, until_launches};

/// A minute of a phone takes three seconds.
const SCALE: f64 = 0.05;
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A phone whose first runner has been up for so long when it comes up.
fn lab(uptime: Duration) -> Scenario {
    let mut lab = plain_lab(1, SCALE);
    let aged = LaunchFault::from(Mishap::Aged { uptime });
    lab.phones[0].launch_faults = vec![aged];
    lab
}

async fn rig(uptime: Duration, configure: impl FnOnce(&mut Config)) -> Rig {
    launching::rig(lab(uptime), |config| {
        config.health.probe_interval = OFTEN;
        config.health.probe_failures = 1000.try_into().unwrap();
        configure(config);
    })
    .await
}

/// Asserts that the first runner made way for the second because of its age, and
/// that this was held against nobody.
async fn made_way(rig: &Rig, mirror: &mut Mirror) {
    let udid = rig.udid(0);
    let young = until_launches(mirror, &udid, 2).await;
    assert_eq!(young.runner.unwrap().failures, 0);
    lands(rig, &rig.phone(0), "by-the-next").await;
    assert_history(
        rig,
        &udid,
        &[
            PLUGGED,
            LAUNCHING,
            LAUNCHED,
            "READY RUNNER_AGE RECYCLING",
            "RECYCLING LAUNCHING LAUNCHING",
            LAUNCHED,
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_in_its_last_minute_is_replaced_before_it_ends() {
    let rig = rig(23 * HOUR + 59 * MINUTE, |_| {}).await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    made_way(&rig, &mut mirror).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_runner_is_replaced_when_nothing_is_in_flight_and_nobody_waits() {
    // Old enough to be replaced, with time for those who wait.
    let mut lab = lab(23 * HOUR + 10 * MINUTE);
    let late = Mishap::ListensLate {
        by: Duration::from_secs(6),
    };
    lab.phones[0].launch_faults.push(late.into());
    let rig = launching::rig(lab, |config| config.health.probe_interval = OFTEN).await;
    let phone = rig.phone(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    // They have been waiting since before it was up.
    let by = Duration::from_secs(8);
    let slow = Fault::from(Injection::Slow { by }).on(CommandKind::Tap);
    phone.fault(slow.times(2));
    let mut calls = JoinSet::new();
    for n in 0..3_u32 {
        let id = format!("waits-{n}");
        let call = tap(&rig, &id);
        calls.spawn(async move { clean(call.await.unwrap().receipt, &id) });
        queued(&rig, n + 1).await;
    }
    while let Some(told) = calls.join_next().await {
        let receipt = told.unwrap();
        assert_eq!(effects(&phone, &receipt.command_id).len(), 1);
    }
    made_way(&rig, &mut mirror).await;
    rig.stop().await;
}

/// Taps until it is told to stop, and asserts that each tap is carried out by
/// one runner from its beginning to its end.
async fn tap_on(rig: Arc<Rig>, caller: usize, stop: CancellationToken) -> usize {
    let mut taps = 0;
    while !stop.is_cancelled() {
        let id = format!("{caller}-{taps}");
        let reply = tap(&rig, &id).await.unwrap();
        clean(reply.receipt, &id);
        assert_eq!(effects(&rig.phone(0), &id).len(), 1, "{id}");
        taps += 1;
    }
    taps
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_never_idle_is_replaced_between_two_commands_before_it_ends() {
    // From 23:59 on nobody's waiting keeps it; at 24:00 it ends by itself.
    let rig = rig(23 * HOUR + 58 * MINUTE, |config| {
        config.health.recycle_age = 23 * HOUR + 58 * MINUTE;
    })
    .await;
    let rig = Arc::new(rig);
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let (mut callers, stop) = (JoinSet::new(), CancellationToken::new());
    for caller in 0..8 {
        callers.spawn(tap_on(Arc::clone(&rig), caller, stop.clone()));
    }
    let aged = |seen: &Seen| seen.reasons(&udid).contains(&"RUNNER_AGE");
    mirror.until("the end of an age", aged).await;
    until_launches(&mut mirror, &udid, 2).await;
    stop.cancel();
    let taps: usize = callers.join_all().await.into_iter().sum();
    assert!(taps > 8, "{taps} taps");
    made_way(&rig, &mut mirror).await;
    assert_eq!(rig.phone(0).report().effects_total, taps as u64 + 1);
    Arc::into_inner(rig).unwrap().stop().await;
}
