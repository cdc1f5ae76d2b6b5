//! Why a lease waits, in the words of those who ask.
//!
//! Owns how it is put. What stands in the way of which phone is the scheduler's
//! to say, by the same rule by which it grants.

use std::fmt;

use fleetgate_runner::Udid;

use crate::id::LeaseId;
use crate::state::LeaseState;
use crate::time::LeaseTime;

/// What stands in the way of a phone that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing: it is free.
    None,
    /// A lease has it, or had it and drains.
    Leased {
        /// Which.
        lease: LeaseId,
        /// When that one ends at the latest, if it has not.
        until: Option<LeaseTime>,
    },
    /// It is kept for the lease that waits, and commands are on their way there.
    Busy,
    /// It is kept for another lease: one that is before this one, or was when it
    /// got it.
    Reserved {
        /// Which.
        lease: LeaseId,
    },
    /// It is unplugged.
    Detached,
    /// It is in quarantine.
    Quarantined,
    /// An operator keeps it back.
    Cordoned,
    /// Its runner is not ready.
    NotReady,
}

/// A phone that matches, and what stands in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceExplanation {
    /// Which.
    pub udid: Udid,
    /// What.
    pub obstacle: Obstacle,
}

/// Why a lease waits, or that it does not. `Display` is its summary in a line,
/// without times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Where the lease is in its life.
    pub state: LeaseState,
    /// How many phones it wants.
    pub wanted: usize,
    /// Every phone that matches, in the order of their UDIDs.
    pub devices: Vec<DeviceExplanation>,
    /// Those that wait and are before it, the first of them first.
    pub ahead: Vec<LeaseId>,
}

impl Explanation {
    /// Its summary in a line, in which `clock` writes the times:
    /// `3 match, 1 wanted: 2 leased until 14:03:10Z, 1 quarantined`.
    pub fn summary(&self, clock: impl Fn(LeaseTime) -> String) -> String {
        self.write(Some(&clock))
    }

    fn write(&self, clock: Option<&dyn Fn(LeaseTime) -> String>) -> String {
        let begin = match self.state {
            LeaseState::Scheduled => "its time has not come: ",
            LeaseState::Queued => "",
            LeaseState::Active => return "granted".to_owned(),
            LeaseState::Draining => return "ended, its phones are not idle yet".to_owned(),
            LeaseState::Released
            | LeaseState::Expired
            | LeaseState::Revoked
            | LeaseState::Cancelled
            | LeaseState::Unsatisfiable => return "ended".to_owned(),
        };
        let mut parts = [0_usize; WORDS.len()];
        let mut until = None;
        for device in &self.devices {
            parts[device.obstacle.rank()] += 1;
            if let Obstacle::Leased { until: ends, .. } = device.obstacle {
                until = until.max(ends);
            }
        }
        let mut said = WORDS.map(str::to_owned);
        if let (Some(until), Some(clock)) = (until, clock) {
            said[LEASED] = format!("{} until {}", WORDS[LEASED], clock(until));
        }
        let parts = parts.iter().zip(said).filter(|(count, _)| **count > 0);
        let parts: Vec<_> = parts
            .map(|(count, said)| format!("{count} {said}"))
            .collect();
        let of_them = if parts.is_empty() { "" } else { ": " };
        let matching = matching(self.devices.len());
        let wanted = self.wanted;
        let parts = parts.join(", ");
        format!("{begin}{matching}, {wanted} wanted{of_them}{parts}")
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(None))
    }
}

/// How many phones match, in words.
pub(crate) fn matching(count: usize) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{count} {verb}")
}

/// The rank of those that leases have.
const LEASED: usize = 2;

/// What is said of a phone, by the rank of its obstacle.
const WORDS: [&str; 8] = [
    "free",
    "kept for it and busy",
    "leased",
    "kept for others",
    "unplugged",
    "quarantined",
    "cordoned",
    "not ready",
];

impl Obstacle {
    fn rank(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Busy => 1,
            Self::Leased { .. } => LEASED,
            Self::Reserved { .. } => 3,
            Self::Detached => 4,
            Self::Quarantined => 5,
            Self::Cordoned => 6,
            Self::NotReady => 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fleetgate_runner::Udid;

    use super::*;

    fn explained(state: LeaseState, obstacles: Vec<Obstacle>) -> Explanation {
        let udids = (0..).map(|unit| Udid::from_parts(1, unit));
        let devices = udids.zip(obstacles);
        let devices = devices.map(|(udid, obstacle)| DeviceExplanation { udid, obstacle });
        Explanation {
            state,
            wanted: 1,
            devices: devices.collect(),
            ahead: Vec::new(),
        }
    }

    fn leased(until: u64) -> Obstacle {
        Obstacle::Leased {
            lease: "l".parse().unwrap(),
            until: Some(LeaseTime::new(Duration::from_secs(until))),
        }
    }

    #[test]
    fn a_summary_counts_what_is_in_the_way_and_says_when_all_leases_have_ended() {
        let explanation = explained(
            LeaseState::Queued,
            vec![Obstacle::Quarantined, leased(7), leased(3)],
        );
        assert_eq!(
            explanation.to_string(),
            "3 match, 1 wanted: 2 leased, 1 quarantined"
        );
        let clock = |at: LeaseTime| format!("<{at}>");
        assert_eq!(
            explanation.summary(clock),
            "3 match, 1 wanted: 2 leased until <7.000 s>, 1 quarantined"
        );
    }

    #[test]
    fn a_summary_has_words_for_every_obstacle() {
        let lease: LeaseId = "l".parse().unwrap();
        let all = vec![
            Obstacle::None,
            Obstacle::Busy,
            Obstacle::Leased {
                lease: lease.clone(),
                until: None,
            },
            Obstacle::Reserved { lease },
            Obstacle::Detached,
            Obstacle::Quarantined,
            Obstacle::Cordoned,
            Obstacle::NotReady,
        ];
        assert_eq!(
            explained(LeaseState::Queued, all).to_string(),
            "8 match, 1 wanted: 1 free, 1 kept for it and busy, 1 leased, 1 kept for others, \
             1 unplugged, 1 quarantined, 1 cordoned, 1 not ready"
        );
        let none = explained(LeaseState::Queued, Vec::new());
        assert_eq!(none.to_string(), "0 match, 1 wanted");
    }

    #[test]
    fn a_lease_that_does_not_wait_is_said_not_to() {
        let said = |state| explained(state, vec![Obstacle::None]).to_string();
        let scheduled = "its time has not come: 1 matches, 1 wanted: 1 free";
        assert_eq!(said(LeaseState::Scheduled), scheduled);
        assert_eq!(said(LeaseState::Active), "granted");
        assert_eq!(
            said(LeaseState::Draining),
            "ended, its phones are not idle yet"
        );
        assert_eq!(said(LeaseState::Expired), "ended");
    }
}
