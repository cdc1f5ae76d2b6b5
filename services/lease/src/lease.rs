//! One lease: what was asked for and what has become of it.
//!
//! What is written down of a lease is this type, so that the scheduler can go on
//! with it after a restart. It knows its own deadlines; only the scheduler
//! changes it.
//!
//! Invariant: it has an epoch, phones and a time of its grant from the grant on,
//! and a reason for its end from the end on, also while it drains.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use fleetgate_runner::Udid;
use serde::{Deserialize, Serialize};

use crate::id::{Epoch, LeaseId, Priority};
use crate::state::{EndReason, LeaseState};
use crate::time::{self, LeaseTime};
use crate::wants::{DeviceView, Reach, Wants};

/// How long a lease lives and waits. Whole milliseconds count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// How long it lives after its phones were opened to it or it was last renewed.
    #[serde(with = "time::span", rename = "ttl_ms")]
    pub ttl: Duration,
    /// How long it lives after its phones were opened to it, however often it is
    /// renewed.
    #[serde(with = "time::span", rename = "max_duration_ms")]
    pub max_duration: Duration,
    /// How long it waits. With zero it is granted at once or not at all; that a
    /// command without a lease ends on a phone that is kept for it, it waits for.
    #[serde(with = "time::span", rename = "queue_timeout_ms")]
    pub queue_timeout: Duration,
}

/// When a lease begins to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// By the lease clock, which is what counts.
    #[serde(rename = "at_ms")]
    pub at: LeaseTime,
    /// By the wall clock, as it was asked for.
    #[serde(with = "time::wall", rename = "time_ms")]
    pub time: SystemTime,
}

/// A wish for phones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLease {
    /// Its id; no other lease has or had it.
    pub id: LeaseId,
    /// Whose it is.
    pub owner: String,
    /// Which phones.
    pub wants: Wants,
    /// Where its owner may have phones: of those that it wants, it gets none
    /// elsewhere.
    #[serde(default, skip_serializing_if = "Reach::is_everywhere")]
    pub reach: Reach,
    /// How urgent it is.
    pub priority: Priority,
    /// How long it lives and waits.
    pub terms: Terms,
    /// When it begins to wait; `None` for at once.
    pub begin: Option<Begin>,
    /// Whatever its owner wants to find it by.
    pub labels: BTreeMap<String, String>,
    /// What it is for; never changes.
    pub context: BTreeMap<String, String>,
    /// When it was made.
    #[serde(with = "time::wall", rename = "created_ms")]
    pub created: SystemTime,
}

impl NewLease {
    /// Whether a phone will do.
    pub fn matches(&self, phone: &DeviceView) -> bool {
        self.reach.covers(&phone.labels) && self.wants.matches(phone)
    }
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Why.
    pub reason: EndReason,
    /// More about that, in words.
    pub detail: Option<String>,
    /// Who ended it, if somebody did.
    pub by: Option<String>,
    /// When it ended for its owner.
    #[serde(with = "time::wall", rename = "time_ms")]
    pub time: SystemTime,
}

/// A grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    #[serde(rename = "at_ms")]
    pub(crate) at: LeaseTime,
    #[serde(with = "time::wall", rename = "time_ms")]
    pub(crate) time: SystemTime,
    /// When its phones were opened to it, from which on its time runs.
    #[serde(default, rename = "opened_ms")]
    pub(crate) opened: Option<LeaseTime>,
    /// When it was last renewed; first of all, when its time began to run.
    #[serde(rename = "renewed_ms")]
    pub(crate) renewed: LeaseTime,
    pub(crate) epoch: Epoch,
}

/// A lease. Its serde form is what the ledger keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub(crate) asked: NewLease,
    pub(crate) state: LeaseState,
    /// Its turn among those of its priority: of two that wait, the one with the
    /// lower number began to wait first.
    pub(crate) turn: u64,
    /// Since when it waits or has waited.
    #[serde(rename = "queued_ms")]
    pub(crate) queued: Option<LeaseTime>,
    pub(crate) grant: Option<Grant>,
    pub(crate) devices: BTreeSet<Udid>,
    pub(crate) end: Option<End>,
}

impl Lease {
    /// Its id.
    pub fn id(&self) -> &LeaseId {
        &self.asked.id
    }

    /// Where it is in its life.
    pub fn state(&self) -> LeaseState {
        self.state
    }

    /// Whose it is.
    pub fn owner(&self) -> &str {
        &self.asked.owner
    }

