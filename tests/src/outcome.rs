//! What the status and the row of a refused command must say, whatever became
//! of it. Verdicts of a runner are told by [`crate::verdict`].

use fleetgate_proto::v1::{CommandRecord, Effect, Fate};
use fleetgate_runner::CommandKind;
use tonic::Code;

use crate::facts::assert_times;
use crate::{Refusal, Rig, plain};

/// What became of a command, and how that is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The code of gRPC.
    pub code: Code,
    /// `ErrorInfo`'s reason, and the row's.
    pub reason: &'static str,
    /// What became of it.
    pub fate: Fate,
    /// What it did to the phone.
    pub effect: Effect,
    /// How often it was tried.
    pub attempts: u32,
    /// Whether a retry is safe, and so offered.
    pub retry: bool,
    /// Whether the caller gets advice.
    pub hint: bool,
}

impl Outcome {
    /// Not a byte of it was sent, at the first try.
    pub const fn not_sent(code: Code, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            fate: Fate::NotSent,
            effect: Effect::None,
            attempts: 1,
            retry: true,
            hint: true,
        }
    }

    /// Our own fault, at the first try: trying again is of no use.
    pub const fn internal() -> Self {
        Self {
            retry: false,
            hint: false,
            ..Self::not_sent(Code::Internal, "MUX_REFUSED")
        }
    }

    /// It was sent once, and nobody knows.
    pub const fn unknown() -> Self {
        Self {
            code: Code::Unknown,
            reason: "FATE_UNKNOWN",
            fate: Fate::Unknown,
            effect: Effect::Unknown,
            attempts: 1,
            retry: false,
            hint: true,
        }
    }

    /// Its caller's deadline passed while it was in flight.
    pub const fn overdue() -> Self {
        Self {
            code: Code::DeadlineExceeded,
            reason: "DEADLINE_EXCEEDED",
            ..Self::unknown()
        }
    }

    /// Asserts that a refusal and the ledger's row say all of this, and gives
    /// the row.
    pub async fn assert(
        &self,
        rig: &Rig,
        device: &str,
        kind: CommandKind,
        command_id: &str,
        refusal: &Refusal,
    ) -> CommandRecord {
        self.assert_refusal(device, command_id, refusal);
        let row = rig.concluded(command_id).await;
        let expected = CommandRecord {
            command_id: command_id.to_owned(),
            device: device.to_owned(),
            kind: plain::kind(kind).into(),
            fate: self.fate.into(),
            effect: self.effect.into(),
            reason: Some(self.reason.to_owned()),
            warning: None,
            reactivated: false,
            attempts: self.attempts,
            recovered: false,
            ..row.clone()
        };
        assert_eq!(row, expected);
        assert_times(&row);
        row
    }

    /// Asserts that a refusal says all of this.
    #[track_caller]
    pub fn assert_refusal(&self, device: &str, command_id: &str, refusal: &Refusal) {
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (self.code, self.reason),
            "{refusal:?}"
        );
        assert_eq!(refusal.domain, "fleetgate", "{refusal:?}");
        let (fate, effect) = (self.fate.as_str_name(), self.effect.as_str_name());
        for (key, value) in [
            ("command_id", command_id),
            ("device", device),
            ("fate", fate.strip_prefix("FATE_").unwrap_or(fate)),
            ("effect", effect.strip_prefix("EFFECT_").unwrap_or(effect)),
            ("attempts", &self.attempts.to_string()),
            ("recovered", "false"),
            ("reactivated", "false"),
        ] {
            assert_eq!(refusal.meta(key), value, "{key} of {refusal:?}");
        }
        assert_eq!(!refusal.meta("hint").is_empty(), self.hint, "{refusal:?}");
        assert_eq!(refusal.retry_delay.is_some(), self.retry, "{refusal:?}");
    }
}
