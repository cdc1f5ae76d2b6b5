//! Enums of the domain and of the API, value by value.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::reply::QualityState;
use fleetgate_runner::{CommandKind, Effect, Fate, JournalState, RunnerState};

pub(super) fn kind(kind: CommandKind) -> pb::CommandKind {
    match kind {
        CommandKind::Viewport => pb::CommandKind::Viewport,
        CommandKind::Tap => pb::CommandKind::Tap,
        CommandKind::LongPress => pb::CommandKind::LongPress,
        CommandKind::Drag => pb::CommandKind::Drag,
        CommandKind::Type => pb::CommandKind::Type,
        CommandKind::KeyboardReturn => pb::CommandKind::KeyboardReturn,
        CommandKind::KeyboardDelete => pb::CommandKind::KeyboardDelete,
        CommandKind::Snapshot => pb::CommandKind::Snapshot,
        CommandKind::Button => pb::CommandKind::Button,
        CommandKind::Screenshot => pb::CommandKind::Screenshot,
        CommandKind::Status => pb::CommandKind::Status,
        CommandKind::CommandStatus => pb::CommandKind::CommandStatus,
        CommandKind::Shutdown => pb::CommandKind::Shutdown,
    }
}

/// The kind that a filter names; `None` for one that is unspecified or unknown.
pub(super) fn kind_from(value: i32) -> Option<CommandKind> {
    let wanted = pb::CommandKind::try_from(value).ok()?;
    CommandKind::ALL
        .into_iter()
        .find(|&known| kind(known) == wanted)
}

pub(super) fn fate(fate: Fate) -> pb::Fate {
    match fate {
        Fate::NotSent => pb::Fate::NotSent,
        Fate::Completed => pb::Fate::Completed,
        Fate::CompletedResultLost => pb::Fate::CompletedResultLost,
        Fate::Failed => pb::Fate::Failed,
        Fate::Unknown => pb::Fate::Unknown,
    }
}

/// The fate that a filter names: the outer `None` for a number that is no fate,
/// the inner one for commands that have none yet.
#[expect(
    clippy::option_option,
    reason = "unknown to the API and unknown to the ledger differ"
)]
pub(super) fn fate_from(value: i32) -> Option<Option<Fate>> {
    match pb::Fate::try_from(value).ok()? {
        pb::Fate::Unspecified => Some(None),
        pb::Fate::NotSent => Some(Some(Fate::NotSent)),
        pb::Fate::Completed => Some(Some(Fate::Completed)),
        pb::Fate::CompletedResultLost => Some(Some(Fate::CompletedResultLost)),
        pb::Fate::Failed => Some(Some(Fate::Failed)),
        pb::Fate::Unknown => Some(Some(Fate::Unknown)),
    }
}

pub(super) fn effect(effect: Effect) -> pb::Effect {
    match effect {
        Effect::None => pb::Effect::None,
        Effect::Applied => pb::Effect::Applied,
        Effect::Unknown => pb::Effect::Unknown,
    }
}

pub(super) fn runner_state(state: &RunnerState) -> pb::RunnerState {
    match state {
        RunnerState::Idle => pb::RunnerState::Idle,
        RunnerState::Busy => pb::RunnerState::Busy,
        RunnerState::Wedged => pb::RunnerState::Wedged,
        RunnerState::Other(_) => pb::RunnerState::Unspecified,
    }
}

pub(super) fn journal_state(state: Option<JournalState>) -> pb::JournalState {
    match state {
        None => pb::JournalState::Unspecified,
        Some(JournalState::NotAccepted) => pb::JournalState::NotAccepted,
        Some(JournalState::Accepted) => pb::JournalState::Accepted,
        Some(JournalState::Started) => pb::JournalState::Started,
        Some(JournalState::Completed) => pb::JournalState::Completed,
        Some(JournalState::Failed) => pb::JournalState::Failed,
    }
}

pub(super) fn quality_state(state: &QualityState) -> pb::SnapshotState {
    match state {
        QualityState::Healthy => pb::SnapshotState::Healthy,
        QualityState::Degraded => pb::SnapshotState::Degraded,
        QualityState::Other(_) => pb::SnapshotState::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_goes_there_and_back() {
        for known in CommandKind::ALL {
            assert_eq!(kind_from(kind(known) as i32), Some(known));
        }
        assert_eq!(kind_from(0), None);
        assert_eq!(kind_from(99), None);
    }

    #[test]
    fn every_fate_goes_there_and_back() {
        for known in Fate::ALL {
            assert_eq!(fate_from(fate(known) as i32), Some(Some(known)));
        }
        assert_eq!(fate_from(0), Some(None));
        assert_eq!(fate_from(99), None);
    }
}
