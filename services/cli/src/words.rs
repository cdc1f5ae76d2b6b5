//! The API's enums as short lower-case words, and back.
//!
//! The words are the protobuf names without their prefix, so that a new value
//! needs no new word here. A number that this build does not know stays a
//! number.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fleetgate_proto::v1::{
    CommandKind, DeviceObstacle, DeviceState, Effect, Fate, LaunchKind, LeaseChange, LeaseState,
    SnapshotState,
};

/// Stands for the absence of a fate or an effect: there is none yet.
const PENDING: &str = "pending";

/// A fate in a word.
pub(crate) fn fate(number: i32) -> String {
    match Fate::try_from(number) {
        Ok(Fate::Unspecified) => PENDING.to_owned(),
        Ok(fate) => word(fate.as_str_name(), "FATE_"),
        Err(_) => number.to_string(),
    }
}

/// An effect in a word.
pub(crate) fn effect(number: i32) -> String {
    match Effect::try_from(number) {
        Ok(Effect::Unspecified) => PENDING.to_owned(),
        Ok(effect) => word(effect.as_str_name(), "EFFECT_"),
        Err(_) => number.to_string(),
    }
}

/// A kind of command in a word.
pub(crate) fn kind(number: i32) -> String {
    CommandKind::try_from(number).map_or_else(
        |_| number.to_string(),
        |kind| word(kind.as_str_name(), "COMMAND_KIND_"),
    )
}

/// A device's state in a word.
pub(crate) fn device_state(number: i32) -> String {
    DeviceState::try_from(number).map_or_else(
        |_| number.to_string(),
        |state| word(state.as_str_name(), "DEVICE_STATE_"),
    )
}

/// How a runner comes up in a word.
pub(crate) fn launch_kind(number: i32) -> String {
    LaunchKind::try_from(number).map_or_else(
        |_| number.to_string(),
        |kind| word(kind.as_str_name(), "LAUNCH_KIND_"),
    )
}

/// A snapshot's state in a word.
pub(crate) fn snapshot_state(number: i32) -> String {
    SnapshotState::try_from(number).map_or_else(
        |_| number.to_string(),
        |state| word(state.as_str_name(), "SNAPSHOT_STATE_"),
    )
}

/// A lease's state in a word.
pub(crate) fn lease_state(number: i32) -> String {
    LeaseState::try_from(number).map_or_else(
        |_| number.to_string(),
        |state| word(state.as_str_name(), "LEASE_STATE_"),
    )
}

/// What a word on a lease is about in a word.
pub(crate) fn lease_change(number: i32) -> String {
    LeaseChange::try_from(number).map_or_else(
        |_| number.to_string(),
        |change| word(change.as_str_name(), "LEASE_CHANGE_"),
    )
}

/// What is in the way of a phone in a word.
pub(crate) fn obstacle(number: i32) -> String {
    DeviceObstacle::try_from(number).map_or_else(
        |_| number.to_string(),
        |obstacle| word(obstacle.as_str_name(), "DEVICE_OBSTACLE_"),
    )
}

/// Takes a lease's state from the command line.
pub(crate) fn lease_state_parser() -> impl TypedValueParser<Value = LeaseState> {
    let states = every::<LeaseState>()
        .into_iter()
        .filter(|state| *state != LeaseState::Unspecified);
    parser(states.collect(), |state| lease_state(i32::from(state)))
}

/// Takes a fate from the command line.
pub(crate) fn fate_parser() -> impl TypedValueParser<Value = Fate> {
    parser(every::<Fate>(), |value| fate(i32::from(value)))
}

/// Takes a kind of command from the command line.
pub(crate) fn kind_parser() -> impl TypedValueParser<Value = CommandKind> {
    let kinds = every::<CommandKind>()
        .into_iter()
        .filter(|kind| *kind != CommandKind::Unspecified);
    parser(kinds.collect(), |value| kind(i32::from(value)))
}

/// Every value of an enum, by its number.
fn every<E: TryFrom<i32>>() -> Vec<E> {
    (0..).map_while(|number| E::try_from(number).ok()).collect()
}

fn parser<E>(values: Vec<E>, word: fn(E) -> String) -> impl TypedValueParser<Value = E>
where
    E: Copy + Send + Sync + 'static,
{
    let words: Vec<String> = values.iter().map(|value| word(*value)).collect();
    PossibleValuesParser::new(words).try_map(move |given| {
        values
            .iter()
            .copied()
            .find(|value| word(*value) == given)
            .ok_or("no such value")
    })
}

fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix)
        .unwrap_or(name)
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn enums_read_as_short_lower_case_words() {
        assert_eq!(
            fate(Fate::CompletedResultLost.into()),
            "completed_result_lost"
        );
        assert_eq!(fate(Fate::Unspecified.into()), "pending");
        assert_eq!(effect(Effect::None.into()), "none");
        assert_eq!(kind(CommandKind::LongPress.into()), "long_press");
        assert_eq!(device_state(DeviceState::Attached.into()), "attached");
        assert_eq!(launch_kind(LaunchKind::Command.into()), "command");
        assert_eq!(snapshot_state(SnapshotState::Degraded.into()), "degraded");
        assert_eq!(lease_state(LeaseState::Queued.into()), "queued");
        assert_eq!(lease_change(LeaseChange::Expiring.into()), "expiring");
        assert_eq!(obstacle(DeviceObstacle::NotReady.into()), "not_ready");
    }

    #[test]
    fn a_number_from_a_newer_gateway_stays_a_number() {
        assert_eq!(fate(99), "99");
        assert_eq!(kind(99), "99");
    }

    #[test]
    fn every_kind_and_fate_has_a_word_of_its_own() {
        let kinds: HashSet<_> = every::<CommandKind>()
            .into_iter()
            .map(|value| kind(value.into()))
            .collect();
        assert_eq!(kinds.len(), 14);
        let fates: HashSet<_> = every::<Fate>()
            .into_iter()
            .map(|value| fate(value.into()))
            .collect();
        assert_eq!(fates.len(), 6);
    }
}
