//! Leases on record: their rows, and the operations that changed them.
//!
//! Invariant: what was written by an older gateway is read for ever.

use std::sync::Arc;

use fleetgate_lease::{EndReason, Epoch, Lease, LeaseId, Wants, What};
use fleetgate_ledger::{LeaseRow, NewOperation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::asked::Asked;

/// Who does what nobody asked for.
const GATEWAY: &str = "fleetgate";

/// A lease on record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the lease {id} cannot be read: {source}")]
pub struct UnreadableLease {
    /// Which.
    pub id: String,
    /// Why.
    pub source: serde_json::Error,
}

/// What is kept of the request for a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// What makes a repetition safe, if anything does.
    pub(super) request_id: Option<String>,
    /// What was asked for; kept with an id only.
    pub(super) asked: Option<Asked>,
    /// Where the request came from; on record with what was done, and kept no
    /// longer.
    pub(super) address: Option<String>,
}

/// What the ledger keeps and does not understand.
#[derive(Debug, Deserialize)]
struct Body {
    lease: Lease,
    #[serde(default)]
    asked: Option<Asked>,
}

/// The same, to be written.
#[derive(Serialize)]
struct BodyRef<'a> {
    lease: &'a Lease,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a Asked>,
}

/// The row of a lease.
pub(super) fn row(lease: &Lease, origin: &Origin) -> LeaseRow {
    let body = BodyRef {
        lease,
        asked: origin.asked.as_ref(),
    };
    LeaseRow {
        id: lease.id().to_string(),
        owner: lease.owner().to_owned(),
        request_id: origin.request_id.clone(),
        state: lease.state().to_string(),
        is_open: lease.state().is_open(),
        epoch: lease.epoch().map(Epoch::get),
        devices: lease.devices().iter().cloned().collect(),
        created: lease.created(),
        ended: lease.end().map(|end| end.time),
        // Cannot fail: strings, numbers, and maps with strings as keys.
        body: serde_json::to_string(&body).unwrap_or_default(),
    }
}

/// The lease of a row.
pub(super) fn read(row: &LeaseRow) -> Result<(Arc<Lease>, Origin), UnreadableLease> {
    let body: Body = serde_json::from_str(&row.body).map_err(|source| UnreadableLease {
        id: row.id.clone(),
        source,
    })?;
    let origin = Origin {
        request_id: row.request_id.clone(),
        asked: body.asked,
        address: None,
    };
    Ok((Arc::new(body.lease), origin))
}

/// The operation that a change is on record by, if it is: a renewal shows in the
/// row alone, and so does that a lease has begun to wait or that its time runs.
pub(super) fn operation(lease: &Lease, what: What, now: bool) -> Option<NewOperation> {
    let owner = || lease.owner().to_owned();
    let gateway = || GATEWAY.to_owned();
    let end = lease.end();
    let (who, name) = match what {
        What::Created => (owner(), "create-lease"),
        What::Granted => (gateway(), "grant-lease"),
        What::Updated => (owner(), "update-lease"),
        What::Opened | What::Renewed | What::Queued => return None,
        // It was told how when it began to drain.
        What::Ended if lease.epoch().is_some() => (gateway(), "end-lease"),
        What::Draining | What::Ended => {
            let by = end.and_then(|end| end.by.clone());
            match end?.reason {
                EndReason::Released => (by.unwrap_or_else(owner), "release-lease"),
                EndReason::Cancelled => (by.unwrap_or_else(owner), "cancel-lease"),
                EndReason::Revoked => (by.unwrap_or_else(gateway), "revoke-lease"),
                EndReason::TtlExpired | EndReason::MaxDuration | EndReason::QueueTimeout => {
                    (gateway(), "expire-lease")
                }
                EndReason::Unsatisfiable => (gateway(), "end-lease"),
            }
        }
    };
    Some(NewOperation {
        who,
        what: name.to_owned(),
        target: Some(lease.id().to_string()),
        detail: detail(lease, what, now),
    })
}

