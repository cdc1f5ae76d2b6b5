//! Every answer's fate and effect, and what must not be told.

use std::sync::Arc;

use fleetgate_runner::{CommandKind, JournalState, Point, Refused, RunnerCode};

use super::*;
use crate::testing::{
    SECRET, broken, codes_but_busy, done, envelope, frame, garbage, snapshot, tap, turn,
    type_secret, verdict,
};

const TIME: Duration = Duration::from_millis(7);

fn settled(command: Command<Point>, answer: Result<Answer, Unanswered>) -> Result<Success, Failed> {
    settle(&turn("c-1", command), answer, TIME)
}

fn facts(outcome: &Result<Success, Failed>) -> (Fate, Effect) {
    let (Ok(Success { receipt, .. }) | Err(Failed { receipt, .. })) = outcome;
    assert_eq!(receipt.device_time, TIME);
    (receipt.fate, receipt.effect)
}

#[test]
fn a_success_is_completed_and_applied_with_what_the_envelope_says() {
    let whole = Envelope {
        reactivated: true,
        warning: Some("hm".to_owned()),
        ..done()
    };
    for (answer, recovered) in [
        (Answer::Replied(whole.clone()), false),
        (Answer::Recovered(whole), true),
    ] {
        let outcome = settled(tap(), Ok(answer));
        assert_eq!(facts(&outcome), (Fate::Completed, Effect::Applied));
        let Success { receipt, reply } = outcome.unwrap();
        assert!(receipt.reactivated);
        assert_eq!(receipt.recovered, recovered);
        assert_eq!(receipt.warning.as_deref(), Some("hm"));
        assert_eq!(reply, Reply::Done("tapped".to_owned()));
    }
}

#[test]
fn a_lost_result_is_a_success_without_a_message() {
    let outcome = settled(tap(), Ok(Answer::ResultLost));
    assert_eq!(
        facts(&outcome),
        (Fate::CompletedResultLost, Effect::Applied)
    );
    assert_eq!(outcome.unwrap().reply, Reply::Done(String::new()));
}

#[test]
fn every_verdict_is_failed_with_the_effect_that_its_code_proves() {
    let codes = codes_but_busy().into_iter().chain([RunnerCode::RunnerBusy]);
    for code in codes {
        let effect = match code {
            RunnerCode::CommandTimedOut
            | RunnerCode::CommandFailed
            | RunnerCode::XctestRecordedFailure
            | RunnerCode::Other(_) => Effect::Unknown,
            RunnerCode::InvalidRequest
            | RunnerCode::AppBundleIdRequired
            | RunnerCode::AppNotAvailable
            | RunnerCode::AppBackgrounded
            | RunnerCode::TextInputNotFocused
            | RunnerCode::UnsupportedOperation
            | RunnerCode::RunnerBusy
            | RunnerCode::RunnerWedged
            | RunnerCode::SnapshotFailed => Effect::None,
        };
        let whole = Envelope {
            reactivated: true,
            ..verdict(code.clone())
        };
        let outcome = settled(tap(), Ok(Answer::Replied(whole)));
        assert_eq!(facts(&outcome), (Fate::Failed, effect));
        let Failed { receipt, failure } = outcome.unwrap_err();
        assert!(
            receipt.reactivated,
            "a failed command may have brought the app to the front"
        );
        assert_eq!(failure.reason(), code.as_str());
    }
}

#[test]
fn what_was_not_executed_was_not_sent() {
    let errors = [
        SendError::NotAttached,
        SendError::NotListening { port: Some(1) },
        SendError::RequestTooLarge { bytes: 2, limit: 1 },
        SendError::WindowClosed {
            window: TIME,
            sent: false,
        },
        Refused(Arc::new(std::fmt::Error)).into(),
    ];
    for error in errors {
        let outcome = settled(tap(), Err(Unanswered::Send(error)));
        assert_eq!(facts(&outcome), (Fate::NotSent, Effect::None));
        assert!(matches!(outcome.unwrap_err().failure, Failure::NotSent(_)));
    }
}

#[test]
fn what_was_declined_before_it_could_not_be_sent_again_has_failed_without_effect() {
    let turn = turn("c-1", tap());
    turn.tally.attempt().mark();
    turn.tally.decline();
    let outcome = settle(&turn, Err(Unanswered::Send(SendError::NotAttached)), TIME);
    assert_eq!(facts(&outcome), (Fate::Failed, Effect::None));
    assert_eq!(outcome.unwrap_err().failure.reason(), "DEVICE_UNATTACHED");
}

