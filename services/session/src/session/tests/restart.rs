//! A runner that is replaced by another: its journal is empty, its uptime small,
//! and it may listen on another port.

use super::*;
use crate::condition::Condition;
use crate::testing::{broken, soon, tap};
use tokio::time::Instant;

const A_MOMENT: Duration = Duration::from_secs(2);

fn up_for(uptime: Duration) -> RunnerStatus {
    RunnerStatus {
        uptime,
        state: RunnerState::Idle,
        suppressed_issues: 0,
        recorded_failures: 0,
    }
}

/// A session that has heard of its runner and sends it a tap after a while, with
/// the tap's reply.
async fn under_way() -> (Rig, Call, SendResponse<Envelope>) {
    let mut rig = Rig::new();
    rig.session.hear(&up_for(A_DAY));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (call, reply) = rig.occupy("c-1", tap()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    (rig, call, reply)
}

/// Says for as long as this lasts that no runner is up.
async fn nobody_listens<T>(rig: &mut Rig, work: impl Future<Output = T>) -> T {
    let refuse = async {
        loop {
            let (exchange, reply) = rig.phone.next_request().await.unwrap();
            let command = &exchange.request.command;
            assert!(!command.is_mutation(), "sent: {command:?}");
            reply.send_error(SendError::NotListening { port: None });
        }
    };
    tokio::select! {
        biased;
        done = soon(work) => done,
        () = refuse => unreachable!("it is refused for ever"),
    }
}

/// A runner that is killed under a command and launched again: nothing is sent
/// twice, nothing overtakes, and what became of the command is said to be
/// unknown, for good, as soon as the new runner answers.
#[tokio::test(start_paused = true)]
async fn a_command_whose_runner_is_killed_is_unknown_and_is_not_sent_again() {
    let (mut rig, call, reply) = under_way().await;
    let mut vitals = rig.session.vitals();
    vitals.borrow_and_update();
    let next = rig.call(job("c-2", tap()));
    reply.send_error(broken());
    // Whoever launches runners sees the process end.
    let pause = rig.session.pause();
    let session = rig.session.clone();
    nobody_listens(&mut rig, session.idle()).await;
    let failed = call.await.unwrap_err();
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Unknown, Effect::Unknown)
    );
    assert_eq!(failed.failure.reason(), "FATE_UNKNOWN");
    assert_eq!(failed.retry_after(), None);
    assert_eq!(rig.session.load().condition, Condition::Reconciling);
    assert!(vitals.borrow().unreachable > 0);

    // The launch takes a while, and questions meanwhile find nobody.
    nobody_listens(&mut rig, tokio::time::sleep(Duration::from_secs(40))).await;
    assert_eq!(rig.session.load().condition, Condition::Reconciling);
    let begin = Instant::now();
    rig.session.hear(&up_for(A_MOMENT));
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(A_MOMENT).await;
    rig.settle().await;
    assert!(begin.elapsed() <= A_MOMENT, "{:?}", begin.elapsed());
    assert_eq!(rig.session.load().condition, Condition::Ready);
    assert_eq!(
        rig.ledger.lines(),
        [
            "intent c-1",
            "fate c-1 Unknown",
            "resolved c-1 Unknown for good"
        ]
    );
    assert!(rig.ledger.resolution().why.contains("restarted"));

    drop(pause);
    rig.sent("c-2").await.send_response(done());
    assert!(next.await.is_ok());
    rig.assert_quiet().await;
}

