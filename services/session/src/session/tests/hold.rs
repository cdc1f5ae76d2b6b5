//! Mutations that may still be under way although their fate is unknown, and who
//! waits for them.

use super::*;
use crate::condition::Condition;
use crate::testing::{broken, busy, job_within, screenshot, tap};

const WINDOW: Duration = Duration::from_secs(90);

fn refused() -> SendError {
    SendError::NotListening { port: Some(8100) }
}

/// A session whose tap `c-1` has an unknown fate: its reply was lost, and then
/// the phone refused connections for some seconds.
async fn refused_for_a_while() -> Rig {
    let mut rig = Rig::new();
    let mut call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_error(broken());
    let failed = loop {
        tokio::select! {
            biased;
            outcome = &mut call => break outcome.unwrap_err(),
            (_, reply) = sent(&mut rig.phone) => reply.send_error(refused()),
        }
    };
    assert_eq!(failed.receipt.fate, Fate::Unknown);
    rig
}

/// Refuses questions until a command is sent.
async fn refuse_until_sent(rig: &mut Rig) -> (Exchange, SendResponse<Envelope>) {
    loop {
        let (exchange, reply) = sent(&mut rig.phone).await;
        if exchange.request.command_id.is_some() {
            return (exchange, reply);
        }
        reply.send_error(refused());
    }
}

#[tokio::test(start_paused = true)]
async fn a_mutation_that_is_under_way_after_all_is_waited_for_and_reads_pass() {
    let mut rig = refused_for_a_while().await;
    let next = rig.call(job("c-2", tap()));
    let read = rig.call(job("c-3", screenshot()));
    rig.settle().await;
    assert_eq!(rig.session.load().condition, Condition::Reconciling);
    let (exchange, reply) = refuse_until_sent(&mut rig).await;
    assert_eq!(exchange.request.command_id, Some(id("c-3")));
    reply.send_response(done());
    assert!(read.await.is_ok());
    rig.tell("c-1", JournalState::Started).await;
    rig.tell("c-1", JournalState::Started).await;
    assert_eq!(rig.session.load().queued, 1);
    rig.tell("c-1", JournalState::Completed).await;
    rig.sent("c-2").await.send_response(done());
    assert!(next.await.is_ok());
    assert_eq!(rig.session.load().condition, Condition::Ready);
    let lines = rig.ledger.lines();
    let resolved = "resolved c-1 CompletedResultLost for good".to_owned();
    assert!(lines.contains(&resolved), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_never_answers_keeps_the_lane_shut_for_the_window_only() {
    let begin = tokio::time::Instant::now();
    let mut rig = refused_for_a_while().await;
    let next = rig.call(job("c-2", tap()));
    let (_, reply) = refuse_until_sent(&mut rig).await;
    assert_eq!(begin.elapsed().as_secs(), WINDOW.as_secs());
    reply.send_response(done());
    assert!(next.await.is_ok());
    let unknown = |line: &&String| line.contains("c-1 Unknown");
    let lines = rig.ledger.lines();
    assert_eq!(lines.iter().filter(unknown).count(), 1, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_window_is_measured_from_the_last_send() {
    let mut rig = Rig::new();
    let first = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_response(busy());
    let reply = rig.sent("c-1").await;
    let last_sent = tokio::time::Instant::now();
    reply.send_error(broken());
    let next = rig.call(job("c-2", tap()));
    let (_, reply) = refuse_until_sent(&mut rig).await;
    assert_eq!(last_sent.elapsed().as_secs(), WINDOW.as_secs());
    reply.send_response(done());
    assert_eq!(first.await.unwrap_err().receipt.attempts, 2);
    assert!(next.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_long_is_no_part_of_the_window() {
    let mut rig = Rig::new();
    let first = rig.call(job("c-1", tap()));
    let (exchange, _never) = rig.phone.next_request().await.unwrap();
    tokio::time::sleep(Duration::from_secs(80)).await;
    exchange.clearance.cleared().await.unwrap();
    exchange.sent.mark();
    let sent = tokio::time::Instant::now();
    let next = rig.call(job("c-2", tap()));
    let (_, reply) = loop {
        let (exchange, reply) = crate::testing::sent(&mut rig.phone).await;
        if exchange.request.command_id.is_some() {
            break (exchange, reply);
        }
        reply.send_response(journal(entry("c-1", JournalState::Started)));
    };
    assert_eq!(sent.elapsed().as_secs(), WINDOW.as_secs());
    reply.send_response(done());
    assert_eq!(first.await.unwrap_err().receipt.fate, Fate::Unknown);
    assert!(next.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_does_not_know_it_any_more_opens_the_lane_at_once() {
    let mut rig = refused_for_a_while().await;
    let next = rig.call(job("c-2", tap()));
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(Duration::ZERO).await;
    rig.sent("c-2").await.send_response(done());
    assert!(next.await.is_ok());
    let lines = rig.ledger.lines();
    let lost = "resolved c-1 Unknown for good".to_owned();
    assert!(lines.contains(&lost), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_the_lane_is_shut_is_told_as_not_sent() {
    let mut rig = refused_for_a_while().await;
    let mut call = rig.call(job_within("c-2", tap(), Duration::from_secs(5)));
    let failed = tokio::select! {
        outcome = &mut call => outcome.unwrap_err(),
        (exchange, _) = refuse_until_sent(&mut rig) => panic!("sent: {exchange:?}"),
    };
    assert!(matches!(failed.failure, Failure::DeadlineInQueue));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closing_sends_nothing_beside_what_may_be_under_way() {
    let mut rig = refused_for_a_while().await;
    let next = rig.call(job("c-2", tap()));
    rig.settle().await;
    let begin = tokio::time::Instant::now();
    let grace = Duration::from_secs(20);
    let Rig {
        task, mut phone, ..
    } = rig;
    let phone = async {
        while let Some((exchange, reply)) = phone.next_request().await {
            assert!(!exchange.request.command.is_mutation(), "sent");
            reply.send_response(journal(entry("c-1", JournalState::Started)));
        }
    };
    tokio::join!(task.shutdown(grace), phone);
    assert_eq!(begin.elapsed().as_secs(), grace.as_secs());
    assert_eq!(next.await.unwrap_err().receipt.fate, Fate::NotSent);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_nothing_to_send_does_not_wait_for_what_may_be_under_way() {
    let rig = refused_for_a_while().await;
    let begin = tokio::time::Instant::now();
    rig.task.shutdown(Duration::from_secs(20)).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}