#[test]
fn a_read_that_was_sent_once_and_could_not_be_again_is_unknown() {
    let turn = turn("c-1", snapshot("com.example"));
    turn.tally.attempt().mark();
    let _unmarked = turn.tally.attempt();
    let outcome = settle(&turn, Err(Unanswered::Send(SendError::NotAttached)), TIME);
    assert_eq!(facts(&outcome), (Fate::Unknown, Effect::Unknown));
}

#[test]
fn a_lost_reply_that_the_journal_cannot_explain_is_unknown() {
    let journal = Some(JournalState::NotAccepted);
    let outcome = settled(
        tap(),
        Err(Unanswered::Unknown {
            cause: broken(),
            journal,
        }),
    );
    assert_eq!(facts(&outcome), (Fate::Unknown, Effect::Unknown));
    assert_eq!(outcome.unwrap_err().failure.reason(), "FATE_UNKNOWN");
    let outcome = settled(snapshot("com.example"), Err(Unanswered::Send(garbage())));
    assert_eq!(facts(&outcome), (Fate::Unknown, Effect::Unknown));
}

#[test]
fn a_read_with_unusable_data_has_run() {
    let invalid = InvalidReply::Data {
        kind: CommandKind::Snapshot,
        detail: "odd".to_owned(),
    };
    let outcome = settled(
        snapshot("com.example"),
        Err(Unanswered::Send(invalid.into())),
    );
    assert_eq!(
        facts(&outcome),
        (Fate::CompletedResultLost, Effect::Applied)
    );
    assert!(matches!(outcome.unwrap_err().failure, Failure::Reply(_)));
}

#[test]
fn an_end_without_an_answer_is_what_the_tally_proves() {
    for (end, reason) in [
        (Unanswered::Abandoned, "GATEWAY_DRAINING"),
        (Unanswered::Crashed, "INTERNAL"),
    ] {
        let turn = turn("c-1", tap());
        let outcome = settle(&turn, Err(end.clone()), TIME);
        assert_eq!(facts(&outcome), (Fate::NotSent, Effect::None));
        turn.tally.attempt().mark();
        let outcome = settle(&turn, Err(end), TIME);
        assert_eq!(facts(&outcome), (Fate::Unknown, Effect::Unknown));
        let failed = outcome.unwrap_err();
        assert_eq!(failed.failure.reason(), reason);
        assert_eq!(failed.receipt.attempts, 1);
    }
}

#[test]
fn what_was_typed_is_in_nothing_that_the_runner_says_about_it() {
    let echo = || format!("could not type {SECRET}");
    let spoken = RunnerError {
        code: RunnerCode::CommandFailed,
        message: echo(),
        hint: Some(echo()),
    };
    let success = Envelope {
        warning: Some(echo()),
        ..envelope(Ok(Reply::Done(echo())))
    };
    let quoted = || InvalidReply::NotAnEnvelope { detail: echo() };
    let data = InvalidReply::Data {
        kind: CommandKind::Type,
        detail: echo(),
    };
    let answers = [
        Ok(Answer::Replied(success)),
        Ok(Answer::Recovered(envelope(Err(spoken)))),
        Err(Unanswered::Send(quoted().into())),
        Err(Unanswered::Send(data.into())),
        Err(Unanswered::Unknown {
            cause: quoted().into(),
            journal: None,
        }),
    ];
    for answer in answers {
        assert!(format!("{answer:?}").contains(SECRET), "nothing to redact");
        let outcome = settled(type_secret(), answer);
        let told = format!("{outcome:?}");
        assert!(!told.contains(SECRET), "{told}");
    }
}

#[test]
fn other_replies_are_left_as_they_are() {
    let reply = Reply::Viewport(frame());
    let outcome = settled(
        crate::testing::viewport(),
        Ok(Answer::Replied(envelope(Ok(reply.clone())))),
    );
    assert_eq!(outcome.unwrap().reply, reply);
}

#[test]
fn an_app_that_came_to_the_front_for_the_viewport_is_reported_with_every_outcome() {
    let fronted = Turn {
        fronted: true,
        ..turn("c-1", tap())
    };
    let answers = [
        Ok(Answer::Replied(done())),
        Ok(Answer::Recovered(verdict(RunnerCode::CommandFailed))),
        Ok(Answer::ResultLost),
        Err(Unanswered::Send(SendError::NotAttached)),
        Err(Unanswered::Abandoned),
    ];
    for answer in answers {
        let outcome = settle(&fronted, answer, TIME);
        let (Ok(Success { receipt, .. }) | Err(Failed { receipt, .. })) = outcome;
        assert!(receipt.reactivated);
    }
}
