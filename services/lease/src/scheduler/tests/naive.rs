//! The same rules, written the simple way: one list of leases, in which
//! everything is looked for each time, and nothing is kept that can be computed.

use std::collections::BTreeSet;

use fleetgate_runner::Udid;

use super::support::*;
use crate::*;

#[derive(Debug)]
struct Phone {
    view: DeviceView,
    last: u64,
}

/// A lease, in the order in which they were made.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) asked: NewLease,
    pub(super) state: LeaseState,
    pub(super) reason: Option<EndReason>,
    pub(super) epoch: u64,
    /// Its phones, and whether they are known to be idle.
    pub(super) phones: Vec<(Udid, bool)>,
    /// Its phones when it was granted.
    pub(super) granted: BTreeSet<Udid>,
    /// When it came, when it began to wait, was granted and renewed.
    turn: u64,
    queued: LeaseTime,
    from: LeaseTime,
    renewed: LeaseTime,
    /// Its phones are open to it, so that its time runs.
    opened: bool,
    /// It has ended in this step or the one before.
    fresh: bool,
}

impl Row {
    /// When it ends by itself and why.
    pub(super) fn end(&self) -> Option<(LeaseTime, EndReason)> {
        let terms = self.asked.terms;
        if self.state == LeaseState::Queued && terms.queue_timeout > secs(0) {
            let end = self.queued.saturating_add(terms.queue_timeout);
            return Some((end, EndReason::QueueTimeout));
        }
        let latest = self.from.saturating_add(terms.max_duration);
        let ttl = self.renewed.saturating_add(terms.ttl);
        let ends = [
            (latest, EndReason::MaxDuration),
            (ttl, EndReason::TtlExpired),
        ];
        let active = ends
            .into_iter()
            .filter(|_| self.state == LeaseState::Active && self.opened);
        active.min_by_key(|(at, _)| *at)
    }

    fn begin(&self) -> Option<LeaseTime> {
        let begin = self.asked.begin.map(|begin| begin.at);
        begin.filter(|_| self.state == LeaseState::Scheduled)
    }
}

#[derive(Debug, Default)]
pub(super) struct Naive {
    phones: Vec<Phone>,
    pub(super) rows: Vec<Row>,
    epochs: u64,
    turns: u64,
}

impl Naive {
    /// The ids of those that wait, in order.
    pub(super) fn queue(&self) -> Vec<usize> {
        let all = 0..self.rows.len();
        let mut queue: Vec<_> = all
            .filter(|at| self.rows[*at].state == LeaseState::Queued)
            .collect();
        queue.sort_by_key(|at| (-self.rows[*at].asked.priority.0, self.rows[*at].turn));
        queue
    }

    fn find(&self, id: &LeaseId) -> Option<usize> {
        let mut rows = self.rows.iter();
        rows.position(|row| row.asked.id == *id && (row.state.is_open() || row.fresh))
    }

    fn holder(&self, udid: &Udid) -> Option<usize> {
        let has = |row: &Row| row.phones.iter().any(|(phone, _)| phone == udid);
        self.rows.iter().position(has)
    }

    fn is_in_service(&self, udid: &Udid) -> bool {
        let phone = self.phones.iter().find(|phone| phone.view.udid == *udid);
        phone.is_some_and(|phone| phone.view.service == Service::InService)
    }

    pub(super) fn step(&mut self, input: &Input, now: LeaseTime) -> Result<(), Refused> {
        self.refuse(input, now)?;
        for row in &mut self.rows {
            row.fresh = false;
        }
        if let Input::Devices(views) = input {
            self.see(views);
        }
        // Nobody asked, whatever comes up now.
        let is_idle = |at: usize, device: &Udid| {
            let row: &Row = &self.rows[at];
            let idle = (device.clone(), true);
            row.state == LeaseState::Active || row.phones.contains(&idle)
        };
        let mut unasked = false;
        if let Input::Idle { device } = input {
            unasked = self.holder(device).is_none_or(|at| is_idle(at, device));
        }
        self.pass(now);
        if !unasked {
            self.take(input, now);
        }
        self.pass(now);
        for at in 0..self.rows.len() {
            let row = &mut self.rows[at];
            if row.state == LeaseState::Draining && row.phones.iter().all(|(_, idle)| *idle) {
                self.over(at);
            }
        }
        self.give_out();
        for at in self.queue() {
            let row = &self.rows[at];
            if row.phones.is_empty() && row.asked.terms.queue_timeout == secs(0) {
                self.finish(at, EndReason::QueueTimeout);
            }
        }
        Ok(())
    }

