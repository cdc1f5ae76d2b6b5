//! What a runner's verdict against a command must become: the design's status
//! table, written down once more and apart from the code that implements it.

use std::collections::BTreeMap;

use fleetgate_proto::v1::{CommandRecord, Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use tonic::Code;

use crate::facts::assert_times;
use crate::{Refusal, Rig, plain};

/// One line of the table, and what else is known of the command.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The runner's code on the wire, the reason everywhere else.
    pub reason: String,
    /// The code of gRPC.
    pub status: Code,
    /// What it proves about the phone.
    pub effect: Effect,
    /// Whether a retry is safe, and so offered.
    pub retry: bool,
    /// A part of the runner's words.
    pub words: String,
    /// What the caller is advised to do.
    pub hint: Option<String>,
    /// How often the command was offered to the runner; `None` for more often
    /// than once.
    pub attempts: Option<u32>,
    /// Whether the app was brought to the front.
    pub reactivated: bool,
    /// Whether the verdict comes from the runner's journal.
    pub recovered: bool,
}

impl Verdict {
    /// The line of the table for a runner's code.
    pub fn of(code: &RunnerCode) -> Self {
        let (status, effect, retry) = match code {
            RunnerCode::InvalidRequest | RunnerCode::AppBundleIdRequired => {
                (Code::Internal, Effect::None, false)
            }
            RunnerCode::AppNotAvailable
            | RunnerCode::AppBackgrounded
            | RunnerCode::TextInputNotFocused
            | RunnerCode::UnsupportedOperation => (Code::FailedPrecondition, Effect::None, false),
            RunnerCode::RunnerBusy | RunnerCode::RunnerWedged => {
                (Code::Unavailable, Effect::None, true)
            }
            RunnerCode::CommandTimedOut => (Code::DeadlineExceeded, Effect::Unknown, false),
            // Reading the tree changes nothing, whether it succeeds or not.
            RunnerCode::SnapshotFailed => (Code::Unknown, Effect::None, false),
            RunnerCode::XctestRecordedFailure
            | RunnerCode::CommandFailed
            | RunnerCode::Other(_) => (Code::Unknown, Effect::Unknown, false),
        };
        Self {
            reason: code.as_str().to_owned(),
            status,
            effect,
            retry,
            words: String::new(),
            hint: None,
            attempts: Some(1),
            reactivated: false,
            recovered: false,
        }
    }

    /// With the runner's words and its advice, to which advice of ours is added
    /// where the runner may not know what keeps it.
    #[must_use]
    pub fn saying(self, words: &str, hint: Option<&str>) -> Self {
        let is_vain = self.reason == RunnerCode::CommandTimedOut.as_str();
        let ours = "; check that the phone is unlocked and the app runs";
        let ours = if is_vain { ours } else { "" };
        Self {
            words: words.to_owned(),
            hint: hint.map(|hint| hint.to_owned() + ours),
            ..self
        }
    }

    /// Asserts that a refusal and the ledger's row say all of this about a
    /// command, and gives the row.
    pub async fn assert(
        &self,
        rig: &Rig,
        device: &str,
        kind: CommandKind,
        command_id: &str,
        refusal: &Refusal,
    ) -> CommandRecord {
        let row = rig.find(command_id).await;
        let row = row.unwrap_or_else(|| panic!("{command_id} is on record"));
        let attempts = self.attempts.unwrap_or(row.attempts);
        assert!(self.attempts.is_some() || attempts > 1, "{row:?}");
        self.assert_refusal(device, command_id, attempts, refusal);
        let message = row.message.clone().unwrap_or_default();
        assert!(message.contains(&self.words), "{message}");
        let expected = CommandRecord {
            command_id: command_id.to_owned(),
            device: device.to_owned(),
            kind: plain::kind(kind).into(),
            fate: Fate::Failed.into(),
            effect: self.effect.into(),
            reason: Some(self.reason.clone()),
            warning: None,
            reactivated: self.reactivated,
            attempts,
            recovered: self.recovered,
            ..row.clone()
        };
        assert_eq!(row, expected);
        assert_times(&row);
        row
    }

    fn assert_refusal(&self, device: &str, command_id: &str, attempts: u32, refusal: &Refusal) {
        let effect = self.effect.as_str_name();
        let mut metadata: BTreeMap<_, _> = [
            ("command_id", command_id),
            ("device", device),
            ("fate", "FAILED"),
            ("effect", effect.strip_prefix("EFFECT_").unwrap_or(effect)),
            ("attempts", &attempts.to_string()),
            ("recovered", &self.recovered.to_string()),
            ("reactivated", &self.reactivated.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        let hint = self.hint.clone().map(|hint| ("hint".to_owned(), hint));
        metadata.extend(hint);
        let expected = Refusal {
            code: self.status,
            message: refusal.message.clone(),
            reason: self.reason.clone(),
            domain: "fleetgate".to_owned(),
            metadata,
            retry_delay: refusal.retry_delay,
            violations: Vec::new(),
        };
        assert_eq!(*refusal, expected);
        assert_eq!(refusal.retry_delay.is_some(), self.retry, "{refusal:?}");
        assert!(refusal.message.contains(&self.words), "{refusal:?}");
    }
}

/// Whether a runner can answer this command with this code.
pub fn can_answer(kind: CommandKind, code: &RunnerCode) -> bool {
    match code {
        RunnerCode::AppBundleIdRequired | RunnerCode::AppNotAvailable => {
            plain::IN_AN_APP.contains(&kind)
        }
        RunnerCode::AppBackgrounded | RunnerCode::SnapshotFailed => kind == CommandKind::Snapshot,
        RunnerCode::TextInputNotFocused => matches!(
            kind,
            CommandKind::Type | CommandKind::KeyboardReturn | CommandKind::KeyboardDelete
        ),
        RunnerCode::XctestRecordedFailure => kind.is_mutation(),
        RunnerCode::InvalidRequest
        | RunnerCode::UnsupportedOperation
        | RunnerCode::RunnerBusy
        | RunnerCode::RunnerWedged
        | RunnerCode::CommandTimedOut
        | RunnerCode::CommandFailed
        | RunnerCode::Other(_) => true,
    }
}
