//! Leases on their way into the database, and out of it for good.
//!
//! Invariant: a row that breaks a rule is left out, which whoever writes it can
//! tell from the number of rows that were taken; the rules stand in words in
//! [`crate::batch`].

use std::time::Duration;

use serde::Serialize;
use sqlx::SqliteTransaction;

use super::LeaseRow;
use crate::batch::rows::{TableRow, json};
use crate::time::{micros, since_epoch};

/// What breaks no rule is written. An epoch is new if it is higher than all that
/// were given before this commit: only then may it come to a lease that has
/// none. The order of the clauses counts: a lease that is written again meets
/// its own request and epoch as well.
const UPSERT: &str = "
INSERT INTO leases (lease_id, owner, request_id, state, is_open, epoch, devices, created_us, ended_us, body)
SELECT e.value ->> 'id', e.value ->> 'owner', e.value ->> 'request', e.value ->> 'state', e.value ->> 'isOpen',
       e.value ->> 'epoch', e.value ->> 'devices', e.value ->> 'created', e.value ->> 'ended', e.value ->> 'body'
FROM json_each(?1) AS e
WHERE e.value ->> 'epoch' IS NULL
   OR e.value ->> 'epoch' > (SELECT last_epoch FROM lease_clock)
   OR e.value ->> 'epoch' = (SELECT l.epoch FROM leases AS l WHERE l.lease_id = e.value ->> 'id')
ORDER BY e.key
ON CONFLICT (lease_id) DO UPDATE SET
    state = excluded.state, is_open = excluded.is_open, epoch = excluded.epoch, devices = excluded.devices,
    ended_us = excluded.ended_us, body = excluded.body
WHERE leases.owner = excluded.owner
  AND (excluded.request_id IS NULL OR excluded.request_id IS leases.request_id)
  AND (leases.epoch IS excluded.epoch
       OR leases.epoch IS NULL AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.epoch = excluded.epoch))
  AND leases.is_open >= excluded.is_open
ON CONFLICT DO NOTHING";

const ADVANCE: &str = "
UPDATE lease_clock SET clock_us = max(clock_us, ?1), last_epoch = max(last_epoch, ?2)";

const FORGET: &str = "
DELETE FROM leases WHERE seq IN (
    SELECT l.seq FROM leases AS l WHERE l.is_open = 0 AND l.ended_us < ?1 ORDER BY l.ended_us LIMIT ?2
)";

/// A row of `leases`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseJson<'a> {
    id: &'a str,
    owner: &'a str,
    request: Option<&'a str>,
    state: &'a str,
    is_open: bool,
    epoch: Option<i64>,
    devices: String,
    created: i64,
    ended: Option<i64>,
    body: &'a str,
}

impl TableRow for LeaseJson<'_> {
    const INSERT: &'static str = UPSERT;
}

impl<'a> LeaseJson<'a> {
    pub(crate) fn of(lease: &'a LeaseRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: &lease.id,
            owner: &lease.owner,
            request: lease.request_id.as_deref(),
            state: &lease.state,
            is_open: lease.is_open,
            epoch: lease.epoch.map(epoch),
            devices: json(&lease.devices)?,
            created: since_epoch(lease.created),
            ended: lease.ended.map(since_epoch),
            body: &lease.body,
        })
    }

    /// The epoch of its grant.
    pub(crate) fn epoch(&self) -> Option<i64> {
        self.epoch
    }
}

/// An epoch as the database holds it. An entry with one that it cannot hold is
/// refused before it comes here.
pub(crate) fn epoch(epoch: u64) -> i64 {
    i64::try_from(epoch).unwrap_or(i64::MAX)
}

/// Moves the clock on, and the last epoch, neither ever back. To be done after
/// the leases are written, which are held against the last epoch before them.
pub(crate) async fn advance(
    transaction: &mut SqliteTransaction<'_>,
    clock: Duration,
    last_epoch: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(ADVANCE)
        .bind(micros(clock))
        .bind(last_epoch)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Removes leases that ended before a time, the first ones first; how many.
pub(crate) async fn forget(
    transaction: &mut SqliteTransaction<'_>,
    before: i64,
    limit: u32,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query(FORGET)
        .bind(before)
        .bind(limit)
        .execute(&mut **transaction)
        .await?;
    Ok(removed.rows_affected())
}
