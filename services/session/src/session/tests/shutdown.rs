//! The end of a session, in good time and otherwise.

use super::*;
use crate::testing::tap;
use tokio::time::Instant;

const GRACE: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends_at_once() {
    let rig = Rig::new();
    let begin = Instant::now();
    rig.task.shutdown(GRACE).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_was_let_in_may_finish_and_nothing_else_is_let_in() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let second = rig.call(job("c-2", tap()));
    rig.settle().await;
    let Rig {
        mut session,
        task,
        mut phone,
        ledger,
    } = rig;
    let mut shutdown = spawn(task.shutdown(GRACE));
    assert!(shutdown.poll().is_pending());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused = session.call(job("c-3", tap())).await.unwrap_err();
    assert!(matches!(refused.failure, Failure::Closed));
    assert_eq!(refused.receipt.fate, Fate::NotSent);
    assert!(refused.retry_after().is_some());

    reply.send_response(done());
    sent(&mut phone).await.1.send_response(done());
    assert!(first.await.is_ok() && second.await.is_ok());
    shutdown.await;
    assert_eq!(
        ledger.lines(),
        [
            "intent c-1",
            "fate c-1 Completed",
            "intent c-2",
            "fate c-2 Completed"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_what_waits_ends_unsent_and_what_is_in_flight_ends_unknown() {
    let mut rig = Rig::new();
    let (first, _reply) = rig.occupy("c-1", tap()).await;
    let second = rig.call(job("c-2", tap()));
    rig.settle().await;
    let begin = Instant::now();
    rig.task.shutdown(GRACE).await;
    assert_eq!(begin.elapsed().as_secs(), GRACE.as_secs());

    let first = first.await.unwrap_err();
    assert_eq!(
        (first.receipt.fate, first.receipt.effect),
        (Fate::Unknown, Effect::Unknown)
    );
    assert_eq!(first.failure.reason(), "GATEWAY_DRAINING");
    assert_eq!(first.retry_after(), None);
    let second = second.await.unwrap_err();
    assert_eq!(
        (second.receipt.fate, second.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert_eq!(second.failure.reason(), "GATEWAY_DRAINING");
    assert_eq!(rig.ledger.fate("c-1").await, Fate::Unknown);
    assert_eq!(rig.ledger.fate("c-2").await, Fate::NotSent);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_but_unsent_after_the_grace_ends_not_sent() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    let _connecting = rig.phone.next_request().await.unwrap();
    rig.task.shutdown(GRACE).await;
    assert_eq!(call.await.unwrap_err().receipt.fate, Fate::NotSent);
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 NotSent"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_can_reach_any_more_finishes_its_work() {
    let mut rig = Rig::new();
    let (_call, reply) = rig.occupy("c-1", tap()).await;
    drop(rig.session);
    reply.send_response(done());
    assert_eq!(rig.ledger.fate("c-1").await, Fate::Completed);
    rig.task.shutdown(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_task_ends_the_session_and_tells_its_callers_what_is_known() {
    let mut rig = Rig::new();
    let (first, _reply) = rig.occupy("c-1", tap()).await;
    let second = rig.call(job("c-2", tap()));
    rig.settle().await;
    drop(rig.task);
    let first = first.await.unwrap_err();
    assert!(matches!(first.failure, Failure::Closed));
    assert_eq!(first.receipt.fate, Fate::Unknown);
    assert_eq!(second.await.unwrap_err().receipt.fate, Fate::NotSent);
    let third = rig.session.call(job("c-3", tap())).await.unwrap_err();
    assert_eq!(third.receipt.fate, Fate::NotSent);
}
