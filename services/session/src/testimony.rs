//! What an entry of the runner's journal proves about a mutation whose reply is
//! lost. Pure.
//!
//! What it cannot tell:
//!
//! - `notAccepted` may mean never seen, not yet seen or evicted since, so it
//!   proves nothing; nor does a word from a newer runner.
//! - Of a failed command it need not hold `reactivated` (and a failed one has
//!   no `warning`): they are taken from the retained envelope where there is
//!   one, and are otherwise unknown and reported as absent.
//! - An entry has no attempt number. The runner overwrites it when an id comes
//!   again, and after `RUNNER_BUSY` the same id does come again: if the reply to
//!   that later attempt is lost and the journal says `failed`, `RUNNER_BUSY`, it
//!   may be the old verdict, with the later request still in some buffer on its
//!   way. Calling that busy would be leave to send a third request, and the
//!   phone could run both. So it proves nothing. Any other entry of that id can
//!   only be the later attempt's, and so can any entry of an id's first
//!   attempt, since an id is used for one command only.

use fleetgate_runner::{
    CommandKind, Envelope, InvalidReply, JournalEntry, JournalState, RunnerCode, RunnerError,
};

use crate::dispatch::Answer;

/// What an entry proves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Testimony {
    /// The command has ended so.
    Ended(Answer),
    /// It has been accepted and has not ended.
    UnderWay(JournalState),
    /// Nothing. The state, where it is one that this crate knows.
    Nothing(Option<JournalState>),
}

impl Testimony {
    /// Reads an entry about a mutation of this kind. `declined_before`: the
    /// runner may have answered an earlier attempt with `RUNNER_BUSY`.
    pub(crate) fn of(kind: CommandKind, entry: JournalEntry, declined_before: bool) -> Self {
        match entry.state {
            Some(JournalState::Completed) => Self::Ended(completed(kind, &entry)),
            Some(state @ JournalState::Failed) => {
                let verdict = Answer::Recovered(failed(kind, entry));
                if declined_before && verdict.is_retryable() {
                    Self::Nothing(Some(state))
                } else {
                    Self::Ended(verdict)
                }
            }
            Some(state @ (JournalState::Accepted | JournalState::Started)) => Self::UnderWay(state),
            state @ (Some(JournalState::NotAccepted) | None) => Self::Nothing(state),
        }
    }
}

/// The retained envelope, if there is one that can be read.
fn retained(kind: CommandKind, entry: &JournalEntry) -> Option<Envelope> {
    let json = entry.response_json.as_ref()?;
    Envelope::decode(kind, json.as_bytes())
        .inspect_err(
            |error: &InvalidReply| tracing::warn!(%error, "the retained reply is unusable"),
        )
        .ok()
}

fn completed(kind: CommandKind, entry: &JournalEntry) -> Answer {
    retained(kind, entry).map_or(Answer::ResultLost, Answer::Recovered)
}

/// The verdict against the command: the retained envelope if it is one, since
/// it alone says whether the app was brought to the front, or else the entry's.
fn failed(kind: CommandKind, entry: JournalEntry) -> Envelope {
    match retained(kind, &entry) {
        Some(envelope) if envelope.result.is_err() => envelope,
        Some(_) | None => {
            let error = entry.error.unwrap_or_else(|| RunnerError {
                code: RunnerCode::CommandFailed,
                message: "the runner's journal gives no reason".to_owned(),
                hint: None,
            });
            Envelope {
                reactivated: false,
                warning: None,
                result: Err(error),
            }
        }
    }
}
