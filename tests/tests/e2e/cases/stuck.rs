//! Case 11: a command that overruns its time, a runner that is busy with it for
//! two minutes, and then stuck for good.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{DeviceState, Fate, RunnerState};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Phone, PhoneReport};
use fleetgate_tests::facts::effects;
use fleetgate_tests::lane::{queued, tap};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, launching, plain, plain_lab, refused};
use tokio::task::JoinSet;
use tonic::Code;

use super::{
    LAUNCHED, LAUNCHING, PLUGGED, READY, SELDOM, arrivals, assert_history, lands, ready,
    until_launches,
};

const SCALE: f64 = 0.03;

/// Leaves the runner of the first phone with a command that never ends.
async fn stick(rig: &Rig) {
    let phone = rig.phone(0);
    phone.fault(Fault::from(Injection::NeverEnds).on(CommandKind::Button));
    let stuck = plain::send(rig, &rig.udid(0), CommandKind::Button, "stuck").await;
    let refusal = refused(stuck);
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::DeadlineExceeded, "COMMAND_TIMED_OUT")
    );
    assert_eq!(arrivals(&phone, CommandKind::Button, "stuck"), 1);
}

/// What the runner says of itself, past its queue.
async fn state(rig: &Rig) -> RunnerState {
    let request = pb::GetRunnerStatusRequest {
        device: rig.udid(0),
    };
    let status = rig.automation().get_runner_status(request).await;
    status.unwrap().into_inner().state()
}

/// The ids of what was done to the phone, in order.
fn done(phone: &Phone) -> Vec<String> {
    let ids = phone
        .effects()
        .into_iter()
        .map(|effect| effect.command_id.unwrap());
    ids.map(|id| id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_runner_is_replaced_and_its_holder_is_told_while_the_rest_waits_in_order() {
    let rig = launching::rig(plain_lab(2, SCALE), |config| {
        // Longer than a runner is busy before it calls itself wedged.
        config.runner.busy_ceiling = Duration::from_secs(600);
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    until_launches(&mut mirror, &udid, 1).await;
    let other = rig.udid(1);
    until_launches(&mut mirror, &other, 1).await;
    stick(&rig).await;
    mirror.until_state(&udid, DeviceState::Draining).await;
    assert_eq!(state(&rig).await, RunnerState::Busy);

    // The first is declined as busy, again and again under its own id; the
    // others wait behind it.
    let (mut first, mut rest) = (JoinSet::new(), JoinSet::new());
    first.spawn(tap(&rig, "first"));
    let declined = |report: &PhoneReport| !report.declines.is_empty();
    phone.wait_until(declined).await;
    for (n, id) in ["second", "third", "fourth"].into_iter().enumerate() {
        rest.spawn(tap(&rig, id));
        queued(&rig, u32::try_from(n + 1).unwrap()).await;
    }
    lands(&rig, &rig.phone(1), "elsewhere").await;
    let refusal = refused(first.join_next().await.unwrap().unwrap());
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::Unavailable, "RUNNER_WEDGED")
    );
    assert_eq!(
        (refusal.meta("fate"), refusal.meta("effect")),
        ("FAILED", "NONE")
    );
    assert!(refusal.retry_delay.is_some() && !refusal.meta("hint").is_empty());
    let tries = arrivals(&phone, CommandKind::Tap, "first");
    assert!(tries > 1, "{tries}");
    assert_eq!(refusal.meta("attempts"), tries.to_string());
    while let Some(told) = rest.join_next().await {
        let receipt = told.unwrap().unwrap().receipt.unwrap();
        assert_eq!((receipt.fate(), receipt.attempts), (Fate::Completed, 1));
    }
    assert_eq!(done(&phone), ["second", "third", "fourth"]);
    assert_eq!(arrivals(&phone, CommandKind::Button, "stuck"), 1, "once");

    until_launches(&mut mirror, &udid, 2).await;
    assert_eq!(state(&rig).await, RunnerState::Idle);
    assert_history(
        &rig,
        &udid,
        &[
            PLUGGED,
            LAUNCHING,
            LAUNCHED,
            "READY RUNNER_BUSY DRAINING",
            "DRAINING RUNNER_WEDGED WEDGED",
            "WEDGED RUNNER_WEDGED RECYCLING",
            "RECYCLING LAUNCHING LAUNCHING",
            LAUNCHED,
        ],
    )
    .await;
    assert_history(&rig, &other, &[PLUGGED, LAUNCHING, LAUNCHED]).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_runner_of_somebody_elses_is_said_to_be_until_that_somebody_replaces_it() {
    let mut lab = plain_lab(1, SCALE);
    lab.phones[0].uptime = Duration::from_secs(3600);
    let rig = Rig::configured(lab, |config| config.health.probe_interval = SELDOM).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = ready(&rig).await;
    stick(&rig).await;
    mirror.until_state(&udid, DeviceState::Draining).await;
    // Nobody sends anything: it is asked past its queue.
    mirror.until_state(&udid, DeviceState::Wedged).await;
    assert_eq!(state(&rig).await, RunnerState::Wedged);
    for n in 0..3 {
        let id = format!("wedged-{n}");
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, &id).await);
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::Unavailable, "RUNNER_WEDGED")
        );
        assert_eq!(
            arrivals(&phone, CommandKind::Tap, &id),
            1,
            "only busy is tried again"
        );
        assert_eq!(effects(&phone, &id).len(), 0);
    }
    assert!(phone.restart_runner_silently());
    mirror.until_state(&udid, DeviceState::Ready).await;
    lands(&rig, &phone, "then").await;
    assert_history(
        &rig,
        &udid,
        &[
            PLUGGED,
            READY,
            "READY RUNNER_BUSY DRAINING",
            "DRAINING RUNNER_WEDGED WEDGED",
            "WEDGED RUNNER_FREE READY",
        ],
    )
    .await;
    rig.stop().await;
}
