//! What is told about an operator's act that was not done.
//!
//! An act that the ledger did not take has not been done; to ask again is safe,
//! since the same act a second time changes nothing.

use fleetgate_ledger::LedgerError;
use fleetgate_runner::Udid;
use tonic::{Code, Status};

use super::refusal::{Facts, Refusal};
use super::{SOON, ledger_refusal, unusable};
use crate::config::Labels;
use crate::convert::Violation;
use crate::fleet::settings::SettingsError;

/// Settings that are as they were. Which phone is in the way is told to whoever
/// sees it.
pub(crate) fn not_set(error: &SettingsError, sees: impl Fn(&Udid) -> bool) -> Status {
    match error {
        SettingsError::AliasTaken { alias, device } => {
            let device = Some(device).filter(|device| sees(device));
            let message = match device {
                Some(_) => error.to_string(),
                None => format!("the alias {alias} is taken"),
            };
            let violation = Violation {
                field: "alias".to_owned(),
                description: "is that of another phone".to_owned(),
            };
            Refusal::new(Code::AlreadyExists, "ALIAS_TAKEN", message)
                .facts(Facts::default().with_some("device", device.map(Udid::as_str)))
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
    not_recorded(error, "nothing was done, since it could not be recorded")
}

/// The same, of which something has come all the same.
pub(super) fn not_recorded(error: &LedgerError, hint: &str) -> Status {
    let refusal = if error.may_pass() {
        Refusal::new(Code::Unavailable, "LEDGER_UNAVAILABLE", error.to_string()).retry(Some(SOON))
    } else {
        ledger_refusal(error)
    };
    refusal.facts(Facts::default().hint(Some(hint))).into()
}