    /// Which phones it wants.
    pub fn wants(&self) -> &Wants {
        &self.asked.wants
    }

    /// How urgent it is.
    pub fn priority(&self) -> Priority {
        self.asked.priority
    }

    /// How long it lives and waits.
    pub fn terms(&self) -> Terms {
        self.asked.terms
    }

    /// When it begins to wait or began to, if not at once.
    pub fn begin(&self) -> Option<Begin> {
        self.asked.begin
    }

    /// Whatever its owner wants to find it by.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.asked.labels
    }

    /// What it is for.
    pub fn context(&self) -> &BTreeMap<String, String> {
        &self.asked.context
    }

    /// When it was made.
    pub fn created(&self) -> SystemTime {
        self.asked.created
    }

    /// The number of its grant, from then on.
    pub fn epoch(&self) -> Option<Epoch> {
        self.grant.map(|grant| grant.epoch)
    }

    /// The phones that it was granted.
    pub fn devices(&self) -> &BTreeSet<Udid> {
        &self.devices
    }

    /// When it was granted.
    pub fn granted(&self) -> Option<(LeaseTime, SystemTime)> {
        self.grant.map(|grant| (grant.at, grant.time))
    }

    /// When its phones were opened to it, once they were.
    pub fn opened(&self) -> Option<LeaseTime> {
        self.grant?.opened
    }

    /// How long it waited until it was granted.
    pub fn waited(&self) -> Option<Duration> {
        Some(self.grant?.at.since(self.queued?))
    }

    /// How it ended, from the end on, also while it drains.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// When it ends unless it is renewed, or stops to wait unless it is granted;
    /// `None` if no time is set to that.
    pub fn deadline(&self) -> Option<LeaseTime> {
        self.next_end().map(|(at, _)| at)
    }

    /// How it ends, if that is due and has not been done.
    pub fn due(&self, now: LeaseTime) -> Option<EndReason> {
        let due = self.next_end().filter(|(at, _)| *at <= now);
        due.map(|(_, reason)| reason)
    }

    /// When it ends however often it is renewed, while it is active.
    pub fn latest_end(&self) -> Option<LeaseTime> {
        let grant = self.grant.filter(|_| self.state == LeaseState::Active)?;
        Some(grant.opened?.saturating_add(self.asked.terms.max_duration))
    }

    /// When at most a third of its ttl is left to it, while it is active.
    pub fn expiring_at(&self) -> Option<LeaseTime> {
        self.latest_end()?;
        let third = self.asked.terms.ttl / 3;
        self.deadline().map(|end| end.saturating_sub(third))
    }

    /// Sets when it begins, by a lease clock that stood still for a while. Of no
    /// effect once it has begun.
    pub fn begin_at(&mut self, at: LeaseTime) {
        if let (LeaseState::Scheduled, Some(begin)) = (self.state, &mut self.asked.begin) {
            begin.at = at;
        }
    }

    /// Lets its time run from now on, if it is active and its time does not run
    /// yet. Whether it was.
    pub fn open_at(&mut self, now: LeaseTime) -> bool {
        match &mut self.grant {
            Some(grant) if self.state == LeaseState::Active && grant.opened.is_none() => {
                grant.opened = Some(now);
                grant.renewed = now;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Its deadline and what ends it then.
    pub(crate) fn next_end(&self) -> Option<(LeaseTime, EndReason)> {
        let terms = self.asked.terms;
        let waited = |since: LeaseTime| {
            let end = since.saturating_add(terms.queue_timeout);
            (end, EndReason::QueueTimeout)
        };
        match self.state {
            LeaseState::Scheduled => self.asked.begin.map(|begin| waited(begin.at)),
            // What is kept for it, it may wait for; without that it is gone.
            LeaseState::Queued if terms.queue_timeout.is_zero() => None,
            LeaseState::Queued => self.queued.map(waited),
            LeaseState::Active => self.grant.and_then(|grant| {
                let latest = grant.opened?.saturating_add(terms.max_duration);
                let ttl = grant.renewed.saturating_add(terms.ttl);
                // Of equal ones the one that no renewal could have put off.
                Some(if latest <= ttl {
                    (latest, EndReason::MaxDuration)
                } else {
                    (ttl, EndReason::TtlExpired)
                })
            }),
            LeaseState::Draining
            | LeaseState::Released
            | LeaseState::Expired
            | LeaseState::Revoked
            | LeaseState::Cancelled
            | LeaseState::Unsatisfiable => None,
        }
    }
}
