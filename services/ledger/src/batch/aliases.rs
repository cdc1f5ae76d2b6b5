//! Whose an alias is, as the database and the entries so far have it.
//!
//! Invariant: settings that were judged in their order can be written in that
//! order, each without a clash.

use std::collections::HashMap;

use fleetgate_runner::Udid;
use sqlx::SqliteTransaction;

use super::rows::json;
use crate::entry::{Change, Entry};
use crate::error::LedgerError;
use crate::settings::DeviceSettings;

const SELECT_ALIASES: &str = "
SELECT alias, device FROM device_settings
WHERE alias IN (SELECT value FROM json_each(?1))
   OR (alias IS NOT NULL AND device IN (SELECT value FROM json_each(?2)))";

/// Aliases that the entries of a batch ask for or give up, and whose they are.
#[derive(Debug, Default)]
pub(super) struct Aliases(HashMap<String, String>);

impl Aliases {
    pub(super) async fn read(
        transaction: &mut SqliteTransaction<'_>,
        entries: &[&Entry],
    ) -> Result<Self, sqlx::Error> {
        let settings: Vec<&DeviceSettings> = entries
            .iter()
            .filter_map(|entry| match &entry.change {
                Change::Set(settings, _) => Some(settings),
                Change::Intend(_)
                | Change::Conclude(_)
                | Change::Record(_)
                | Change::Resolve(_)
                | Change::Operate(_)
                | Change::Move(_)
                | Change::Lease(_) => None,
            })
            .collect();
        if settings.is_empty() {
            return Ok(Self::default());
        }
        let aliases: Vec<&String> = settings
            .iter()
            .filter_map(|settings| settings.alias.as_ref())
            .collect();
        let devices: Vec<&str> = settings
            .iter()
            .map(|settings| settings.device.as_str())
            .collect();
        let rows: Vec<(String, String)> = sqlx::query_as(SELECT_ALIASES)
            .bind(json(&aliases)?)
            .bind(json(&devices)?)
            .fetch_all(&mut **transaction)
            .await?;
        Ok(Self(rows.into_iter().collect()))
    }

    /// Gives a phone the alias of its new settings, and takes from it the one
    /// that it had.
    pub(super) fn give(&mut self, settings: &DeviceSettings) -> Result<(), LedgerError> {
        let device = settings.device.as_str();
        if let Some(alias) = &settings.alias
            && let Some(owner) = self.0.get(alias).filter(|owner| *owner != device)
        {
            return Err(match owner.parse::<Udid>() {
                Ok(device) => LedgerError::AliasTaken {
                    alias: alias.clone(),
                    device,
                },
                Err(error) => LedgerError::Rejected {
                    source: std::sync::Arc::new(error),
                },
            });
        }
        self.0.retain(|_, owner| owner != device);
        if let Some(alias) = &settings.alias {
            self.0.insert(alias.clone(), device.to_owned());
        }
        Ok(())
    }
}
