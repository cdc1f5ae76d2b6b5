//! What bounds the resolver: how much it remembers and how often it asks.

use std::time::SystemTime;

use fleetgate_runner::{
    Command, CommandKind, DeviceCommand, JournalState, Reply, RunnerState, RunnerStatus,
};
use futures_util::FutureExt;
use tower_test::mock::Handle;

use super::*;
use crate::dispatch::Answer;
use crate::record::Unsettled;
use crate::testing::{Ledger, Typed, device, entry, envelope, id, journal, mocked};

type Mocked = Resolver<Typed<Dispatch, Envelope, SendError>, Ledger>;

fn resolver(ledger: &Ledger) -> (Mocked, Handle<Dispatch, Envelope>) {
    let (probe, phone) = mocked();
    let recorder = Recorder::new(ledger.clone(), device(), Duration::from_secs(10));
    let inquiry = Inquiry::new(probe);
    let budgets = Budgets::default();
    (
        Resolver::new(
            inquiry,
            recorder,
            budgets,
            Gauge::new(budgets),
            Ids::default(),
        ),
        phone,
    )
}

/// What a runner says that has long been up and has an empty journal.
fn knows_nothing(question: &Dispatch) -> Envelope {
    if let Command::Device(DeviceCommand::CommandStatus { of }) = &question.request.command {
        return journal(entry(of.as_str(), JournalState::NotAccepted));
    }
    envelope(Ok(Reply::Status(RunnerStatus {
        uptime: Duration::from_hours(10),
        state: RunnerState::Idle,
        suppressed_issues: 0,
        recorded_failures: 0,
    })))
}

fn doubt(n: usize) -> Doubt {
    Doubt::from(Unsettled {
        command_id: id(&format!("c-{n}")),
        kind: CommandKind::Tap,
        sent_at: SystemTime::now(),
        receipt: None,
    })
}

#[tokio::test(start_paused = true)]
async fn the_oldest_of_too_many_is_given_up_for_good() {
    let ledger = Ledger::new();
    let (mut resolver, _phone) = resolver(&ledger);
    for n in 0..66 {
        resolver.take(doubt(n)).await;
    }
    assert_eq!(resolver.open.len(), 64);
    assert_eq!(
        ledger.lines(),
        [
            "resolved c-0 Unknown for good",
            "resolved c-1 Unknown for good"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_found_out_about_the_oldest_of_too_many_is_not_lost() {
    let ledger = Ledger::new();
    let (mut resolver, _phone) = resolver(&ledger);
    let mut known = doubt(0);
    resolver.find(&mut known, Finding::Settled(Answer::ResultLost));
    resolver.take(known).await;
    for n in 1..65 {
        resolver.take(doubt(n)).await;
    }
    assert_eq!(
        ledger.lines(),
        ["resolved c-0 CompletedResultLost for good"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_the_ledger_never_takes_is_not_offered_for_ever() {
    let ledger = Ledger::new();
    ledger.refuse(0, usize::MAX);
    let (mut resolver, mut phone) = resolver(&ledger);
    let mut known = doubt(0);
    resolver.find(&mut known, Finding::Settled(Answer::ResultLost));
    resolver.take(known).await;
    let (_docket, mut doubts, _) = crate::docket::Docket::new();
    let mut work = std::pin::pin!(resolver.run(&mut doubts));
    tokio::select! {
        _ = &mut work => panic!("it goes on"),
        () = tokio::time::sleep(Duration::from_hours(49)) => {}
        _ = phone.next_request() => panic!("there is nothing to ask"),
    }
    ledger.refuse(0, 0);
    tokio::select! {
        _ = &mut work => panic!("it goes on"),
        () = tokio::time::sleep(Duration::from_hours(1)) => {}
    }
    assert!(ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn questions_come_one_at_a_time_with_a_pause_between_two_mutations() {
    let ledger = Ledger::new();
    let (mut resolver, mut phone) = resolver(&ledger);
    for n in 0..5 {
        resolver.take(doubt(n)).await;
    }
    let (_docket, mut doubts, _) = crate::docket::Docket::new();
    let mut work = std::pin::pin!(resolver.run(&mut doubts));
    let mut last = None;
    for _ in 0..20 {
        let (question, reply) = tokio::select! {
            _ = &mut work => panic!("it goes on"),
            next = phone.next_request() => next.unwrap(),
        };
        let now = Instant::now();
        if question.request.command.kind() == CommandKind::CommandStatus {
            let gap = last.replace(now).map(|last| now - last);
            assert!(gap.is_none_or(|gap| gap >= SHORTEST_GAP), "{gap:?}");
        }
        assert!(work.as_mut().now_or_never().is_none());
        assert!(phone.next_request().now_or_never().is_none(), "two at once");
        reply.send_response(knows_nothing(&question));
    }
    assert!(ledger.lines().is_empty(), "nothing was found out");
}

#[tokio::test(start_paused = true)]
async fn a_mutation_that_somebody_else_has_settled_is_let_go() {
    let ledger = Ledger::new();
    ledger.refuse_as_settled(1);
    let (mut resolver, mut phone) = resolver(&ledger);
    resolver.take(doubt(1)).await;
    let (_docket, mut doubts, _) = crate::docket::Docket::new();
    let mut work = std::pin::pin!(resolver.run(&mut doubts));
    let (_, reply) = tokio::select! {
        _ = &mut work => panic!("it goes on"),
        next = phone.next_request() => next.unwrap(),
    };
    reply.send_response(journal(entry("c-1", JournalState::Completed)));
    let more = tokio::select! {
        _ = &mut work => panic!("it goes on"),
        more = tokio::time::timeout(Duration::from_hours(1), phone.next_request()) => more,
    };
    assert!(more.is_err(), "asked again");
    assert!(ledger.lines().is_empty());
}