    fn refuse(&self, input: &Input, now: LeaseTime) -> Result<(), Refused> {
        let (Input::Renew { id } | Input::Update { id, .. } | Input::End { id, .. }) = input else {
            return Ok(());
        };
        let row = &self.rows[self.find(id).ok_or(Refused::NotFound)?];
        if let Input::End { .. } = input {
            return Ok(());
        }
        let due = row.end().filter(|(at, _)| *at <= now);
        if let Some(reason) = row.reason.or(due.map(|(_, reason)| reason)) {
            return Err(Refused::Ended(reason));
        }
        let is_active = row.state == LeaseState::Active;
        if let Input::Update { change, .. } = input
            && change.priority.is_some()
            && is_active
        {
            return Err(Refused::NotWaiting);
        }
        Ok(())
    }

    fn see(&mut self, views: &[DeviceView]) {
        for view in views {
            match self
                .phones
                .iter_mut()
                .find(|phone| phone.view.udid == view.udid)
            {
                Some(phone) => phone.view = view.clone(),
                None => self.phones.push(Phone {
                    view: view.clone(),
                    last: 0,
                }),
            }
            // Gone, if only for a moment.
            if view.service != Service::InService {
                self.drop_kept(&view.udid);
            }
        }
        for at in self.queue() {
            let wish = self.rows[at].asked.clone();
            let matching = self.matching(&wish);
            let phones = self.rows[at].phones.iter();
            if phones.clone().any(|(udid, _)| !matching.contains(udid)) {
                self.rows[at].phones.clear();
            }
        }
    }

    fn drop_kept(&mut self, udid: &Udid) {
        if let Some(at) = self.holder(udid)
            && self.rows[at].state == LeaseState::Queued
        {
            self.rows[at].phones.clear();
        }
    }

    /// Everything that is due, the earliest first.
    fn pass(&mut self, now: LeaseTime) {
        loop {
            let due = (0..self.rows.len()).filter_map(|at| {
                let row = &self.rows[at];
                let due = row.begin().or(row.end().map(|(end, _)| end))?;
                (due <= now).then_some((due, row.turn, at))
            });
            let Some((_, _, at)) = due.min() else {
                return;
            };
            if self.rows[at].begin().is_some() {
                self.turns += 1;
                self.rows[at].turn = self.turns;
                self.queue_up(at, now);
            } else {
                let reason = self.rows[at].end().unwrap().1;
                self.finish(at, reason);
            }
        }
    }

