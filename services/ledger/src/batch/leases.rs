//! Which leases there are, as the database and the entries so far have it.
//!
//! The rules, which hold for whoever grants leases:
//!
//! - an owner's request makes one lease;
//! - whose a lease is, and by which request, never changes;
//! - an epoch that a lease has stays with it, and a new one is higher than all
//!   that were given before its commit, and no other lease's;
//! - a lease that has ended is not opened again.
//!
//! Invariant: leases that were judged in their order can be written in that
//! order; of an entry all of them or none.

use std::collections::{HashMap, HashSet};

use sqlx::SqliteTransaction;

use super::rows::json;
use crate::entry::{Change, Entry};
use crate::error::LedgerError;
use crate::leases::rows::epoch;
use crate::leases::{LeaseRow, NewLeaseWrite};

/// The leases of these ids, and those of these requests.
const SELECT_KNOWN: &str = "
SELECT lease_id, owner, request_id, epoch, is_open FROM leases
WHERE lease_id IN (SELECT value FROM json_each(?1))
UNION
SELECT l.lease_id, l.owner, l.request_id, l.epoch, l.is_open
FROM json_each(?2) AS e
CROSS JOIN leases AS l ON l.owner = e.value ->> 0 AND l.request_id = e.value ->> 1";

/// The leases that the entries of a batch are about.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases {
    known: HashMap<String, Known>,
    /// Which lease a request made.
    requests: HashMap<Request, String>,
    /// The last epoch of those before this batch.
    last_epoch: i64,
    /// Those of this batch.
    epochs: HashSet<i64>,
}

/// An owner and a request.
type Request = (String, String);

#[derive(Debug, Clone)]
struct Known {
    owner: String,
    request_id: Option<String>,
    epoch: Option<i64>,
    is_open: bool,
}

impl Leases {
    pub(super) async fn read(
        transaction: &mut SqliteTransaction<'_>,
        entries: &[&Entry],
    ) -> Result<Self, sqlx::Error> {
        type Row = (String, String, Option<String>, Option<i64>, bool);
        let rows: Vec<&LeaseRow> = entries
            .iter()
            .filter_map(|entry| match &entry.change {
                Change::Lease(write) => Some(&write.rows),
                Change::Intend(_)
                | Change::Conclude(_)
                | Change::Record(_)
                | Change::Resolve(_)
                | Change::Operate(_)
                | Change::Move(_)
                | Change::Set(..) => None,
            })
            .flatten()
            .collect();
        if rows.is_empty() {
            return Ok(Self::default());
        }
        let ids: Vec<&String> = rows.iter().map(|row| &row.id).collect();
        let requests: Vec<(&String, &String)> = rows
            .iter()
            .filter_map(|row| Some((&row.owner, row.request_id.as_ref()?)))
            .collect();
        let known: Vec<Row> = sqlx::query_as(SELECT_KNOWN)
            .bind(json(&ids)?)
            .bind(json(&requests)?)
            .fetch_all(&mut **transaction)
            .await?;
        let mut leases = Self {
            last_epoch: sqlx::query_scalar("SELECT last_epoch FROM lease_clock")
                .fetch_one(&mut **transaction)
                .await?,
            ..Self::default()
        };
        for (id, owner, request_id, epoch, is_open) in known {
            leases.put(
                id,
                Known {
                    owner,
                    request_id,
                    epoch,
                    is_open,
                },
            );
        }
        Ok(leases)
    }

    /// Takes what an entry says of leases for what is.
    pub(super) fn take(&mut self, write: &NewLeaseWrite) -> Result<(), LedgerError> {
        let before = self.clone();
        let taken = write.rows.iter().try_for_each(|row| self.take_row(row));
        if taken.is_err() {
            *self = before;
        }
        taken
    }

    fn take_row(&mut self, row: &LeaseRow) -> Result<(), LedgerError> {
        let mismatch = |what| {
            Err(LedgerError::LeaseMismatch {
                lease: row.id.clone(),
                what,
            })
        };
        let (request_id, had) = if let Some(known) = self.known.get(&row.id) {
            if known.owner != row.owner {
                return mismatch("owner");
            }
            if row.request_id.is_some() && row.request_id != known.request_id {
                return mismatch("request");
            }
            if row.is_open && !known.is_open {
                return mismatch("end");
            }
            (known.request_id.clone(), known.epoch)
        } else {
            if let Some(request_id) = &row.request_id
                && let Some(lease) = self.requests.get(&(row.owner.clone(), request_id.clone()))
            {
                return Err(LedgerError::LeaseRequestTaken {
                    owner: row.owner.clone(),
                    request_id: request_id.clone(),
                    lease: lease.clone(),
                });
            }
            (row.request_id.clone(), None)
        };
        let has = row.epoch.map(epoch);
        match (had, has) {
            (Some(had), has) if has != Some(had) => return mismatch("epoch"),
            (None, Some(new)) if new <= self.last_epoch || !self.epochs.insert(new) => {
                return Err(LedgerError::EpochTaken {
                    epoch: new.unsigned_abs(),
                    lease: row.id.clone(),
                });
            }
            (Some(_) | None, Some(_) | None) => {}
        }
        self.put(
            row.id.clone(),
            Known {
                owner: row.owner.clone(),
                request_id,
                epoch: has,
                is_open: row.is_open,
            },
        );
        Ok(())
    }

    fn put(&mut self, id: String, lease: Known) {
        if let Some(request_id) = &lease.request_id {
            let request = (lease.owner.clone(), request_id.clone());
            self.requests.insert(request, id.clone());
        }
        self.known.insert(id, lease);
    }
}
