//! What a later caller of the same mutation is told besides its fate: kept in
//! the ledger as a text that means nothing to it.
//!
//! Invariant: what was written by an older gateway is read for ever, or counts
//! as not kept.

use std::time::Duration;

use fleetgate_ledger::KeptReply;
use fleetgate_runner::Reply;
use fleetgate_session::{Failed, Failure, Receipt};
use serde::{Deserialize, Serialize};
use tonic::Code;

use crate::status;

/// The answer to a mutation, as far as the fate does not tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    /// The runner's word.
    Said(String),
    /// How it was refused.
    Refused(Refused),
}

/// How a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The number of the gRPC code.
    code: i32,
    /// When a retry was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_ms: Option<u64>,
}

impl Refused {
    /// The gRPC code.
    pub(crate) fn code(&self) -> Code {
        Code::from_i32(self.code)
    }

    /// When a retry was offered.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry_ms.map(Duration::from_millis)
    }
}

impl Kept {
    /// What is to be kept of a command's end: nothing of a read's, which can
    /// be done again.
    pub(crate) fn of(
        receipt: &Receipt,
        reply: Option<Reply>,
        failure: Option<Failure>,
    ) -> Option<Self> {
        if !receipt.kind.is_mutation() {
            return None;
        }
        if let Some(failure) = failure {
            let code = status::code(&failure, receipt).into();
            let failed = Failed {
                receipt: receipt.clone(),
                failure,
            };
            let retry_ms = failed
                .retry_after()
                .map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
            return Some(Self::Refused(Refused { code, retry_ms }));
        }
        match reply? {
            Reply::Done(message) => Some(Self::Said(message)),
            // None of these belongs to a mutation.
            Reply::Viewport(_)
            | Reply::Snapshot(_)
            | Reply::Screenshot(_)
            | Reply::Status(_)
            | Reply::CommandStatus(_) => None,
        }
    }

    /// Its text.
    pub(crate) fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// What a text says; `None` if it was not kept or cannot be read.
    pub(crate) fn read(kept: Option<&KeptReply>) -> Option<Self> {
        serde_json::from_str(kept?.text()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Kept> {
        Kept::read(Some(&KeptReply::of(text.to_owned())))
    }

    #[test]
    fn what_is_on_record_can_be_read_for_ever() {
        let said = Kept::Said("tapped".to_owned());
        assert_eq!(said.text().unwrap(), r#"{"said":"tapped"}"#);
        assert_eq!(read(r#"{"said":"tapped"}"#), Some(said));

        let refused = Kept::Refused(Refused {
            code: 14,
            retry_ms: Some(5000),
        });
        let text = r#"{"refused":{"code":14,"retry_ms":5000}}"#;
        assert_eq!(refused.text().unwrap(), text);
        assert_eq!(read(text), Some(refused));
        let Some(Kept::Refused(unsafe_again)) = read(r#"{"refused":{"code":2}}"#) else {
            panic!("a refusal");
        };
        assert_eq!(
            (unsafe_again.code(), unsafe_again.retry()),
            (Code::Unknown, None)
        );
    }

    #[test]
    fn what_was_too_long_or_is_not_understood_counts_as_not_kept() {
        let long = Kept::Said("x".repeat(fleetgate_ledger::MAX_KEPT_REPLY));
        assert_eq!(read(&long.text().unwrap()), None);
        assert_eq!(read(r#"{"sung":"la"}"#), None);
        assert_eq!(Kept::read(None), None);
    }
}
