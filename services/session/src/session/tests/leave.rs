//! Commands whose leave is withdrawn: which of them are sent, what is told and
//! recorded, and when the giver knows that nothing goes on by it.

use tokio::sync::watch;

use super::*;
use crate::leave::Withdrawn;
use crate::testing::{
    broken, busy, frame, job_by, job_within, leave, screenshot, snapshot, soon, status, tap,
    tap_in_the_middle, viewport, withdrawn,
};

const HALF: Duration = Duration::from_millis(500);

type Giver = watch::Sender<Option<Withdrawn>>;

/// Withdraws it, and lets the lane see that.
async fn withdraw(rig: &mut Rig, giver: &Giver) {
    giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    rig.settle().await;
}

async fn assert_not_sent(rig: &Rig, mut call: Call, name: &str) {
    assert!(call.is_woken(), "{name} was not answered at once");
    let Poll::Ready(Err(failed)) = call.poll() else {
        panic!("{name} was not refused")
    };
    assert_eq!(failed.failure.reason(), "LEASE_EXPIRED");
    assert_eq!(failed.failure.to_string(), "so it is");
    assert_eq!(failed.failure.hint().as_deref(), Some("ask for it again"));
    assert_eq!(failed.retry_after(), None);
    assert_eq!(failed.receipt.command_id, id(name));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert_eq!(rig.ledger.fate(name).await, Fate::NotSent);
    let conclusion = rig.ledger.conclusion();
    assert!(!conclusion.intended);
    assert_eq!(conclusion.reason.as_deref(), Some("LEASE_EXPIRED"));
    assert_eq!(conclusion.message.as_deref(), Some("so it is"));
    assert_eq!(conclusion.origin.principal.as_deref(), Some("alice"));
}

#[tokio::test(start_paused = true)]
async fn a_queued_command_ends_at_once_and_the_one_in_flight_runs_to_its_verdict() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let first = rig.call(job_by(&mine, "c-1", tap()));
    let reply = rig.sent("c-1").await;
    let second = rig.call(job_by(&mine, "c-2", tap()));
    let other = rig.call(job("c-3", tap()));
    drop(mine);
    rig.settle().await;
    withdraw(&mut rig, &giver).await;
    assert_not_sent(&rig, second, "c-2").await;
    let mut idle = spawn(giver.closed());
    assert!(idle.poll().is_pending());
    reply.send_response(done());
    assert!(first.await.is_ok());
    soon(idle).await;
    rig.sent("c-3").await.send_response(done());
    assert!(other.await.is_ok());
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_command_ends_at_once_whatever_keeps_it_from_starting() {
    // A lane that is paused.
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let _pause = rig.session.pause();
    let waiting = [
        ("c-1", rig.call(job_by(&mine, "c-1", tap()))),
        ("c-2", rig.call(job_by(&mine, "c-2", screenshot()))),
        ("c-3", rig.call(job_by(&mine, "c-3", viewport()))),
    ];
    drop(mine);
    rig.settle().await;
    // It does not wait for the ledger either.
    rig.ledger.set_open(false);
    withdraw(&mut rig, &giver).await;
    assert!(giver.is_closed());
    assert!(waiting.iter().all(|(_, call)| call.is_woken()));
    rig.ledger.set_open(true);
    for (name, call) in waiting.into_iter().rev() {
        // The last of them is the last on record.
        rig.ledger.fate(name).await;
        drop(call);
    }
    assert_eq!(rig.ledger.lines().len(), 3);
    assert_eq!(rig.session.load().queued, 0);

    // A mutation that may be under way.
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let (lost, reply) = rig.occupy("c-1", tap()).await;
    reply.send_error(broken());
    let second = rig.call(job_by(&mine, "c-2", tap()));
    drop(mine);
    rig.settle().await;
    withdraw(&mut rig, &giver).await;
    assert_not_sent(&rig, second, "c-2").await;
    assert!(giver.is_closed());
    drop(lost);
}

