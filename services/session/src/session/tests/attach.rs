//! The same id again, while its command has not ended.

use super::*;
use crate::leave::Leave;
use crate::testing::{job_within, snapshot, status, tap, type_secret};

const HALF: Duration = Duration::from_millis(500);

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_again_gets_the_same_outcome_of_one_execution() {
    let mut rig = Rig::new();
    let (other, busy) = rig.occupy("c-0", tap()).await;
    let first = rig.call(job("c-1", tap()));
    let in_the_queue = rig.call(job("c-1", tap()));
    busy.send_response(done());
    let reply = rig.sent("c-1").await;
    let in_flight = rig.call(job("c-1", tap()));
    rig.settle().await;
    reply.send_response(done());
    let first = first.await.unwrap();
    assert_eq!(in_the_queue.await.unwrap(), first);
    assert_eq!(in_flight.await.unwrap(), first);
    assert_eq!(first.receipt.attempts, 1);
    assert!(other.await.is_ok());
    assert_eq!(
        rig.ledger.lines()[2..],
        ["intent c-1", "fate c-1 Completed"]
    );
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_attaches_waits_until_its_own_deadline() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let hasty = rig.call(job_within("c-1", tap(), HALF));
    let failed = hasty.await.unwrap_err();
    assert!(matches!(failed.failure, Failure::DeadlineExceeded));
    assert_eq!(failed.receipt.fate, Fate::Unknown);
    reply.send_response(done());
    assert!(first.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_first_caller_that_runs_out_of_time_in_the_queue_leaves_the_command_to_the_second() {
    let mut rig = Rig::new();
    let (other, busy) = rig.occupy("c-0", tap()).await;
    let hasty = rig.call(job_within("c-1", tap(), HALF));
    let patient = rig.call(job("c-1", tap()));
    let failed = hasty.await.unwrap_err();
    assert!(matches!(failed.failure, Failure::DeadlineExceeded));
    assert_eq!(failed.receipt.fate, Fate::Unknown, "it is still to be sent");
    busy.send_response(done());
    rig.sent("c-1").await.send_response(done());
    assert!(patient.await.is_ok() && other.await.is_ok());
    let fates = ["intent c-1", "fate c-1 Completed"];
    assert_eq!(rig.ledger.lines()[2..], fates, "not noted as unsent");
}

#[tokio::test(start_paused = true)]
async fn another_request_with_an_id_in_use_is_refused_with_what_differs() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    for (other, differing) in [
        (type_secret(), "kind"),
        (crate::testing::tap_in_the_middle(), "point"),
        (snapshot("com.example"), "kind"),
        // Although it would go past the queue.
        (status(), "kind"),
    ] {
        let failed = rig.call(job("c-1", other)).await.unwrap_err();
        let Failure::IdConflict { fields } = &failed.failure else {
            panic!("not a conflict: {failed:?}")
        };
        assert_eq!(*fields, [differing]);
        assert_eq!(failed.failure.reason(), "COMMAND_ID_CONFLICT");
        assert_eq!(
            (failed.receipt.fate, failed.receipt.effect),
            (Fate::NotSent, Effect::None)
        );
        assert_eq!(failed.retry_after(), None);
    }
    reply.send_response(done());
    assert!(first.await.is_ok());
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_closing_session_lets_nobody_in_but_to_what_is_under_way() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    rig.task.closing.begun.cancel();
    rig.settle().await;
    let again = rig.call(job("c-1", tap()));
    let refused = rig.call(job("c-2", tap())).await.unwrap_err();
    assert!(matches!(refused.failure, Failure::Closed));
    reply.send_response(done());
    assert!(first.await.is_ok());
    assert!(again.await.is_ok(), "not told that it was not sent");
    rig.task.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn leave_to_join_sends_nothing_and_is_answered_like_what_it_joins() {
    let mut rig = Rig::new();
    let joining = |name: &str| Job {
        leave: Leave::to_join(),
        ..job(name, tap())
    };
    let nothing = rig.call(joining("c-1")).await.unwrap_err();
    assert!(matches!(nothing.failure, Failure::NotUnderWay));
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let queued = rig.call(job("c-2", tap()));
    rig.settle().await;
    let (again, after) = (rig.call(joining("c-1")), rig.call(joining("c-2")));
    rig.task.closing.begun.cancel();
    rig.settle().await;
    let nothing = rig.call(joining("c-3")).await.unwrap_err();
    assert!(matches!(nothing.failure, Failure::NotUnderWay));
    reply.send_response(done());
    assert_eq!(again.await.unwrap(), first.await.unwrap());
    rig.sent("c-2").await.send_response(done());
    assert_eq!(after.await.unwrap(), queued.await.unwrap());
    let nothing = rig.session.call(joining("c-2")).await.unwrap_err();
    assert!(matches!(nothing.failure, Failure::NotUnderWay));
    assert!(
        rig.ledger.lines().iter().all(|line| !line.contains("note")),
        "what was not sent by such leave may have been by another's"
    );
}
