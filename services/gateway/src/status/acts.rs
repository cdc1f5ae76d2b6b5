//! What is told about an operator's act that was not done.
//!
//! An act that the ledger did not take has not been done; to ask again is safe,
//! since the same act a second time changes nothing.

use fleetgate_ledger::LedgerError;
use tonic::{Code, Status};

use super::refusal::{Facts, Refusal};
use super::{SOON, ledger_refusal, unusable};
use crate::config::Labels;
use crate::convert::Violation;
use crate::fleet::settings::SettingsError;

/// Settings that are as they were.
pub(crate) fn not_set(error: &SettingsError) -> Status {
    match error {
        SettingsError::AliasTaken { alias: _, device } => {
            let violation = Violation {
                field: "alias".to_owned(),
                description: "is that of another phone".to_owned(),
            };
            Refusal::new(Code::AlreadyExists, "ALIAS_TAKEN", error.to_string())
                .facts(Facts::default().with("device", device.as_str()))
                .violations(vec![violation])
                .into()
        }
        SettingsError::TooManyLabels => {
            let violation = Violation {
                field: "set_labels".to_owned(),
                description: format!("must not make it more than {} labels", Labels::MOST),
            };
            unusable(vec![violation].into()).into()
        }
        SettingsError::Ledger(error) => unrecorded(error),
    }
}

/// An act that the ledger did not take.
pub(crate) fn unrecorded(error: &LedgerError) -> Status {
    let refusal = if error.may_pass() {
        Refusal::new(Code::Unavailable, "LEDGER_UNAVAILABLE", error.to_string()).retry(Some(SOON))
    } else {
        ledger_refusal(error)
    };
    let hint = "nothing was done, since it could not be recorded";
    refusal.facts(Facts::default().hint(Some(hint))).into()
}
