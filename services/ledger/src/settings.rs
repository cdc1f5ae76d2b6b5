//! What holds for a phone: its alias, its labels, whether it is cordoned or in
//! quarantine.
//!
//! The one thing in a ledger that changes in place. How it came to be is the
//! chain's to tell: settings are written together with an operation, or not at
//! all.

use std::collections::BTreeMap;
use std::time::SystemTime;

use fleetgate_runner::Udid;
use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use crate::batch::rows::{TableRow, json};
use crate::error::LedgerError;
use crate::query::ReadError;
use crate::row::Unreadable;
use crate::time::{since_epoch, system_time};

const SELECT: &str = "SELECT * FROM device_settings ORDER BY device";

const UPSERT: &str = "
INSERT INTO device_settings (device, alias, labels, cordon_reason, cordon_who, cordon_since_us, cordon_until_us,
                             quarantine_reason, quarantine_since_us)
SELECT e.value ->> 'device', e.value ->> 'alias', e.value ->> 'labels', e.value ->> 'cordonReason',
       e.value ->> 'cordonWho', e.value ->> 'cordonSince', e.value ->> 'cordonUntil',
       e.value ->> 'quarantineReason', e.value ->> 'quarantineSince'
FROM json_each(?1) AS e
WHERE true
ORDER BY e.key
ON CONFLICT (device) DO UPDATE SET
    alias = excluded.alias, labels = excluded.labels, cordon_reason = excluded.cordon_reason,
    cordon_who = excluded.cordon_who, cordon_since_us = excluded.cordon_since_us,
    cordon_until_us = excluded.cordon_until_us, quarantine_reason = excluded.quarantine_reason,
    quarantine_since_us = excluded.quarantine_since_us";

/// What holds for a phone. Times are kept to the microsecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSettings {
    /// The phone.
    pub device: Udid,
    /// Its other name, which no other phone has: upper and lower case differ.
    pub alias: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Set while it is to get no new work.
    pub cordon: Option<Cordon>,
    /// Set while it is left alone because it failed again and again.
    pub quarantine: Option<Quarantine>,
}

/// That a phone is to get no new work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// Why.
    pub reason: String,
    /// Who said so.
    pub who: String,
    /// Since when.
    pub since: SystemTime,
    /// When it ends by itself, if it does.
    pub until: Option<SystemTime>,
}

impl Cordon {
    /// Whether it has ended by itself, by the wall clock.
    pub fn has_ended(&self, now: SystemTime) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// That a phone is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: SystemTime,
}

/// Those of every phone that ever had any.
pub(crate) async fn all(pool: &SqlitePool) -> Result<Vec<DeviceSettings>, ReadError> {
    let mut settings = Vec::new();
    for row in sqlx::query(SELECT).fetch_all(pool).await? {
        settings.push(DeviceSettings::read(&row)?);
    }
    Ok(settings)
}

impl DeviceSettings {
    fn read(row: &SqliteRow) -> Result<Self, LedgerError> {
        Self::decode(row).map_err(|error| LedgerError::UnreadableSettings {
            device: row.try_get("device").unwrap_or_default(),
            source: error.into(),
        })
    }

    fn decode(row: &SqliteRow) -> Result<Self, Unreadable> {
        let time = |column: &str| -> Result<Option<SystemTime>, sqlx::Error> {
            Ok(row.try_get::<Option<i64>, _>(column)?.map(system_time))
        };
        Ok(Self {
            device: row.try_get::<String, _>("device")?.parse()?,
            alias: row.try_get("alias")?,
            labels: serde_json::from_str(&row.try_get::<String, _>("labels")?)?,
            cordon: match time("cordon_since_us")? {
                Some(since) => Some(Cordon {
                    reason: row.try_get("cordon_reason")?,
                    who: row.try_get("cordon_who")?,
                    since,
                    until: time("cordon_until_us")?,
                }),
                None => None,
            },
            quarantine: match time("quarantine_since_us")? {
                Some(since) => Some(Quarantine {
                    reason: row.try_get("quarantine_reason")?,
                    since,
                }),
                None => None,
            },
        })
    }
}

/// A row of `device_settings`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsJson<'a> {
    device: &'a str,
    alias: Option<&'a str>,
    labels: String,
    cordon_reason: Option<&'a str>,
    cordon_who: Option<&'a str>,
    cordon_since: Option<i64>,
    cordon_until: Option<i64>,
    quarantine_reason: Option<&'a str>,
    quarantine_since: Option<i64>,
}

impl TableRow for SettingsJson<'_> {
    const INSERT: &'static str = UPSERT;
}

impl<'a> SettingsJson<'a> {
    pub(crate) fn of(settings: &'a DeviceSettings) -> Result<Self, sqlx::Error> {
        let cordon = settings.cordon.as_ref();
        let quarantine = settings.quarantine.as_ref();
        Ok(Self {
            device: settings.device.as_str(),
            alias: settings.alias.as_deref(),
            labels: json(&settings.labels)?,
            cordon_reason: cordon.map(|cordon| cordon.reason.as_str()),
            cordon_who: cordon.map(|cordon| cordon.who.as_str()),
            cordon_since: cordon.map(|cordon| since_epoch(cordon.since)),
            cordon_until: cordon.and_then(|cordon| cordon.until.map(since_epoch)),
            quarantine_reason: quarantine.map(|quarantine| quarantine.reason.as_str()),
            quarantine_since: quarantine.map(|quarantine| since_epoch(quarantine.since)),
        })
    }
}
