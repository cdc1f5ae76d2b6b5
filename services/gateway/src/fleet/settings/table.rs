//! What is configured and what is stored of each phone, one over the other.
//!
//! Pure state without I/O. What an operator has set goes before what is
//! configured, and stays when the configuration changes. That an operator has
//! taken away what is configured is stored as a mark: a label with a key that
//! no label can have.
//!
//! Invariant: no two phones have one alias, as [`Table::get`] tells it. One
//! that is configured is its phone's only, whatever the phone is called now.

use std::collections::{BTreeMap, HashMap};

use fleetgate_ledger::DeviceSettings;
use fleetgate_runner::Udid;

use crate::config::Devices;

/// What the key of a mark begins with, and that of no label does: the rest is
/// the key of the label that was taken away, or nothing for the alias.
const MARK: char = '!';

/// Everything that holds for phones.
#[derive(Debug, Default)]
pub(super) struct Table {
    configured: HashMap<Udid, Configured>,
    configured_aliases: HashMap<String, Udid>,
    stored: BTreeMap<Udid, DeviceSettings>,
    stored_aliases: HashMap<String, Udid>,
}

#[derive(Debug, Default)]
struct Configured {
    alias: Option<String>,
    labels: BTreeMap<String, String>,
}

/// A phone of which nothing is set.
pub(super) fn nothing(device: &Udid) -> DeviceSettings {
    DeviceSettings {
        device: device.clone(),
        alias: None,
        labels: BTreeMap::new(),
        cordon: None,
        quarantine: None,
    }
}

impl Table {
    pub(super) fn new(devices: &Devices, stored: Vec<DeviceSettings>) -> Self {
        let mut table = Self::default();
        for device in devices.iter() {
            let alias = device.alias.as_ref().map(ToString::to_string);
            if let Some(alias) = alias.clone() {
                table.configured_aliases.insert(alias, device.udid.clone());
            }
            let labels = device.labels.get().clone();
            let configured = Configured { alias, labels };
            table.configured.insert(device.udid.clone(), configured);
        }
        for settings in stored {
            table.put(settings);
        }
        table
    }

    /// What holds for a phone.
    pub(super) fn get(&self, device: &Udid) -> DeviceSettings {
        self.shown(self.stored(device))
    }

    /// What is stored of a phone.
    pub(super) fn stored(&self, device: &Udid) -> DeviceSettings {
        let stored = self.stored.get(device);
        stored.cloned().unwrap_or_else(|| nothing(device))
    }

    /// What holds for a phone if this is stored of it.
    pub(super) fn shown(&self, mut settings: DeviceSettings) -> DeviceSettings {
        let marks = settings.labels.clone();
        settings.labels.retain(|key, _| !key.starts_with(MARK));
        let Some(configured) = self.configured.get(&settings.device) else {
            return settings;
        };
        let marked = |key: &str| marks.contains_key(&mark(key));
        if settings.alias.is_none() && !marked("") {
            settings.alias = configured
                .alias
                .clone()
                .filter(|alias| self.owner(alias, &settings.device).is_none());
        }
        let mut labels = configured.labels.clone();
        labels.retain(|key, _| !marked(key));
        labels.append(&mut settings.labels);
        settings.labels = labels;
        settings
    }

    /// What is to be stored of a phone that is called this from now on.
    pub(super) fn name(&self, settings: &mut DeviceSettings, alias: Option<String>) {
        let configured = self.configured.get(&settings.device);
        let has_one = configured.is_some_and(|configured| configured.alias.is_some());
        settings.labels.remove(&mark(""));
        if alias.is_none() && has_one {
            settings.labels.insert(mark(""), String::new());
        }
        settings.alias = alias;
    }

    /// What is to be stored of a phone that has this label from now on, or has
    /// it no more.
    pub(super) fn label(&self, settings: &mut DeviceSettings, key: &str, value: Option<String>) {
        let configured = self.configured.get(&settings.device);
        let has_one = configured.is_some_and(|configured| configured.labels.contains_key(key));
        settings.labels.remove(&mark(key));
        settings.labels.remove(key);
        if let Some(value) = value {
            settings.labels.insert(key.to_owned(), value);
        } else if has_one {
            settings.labels.insert(mark(key), String::new());
        }
    }

    /// Whose an alias is, if it is another phone's.
    pub(super) fn taken(&self, alias: &str, by: &Udid) -> Option<&Udid> {
        let configured = self.configured_aliases.get(alias);
        let configured = configured.filter(|owner| *owner != by);
        self.owner(alias, by).or(configured)
    }

    /// The other phone that has been given an alias.
    fn owner(&self, alias: &str, by: &Udid) -> Option<&Udid> {
        let owner = self.stored_aliases.get(alias);
        owner.filter(|owner| *owner != by)
    }

    /// The phone of this alias.
    pub(super) fn by_alias(&self, alias: &str) -> Option<&Udid> {
        let stored = self.stored_aliases.get(alias);
        let device = stored.or_else(|| self.configured_aliases.get(alias))?;
        let is_its = self.get(device).alias.as_deref() == Some(alias);
        is_its.then_some(device)
    }

    /// The phones of which anything is stored.
    pub(super) fn known(&self) -> impl Iterator<Item = &Udid> {
        self.stored.keys()
    }

    /// What is stored of every phone.
    pub(super) fn all_stored(&self) -> impl Iterator<Item = &DeviceSettings> {
        self.stored.values()
    }

    /// Configured aliases that other phones have been given.
    pub(super) fn overruled(&self) -> impl Iterator<Item = (&str, &Udid)> {
        self.configured_aliases
            .iter()
            .filter_map(|(alias, device)| {
                let owner = self.stored_aliases.get(alias)?;
                (owner != device).then_some((alias.as_str(), owner))
            })
    }

    /// Takes in what is stored of a phone.
    pub(super) fn put(&mut self, settings: DeviceSettings) {
        let device = settings.device.clone();
        let alias = settings.alias.clone();
        let before = self.stored.insert(device.clone(), settings);
        if let Some(alias) = before.and_then(|before| before.alias) {
            self.stored_aliases.remove(&alias);
        }
        if let Some(alias) = alias {
            self.stored_aliases.insert(alias, device);
        }
    }
}

fn mark(key: &str) -> String {
    format!("{MARK}{key}")
}
