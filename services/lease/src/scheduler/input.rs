//! What is refused, and what becomes of what is not.
//!
//! Invariant: whatever is refused is refused before anything has changed.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Scheduler, Step, given_back, place};
use crate::act::{Change, Input, Refused, What};
use crate::fleet::Slot;
use crate::id::LeaseId;
use crate::lease::{End, Lease, NewLease, Terms};
use crate::state::{EndReason, LeaseState};
use crate::time::LeaseTime;
use crate::wants::DeviceView;

impl Scheduler {
    /// Whether an input is to be refused.
    pub(super) fn check(&self, input: &Input, now: LeaseTime) -> Result<(), Refused> {
        match input {
            Input::Create(wish) => self.check_wish(wish),
            Input::Renew { id } => self.check_alive(id, now).map(drop),
            Input::Update { id, change } => {
                let lease = self.check_alive(id, now)?;
                if change.ttl.is_some_and(is_nothing) || change.max_duration.is_some_and(is_nothing)
                {
                    return Err(NO_TIME);
                }
                if change.priority.is_some() && lease.state == LeaseState::Active {
                    return Err(Refused::NotWaiting);
                }
                Ok(())
            }
            Input::End { id, how, .. } => match how {
                EndReason::Released | EndReason::Cancelled | EndReason::Revoked => {
                    self.lease(id).map(drop).ok_or(Refused::NotFound)
                }
                EndReason::TtlExpired
                | EndReason::MaxDuration
                | EndReason::QueueTimeout
                | EndReason::Unsatisfiable => Err(Refused::Unusable(
                    "a lease is ended by being released or revoked",
                )),
            },
            Input::Devices(_) | Input::Idle { .. } | Input::Opened { .. } | Input::Tick => Ok(()),
        }
    }

    fn check_wish(&self, wish: &NewLease) -> Result<(), Refused> {
        if self.lease(&wish.id).is_some() {
            return Err(Refused::Unusable("there is a lease with this id already"));
        }
        if wish.wants.count() == 0 {
            return Err(Refused::Unusable("a lease wants at least one phone"));
        }
        if is_nothing(wish.terms.ttl) || is_nothing(wish.terms.max_duration) {
            return Err(NO_TIME);
        }
        Ok(())
    }

    /// A lease that has not ended for its owner, nor would if what is due was.
    fn check_alive(&self, id: &LeaseId, now: LeaseTime) -> Result<&Lease, Refused> {
        let lease = self.lease(id).ok_or(Refused::NotFound)?;
        if let Some(end) = &lease.end {
            return Err(Refused::Ended(end.reason));
        }
        // One that is scheduled begins to wait now, however late that is.
        if lease.state != LeaseState::Scheduled
            && let Some(reason) = lease.due(now)
        {
            return Err(Refused::Ended(reason));
        }
        Ok(lease)
    }

    /// Takes in what was not refused.
    pub(super) fn take_in(&mut self, input: Input, step: &mut Step) {
        match input {
            Input::Create(wish) => self.create(wish, step),
            Input::Renew { id } => self.renew(&id, step),
            Input::Update { id, change } => self.update(&id, change, step),
            Input::End {
                id,
                how,
                by,
                detail,
            } => self.end(&id, how, by, detail, step),
            Input::Devices(views) => self.see(views, step),
            Input::Idle { device } => {
                if let Some(number) = self.fleet.number(&device) {
                    self.note_idle(number, step);
                }
            }
            Input::Opened { id } => self.opened(&id, step),
            Input::Tick => {}
        }
    }

    fn create(&mut self, mut wish: NewLease, step: &mut Step) {
        wish.terms = whole(wish.terms);
        let begins_later = wish.begin.is_some_and(|begin| begin.at > step.now);
        let id = wish.id.clone();
        let state = if begins_later {
            LeaseState::Scheduled
        } else {
            LeaseState::Queued
        };
        let lease = Lease {
            asked: wish,
            state,
            turn: self.turn(),
            queued: (!begins_later).then_some(step.now),
            grant: None,
            devices: BTreeSet::new(),
            end: None,
        };
        step.changed(&lease, What::Created);
        self.admit(lease);
        self.rearm(&id);
        if !begins_later {
            self.queue(&id, step);
        }
    }

    fn opened(&mut self, id: &LeaseId, step: &mut Step) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        if entry.lease.open_at(step.now) {
            step.changed(&entry.lease, What::Opened);
            self.rearm(id);
        }
    }

    fn renew(&mut self, id: &LeaseId, step: &mut Step) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        // Nothing is to be kept of one that waits: it does for as long as it may.
        let Some(grant) = &mut entry.lease.grant else {
            return;
        };
        grant.renewed = step.now;
        step.changed(&entry.lease, What::Renewed);
        self.rearm(id);
    }

    fn update(&mut self, id: &LeaseId, change: Change, step: &mut Step) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        let before = entry.lease.clone();
        let place_before = place(&entry.lease);
        let asked = &mut entry.lease.asked;
        if let Some(ttl) = change.ttl {
            asked.terms.ttl = ttl;
            // Time that passed under another does not count against it.
            if let Some(grant) = &mut entry.lease.grant {
                grant.renewed = step.now;
            }
        }
        if let Some(longest) = change.max_duration {
            asked.terms.max_duration = longest;
        }
        asked.terms = whole(asked.terms);
        if let Some(priority) = change.priority {
            asked.priority = priority;
        }
        asked
            .labels
            .retain(|key, _| !change.remove_labels.contains(key));
        asked.labels.extend(change.set_labels);
        if entry.lease == before {
            return;
        }
        if let Some(id) = self.waiting.remove(&place_before) {
            self.waiting.insert(place(&entry.lease), id);
        }
        step.changed(&entry.lease, What::Updated);
        self.rearm(id);
    }

    fn end(
        &mut self,
        id: &LeaseId,
        how: EndReason,
        by: Option<String>,
        detail: Option<String>,
        step: &mut Step,
    ) {
        let Some(lease) = self.leases.get(id).map(|entry| &entry.lease) else {
            return;
        };
        let reason = if how == EndReason::Revoked {
            how
        } else {
            given_back(lease.state)
        };
        let time = step.wall;
        let end = End {
            reason,
            detail,
            by,
            time,
        };
        self.finish(id, end, step);
    }

    /// Takes in what phones are now.
    pub(super) fn see(&mut self, views: Vec<DeviceView>, step: &mut Step) {
        let mut facts = false;
        for view in views {
            let news = self.fleet.see(view);
            facts |= news.facts;
            if news.lost
                && let Slot::Reserved { lease, .. } = self.fleet.device(news.number).slot()
            {
                let lease = lease.clone();
                self.give_up(&lease, step);
            }
        }
        if facts {
            self.match_again(step);
        }
    }
}

const NO_TIME: Refused = Refused::Unusable("a lease lives for a millisecond at least");

fn is_nothing(span: Duration) -> bool {
    span < Duration::from_millis(1)
}

/// The terms as they are written down.
fn whole(terms: Terms) -> Terms {
    let whole = |span: Duration| LeaseTime::new(span).as_duration();
    Terms {
        ttl: whole(terms.ttl),
        max_duration: whole(terms.max_duration),
        queue_timeout: whole(terms.queue_timeout),
    }
}
