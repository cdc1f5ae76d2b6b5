//! The runner's watchdog: its verdicts arrive before our windows close, it is
//! busy while abandoned work drains, and wedged when that does not end.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::{Budgets, CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, Phone, Scenario};
use fleetgate_tests::facts::{effects, wait};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::verdict::Verdict;
use fleetgate_tests::{Rig, pause, plain, refused, soon};
use futures_util::future::join_all;

/// The verdict on what overran its budget.
fn timed_out() -> Verdict {
    let hint = Some("the command may still take effect");
    Verdict::of(&RunnerCode::CommandTimedOut).saying("overran its budget", hint)
}

async fn state(rig: &Rig, udid: &str) -> pb::RunnerState {
    let request = pb::GetRunnerStatusRequest {
        device: udid.to_owned(),
    };
    let status = rig.automation().get_runner_status(request).await;
    status.unwrap().into_inner().state()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verdict_at_a_budgets_end_comes_before_the_window_closes() {
    const SCALE: f64 = 0.08;
    let count = u32::try_from(plain::queued().count()).unwrap();
    let rig = Rig::start(Scenario::fleet(count).scaled(SCALE)).await;
    let overrun = async |kind: CommandKind, phone: Phone| {
        let (udid, id) = (phone.udid().to_string(), format!("late-{kind}"));
        phone.fault(Injection::NeverEnds);

        let refusal = refused(plain::send(&rig, &udid, kind, &id).await);

        let row = timed_out().assert(&rig, &udid, kind, &id, &refusal).await;
        let budget = Budgets::scaled(SCALE).budget(kind.class());
        let took = wait(row.device_time);
        assert!(
            budget.runner <= took && took < budget.window,
            "{kind} took {took:?} of {budget:?}"
        );
        let report = phone.report();
        assert_eq!(report.arrivals_of(kind), 1, "{kind}");
        let asked = report.arrivals_of(CommandKind::CommandStatus);
        assert_eq!(asked, 0, "{kind}: nothing was lost");
        assert_eq!(effects(&phone, &id), [""; 0]);
        assert_eq!(state(&rig, &udid).await, pb::RunnerState::Busy);
    };
    let phones = plain::queued().zip(rig.lab.phones());
    join_all(phones.map(|(kind, phone)| overrun(kind, phone))).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_runner_is_tried_again_until_its_abandoned_work_has_drained() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.08)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    // Ten seconds more than its budget.
    let by = Duration::from_secs(40);
    phone.fault(Injection::Slow { by });
    let button = CommandKind::Button;
    let refusal = refused(plain::send(&rig, &udid, button, "slow").await);
    timed_out()
        .assert(&rig, &udid, button, "slow", &refusal)
        .await;
    assert_eq!(effects(&phone, "slow"), [""; 0]);

    let receipt = plain::send(&rig, &udid, button, "next").await.unwrap();

    assert_eq!(
        (receipt.fate(), receipt.effect(), receipt.recovered),
        (Fate::Completed, Effect::Applied, false)
    );
    assert!(receipt.attempts > 1, "{receipt:?}");
    let row = rig.find("next").await.unwrap();
    assert_eq!(
        (row.fate(), row.attempts),
        (Fate::Completed, receipt.attempts)
    );
    let sent = usize::try_from(receipt.attempts).unwrap();
    assert_eq!(phone.report().arrivals_of(button), 1 + sent);
    // What was abandoned had its effect all the same: once, and before.
    let done: Vec<_> = phone
        .effects()
        .into_iter()
        .filter_map(|effect| effect.command_id)
        .collect();
    assert_eq!(done, ["slow", "next"].map(|id| id.parse().unwrap()));
    assert_eq!(rig.find("slow").await.unwrap().fate(), Fate::Failed);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_does_not_drain_is_busy_then_wedged_and_wedged_is_final() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.03)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Fault::from(Injection::NeverEnds).on(CommandKind::Button));
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Button, "stuck").await);
    timed_out()
        .assert(&rig, &udid, CommandKind::Button, "stuck", &refusal)
        .await;

    // Tried again for 30 s of the phone's time, then given up.
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "busy").await);
    let hint = refusal.meta("hint");
    assert!(!hint.is_empty(), "{refusal:?}");
    let busy = Verdict {
        attempts: None,
        ..Verdict::of(&RunnerCode::RunnerBusy).saying("draining", Some(hint))
    };
    let row = busy
        .assert(&rig, &udid, CommandKind::Tap, "busy", &refusal)
        .await;
    let sent = usize::try_from(row.attempts).unwrap();
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), sent);

    soon("the wedge", async {
        while state(&rig, &udid).await != pb::RunnerState::Wedged {
            pause().await;
        }
    })
    .await;
    for kind in [CommandKind::LongPress, CommandKind::Snapshot] {
        let id = format!("wedged-{kind}");
        let refusal = refused(plain::send(&rig, &udid, kind, &id).await);
        let hint = refusal.meta("hint");
        assert!(!hint.is_empty(), "{refusal:?}");
        let wedged = Verdict::of(&RunnerCode::RunnerWedged).saying("stuck", Some(hint));
        wedged.assert(&rig, &udid, kind, &id, &refusal).await;
        assert_eq!(phone.report().arrivals_of(kind), 1, "sent once");
    }
    assert_eq!(phone.effects(), []);

    // Another runner is as good as new.
    phone.restart_runner(fleetgate_simulator::scenario::DEFAULT_PORT);
    plain::send(&rig, &udid, CommandKind::Tap, "again")
        .await
        .unwrap();
    assert_eq!(effects(&phone, "again").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_is_tried_again_under_one_id_and_nothing_else_is() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.2)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Fault::from(Injection::Busy).times(3));
    let receipt = plain::send(&rig, &udid, CommandKind::Tap, "patient")
        .await
        .unwrap();
    assert_eq!((receipt.fate(), receipt.attempts), (Fate::Completed, 4));
    let ids: Vec<_> = phone
        .arrivals()
        .into_iter()
        .filter_map(|arrival| arrival.command_id)
        .collect();
    assert_eq!(ids, vec!["patient".parse().unwrap(); 4]);
    assert_eq!(effects(&phone, "patient").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_lost_after_busy_is_not_taken_for_leave_to_send_again() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.2)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::Busy);
    // The second attempt is read and forgotten: the journal still says busy.
    phone.fault(Fault::from(Injection::ReplyLostBeforeExecution).skip(1));
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "twice").await);

    let unknown = Outcome {
        attempts: 2,
        ..Outcome::unknown()
    };
    unknown
        .assert(&rig, &udid, CommandKind::Tap, "twice", &refusal)
        .await;
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 2);
    assert_eq!(effects(&phone, "twice"), [""; 0]);
    rig.stop().await;
}