fn detail(lease: &Lease, what: What, now: bool) -> Map<String, Value> {
    let mut detail = Map::new();
    let mut put = |key: &str, value: Value| {
        detail.insert(key.to_owned(), value);
    };
    let devices: Vec<_> = lease.devices().iter().map(ToString::to_string).collect();
    match what {
        What::Created => {
            match lease.wants() {
                Wants::Devices(wanted) => {
                    let wanted: Vec<_> = wanted.iter().map(ToString::to_string).collect();
                    put("devices", json!(wanted));
                }
                Wants::Matching { selector, count } => {
                    put("count", json!(count));
                    put("selector", json!(selector));
                }
            }
            put("priority", json!(lease.priority()));
            put("context", json!(lease.context()));
        }
        What::Updated => {
            put("priority", json!(lease.priority()));
            put("ttl", json!(format!("{:?}", lease.terms().ttl)));
        }
        What::Granted | What::Opened | What::Renewed | What::Queued => {}
        What::Draining | What::Ended => {
            if let Some(end) = lease.end() {
                put("reason", json!(end.reason));
                if let Some(why) = &end.detail {
                    put("detail", json!(why));
                }
            }
            if now {
                put("mode", json!("now"));
            }
        }
    }
    if let Some(epoch) = lease.epoch() {
        put("epoch", json!(epoch));
        put("devices", json!(devices));
    }
    detail
}

/// The id of a new lease.
pub(crate) fn mint() -> LeaseId {
    let id = uuid::Uuid::now_v7().to_string();
    // Of letters, digits and hyphens.
    id.parse().expect("a UUID is an id")
}

/// That what was under way on the phones of a lease that drains was ended.
pub(super) fn forced(lease: &Lease, by: String, reason: &str) -> NewOperation {
    let mut detail = Map::new();
    detail.insert("reason".to_owned(), json!(EndReason::Revoked));
    detail.insert("detail".to_owned(), json!(reason));
    detail.insert("mode".to_owned(), json!("now"));
    NewOperation {
        who: by,
        what: "revoke-lease".to_owned(),
        target: Some(lease.id().to_string()),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leases::samples::Sample;

    fn operations(sample: &Sample, what: What) -> (String, String, Map<String, Value>) {
        let done = operation(&sample.lease(), what, false).unwrap();
        assert_eq!(done.target.as_deref(), Some(sample.lease().id().as_str()));
        (done.what, done.who, done.detail)
    }

    #[test]
    fn a_lease_is_read_back_as_it_was_written() {
        let granted = Sample::granted("token:ci", &[1, 2]).lease();
        let origin = Origin {
            request_id: Some("build-7".to_owned()),
            asked: None,
            address: None,
        };
        let row = row(&granted, &origin);
        assert_eq!((row.state.as_str(), row.is_open), ("ACTIVE", true));
        assert_eq!((row.epoch, row.devices.len()), (Some(7), 2));
        assert_eq!((row.owner.as_str(), row.ended), ("token:ci", None));
        let (lease, read_origin) = read(&row).unwrap();
        assert_eq!((lease, read_origin), (granted, origin));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let lease = Sample::queued("token:ci", &[1], 0).lease();
        let row = LeaseRow {
            body: "{}".to_owned(),
            ..row(&lease, &Origin::default())
        };
        let error = read(&row).unwrap_err().to_string();
        assert!(error.contains(lease.id().as_str()), "{error}");
    }

    #[test]
    fn every_change_that_somebody_made_is_on_record_under_its_name() {
        let waits = Sample::queued("token:ci", &[1], 0);
        let granted = Sample::granted("token:ci", &[1]);
        let name = |sample: &Sample, what| {
            let (what, who, _) = operations(sample, what);
            format!("{what} by {who}")
        };
        assert_eq!(name(&waits, What::Created), "create-lease by token:ci");
        assert_eq!(name(&granted, What::Granted), "grant-lease by fleetgate");
        assert_eq!(name(&granted, What::Updated), "update-lease by token:ci");
        let released = granted.clone().ending(EndReason::Released);
        assert_eq!(name(&released, What::Draining), "release-lease by token:ci");
        let ended = granted.clone().ended(EndReason::Released);
        assert_eq!(name(&ended, What::Ended), "end-lease by fleetgate");
        let cancelled = waits.clone().ending(EndReason::Released);
        assert_eq!(name(&cancelled, What::Ended), "cancel-lease by token:ci");
        for unseen in [What::Opened, What::Renewed, What::Queued] {
            assert!(operation(&granted.lease(), unseen, false).is_none());
        }
    }

    #[test]
    fn what_was_done_says_to_which_phones_by_which_epoch_and_why() {
        let revoked = Sample::granted("token:ci", &[1]).ending(EndReason::Revoked);
        let done = operation(&revoked.lease(), What::Draining, true).unwrap();
        assert_eq!(done.what, "revoke-lease");
        assert_eq!(done.detail["reason"], "REVOKED");
        assert_eq!(done.detail["detail"], "needed elsewhere");
        assert_eq!(done.detail["mode"], "now");
        assert_eq!(done.detail["epoch"], 7);
        assert_eq!(done.detail["devices"][0], "00008110-0000000000000001");
    }
}
