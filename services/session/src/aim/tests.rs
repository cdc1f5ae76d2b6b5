//! Points that depend on the viewport.

use std::time::Duration;

use fleetgate_runner::{AppAction, AppCommand, RunnerCode};
use tower_test::mock::Handle;

use super::*;
use crate::testing::{
    Ledger, Typed, device, done, frame, id, job, job_within, mocked, tap, tap_in_the_middle, turn,
    verdict,
};

type Mocked = Aim<Typed<Turn, Success, Failed>, Ledger>;

fn aim(ledger: &Ledger) -> (Mocked, Handle<Turn, Success>) {
    let (inner, below) = mocked();
    let recorder = Recorder::new(ledger.clone(), device(), Duration::from_secs(1));
    (AimLayer::new(recorder).layer(inner), below)
}

fn success(turn: &Turn, reactivated: bool, reply: Reply) -> Success {
    let receipt = turn.receipt(Fate::Completed, Effect::Applied);
    Success {
        receipt: Receipt {
            reactivated: reactivated || receipt.reactivated,
            ..receipt
        },
        reply,
    }
}

fn place(command: &Command) -> (f64, f64) {
    let Command::App(AppCommand {
        action: AppAction::Tap { at, .. },
        ..
    }) = command
    else {
        panic!("not a tap: {command:?}")
    };
    (at.x, at.y)
}

#[tokio::test(start_paused = true)]
async fn an_absolute_point_needs_no_viewport() {
    let (service, mut below) = aim(&Ledger::new());
    let (outcome, ()) = tokio::join!(service.oneshot(job("c-1", tap()).into()), async {
        let (turn, reply) = below.next_request().await.unwrap();
        assert_eq!(place(&turn.command), (10.0, 20.0));
        reply.send_response(success(&turn, false, done().result.unwrap()));
        assert!(below.next_request().await.is_none());
    });
    assert!(!outcome.unwrap().receipt.reactivated);
}

#[tokio::test(start_paused = true)]
async fn a_relative_point_is_resolved_in_a_viewport_read_right_before() {
    let (service, mut below) = aim(&Ledger::new());
    let (outcome, ()) = tokio::join!(
        service.oneshot(job("c-1", tap_in_the_middle()).into()),
        async {
            let (read, reply) = below.next_request().await.unwrap();
            assert_eq!(read.command.kind(), CommandKind::Viewport);
            assert_ne!(
                read.command_id,
                id("c-1"),
                "the read is a command of its own"
            );
            let _ = read.tally.attempt();
            reply.send_response(success(&read, true, Reply::Viewport(frame())));
            let (turn, reply) = below.next_request().await.unwrap();
            assert_eq!(turn.command_id, id("c-1"));
            assert_eq!(place(&turn.command), (200.0, 400.0));
            assert_eq!(turn.tally.count(), 0, "the read's attempts are its own");
            assert!(turn.fronted, "so that the record of the tap says it too");
            reply.send_response(success(&turn, false, done().result.unwrap()));
        }
    );
    assert!(
        outcome.unwrap().receipt.reactivated,
        "the read brought the app to the front"
    );
}

#[tokio::test(start_paused = true)]
async fn the_reads_reactivation_is_reported_with_the_commands_failure() {
    let (service, mut below) = aim(&Ledger::new());
    let (outcome, ()) = tokio::join!(
        service.oneshot(job("c-1", tap_in_the_middle()).into()),
        async {
            let (read, reply) = below.next_request().await.unwrap();
            reply.send_response(success(&read, true, Reply::Viewport(frame())));
            let (turn, reply) = below.next_request().await.unwrap();
            let error = verdict(RunnerCode::CommandFailed).result.unwrap_err();
            reply.send_error(Failed {
                receipt: turn.receipt(Fate::Failed, Effect::Unknown),
                failure: Failure::Runner(error),
            });
        }
    );
    let failed = outcome.unwrap_err();
    assert!(failed.receipt.reactivated);
    assert_eq!(failed.receipt.fate, Fate::Failed);
}

#[tokio::test(start_paused = true)]
async fn without_a_viewport_nothing_is_sent_and_that_is_on_record() {
    let ledger = Ledger::new();
    let (service, mut below) = aim(&ledger);
    let (outcome, ()) = tokio::join!(
        service.oneshot(job("c-1", tap_in_the_middle()).into()),
        async {
            let (read, reply) = below.next_request().await.unwrap();
            let error = verdict(RunnerCode::AppNotAvailable).result.unwrap_err();
            let receipt = read.receipt(Fate::Failed, Effect::None);
            reply.send_error(Failed {
                receipt: Receipt {
                    reactivated: true,
                    ..receipt
                },
                failure: Failure::Runner(error),
            });
            assert!(below.next_request().await.is_none());
        }
    );
    let Failed { receipt, failure } = outcome.unwrap_err();
    assert_eq!(
        (receipt.fate, receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert_eq!(receipt.command_id, id("c-1"));
    assert!(receipt.reactivated);
    assert_eq!(failure.reason(), "APP_NOT_AVAILABLE");
    assert_eq!(ledger.lines(), ["note c-1 NotSent"]);
    assert_eq!(
        ledger.conclusion().subject,
        Subject::Unresolved(tap_in_the_middle())
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_no_viewport_is_none() {
    let (service, mut below) = aim(&Ledger::new());
    let (outcome, ()) = tokio::join!(
        service.oneshot(job("c-1", tap_in_the_middle()).into()),
        async {
            let (read, reply) = below.next_request().await.unwrap();
            reply.send_response(success(&read, false, Reply::Done(String::new())));
            assert!(below.next_request().await.is_none());
        }
    );
    assert_eq!(outcome.unwrap_err().failure.reason(), "REPLY_UNUSABLE");
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_deadline_passes_during_the_read_is_not_sent() {
    let ledger = Ledger::new();
    let (service, mut below) = aim(&ledger);
    let job = job_within("c-1", tap_in_the_middle(), Duration::from_secs(1));
    let (outcome, ()) = tokio::join!(service.oneshot(job.into()), async {
        let (read, reply) = below.next_request().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        reply.send_response(success(&read, false, Reply::Viewport(frame())));
        assert!(below.next_request().await.is_none());
    });
    let failed = outcome.unwrap_err();
    assert!(matches!(failed.failure, Failure::DeadlineExceeded));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
    assert_eq!(ledger.lines(), ["note c-1 NotSent"]);
}

#[test]
fn a_command_without_relative_points_is_recorded_as_it_would_be_sent() {
    assert_eq!(
        Subject::from(tap()),
        Subject::Resolved(turn("c-1", tap()).command)
    );
}