    fn take(&mut self, input: &Input, now: LeaseTime) {
        match input {
            Input::Create(wish) => {
                self.turns += 1;
                self.rows.push(Row {
                    asked: wish.clone(),
                    state: LeaseState::Scheduled,
                    reason: None,
                    epoch: 0,
                    phones: Vec::new(),
                    granted: BTreeSet::new(),
                    turn: self.turns,
                    queued: now,
                    from: now,
                    renewed: now,
                    opened: false,
                    fresh: false,
                });
                if wish.begin.is_none_or(|begin| begin.at <= now) {
                    self.queue_up(self.rows.len() - 1, now);
                }
            }
            Input::Renew { id } => {
                let at = self.find(id).unwrap();
                self.rows[at].renewed = now;
            }
            Input::Update { id, change } => {
                let at = self.find(id).unwrap();
                if change.ttl.is_some() {
                    self.rows[at].renewed = now;
                }
                let asked = &mut self.rows[at].asked;
                asked.terms.ttl = change.ttl.unwrap_or(asked.terms.ttl);
                asked.terms.max_duration = change.max_duration.unwrap_or(asked.terms.max_duration);
                asked.priority = change.priority.unwrap_or(asked.priority);
                for key in &change.remove_labels {
                    asked.labels.remove(key);
                }
                asked.labels.extend(change.set_labels.clone());
            }
            Input::End { id, how, .. } => {
                // Not if it was over before.
                if let Some(at) = self.find(id) {
                    let row = &self.rows[at];
                    let waits = matches!(row.state, LeaseState::Scheduled | LeaseState::Queued);
                    let is_given_back = *how == EndReason::Released && waits;
                    self.finish(
                        at,
                        if is_given_back {
                            EndReason::Cancelled
                        } else {
                            *how
                        },
                    );
                }
            }
            Input::Idle { device } => self.idle(device),
            Input::Opened { id } => {
                let at = self.find(id);
                let row = at.map(|at| &mut self.rows[at]);
                if let Some(row) = row.filter(|row| row.state == LeaseState::Active && !row.opened)
                {
                    row.opened = true;
                    (row.from, row.renewed) = (now, now);
                }
            }
            Input::Devices(_) | Input::Tick => {}
        }
    }

    fn queue_up(&mut self, at: usize, now: LeaseTime) {
        let row = &mut self.rows[at];
        row.state = LeaseState::Queued;
        row.queued = now;
        let wish = row.asked.clone();
        if self.matching(&wish).len() < wish.wants.count() {
            self.finish(at, EndReason::Unsatisfiable);
        }
    }

    fn idle(&mut self, device: &Udid) {
        let Some(at) = self.holder(device) else {
            return;
        };
        let row = &mut self.rows[at];
        for (udid, idle) in &mut row.phones {
            *idle |= udid == device;
        }
        if row.state == LeaseState::Queued && row.phones.iter().all(|(_, idle)| *idle) {
            self.epochs += 1;
            row.state = LeaseState::Active;
            row.epoch = self.epochs;
            row.granted = row.phones.iter().map(|(udid, _)| udid.clone()).collect();
            for phone in &mut self.phones {
                if row.granted.contains(&phone.view.udid) {
                    phone.last = self.epochs;
                }
            }
        }
    }

    fn finish(&mut self, at: usize, reason: EndReason) {
        let row = &mut self.rows[at];
        if row.reason.is_some() {
            return;
        }
        row.reason = Some(reason);
        if row.state == LeaseState::Active {
            row.state = LeaseState::Draining;
            for (_, idle) in &mut row.phones {
                *idle = false;
            }
        } else {
            self.over(at);
        }
    }

    fn over(&mut self, at: usize) {
        let row = &mut self.rows[at];
        row.state = row.reason.unwrap().state();
        row.phones.clear();
        row.fresh = true;
    }

    /// The phones that match, the least recently granted first.
    fn matching(&self, wish: &NewLease) -> Vec<Udid> {
        let phones = self.phones.iter();
        let mut phones: Vec<_> = phones.filter(|phone| wish.matches(&phone.view)).collect();
        phones.sort_by_key(|phone| (phone.last, phone.view.udid.clone()));
        phones.iter().map(|phone| phone.view.udid.clone()).collect()
    }

    fn give_out(&mut self) {
        let mut kept_back = BTreeSet::new();
        for at in self.queue() {
            if !self.rows[at].phones.is_empty() {
                continue;
            }
            let wish = self.rows[at].asked.clone();
            let mut matching = self.matching(&wish);
            matching.retain(|udid| self.is_in_service(udid));
            let enough_some_day = matching.len() >= wish.wants.count();
            let is_free = |udid: &Udid| !kept_back.contains(udid) && self.holder(udid).is_none();
            matching.retain(is_free);
            if matching.len() >= wish.wants.count() {
                matching.truncate(wish.wants.count());
                let phones = matching.into_iter().map(|udid| (udid, false));
                self.rows[at].phones = phones.collect();
            } else if enough_some_day && self.rows[at].asked.terms.queue_timeout > secs(0) {
                kept_back.extend(matching);
            }
        }
    }
}