/// The same without anybody who launches it: it comes up by itself, on the port
/// that is configured.
#[tokio::test(start_paused = true)]
async fn a_hold_ends_when_a_runner_that_came_up_by_itself_is_asked() {
    let (mut rig, call, reply) = under_way().await;
    let next = rig.call(job("c-2", tap()));
    reply.send_error(broken());
    nobody_listens(&mut rig, call).await.unwrap_err();
    nobody_listens(&mut rig, tokio::time::sleep(Duration::from_secs(20))).await;
    assert_eq!(rig.session.load().condition, Condition::Reconciling);
    let begin = Instant::now();
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(A_MOMENT).await;
    rig.sent("c-2").await.send_response(done());
    assert!(next.await.is_ok());
    assert!(begin.elapsed() <= A_MOMENT, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_hold_does_not_wait_for_its_pause_to_end_once_another_runner_is_heard_of() {
    let (mut rig, call, reply) = under_way().await;
    reply.send_error(broken());
    nobody_listens(&mut rig, call).await.unwrap_err();
    // Until no question follows another for longer than one is tried again for.
    let tried_again = Duration::from_millis(700);
    while let Ok(next) = tokio::time::timeout(tried_again, rig.phone.next_request()).await {
        let (_, reply) = next.unwrap();
        reply.send_error(SendError::NotListening { port: None });
    }
    let begin = Instant::now();
    rig.session.hear(&up_for(A_MOMENT));
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(A_MOMENT).await;
    rig.settle().await;
    assert_eq!(begin.elapsed().as_millis() / 10, 0, "at once");
    assert_eq!(rig.session.load().condition, Condition::Ready);
}

/// A doubt that has outlasted its hold, with a runner that has been silent for
/// so long that it is asked every few minutes only.
async fn long_in_doubt() -> Rig {
    let (mut rig, call, reply) = under_way().await;
    reply.send_error(broken());
    nobody_listens(&mut rig, call).await.unwrap_err();
    nobody_listens(&mut rig, tokio::time::sleep(Duration::from_secs(3000))).await;
    assert_eq!(rig.session.load().condition, Condition::Ready);
    let soon = tokio::time::timeout(A_MOMENT, rig.phone.next_request());
    assert!(soon.await.is_err(), "it is asked rarely by now");
    rig
}

#[tokio::test(start_paused = true)]
async fn a_fate_that_is_looked_into_rarely_by_now_is_asked_for_when_another_runner_is_up() {
    let mut rig = long_in_doubt().await;
    let begin = Instant::now();
    rig.session.hear(&up_for(A_MOMENT));
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(A_MOMENT).await;
    rig.settle().await;
    assert!(begin.elapsed() <= A_MOMENT, "{:?}", begin.elapsed());
    assert_eq!(
        rig.ledger.lines().last().unwrap(),
        "resolved c-1 Unknown for good"
    );
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_runner_is_not_asked_more_often_for_being_heard() {
    let mut rig = long_in_doubt().await;
    for _ in 0..10 {
        rig.session.hear(&up_for(A_DAY));
        rig.settle().await;
    }
    let soon = tokio::time::timeout(A_MOMENT, rig.phone.next_request());
    assert!(soon.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_found_to_be_another_is_asked_about_the_rest_as_well() {
    let mut rig = long_in_doubt().await;
    let (call, reply) = rig.occupy("c-2", tap()).await;
    reply.send_error(broken());
    nobody_listens(&mut rig, call).await.unwrap_err();
    nobody_listens(&mut rig, tokio::time::sleep(Duration::from_secs(3000))).await;
    let mut asked = Vec::new();
    for _ in 0..2 {
        let (exchange, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
        asked.push(Instant::now());
        reply.send_response(knows_nothing(&exchange));
        rig.tell_uptime(A_MOMENT).await;
    }
    rig.settle().await;
    assert!(asked[1] - asked[0] <= Duration::from_secs(1), "{asked:?}");
    let lines = rig.ledger.lines();
    for name in ["c-1", "c-2"] {
        let lost = format!("resolved {name} Unknown for good");
        assert!(lines.contains(&lost), "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_gateway_left_is_asked_for_when_a_runner_is_first_heard_of() {
    let left = Unsettled {
        command_id: id("old"),
        kind: CommandKind::Tap,
        sent_at: std::time::SystemTime::now() - Duration::from_secs(60),
        receipt: None,
    };
    let mut rig = Rig::after(SessionConfig::default(), vec![left]);
    let pause = rig.session.pause();
    let call = rig.call(job("c-1", tap()));
    nobody_listens(&mut rig, tokio::time::sleep(Duration::from_secs(600))).await;
    assert_eq!(rig.ledger.lines(), ["resolved old Unknown so far"]);
    let begin = Instant::now();
    rig.session.hear(&up_for(A_MOMENT));
    rig.tell("old", JournalState::NotAccepted).await;
    rig.tell_uptime(A_MOMENT).await;
    rig.settle().await;
    assert!(begin.elapsed() <= A_MOMENT, "{:?}", begin.elapsed());
    assert_eq!(rig.ledger.lines()[1..], ["resolved old Unknown for good"]);
    drop(pause);
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
}
