//! Phones: their states, what they went through, and what became of their
//! commands, as watchers are told.

use std::error::Error;
use std::iter::successors;

use fleetgate_ledger::{Cordon, LedgerHealth, Transition};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use fleetgate_session::Receipt;

use super::enums::{effect, fate, kind};
use super::time::timestamp;

/// What the names of the API's states begin with, and those of the ledger do
/// not.
const PREFIX: &str = "DEVICE_STATE_";

/// A state's name in the ledger.
pub(crate) fn state_name(state: pb::DeviceState) -> String {
    let name = state.as_str_name();
    name.strip_prefix(PREFIX).unwrap_or(name).to_owned()
}

/// The state of a name in the ledger; unspecified if it is one of a newer
/// gateway's.
fn state(name: &str) -> pb::DeviceState {
    pb::DeviceState::from_str_name(&format!("{PREFIX}{name}")).unwrap_or_default()
}

/// A transition on record as the API tells it.
pub(crate) fn transition(transition: Transition) -> pb::DeviceTransition {
    let Transition {
        seq,
        at,
        device,
        from,
        to,
        reason,
        detail,
    } = transition;
    pb::DeviceTransition {
        seq: u64::try_from(seq).unwrap_or_default(),
        time: Some(timestamp(at)),
        device: device.to_string(),
        from: state(&from).into(),
        to: state(&to).into(),
        reason,
        detail,
    }
}

/// A cordon as the API tells it.
pub(crate) fn cordon(cordon: Cordon) -> pb::Cordon {
    let Cordon {
        reason,
        who,
        since,
        until,
    } = cordon;
    pb::Cordon {
        reason,
        who,
        time: Some(timestamp(since)),
        until: until.map(timestamp),
    }
}

/// What became of a command, as watchers are told.
pub(crate) fn command_fate(
    device: &Udid,
    receipt: &Receipt,
    reason: Option<String>,
    revised: bool,
) -> pb::CommandFate {
    pb::CommandFate {
        command_id: receipt.command_id.to_string(),
        device: device.to_string(),
        kind: kind(receipt.kind).into(),
        fate: fate(receipt.fate).into(),
        effect: effect(receipt.effect).into(),
        reason,
        revised,
    }
}

/// How the ledger fares, as the API tells it.
pub(crate) fn ledger_health(health: LedgerHealth) -> pb::LedgerHealth {
    let LedgerHealth {
        path,
        writable,
        last_error,
        size_bytes,
        free_bytes,
    } = health;
    pb::LedgerHealth {
        path: path.display().to_string(),
        writable,
        last_error: last_error.map(|error| in_words(&error)),
        size_bytes,
        free_bytes,
    }
}

/// An error and what it was caused by.
fn in_words(error: &dyn Error) -> String {
    successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_goes_into_the_ledger_and_back() {
        let states = (0..).map_while(|number| pb::DeviceState::try_from(number).ok());
        let names: Vec<_> = states
            .inspect(|&known| assert_eq!(state(&state_name(known)), known))
            .map(state_name)
            .collect();
        assert_eq!(
            names,
            [
                "UNSPECIFIED",
                "DETACHED",
                "ATTACHED",
                "RECONCILING",
                "DRAINING",
                "WEDGED",
                "LAUNCHING",
                "READY",
                "RECYCLING",
                "QUARANTINED",
            ]
        );
    }

    #[test]
    fn a_state_of_a_newer_gateway_is_no_state_of_ours() {
        assert_eq!(state("HIBERNATING"), pb::DeviceState::Unspecified);
    }
}
