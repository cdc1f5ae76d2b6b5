//! While somebody pauses the lane: what waits, what goes on, and what is told.

use super::*;
use crate::testing::{
    broken, envelope, frame, job_within, screenshot, snapshot, soon, status, tap, tap_in_the_middle,
};
use fleetgate_runner::Reply;
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn neither_mutations_nor_reads_start_and_status_goes_past() {
    let mut rig = Rig::new();
    let pause = rig.session.pause();
    let tap = rig.call(job("c-1", tap()));
    let read = rig.call(job("c-2", screenshot()));
    let asked = rig.call(job("s-3", status()));
    let (_, reply) = rig.sent_kind(CommandKind::Status).await;
    reply.send_response(health(A_DAY, RunnerState::Idle));
    assert!(asked.await.is_ok());
    rig.assert_quiet().await;
    assert_eq!(rig.session.load().queued, 2);
    drop(pause);
    rig.sent("c-1").await.send_response(done());
    rig.sent("c-2").await.send_response(done());
    assert!(tap.await.is_ok() && read.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_goes_on_with_every_attempt_that_it_has_left() {
    for command in [snapshot("com.a"), tap_in_the_middle()] {
        let mut rig = Rig::new();
        let is_read = !command.is_mutation();
        let call = rig.call(job("c-1", command));
        let (_, reply) = sent(&mut rig.phone).await;
        let pause = rig.session.pause();
        let next = rig.call(job("c-2", tap()));
        if is_read {
            reply.send_error(broken());
        } else {
            reply.send_response(envelope(Ok(Reply::Viewport(frame()))));
        }
        rig.sent("c-1").await.send_response(done());
        assert!(call.await.is_ok());
        rig.assert_quiet().await;
        drop(pause);
        rig.sent("c-2").await.send_response(done());
        assert!(next.await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn every_pause_counts_however_it_ends() {
    let mut rig = Rig::new();
    let first = rig.session.pause();
    let second = rig.session.clone().pause();
    let third = rig.session.pause();
    let fourth = rig.session.pause();
    let call = rig.call(job("c-1", tap()));
    drop(first);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _second = second;
        panic!("a bug in whoever pauses");
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    rig.assert_quiet().await;
    tasks.spawn(async move {
        let _third = third;
        std::future::pending::<()>().await;
    });
    rig.settle().await;
    tasks.shutdown().await;
    rig.assert_quiet().await;
    drop(fourth);
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
    // None is left behind.
    let call = rig.call(job("c-2", screenshot()));
    rig.sent("c-2").await.send_response(done());
    assert!(call.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lane_is_idle_once_what_is_in_flight_has_been_answered() {
    let mut rig = Rig::new();
    soon(rig.session.idle()).await;
    let (mut call, reply) = rig.occupy("c-1", tap()).await;
    let _pause = rig.session.pause();
    let _next = rig.call(job("c-2", tap()));
    let session = rig.session.clone();
    let mut idle = spawn(session.idle());
    tokio::time::sleep(SOON).await;
    assert!(idle.poll().is_pending());
    reply.send_response(done());
    soon(idle).await;
    assert!(call.poll().is_ready(), "idle before its caller was told");
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
    assert_eq!(rig.session.load().in_flight, None);
    soon(rig.session.idle()).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_pause_a_lane_that_starts_the_next_is_not_idle() {
    let mut rig = Rig::new();
    let (_first, reply) = rig.occupy("c-1", tap()).await;
    let _second = rig.call(job("c-2", tap()));
    let session = rig.session.clone();
    let mut idle = spawn(session.idle());
    assert!(idle.poll().is_pending());
    reply.send_response(done());
    let reply = rig.sent("c-2").await;
    assert!(idle.poll().is_pending());
    reply.send_response(done());
    soon(idle).await;
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_gone_is_idle() {
    let mut rig = Rig::new();
    let (_call, _reply) = rig.occupy("c-1", tap()).await;
    drop(rig.task);
    soon(rig.session.idle()).await;
    drop(rig.session.pause());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_is_told_when_it_does_and_why() {
    let mut rig = Rig::new();
    let pause = rig.session.pause();
    let begin = Instant::now();
    let first = rig.call(job("c-1", tap()));
    let hasty = rig.call(job_within("c-2", tap(), SOON));
    let last = rig.call(job("c-3", tap()));
    let failed = soon(hasty).await.unwrap_err();
    assert_eq!(begin.elapsed(), SOON);
    assert_eq!(failed.failure.reason(), "DEADLINE_IN_QUEUE");
    assert!(matches!(failed.failure, Failure::Paused { .. }));
    assert!(failed.failure.to_string().contains("launched or recycled"));
    assert!(
        failed
            .failure
            .hint()
            .unwrap()
            .contains("launched or recycled")
    );
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert_eq!(failed.receipt.queue_wait, SOON);
    assert_eq!(failed.retry_after(), Some(Duration::from_secs(5)));
    assert_eq!(rig.ledger.fate("c-2").await, Fate::NotSent);
    let conclusion = rig.ledger.conclusion();
    assert_eq!(conclusion.reason.as_deref(), Some("DEADLINE_IN_QUEUE"));
    drop(pause);
    for name in ["c-1", "c-3"] {
        rig.sent(name).await.send_response(done());
    }
    assert!(first.await.is_ok() && last.await.is_ok());
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_after_the_pause_is_explained_by_what_it_passed_behind() {
    let mut rig = Rig::new();
    drop(rig.session.pause());
    let (_first, _reply) = rig.occupy("c-1", tap()).await;
    let failed = soon(rig.call(job_within("c-2", tap(), SOON)))
        .await
        .unwrap_err();
    assert!(matches!(failed.failure, Failure::DeadlineInQueue));
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_says_that_it_is_paused_and_reads_without_callers_give_way() {
    let mut rig = Rig::with(SessionConfig {
        queue_capacity: 2,
        bypass_limit: 1,
        ..SessionConfig::default()
    });
    let pause = rig.session.pause();
    let read = rig.call(job("c-1", screenshot()));
    let mutation = rig.call(job("c-2", tap()));
    let failed = soon(rig.call(job("c-3", tap()))).await.unwrap_err();
    assert_eq!(failed.failure.reason(), "LANE_FULL");
    assert!(matches!(failed.failure, Failure::Paused { .. }));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
    assert!(failed.retry_after().is_some());

    let _asked = rig.call(job("s-1", status()));
    let failed = rig.call(job("s-2", status())).await.unwrap_err();
    assert!(
        matches!(failed.failure, Failure::LaneFull { .. }),
        "no pause keeps status waiting"
    );
    let _status = rig.sent_kind(CommandKind::Status).await;

    drop((read, mutation));
    let call = rig.call(job("c-4", tap()));
    rig.settle().await;
    assert_eq!(rig.session.load().queued, 2);
    drop(pause);
    rig.sent("c-2").await.send_response(done());
    rig.sent("c-4").await.send_response(done());
    assert!(call.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_waits_has_room_for_callers_as_others_leave() {
    let mut rig = Rig::with(SessionConfig {
        queue_capacity: 2,
        ..SessionConfig::default()
    });
    let pause = rig.session.pause();
    let stays = rig.call(job("c-0", snapshot("com.a")));
    for n in 1..5 {
        let mut leaves = rig.call(job(&format!("c-{n}"), snapshot("com.a")));
        rig.settle().await;
        assert!(leaves.poll().is_pending(), "refused");
    }
    drop(pause);
    rig.sent("c-0").await.send_response(done());
    assert!(stays.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_brings_an_id_again_attaches_or_is_refused_as_ever() {
    let mut rig = Rig::new();
    let (earlier, reply) = rig.occupy("c-0", tap()).await;
    reply.send_response(done());
    assert!(earlier.await.is_ok());
    let pause = rig.session.pause();
    let calls = [
        rig.call(job("c-1", tap())),
        rig.call(job("c-1", tap())),
        rig.call(job("c-2", snapshot("com.a"))),
        rig.call(job("c-3", snapshot("com.a"))),
    ];
    let used = rig.call(job("c-0", tap()));
    let other = soon(rig.call(job("c-1", screenshot()))).await.unwrap_err();
    assert!(matches!(other.failure, Failure::IdConflict { .. }));
    assert_eq!(rig.session.load().queued, 3);
    drop(pause);
    rig.sent("c-1").await.send_response(done());
    rig.sent("c-2").await.send_response(done());
    for (call, name) in calls.into_iter().zip(["c-1", "c-1", "c-2", "c-2"]) {
        assert_eq!(call.await.unwrap().receipt.command_id, id(name));
    }
    // The ledger has it already, so that the phone may not see it again.
    let refused = async {
        let (exchange, reply) = rig.phone.next_request().await.unwrap();
        let refused = exchange.clearance.cleared().await.unwrap_err();
        reply.send_error(SendError::Refused(refused));
    };
    let (used, ()) = tokio::join!(used, refused);
    assert!(matches!(used.unwrap_err().failure, Failure::Duplicate));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_shut_down_waits_for_the_pause_for_its_grace_only() {
    let mut rig = Rig::new();
    let _pause = rig.session.pause();
    let calls = [
        rig.call(job("c-1", tap())),
        rig.call(job("c-2", screenshot())),
    ];
    rig.settle().await;
    let begin = Instant::now();
    rig.task.shutdown(SOON).await;
    assert_eq!(begin.elapsed(), SOON);
    for call in calls {
        let failed = call.await.unwrap_err();
        assert_eq!(failed.failure.reason(), "GATEWAY_DRAINING");
        assert_eq!(failed.receipt.fate, Fate::NotSent);
        assert!(failed.retry_after().is_some());
    }
    assert_eq!(rig.ledger.fate("c-1").await, Fate::NotSent);
    assert_eq!(rig.ledger.fate("c-2").await, Fate::NotSent);
    assert_eq!(rig.ledger.lines().len(), 2, "nothing was intended");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_ends_within_the_grace_lets_go_on_what_was_let_in() {
    let mut rig = Rig::new();
    let pause = rig.session.pause();
    let call = rig.call(job("c-1", tap()));
    rig.settle().await;
    let Rig {
        task, mut phone, ..
    } = rig;
    let mut shutdown = spawn(task.shutdown(SOON));
    assert!(shutdown.poll().is_pending());
    tokio::time::sleep(SOON / 2).await;
    drop(pause);
    sent(&mut phone).await.1.send_response(done());
    assert!(call.await.is_ok());
    shutdown.await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_that_is_paused_ends_at_once() {
    let rig = Rig::new();
    let _pause = rig.session.pause();
    let begin = Instant::now();
    rig.task.shutdown(SOON).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}
