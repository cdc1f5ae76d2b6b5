//! Which phones there are: those of the configuration, those that an earlier
//! gateway left something behind at, and those that have been seen on usbmuxd
//! since.
//!
//! Pure state without I/O. A phone has one entry under its canonical UDID,
//! whatever it is called; it is never forgotten while the process lives.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use fleetgate_runner::Udid;

use crate::config::{Alias, DeviceConfig, Devices, RunnerPort};

/// Whether a phone can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceState {
    /// On no usbmuxd by cable.
    Detached,
    /// On a usbmuxd by cable.
    Attached,
}

/// One phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its other name.
    pub(crate) alias: Option<Alias>,
    /// Where its runner listens, if that is known.
    pub(crate) runner_port: Option<RunnerPort>,
    /// Whether it can be reached.
    pub(crate) state: DeviceState,
    /// Since when.
    pub(crate) state_time: SystemTime,
    /// Whether it was ever seen.
    pub(crate) seen: bool,
}

/// Every phone by its UDID.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    entries: BTreeMap<Udid, Entry>,
    aliases: HashMap<String, Udid>,
    default_port: Option<RunnerPort>,
}

impl Roster {
    /// The phones of the configuration, none of them seen yet.
    pub(crate) fn new(
        devices: &Devices,
        default_port: Option<RunnerPort>,
        now: SystemTime,
    ) -> Self {
        let entry = |DeviceConfig {
                         alias, runner_port, ..
                     }: &DeviceConfig| Entry {
            alias: alias.clone(),
            runner_port: runner_port.or(default_port),
            state: DeviceState::Detached,
            state_time: now,
            seen: false,
        };
        let aliases = devices.iter().filter_map(|device| {
            Some((
                device.alias.as_ref()?.as_str().to_owned(),
                device.udid.clone(),
            ))
        });
        Self {
            entries: devices
                .iter()
                .map(|device| (device.udid.clone(), entry(device)))
                .collect(),
            aliases: aliases.collect(),
            default_port,
        }
    }

    /// Takes in a phone that an earlier gateway had, wherever it is now.
    pub(crate) fn remember(&mut self, udid: &Udid, now: SystemTime) {
        self.entries.entry(udid.clone()).or_insert_with(|| Entry {
            alias: None,
            runner_port: self.default_port,
            state: DeviceState::Detached,
            state_time: now,
            seen: false,
        });
    }

    /// Takes in which phones are on usbmuxd by cable now.
    pub(crate) fn observe(&mut self, attached: &HashSet<Udid>, now: SystemTime) {
        for udid in attached {
            self.remember(udid, now);
        }
        for (udid, entry) in &mut self.entries {
            let state = if attached.contains(udid) {
                entry.seen = true;
                DeviceState::Attached
            } else {
                DeviceState::Detached
            };
            if entry.state != state {
                (entry.state, entry.state_time) = (state, now);
            }
        }
    }

    /// The phone that a caller means by a UDID in any spelling, or by an alias.
    pub(crate) fn resolve(&self, name: &str) -> Option<Udid> {
        match name.parse::<Udid>() {
            Ok(udid) => self.entries.contains_key(&udid).then_some(udid),
            Err(_) => self.aliases.get(name).cloned(),
        }
    }

    /// One phone.
    pub(crate) fn get(&self, udid: &Udid) -> Option<&Entry> {
        self.entries.get(udid)
    }

    /// Every phone after `udid`, in order.
    pub(crate) fn after(&self, udid: Option<&Udid>) -> impl Iterator<Item = (&Udid, &Entry)> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.entries
            .range::<Udid, _>((udid.map_or(Unbounded, Excluded), Unbounded))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const CONFIGURED: &str = "00008110-000978540290401E";
    const STRANGER: &str = "00008020-00060D691AD8003A";

