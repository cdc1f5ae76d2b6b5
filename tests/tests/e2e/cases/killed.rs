//! Case 10: a runner that is killed in the middle of a command, and the next one
//! on another port, with a small uptime and an empty journal.

use std::process::Command;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::Fate;
use fleetgate_runner::{CommandId, CommandKind};
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Fault, Injection, Phone, PhoneReport};
use fleetgate_tests::facts::effects;
use fleetgate_tests::lane::{device, in_hand, tap};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::{Rig, history, launching, plain_lab, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

use super::{
    LAUNCHED, LAUNCHING, OFTEN, PLUGGED, READY, arrivals, assert_history, lands, ready,
    until_launches,
};

/// How a runner dies in the middle of a tap.
#[derive(Debug, Clone, Copy)]
enum Death {
    BeforeTheEffect,
    AfterTheEffect,
    /// With the process that had launched it.
    WithItsProcess,
}

impl Death {
    fn fault(self) -> Injection {
        let killed = |after_effect| Injection::Killed {
            after_effect,
            restart_on: None,
        };
        match self {
            Self::BeforeTheEffect => killed(false),
            Self::AfterTheEffect => killed(true),
            Self::WithItsProcess => Injection::Slow {
                by: Duration::from_secs(60),
            },
        }
    }

    fn effects(self) -> usize {
        match self {
            Self::BeforeTheEffect | Self::WithItsProcess => 0,
            Self::AfterTheEffect => 1,
        }
    }
}

/// Waits until the phone's runner has read this command.
async fn arrived(phone: &Phone, command_id: &str) {
    let id: CommandId = command_id.parse().unwrap();
    let has_read = |report: &PhoneReport| {
        let mut ids = report.arrivals.iter().map(|came| &came.command_id);
        ids.any(|came| came.as_ref() == Some(&id))
    };
    soon("the command", phone.wait_until(has_read)).await;
}

/// What the runner that is up knows of a command.
async fn journal(rig: &Rig, command_id: &str) -> pb::JournalState {
    let request = pb::GetRunnerCommandStatusRequest {
        device: rig.udid(0),
        command_id: command_id.to_owned(),
    };
    let found = rig.automation().get_runner_command_status(request).await;
    found.unwrap().into_inner().state()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_its_runner_died_of_is_unknown_for_good_and_the_next_runner_goes_on() {
    let rig = launching::rig(plain_lab(1, 0.05), |_| {}).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    let mut before = until_launches(&mut mirror, &udid, 1).await;
    let deaths = [
        Death::BeforeTheEffect,
        Death::AfterTheEffect,
        Death::WithItsProcess,
    ];
    for (death, launches) in deaths.into_iter().zip(2..) {
        let (lost, waits) = (format!("lost-{launches}"), format!("waits-{launches}"));
        phone.fault(Fault::from(death.fault()).on(CommandKind::Tap));
        let (mut told, mut waiting) = (JoinSet::new(), JoinSet::new());
        told.spawn(tap(&rig, &lost));
        arrived(&phone, &lost).await;
        waiting.spawn(tap(&rig, &waits));
        if matches!(death, Death::WithItsProcess) {
            in_hand(&rig).await;
            let pid = before.runner.as_ref().unwrap().pid.unwrap().to_string();
            let killed = Command::new("kill").args(["-KILL", &pid]).status();
            assert!(killed.unwrap().success());
        }
        let refusal = refused(told.join_next().await.unwrap().unwrap());
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::Unknown, "FATE_UNKNOWN"),
            "{death:?}"
        );
        assert_eq!(refusal.meta("effect"), "UNKNOWN");
        assert_eq!(refusal.retry_delay, None, "no leave to try again");
        // Whoever waited is served by the next runner, once.
        let reply = waiting.join_next().await.unwrap().unwrap();
        let receipt = reply.unwrap().receipt.unwrap();
        assert_eq!((receipt.fate(), receipt.attempts), (Fate::Completed, 1));
        assert_eq!(effects(&phone, &waits).len(), 1);

        let after = until_launches(&mut mirror, &udid, launches).await;
        assert_ne!(after.runner_port, before.runner_port, "{death:?}");
        assert_eq!(phone.report().runner.unwrap().port, {
            let port = after.runner_port.unwrap();
            u16::try_from(port).unwrap()
        });
        let uptime = after.runner.as_ref().unwrap().uptime.unwrap();
        assert!(uptime.seconds < 3600, "{uptime:?}");
        // It has never heard of it, and never will.
        assert_eq!(journal(&rig, &lost).await, pb::JournalState::NotAccepted);
        assert_eq!(journal(&rig, &waits).await, pb::JournalState::Completed);
        assert_eq!(rig.concluded(&lost).await.fate(), Fate::Unknown);
        assert_eq!(arrivals(&phone, CommandKind::Tap, &lost), 1, "{death:?}");
        assert_eq!(effects(&phone, &lost).len(), death.effects(), "{death:?}");
        before = after;
    }
    // Once the last of the lives on record has begun, all are.
    let lives = |told: &[String]| told.iter().filter(|told| *told == LAUNCHED).count() == 4;
    let told = history::until(rig.channel(), &udid, "four lives", lives).await;
    // Mutations may have had to wait until nothing more could be found out.
    let told = told.iter().filter(|told| !told.contains("RECONCILING"));
    let told: Vec<_> = told.collect();
    assert_eq!(told[..3], [PLUGGED, LAUNCHING, LAUNCHED]);
    for life in told[3..].chunks(3) {
        // Whoever asks after the command may find nobody there before the
        // process has ended.
        let death = life[0].replace("RUNNER_UNREACHABLE", "RUNNER_DIED");
        assert_eq!(death, "READY RUNNER_DIED RECYCLING", "{told:?}");
        assert_eq!(life[1..], ["RECYCLING LAUNCHING LAUNCHING", LAUNCHED]);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_comes_back_in_its_own_process_is_found_on_its_new_port() {
    let rig = launching::rig(plain_lab(1, 0.05), |_| {}).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    let before = until_launches(&mut mirror, &udid, 1).await;
    lands(&rig, &phone, "before").await;
    phone.restart_runner(9123);
    let moved = |seen: &Seen| seen.devices[&udid].runner_port == Some(9123);
    let after = mirror.until("the new port", moved).await;
    let runner = after.devices[&udid].runner.as_ref().unwrap();
    assert_eq!(runner.pid, before.runner.unwrap().pid);
    assert_eq!((runner.launches, runner.failures), (1, 0));
    lands(&rig, &phone, "after").await;
    assert_eq!(journal(&rig, "before").await, pb::JournalState::NotAccepted);
    assert_eq!(journal(&rig, "after").await, pb::JournalState::Completed);
    let restarted = "READY RUNNER_RESTARTED READY";
    assert_history(&rig, &udid, &[PLUGGED, LAUNCHING, LAUNCHED, restarted]).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_somebody_elses_runner_died_of_is_unknown_and_the_restart_is_noticed() {
    let mut lab = plain_lab(1, 0.2);
    lab.phones[0].uptime = Duration::from_secs(3600);
    let rig = Rig::configured(lab, |config| {
        config.health.probe_interval = OFTEN;
        config.health.probe_failures = 1000.try_into().unwrap();
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = ready(&rig).await;
    let killed = Injection::Killed {
        after_effect: true,
        restart_on: Some(DEFAULT_PORT),
    };
    phone.fault(Fault::from(killed).on(CommandKind::Tap));
    let mut told = JoinSet::new();
    told.spawn(tap(&rig, "lost"));
    let refusal = refused(told.join_next().await.unwrap().unwrap());
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::Unknown, "FATE_UNKNOWN")
    );
    assert_eq!(refusal.retry_delay, None);
    let restarted = |seen: &Seen| seen.reasons(&udid).contains(&"RUNNER_RESTARTED");
    let seen = mirror.until("word of the restart", restarted).await;
    assert_eq!(seen.devices[&udid].state_reason, "RUNNER_READY");
    let young = device(&rig, &udid).await.runner.unwrap().uptime.unwrap();
    assert!(young.seconds < 3600, "{young:?}");
    lands(&rig, &phone, "next").await;
    assert_eq!(journal(&rig, "lost").await, pb::JournalState::NotAccepted);
    assert_eq!(rig.concluded("lost").await.fate(), Fate::Unknown);
    assert_eq!(arrivals(&phone, CommandKind::Tap, "lost"), 1);
    assert_eq!(effects(&phone, "lost").len(), 1);
    let restarted = "READY RUNNER_RESTARTED READY";
    assert_history(&rig, &udid, &[PLUGGED, READY, restarted]).await;
    rig.stop().await;
}
