//! What an earlier session left, and who waits for it.

use std::time::SystemTime;

use super::*;
use crate::condition::Condition;
use crate::job::Receipt;
use crate::testing::{broken, screenshot, status, tap};

/// A tap whose intent was put on record this long ago.
fn left(name: &str, ago: Duration, has_fate: bool) -> Unsettled {
    let receipt = Receipt {
        command_id: id(name),
        kind: CommandKind::Tap,
        fate: Fate::Unknown,
        effect: Effect::Unknown,
        reactivated: true,
        warning: None,
        attempts: 2,
        recovered: false,
        queue_wait: Duration::from_millis(7),
        device_time: Duration::from_secs(3),
    };
    Unsettled {
        command_id: id(name),
        kind: CommandKind::Tap,
        sent_at: SystemTime::now() - ago,
        receipt: has_fate.then_some(receipt),
    }
}

const A_MINUTE: Duration = Duration::from_secs(60);

fn after(unsettled: Vec<Unsettled>) -> Rig {
    Rig::after(SessionConfig::default(), unsettled)
}

#[tokio::test(start_paused = true)]
async fn mutations_wait_for_the_fate_of_those_before_and_reads_do_not() {
    let mut rig = after(vec![left("old", A_MINUTE, false)]);
    let tap = rig.call(job("c-1", tap()));
    let read = rig.call(job("c-2", screenshot()));
    let health_asked = rig.call(job("s-3", status()));
    let mut question = None;
    for _ in 0..3 {
        let (exchange, reply) = sent(&mut rig.phone).await;
        let kind = exchange.request.command.kind();
        assert!(!kind.is_mutation(), "{kind} did not wait");
        if kind == CommandKind::CommandStatus {
            question = Some(reply);
        } else {
            reply.send_response(done());
        }
    }
    assert!(read.await.is_ok() && health_asked.await.is_ok());
    assert_eq!(rig.session.load().condition, Condition::Reconciling);
    assert_eq!(rig.session.load().queued, 1);

    let question = question.expect("a question about the old one");
    question.send_response(journal(entry("old", JournalState::Completed)));
    rig.sent("c-1").await.send_response(done());
    assert!(tap.await.is_ok());
    assert_eq!(rig.session.load().condition, Condition::Ready);
    let lines = rig.ledger.lines();
    let at = |line: &str| lines.iter().position(|entry| entry == line);
    let resolved = at("resolved old CompletedResultLost for good").expect("resolved");
    assert!(resolved < at("intent c-1").expect("sent"));
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_waited_for() {
    let mut rig = after(vec![left("old", A_MINUTE, false)]);
    let call = rig.call(job("c-1", tap()));
    rig.tell("old", JournalState::Started).await;
    rig.tell("old", JournalState::Started).await;
    rig.tell("old", JournalState::Completed).await;
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
    assert_eq!(
        rig.ledger.lines()[0],
        "resolved old CompletedResultLost for good"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_phone_keeps_the_lane_shut_for_the_configured_patience_only() {
    let mut rig = after(vec![
        left("old", A_MINUTE, false),
        left("older", 2 * A_MINUTE, false),
    ]);
    let begin = tokio::time::Instant::now();
    let call = rig.call(job("c-1", tap()));
    let reply = loop {
        let (exchange, reply) = sent(&mut rig.phone).await;
        if exchange.request.command.is_mutation() {
            break reply;
        }
        reply.send_error(broken());
    };
    let patience = SessionConfig::default().reconcile_patience;
    assert_eq!(begin.elapsed().as_secs(), patience.as_secs());
    assert_eq!(
        rig.ledger.lines(),
        [
            "resolved older Unknown so far",
            "resolved old Unknown so far",
            "intent c-1"
        ]
    );
    reply.send_response(done());
    assert!(call.await.is_ok());
    // Somebody may still learn of it.
    let mut settled = 0;
    while settled < 2 {
        let (exchange, reply) = sent(&mut rig.phone).await;
        let Command::Device(DeviceCommand::CommandStatus { of }) = exchange.request.command else {
            panic!("not a question about a command: {exchange:?}")
        };
        settled += 1;
        reply.send_response(journal(entry(of.as_str(), JournalState::Completed)));
    }
    rig.settle().await;
    let resolved = rig.ledger.lines();
    assert!(resolved.contains(&"resolved old CompletedResultLost for good".to_owned()));
    assert!(resolved.contains(&"resolved older CompletedResultLost for good".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_the_runner_does_not_know_may_have_been_sent() {
    let mut rig = after(vec![left("old", A_MINUTE, false)]);
    rig.tell("old", JournalState::NotAccepted).await;
    rig.tell_uptime(A_DAY).await;
    rig.settle().await;
    assert_eq!(rig.ledger.lines(), ["resolved old Unknown so far"]);
    assert_eq!(rig.session.load().condition, Condition::Ready);
}

#[tokio::test(start_paused = true)]
async fn an_intent_from_before_the_runners_start_is_unknown_for_good() {
    let mut rig = after(vec![left("old", A_MINUTE, false)]);
    rig.tell("old", JournalState::NotAccepted).await;
    rig.tell_uptime(Duration::from_secs(30)).await;
    rig.settle().await;
    assert_eq!(rig.ledger.lines(), ["resolved old Unknown for good"]);
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_fate_that_is_on_record_as_unknown_keeps_nobody_waiting_once_its_window_has_passed() {
    let mut rig = after(vec![left("old", 2 * A_MINUTE, true)]);
    assert_eq!(rig.session.load().condition, Condition::Ready);
    let (_, question) = rig.sent_kind(CommandKind::CommandStatus).await;
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
    question.send_response(journal(entry("old", JournalState::Completed)));
    rig.settle().await;
    assert_eq!(
        rig.ledger.lines().last().unwrap(),
        "resolved old CompletedResultLost for good"
    );
}

/// Until when a tap waits that comes at the start, while the runner says this of
/// `old`, and then nothing more.
async fn waits(old: Unsettled, words: Vec<JournalState>) -> (Duration, Rig) {
    let mut rig = after(vec![old]);
    let begin = tokio::time::Instant::now();
    let call = rig.call(job("c-1", tap()));
    assert_eq!(rig.session.load().condition, Condition::Reconciling);
    let mut words = words.into_iter();
    loop {
        let (exchange, reply) = sent(&mut rig.phone).await;
        if exchange.request.command.is_mutation() {
            reply.send_response(done());
            assert!(call.await.is_ok());
            return (begin.elapsed(), rig);
        }
        match words.next() {
            Some(state) => reply.send_response(journal(entry("old", state))),
            None => reply.send_error(broken()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_waited_for_until_its_window_has_passed() {
    let ago = Duration::from_secs(30);
    for has_fate in [false, true] {
        let old = left("old", ago, has_fate);
        let (waited, rig) = waits(old, vec![JournalState::Started]).await;
        let window = Duration::from_secs(90);
        // One without a fate may have been sent a moment ago; the other had been
        // within the three seconds that it took.
        let least = if has_fate {
            (window + Duration::from_secs(3)).saturating_sub(ago)
        } else {
            window
        };
        // Wall clocks are not paused.
        assert!(waited + A_MOMENT > least && waited <= least, "{waited:?}");
        let resolved = rig
            .ledger
            .lines()
            .contains(&"resolved old Unknown so far".to_owned());
        assert_eq!(resolved, !has_fate, "an unknown fate is told once");
    }
}

const A_MOMENT: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn an_unknown_fate_in_its_window_keeps_mutations_waiting_for_a_silent_phone_for_a_bounded_time()
 {
    let patience = SessionConfig::default().reconcile_patience;
    let (waited, rig) = waits(left("old", A_MINUTE, true), Vec::new()).await;
    assert_eq!(waited.as_secs(), patience.as_secs());
    assert_eq!(rig.ledger.lines()[0], "intent c-1", "nothing more is known");

    let almost_over = left("old", Duration::from_secs(88), true);
    let (waited, _) = waits(almost_over, Vec::new()).await;
    assert!(waited <= Duration::from_secs(5), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_later_word_keeps_what_is_on_record_of_attempts_and_times() {
    let mut rig = after(vec![left("old", A_MINUTE, true)]);
    rig.tell("old", JournalState::NotAccepted).await;
    rig.tell_uptime(Duration::from_secs(30)).await;
    rig.settle().await;
    assert_eq!(rig.ledger.lines(), ["resolved old Unknown for good"]);
    let resolution = rig.ledger.resolution();
    let known = left("old", A_MINUTE, true).receipt;
    assert_eq!(Some(resolution.receipt), known);
    let message = resolution.message.expect("a message");
    assert!(message.contains("did not learn"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_is_down_does_not_keep_the_lane_shut_once_for_every_intent() {
    let old = (0..10).map(|n| left(&format!("old-{n}"), A_MINUTE, false));
    let mut rig = after(old.collect());
    rig.ledger.set_open(false);
    for n in 0..10 {
        rig.tell(&format!("old-{n}"), JournalState::Completed).await;
    }
    let patience = SessionConfig::default().record_patience;
    tokio::time::sleep(patience + Duration::from_millis(10)).await;
    assert_eq!(rig.session.load().condition, Condition::Ready);
    rig.ledger.set_open(true);
    tokio::time::sleep(A_MINUTE).await;
    assert_eq!(rig.ledger.lines().len(), 10, "all on record in the end");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_reconciliation_that_is_abandoned_is_not_sent() {
    let mut rig = after(vec![left("old", A_MINUTE, false)]);
    let call = rig.call(job("c-1", tap()));
    let (_, _question) = rig.sent_kind(CommandKind::CommandStatus).await;
    rig.task.shutdown(Duration::from_secs(1)).await;
    let failed = call.await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Closed));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
    assert_eq!(rig.ledger.lines(), ["note c-1 NotSent"]);
}
