//! One attempt, in its window, and what counts as an answer.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{RunnerCode, RunnerError, RunnerState};
use tokio::time::Instant;
use tower_test::mock::Handle;

use super::*;
use crate::testing::{SECRET, Typed, broken, done, envelope, garbage, mocked, verdict};

type Phone = Handle<Exchange, Envelope>;

fn probe(budgets: Budgets) -> (Probe<Typed<Exchange, Envelope, SendError>>, Phone) {
    let (exchange, phone) = mocked();
    (Probe::new(exchange, budgets), phone)
}

fn idle() -> RunnerStatus {
    RunnerStatus {
        uptime: Duration::from_secs(3),
        state: RunnerState::Idle,
        suppressed_issues: 1,
        recorded_failures: 2,
    }
}

/// What the probe says of a runner that answers once, in this way.
async fn told(answer: Result<Envelope, SendError>) -> Result<RunnerStatus, SendError> {
    let (probe, mut phone) = probe(Budgets::default());
    let phone = async {
        let (exchange, reply) = phone.next_request().await.unwrap();
        let question = Command::Device(DeviceCommand::Status);
        assert_eq!(exchange.request.command, question);
        assert_eq!(exchange.request.command_id, None);
        exchange.clearance.cleared().await.unwrap();
        exchange.sent.mark();
        match answer {
            Ok(envelope) => reply.send_response(envelope),
            Err(error) => reply.send_error(error),
        }
    };
    let (status, ()) = tokio::join!(probe.status(ProbeWindow::Health), phone);
    status
}

#[tokio::test(start_paused = true)]
async fn a_status_is_an_answer() {
    let status = told(Ok(envelope(Ok(Reply::Status(idle()))))).await;
    assert_eq!(status.unwrap(), idle());
}

#[tokio::test(start_paused = true)]
async fn any_other_envelope_is_an_answer_and_no_status() {
    let data = InvalidReply::Data {
        kind: CommandKind::Status,
        detail: "odd".to_owned(),
    };
    for answer in [
        Ok(verdict(RunnerCode::InvalidRequest)),
        Ok(done()),
        Err(data.into()),
    ] {
        let status = told(answer).await.unwrap_err();
        let is_data = matches!(status, SendError::InvalidReply(InvalidReply::Data { .. }));
        assert!(is_data, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_envelope_is_no_answer_and_is_not_asked_for_again() {
    let refused = |port| SendError::NotListening { port };
    for error in [
        SendError::NotAttached,
        refused(Some(8100)),
        refused(None),
        SendError::Connect(Arc::new(std::fmt::Error)),
        broken(),
        garbage(),
    ] {
        let expected = error.to_string();
        let status = told(Err(error)).await;
        assert_eq!(status.unwrap_err().to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_runner_is_waited_for_as_long_as_its_window_is_open() {
    for (scale, window, expected) in [
        (1.0, ProbeWindow::Readiness, Duration::from_secs(2)),
        (1.0, ProbeWindow::Health, Duration::from_secs(3)),
        (0.1, ProbeWindow::Health, Duration::from_millis(300)),
    ] {
        let (probe, mut phone) = probe(Budgets::scaled(scale));
        let begin = Instant::now();
        let silence = phone.next_request();
        let (status, question) = tokio::join!(probe.status(window), silence);
        let status = status.unwrap_err();
        let closed = matches!(status, SendError::WindowClosed { sent: false, .. });
        assert!(closed, "{status:?}");
        assert_eq!(begin.elapsed(), expected);
        drop(question);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_says_instead_of_its_health_is_not_repeated() {
    for code in [
        RunnerCode::CommandFailed,
        RunnerCode::Other(SECRET.to_owned()),
    ] {
        let words = RunnerError {
            code,
            message: format!("could not type {SECRET}"),
            hint: Some(SECRET.to_owned()),
        };
        let error = told(Ok(envelope(Err(words)))).await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(
            told.contains("an error") && !told.contains(SECRET),
            "{told}"
        );
    }
}
