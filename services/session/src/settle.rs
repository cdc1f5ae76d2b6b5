//! From what the stack below learned to what the caller is told. Pure.
//!
//! Fates and effects are decided here and in the [`Tally`], and nowhere else.
//! What the runner says about a command that types passes through
//! [`Command::redact`] here, before anything else can see it: no layer below
//! logs a runner's words. What it says about any other command is passed on as
//! it is, also if it should quote what was typed before.
//!
//! [`Tally`]: crate::tally::Tally

#![expect(
    clippy::result_large_err,
    reason = "a failure carries a whole receipt, and travels in boxed futures"
)]

use std::time::Duration;

use fleetgate_runner::{
    Command, CommandKind, Disposition, Effect, Envelope, Fate, InvalidReply, Reply, RunnerCode,
    RunnerError, SendError,
};

use crate::dispatch::{Answer, Unanswered};
use crate::failure::{Failed, Failure};
use crate::job::{Receipt, Success};
use crate::turn::Turn;

/// The outcome of a turn.
pub(crate) fn settle(
    turn: &Turn,
    answer: Result<Answer, Unanswered>,
    device_time: Duration,
) -> Result<Success, Failed> {
    let receipt = |fate, effect| Receipt {
        device_time,
        ..turn.receipt(fate, effect)
    };
    let failed = |(fate, effect), failure| Failed {
        receipt: receipt(fate, effect),
        failure,
    };
    match answer {
        Ok(answer) => {
            let redact = |words| turn.command.redact(words);
            verdict(answer, receipt(Fate::Unknown, Effect::Unknown), redact)
        }
        Err(Unanswered::Unknown { cause, journal }) => {
            let cause = redacted(&turn.command, cause);
            Err(failed(
                (Fate::Unknown, Effect::Unknown),
                Failure::Unknown { cause, journal },
            ))
        }
        Err(Unanswered::Send(error)) => {
            let error = redacted(&turn.command, error);
            Err(match (error.disposition(), error) {
                (Disposition::NotExecuted, error) => match turn.tally.without_answer() {
                    // Only a read comes here: an earlier attempt of it was
                    // sent, and nothing is asked about a read.
                    proved @ (Fate::Unknown, _) => failed(
                        proved,
                        Failure::Unknown {
                            cause: error,
                            journal: None,
                        },
                    ),
                    proved => failed(proved, Failure::NotSent(error)),
                },
                (Disposition::Executed, SendError::InvalidReply(invalid)) => failed(
                    (Fate::CompletedResultLost, Effect::Applied),
                    Failure::Reply(invalid),
                ),
                (Disposition::Executed | Disposition::Unknown, cause) => failed(
                    (Fate::Unknown, Effect::Unknown),
                    Failure::Unknown {
                        cause,
                        journal: None,
                    },
                ),
            })
        }
        Err(Unanswered::Abandoned) => Err(failed(turn.tally.without_answer(), Failure::Closed)),
        Err(Unanswered::Crashed) => Err(failed(turn.tally.without_answer(), Failure::Crashed)),
    }
}

/// The outcome of a mutation whose fate was unknown before this answer. What
/// the runner says about one that types is withheld: what was typed is not kept,
/// and so cannot be cut out.
pub(crate) fn resettle(known: &Receipt, answer: Answer) -> Result<Success, Failed> {
    let types = known.kind == CommandKind::Type;
    let redact = |words: String| if types { WITHHELD.to_owned() } else { words };
    let answer = match answer {
        Answer::Replied(envelope) | Answer::Recovered(envelope) => Answer::Recovered(envelope),
        Answer::ResultLost => Answer::ResultLost,
    };
    verdict(answer, known.clone(), redact)
}

const WITHHELD: &str = "[withheld, as it may quote what was typed]";

/// An answer as an outcome; `known` is what is known besides.
fn verdict(
    answer: Answer,
    known: Receipt,
    redact: impl Fn(String) -> String,
) -> Result<Success, Failed> {
    let (envelope, recovered) = match answer {
        Answer::Replied(envelope) => (envelope, false),
        Answer::Recovered(envelope) => (envelope, true),
        Answer::ResultLost => {
            let (fate, effect) = (Fate::CompletedResultLost, Effect::Applied);
            return Ok(Success {
                receipt: Receipt {
                    fate,
                    effect,
                    ..known
                },
                reply: Reply::Done(String::new()),
            });
        }
    };
    let Envelope {
        reactivated,
        warning,
        result,
    } = envelope;
    let warning = warning.map(&redact);
    let receipt = |fate, effect| Receipt {
        fate,
        effect,
        reactivated: reactivated || known.reactivated,
        warning,
        recovered,
        ..known
    };
    match result {
        Ok(reply) => Ok(Success {
            receipt: receipt(Fate::Completed, Effect::Applied),
            reply: match reply {
                Reply::Done(message) => Reply::Done(redact(message)),
                reply @ (Reply::Viewport(_)
                | Reply::Snapshot(_)
                | Reply::Screenshot(_)
                | Reply::Status(_)
                | Reply::CommandStatus(_)) => reply,
            },
        }),
        Err(RunnerError {
            code,
            message,
            hint,
        }) => Err(Failed {
            receipt: receipt(Fate::Failed, code.effect()),
            failure: Failure::Runner(RunnerError {
                message: redact(message),
                hint: hint.map(&redact),
                code: plain(code, redact),
            }),
        }),
    }
}

/// A code that is not the protocol's can be any text.
fn plain(code: RunnerCode, redact: impl Fn(String) -> String) -> RunnerCode {
    let word = code.as_str();
    if code.known().is_some() || redact(word.to_owned()) == word {
        code
    } else {
        RunnerCode::Other("REDACTED".to_owned())
    }
}

/// An unusable reply is described without quoting it; this is for whoever makes
/// another description.
fn redacted(command: &Command, error: SendError) -> SendError {
    match error {
        SendError::InvalidReply(InvalidReply::NotAnEnvelope { detail }) => {
            InvalidReply::NotAnEnvelope {
                detail: command.redact(detail),
            }
            .into()
        }
        SendError::InvalidReply(InvalidReply::Data { kind, detail }) => InvalidReply::Data {
            kind,
            detail: command.redact(detail),
        }
        .into(),
        error @ (SendError::NotAttached
        | SendError::NotListening { .. }
        | SendError::Connect(_)
        | SendError::Misunderstood(_)
        | SendError::RequestTooLarge { .. }
        | SendError::Refused(_)
        | SendError::WindowClosed { .. }
        | SendError::Broken(_)
        | SendError::ReplyTooLarge { .. }) => error,
    }
}

#[cfg(test)]
mod tests;
