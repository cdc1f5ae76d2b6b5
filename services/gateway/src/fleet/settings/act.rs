//! What is done to a phone's settings: what is stored of it then, and the
//! operation that is the record of it.
//!
//! Invariant: what changes nothing is no act, and leaves no record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_ledger::{Cordon, DeviceSettings, NewOperation, Quarantine};
use fleetgate_runner::Udid;
use serde_json::{Map, Value, json};

use super::table::Table;
use crate::config::Labels;
use crate::convert::timestamp;

/// Who does what nobody asked for.
pub(super) const GATEWAY: &str = "fleetgate";

/// Who does something, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) who: String,
    /// Nothing of what the gateway does by itself.
    pub(crate) address: Option<String>,
}

impl By {
    /// Notes with an operation from where it was asked for.
    pub(crate) fn note(&self, detail: &mut Map<String, Value>) {
        if let Some(address) = &self.address {
            detail.insert("address".to_owned(), json!(address));
        }
    }
}

impl From<&str> for By {
    fn from(who: &str) -> Self {
        Self {
            who: who.to_owned(),
            address: None,
        }
    }
}

/// What is to be changed about a phone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Its alias, or that it has none; the outer `None` leaves it.
    #[expect(clippy::option_option, reason = "no change and no alias differ")]
    pub(crate) alias: Option<Option<String>>,
    /// Labels that it gets.
    pub(crate) set: BTreeMap<String, String>,
    /// Labels that it loses.
    pub(crate) remove: BTreeSet<String>,
}

/// What is done.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Update(Change),
    Cordon {
        reason: String,
        until: Option<SystemTime>,
    },
    Uncordon,
    /// The cordon's time is up.
    EndCordon,
    Quarantine(Option<Quarantine>),
}

impl Act {
    /// Whether it may give or take an alias.
    pub(super) fn names(&self) -> bool {
        match self {
            Self::Update(change) => change.alias.is_some(),
            Self::Cordon { .. } | Self::Uncordon | Self::EndCordon | Self::Quarantine(_) => false,
        }
    }
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) settings: DeviceSettings,
    pub(super) operation: NewOperation,
}

/// Why it cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    AliasTaken { alias: String, device: Udid },
    TooManyLabels,
}

impl Table {
    /// What an act comes to; nothing if all is so already.
    pub(super) fn plan(
        &self,
        device: &Udid,
        act: Act,
        who: &str,
        now: SystemTime,
    ) -> Result<Option<Plan>, Refused> {
        let (before, mut settings) = (self.get(device), self.stored(device));
        let (what, mut detail) = match act {
            Act::Update(change) => {
                let detail = self.update(&before, &mut settings, change)?;
                ("update-device", detail)
            }
            Act::Cordon { reason, until } => {
                let until = until.map(to_micros);
                let is_so = |cordon: &Cordon| cordon.reason == reason && cordon.until == until;
                if settings.cordon.as_ref().is_some_and(is_so) {
                    return Ok(None);
                }
                let cordon = Cordon {
                    reason,
                    who: who.to_owned(),
                    since: to_micros(now),
                    until,
                };
                let detail = of_cordon(&cordon);
                settings.cordon = Some(cordon);
                ("cordon-device", detail)
            }
            Act::Uncordon => match settings.cordon.take() {
                Some(cordon) => ("uncordon-device", of_cordon(&cordon)),
                None => return Ok(None),
            },
            Act::EndCordon => match settings.cordon.take_if(|cordon| cordon.has_ended(now)) {
                Some(cordon) => ("cordon-ended", of_cordon(&cordon)),
                None => return Ok(None),
            },
            Act::Quarantine(Some(quarantine)) => {
                if before.quarantine.as_ref() == Some(&quarantine) {
                    return Ok(None);
                }
                let detail = reason(&quarantine.reason);
                settings.quarantine = Some(Quarantine {
                    since: to_micros(quarantine.since),
                    ..quarantine
                });
                ("quarantine-device", detail)
            }
            Act::Quarantine(None) => match settings.quarantine.take() {
                Some(quarantine) => ("quarantine-ended", reason(&quarantine.reason)),
                None => return Ok(None),
            },
        };
        if self.shown(settings.clone()) == before {
            return Ok(None);
        }
        detail.retain(|_, value| !value.is_null());
        Ok(Some(Plan {
            operation: NewOperation {
                who: who.to_owned(),
                what: what.to_owned(),
                target: Some(device.to_string()),
                detail,
            },
            settings,
        }))
    }

    /// Changes what is stored, and says what has changed in what holds.
    fn update(
        &self,
        before: &DeviceSettings,
        settings: &mut DeviceSettings,
        change: Change,
    ) -> Result<Map<String, Value>, Refused> {
        let Change { alias, set, remove } = change;
        let mut detail = Map::new();
        if let Some(alias) = alias.filter(|alias| *alias != before.alias) {
            if let Some(alias) = &alias
                && let Some(owner) = self.taken(alias, &before.device)
            {
                return Err(Refused::AliasTaken {
                    alias: alias.clone(),
                    device: owner.clone(),
                });
            }
            detail.insert("alias".to_owned(), json!(alias.as_deref().unwrap_or("")));
            self.name(settings, alias);
        }
        let mut told = Map::new();
        for (key, value) in set {
            if before.labels.get(&key) != Some(&value) {
                told.insert(key.clone(), json!(value));
                self.label(settings, &key, Some(value));
            }
        }
        if !told.is_empty() {
            detail.insert("set_labels".to_owned(), Value::Object(told));
        }
        let mut told = Vec::new();
        for key in remove {
            if before.labels.contains_key(&key) {
                self.label(settings, &key, None);
                told.push(key);
            }
        }
        if !told.is_empty() {
            detail.insert("removed_labels".to_owned(), json!(told));
        }
        if self.shown(settings.clone()).labels.len() > Labels::MOST {
            return Err(Refused::TooManyLabels);
        }
        Ok(detail)
    }

    /// The phones whose cordons have ended by the clock.
    pub(super) fn ended(&self, now: SystemTime) -> Vec<Udid> {
        self.all_stored()
            .filter(|settings| {
                let cordon = settings.cordon.as_ref();
                cordon.is_some_and(|cordon| cordon.has_ended(now))
            })
            .map(|settings| settings.device.clone())
            .collect()
    }

    /// When the next cordon ends by the clock.
    pub(super) fn next_end(&self) -> Option<SystemTime> {
        self.all_stored()
            .filter_map(|settings| settings.cordon.as_ref()?.until)
            .min()
    }
}

fn of_cordon(cordon: &Cordon) -> Map<String, Value> {
    let mut detail = reason(&cordon.reason);
    if let Some(until) = cordon.until {
        detail.insert("until".to_owned(), json!(timestamp(until).to_string()));
    }
    detail
}

fn reason(reason: &str) -> Map<String, Value> {
    [("reason".to_owned(), json!(reason))].into_iter().collect()
}

/// As the ledger keeps it, so that a restart changes nothing.
fn to_micros(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let beyond = Duration::from_nanos(u64::from(since.subsec_nanos() % 1000));
    time.checked_sub(beyond).unwrap_or(time)
}

#[cfg(test)]
mod tests;