#[tokio::test(start_paused = true)]
async fn leave_is_looked_at_again_after_the_viewport_that_was_read_first() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let call = rig.call(job_by(&mine, "c-1", tap_in_the_middle()));
    drop(mine);
    let (_, reply) = rig.sent_kind(CommandKind::Viewport).await;
    withdraw(&mut rig, &giver).await;
    assert!(!giver.is_closed());
    reply.send_response(envelope(Ok(Reply::Viewport(frame()))));
    rig.settle().await;
    assert_not_sent(&rig, call, "c-1").await;
    assert!(giver.is_closed());
    let intents = rig.ledger.lines();
    assert!(intents.iter().all(|line| line.starts_with("note")));
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_keeps_its_leave_until_it_has_ended_whoever_waits_for_it() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let hasty = Job {
        leave: mine.clone(),
        ..job_within("c-1", tap(), HALF)
    };
    let hasty = rig.call(hasty);
    let gone = rig.call(job_by(&mine, "c-1", tap()));
    drop(mine);
    let reply = rig.sent("c-1").await;
    drop(gone);
    assert!(hasty.await.is_err());
    let mut idle = spawn(giver.closed());
    tokio::time::sleep(HALF).await;
    assert!(idle.poll().is_pending(), "it goes on");
    rig.ledger.set_open(false);
    reply.send_response(done());
    rig.settle().await;
    assert!(idle.poll().is_pending(), "its fate is not on record yet");
    rig.ledger.set_open(true);
    soon(idle).await;
    assert_eq!(rig.ledger.fate("c-1").await, Fate::Completed);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_goes_on_with_every_attempt_that_it_has_left() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let call = rig.call(job_by(&mine, "c-1", tap()));
    let reply = rig.sent("c-1").await;
    withdraw(&mut rig, &giver).await;
    reply.send_response(busy());
    rig.sent("c-1").await.send_response(done());
    assert_eq!(call.await.unwrap().receipt.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn the_resolver_looks_into_a_fate_without_holding_the_leave() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let call = rig.call(job_by(&mine, "c-1", tap()));
    drop(mine);
    rig.sent("c-1").await.send_error(broken());
    let mut call = call;
    let failed = loop {
        tokio::select! {
            outcome = &mut call => break outcome.unwrap_err(),
            _question = sent(&mut rig.phone) => {}
        }
    };
    assert_eq!(failed.receipt.fate, Fate::Unknown);
    soon(giver.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn those_who_share_a_snapshot_have_leaves_of_their_own() {
    let mut rig = Rig::new();
    let ((giver, mine), (other_giver, other)) = (leave(), leave());
    let (busy, reply) = rig.occupy("c-0", tap()).await;
    let first = rig.call(job_by(&mine, "c-1", snapshot("com.a")));
    let second = rig.call(job_by(&other, "c-2", snapshot("com.a")));
    drop((mine, other));
    rig.settle().await;
    withdraw(&mut rig, &giver).await;
    assert!(first.await.is_err() && giver.is_closed());
    reply.send_response(done());
    let reply = rig.sent("c-1").await;
    withdraw(&mut rig, &other_giver).await;
    assert!(!other_giver.is_closed());
    reply.send_response(done());
    assert!(second.await.is_ok() && busy.await.is_ok());
    soon(other_giver.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn status_goes_past_the_lane_by_its_leave_and_keeps_it() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let hasty = Job {
        leave: mine.clone(),
        ..job_within("s-1", status(), HALF)
    };
    let hasty = rig.call(hasty);
    let (_, reply) = rig.sent_kind(CommandKind::Status).await;
    assert!(hasty.await.is_err());
    withdraw(&mut rig, &giver).await;
    let late = rig.call(job_by(&mine, "s-2", status()));
    drop(mine);
    rig.settle().await;
    assert_not_sent(&rig, late, "s-2").await;
    assert!(!giver.is_closed());
    reply.send_response(health(A_DAY, RunnerState::Idle));
    soon(giver.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn who_comes_with_a_leave_that_is_withdrawn_is_told_that_however_full_the_lane_is() {
    let mut rig = Rig::with(SessionConfig {
        queue_capacity: 2,
        ..SessionConfig::default()
    });
    let (giver, mine) = leave();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let waiting = ["c-2", "c-3"].map(|name| rig.call(job(name, tap())));
    withdraw(&mut rig, &giver).await;
    let late = rig.call(job_by(&mine, "c-4", tap()));
    let again = rig.call(job_by(&mine, "c-1", tap()));
    rig.settle().await;
    assert_not_sent(&rig, late, "c-4").await;
    reply.send_response(done());
    assert_eq!(again.await.unwrap(), first.await.unwrap());
    for (name, call) in ["c-2", "c-3"].into_iter().zip(waiting) {
        rig.sent(name).await.send_response(done());
        assert!(call.await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_giver_that_is_gone_has_withdrawn_nothing() {
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let second = rig.call(job_by(&mine, "c-2", tap()));
    drop((giver, mine));
    // A lane that spins would never let time pass.
    tokio::time::sleep(HALF).await;
    reply.send_response(done());
    rig.sent("c-2").await.send_response(done());
    assert!(first.await.is_ok() && second.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_leaves_nothing_by_anybodys_leave() {
    for grace in [Duration::ZERO, HALF] {
        let mut rig = Rig::new();
        let (giver, mine) = leave();
        let running = rig.call(job_by(&mine, "c-1", tap()));
        let _reply = rig.sent("c-1").await;
        let waiting = rig.call(job_by(&mine, "c-2", tap()));
        drop(mine);
        rig.task.shutdown(grace).await;
        assert!(giver.is_closed());
        assert!(running.await.is_err() && waiting.await.is_err());
    }
    let mut rig = Rig::new();
    let (giver, mine) = leave();
    let call = rig.call(job_by(&mine, "c-1", tap()));
    drop(mine);
    let _reply = rig.sent("c-1").await;
    drop(rig.task);
    soon(giver.closed()).await;
    assert!(call.await.is_err());
}
