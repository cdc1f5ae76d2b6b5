//! What may be asked for again, and what a caller is told.

use std::sync::Arc;

use fleetgate_runner::{Fate, Point};

use super::*;
use crate::record::RecordErrorKind;
use crate::testing::{broken, busy, codes_but_busy, screenshot, tap, turn, verdict};

fn failed(command: fleetgate_runner::Command<Point>, fate: Fate, failure: Failure) -> Failed {
    let effect = match fate {
        Fate::NotSent | Fate::Failed => Effect::None,
        Fate::Completed | Fate::CompletedResultLost => Effect::Applied,
        Fate::Unknown => Effect::Unknown,
    };
    Failed {
        receipt: turn("c-1", command).receipt(fate, effect),
        failure,
    }
}

fn ledger_down() -> Failure {
    let source = Arc::new(std::fmt::Error);
    Failure::Record(RecordError {
        kind: RecordErrorKind::Unavailable,
        source,
    })
}

fn runner(code: RunnerCode) -> Failure {
    Failure::Runner(verdict(code).result.unwrap_err())
}

#[test]
fn a_mutation_that_may_have_happened_is_never_offered_again() {
    let failures = [
        Failure::Unknown {
            cause: broken(),
            journal: None,
        },
        Failure::DeadlineExceeded,
        Failure::Closed,
        ledger_down(),
        runner(RunnerCode::CommandTimedOut),
    ];
    for failure in failures {
        let told = format!("{failure:?}");
        assert_eq!(
            failed(tap(), Fate::Unknown, failure).retry_after(),
            None,
            "{told}"
        );
    }
    assert_eq!(
        failed(tap(), Fate::Completed, ledger_down()).retry_after(),
        None
    );
}

#[test]
fn what_provably_did_nothing_may_be_asked_for_again_where_that_may_help() {
    let unsent = [
        Failure::NotSent(SendError::NotAttached),
        Failure::NotSent(SendError::NotListening { port: Some(1) }),
        Failure::Viewport(Box::new(Failure::Unknown {
            cause: broken(),
            journal: None,
        })),
        Failure::LaneFull { limit: 1 },
        Failure::DeadlineInQueue,
        Failure::Closed,
        ledger_down(),
    ];
    for failure in unsent {
        let told = format!("{failure:?}");
        assert!(
            failed(tap(), Fate::NotSent, failure)
                .retry_after()
                .is_some(),
            "{told}"
        );
    }
    for code in [RunnerCode::RunnerBusy, RunnerCode::RunnerWedged] {
        assert!(
            failed(tap(), Fate::Failed, runner(code))
                .retry_after()
                .is_some()
        );
    }
}

#[test]
fn what_would_fail_again_is_not_offered_again() {
    let limit = SendError::RequestTooLarge { bytes: 2, limit: 1 };
    assert_eq!(
        failed(tap(), Fate::NotSent, Failure::NotSent(limit)).retry_after(),
        None
    );
    assert_eq!(
        failed(tap(), Fate::NotSent, Failure::Duplicate).retry_after(),
        None
    );
    for code in codes_but_busy() {
        if code != RunnerCode::RunnerWedged {
            assert_eq!(
                failed(screenshot(), Fate::Failed, runner(code)).retry_after(),
                None
            );
        }
    }
}

#[test]
fn a_read_with_an_unknown_fate_may_be_asked_for_again() {
    let failure = Failure::Unknown {
        cause: broken(),
        journal: None,
    };
    assert!(
        failed(screenshot(), Fate::Unknown, failure)
            .retry_after()
            .is_some()
    );
}

#[test]
fn a_viewports_failure_gives_the_reason_but_not_its_unknown_fate() {
    let viewport = |failure| Failure::Viewport(Box::new(failure));
    assert_eq!(
        viewport(runner(RunnerCode::AppNotAvailable)).reason(),
        "APP_NOT_AVAILABLE"
    );
    let unknown = Failure::Unknown {
        cause: broken(),
        journal: None,
    };
    assert_eq!(viewport(unknown).reason(), "VIEWPORT_UNREADABLE");
}

#[test]
fn the_runners_own_hint_comes_first() {
    let error = RunnerError {
        hint: Some("unlock it".to_owned()),
        ..busy().result.unwrap_err()
    };
    let own = Failure::Runner(error);
    assert_eq!(own.hint().as_deref(), Some("unlock it"));
    let drain = Drain {
        age: Duration::ZERO,
        left: Duration::ZERO,
    };
    let draining = Failure::Draining {
        failure: Box::new(own),
        drain,
    };
    assert_eq!(draining.hint().as_deref(), Some("unlock it"));
}

#[test]
fn whoever_waited_in_vain_is_told_to_look_at_the_phone_whatever_the_runner_says() {
    let hint = |own: Option<&str>| {
        let error = RunnerError {
            code: RunnerCode::CommandTimedOut,
            hint: own.map(str::to_owned),
            ..busy().result.unwrap_err()
        };
        let failure = Failure::Runner(error);
        failure.hint().unwrap().into_owned()
    };
    assert_eq!(hint(None), UNLOCK);
    assert_eq!(hint(Some("be patient")), format!("be patient; {UNLOCK}"));
}

#[test]
fn a_pause_explains_what_was_not_started_and_nothing_else() {
    for failure in [Failure::LaneFull { limit: 1 }, Failure::DeadlineInQueue] {
        let (reason, told) = (failure.reason().to_owned(), failure.to_string());
        let paused = failure.while_paused();
        assert_eq!(paused.reason(), reason);
        assert!(paused.to_string().starts_with(&told));
        assert!(paused.hint().unwrap().contains("launched or recycled"));
        let paused = failed(tap(), Fate::NotSent, paused);
        assert_eq!(paused.retry_after(), Some(LATER));
        let source = std::error::Error::source(&paused.failure).unwrap();
        assert_eq!(source.to_string(), told);
    }
    for failure in [
        Failure::DeadlineExceeded,
        Failure::Closed,
        Failure::Duplicate,
        Failure::NotSent(SendError::NotListening { port: None }),
        runner(RunnerCode::RunnerBusy),
    ] {
        let told = failure.to_string();
        assert_eq!(failure.while_paused().to_string(), told);
    }
}

#[test]
fn a_runner_that_is_not_up_is_told_from_one_that_does_not_listen() {
    let refused = |port| Failure::NotSent(SendError::NotListening { port });
    let (down, none) = (refused(Some(8100)), refused(None));
    for failure in [&down, &none] {
        assert_eq!(failure.reason(), "RUNNER_NOT_LISTENING");
    }
    assert!(down.to_string().contains("port 8100"));
    assert!(none.to_string().contains("no runner is up"));
    assert!(none.hint().unwrap().contains("being launched"));
}

#[test]
fn an_error_chain_leads_to_the_cause() {
    let failed = failed(
        tap(),
        Fate::NotSent,
        Failure::NotSent(SendError::NotAttached),
    );
    let source = std::error::Error::source(&failed).unwrap();
    assert_eq!(source.to_string(), "not sent: the device is not attached");
    assert_eq!(failed.to_string(), "tap c-1 failed");
}