    fn udid(text: &str) -> Udid {
        text.parse().unwrap()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn roster(default_port: Option<u16>) -> Roster {
        let devices = Devices::try_from(vec![DeviceConfig {
            alias: Some(Alias::try_from("left".to_owned()).unwrap()),
            runner_port: Some(RunnerPort::try_from(8101).unwrap()),
            ..DeviceConfig::new(udid(CONFIGURED))
        }])
        .unwrap();
        let default_port = default_port.map(|port| RunnerPort::try_from(port).unwrap());
        Roster::new(&devices, default_port, at(0))
    }

    fn port(roster: &Roster, udid: &Udid) -> Option<u16> {
        roster.get(udid).unwrap().runner_port.map(RunnerPort::get)
    }

    #[test]
    fn a_phone_that_is_remembered_is_known_and_not_there() {
        let mut roster = roster(Some(8100));
        for name in [STRANGER, CONFIGURED] {
            roster.remember(&udid(name), at(1));
            assert_eq!(roster.resolve(name), Some(udid(name)));
            let entry = roster.get(&udid(name)).unwrap();
            assert_eq!((entry.state, entry.seen), (DeviceState::Detached, false));
        }
        assert_eq!(port(&roster, &udid(STRANGER)), Some(8100));
        assert_eq!(
            port(&roster, &udid(CONFIGURED)),
            Some(8101),
            "what is configured stands"
        );
    }

    #[test]
    fn every_spelling_and_the_alias_name_one_phone() {
        let roster = roster(None);
        for name in [
            CONFIGURED,
            "00008110000978540290401e",
            "00008110-000978540290401e",
            "left",
        ] {
            assert_eq!(roster.resolve(name), Some(udid(CONFIGURED)), "{name}");
        }
        for name in ["right", "LEFT", STRANGER, ""] {
            assert_eq!(roster.resolve(name), None, "{name}");
        }
    }

    #[test]
    fn a_stranger_is_known_once_seen_and_stays_known() {
        let mut roster = roster(Some(8100));
        roster.observe(&HashSet::from([udid(STRANGER)]), at(1));
        roster.observe(&HashSet::new(), at(2));
        assert_eq!(roster.resolve(STRANGER), Some(udid(STRANGER)));
        let entry = roster.get(&udid(STRANGER)).unwrap();
        assert_eq!(
            (entry.state, entry.state_time),
            (DeviceState::Detached, at(2))
        );
        assert!(entry.seen);
    }

    #[test]
    fn the_state_time_moves_with_the_state_only() {
        let mut roster = roster(None);
        let attached = HashSet::from([udid(CONFIGURED)]);
        roster.observe(&attached, at(1));
        roster.observe(&attached, at(2));
        let entry = roster.get(&udid(CONFIGURED)).unwrap();
        assert_eq!(
            (entry.state, entry.state_time),
            (DeviceState::Attached, at(1))
        );
    }

    #[test]
    fn a_phones_own_port_goes_before_the_common_one() {
        let mut with_default = roster(Some(8100));
        with_default.observe(&HashSet::from([udid(STRANGER)]), at(1));
        assert_eq!(port(&with_default, &udid(CONFIGURED)), Some(8101));
        assert_eq!(port(&with_default, &udid(STRANGER)), Some(8100));

        let mut without = roster(None);
        without.observe(&HashSet::from([udid(STRANGER)]), at(1));
        assert_eq!(port(&without, &udid(STRANGER)), None);
    }

    #[test]
    fn phones_are_listed_in_order_from_any_point() {
        let mut roster = roster(None);
        roster.observe(&HashSet::from([udid(STRANGER)]), at(1));
        let after = |from: Option<&Udid>| {
            roster
                .after(from)
                .map(|(udid, _)| udid.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(after(None), [udid(STRANGER), udid(CONFIGURED)]);
        assert_eq!(after(Some(&udid(STRANGER))), [udid(CONFIGURED)]);
        assert_eq!(after(Some(&udid(CONFIGURED))), []);
    }
}
