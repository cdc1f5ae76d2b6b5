//! The broker: the one task that owns the scheduler, tells it what happens, and
//! does what it wants done.
//!
//! ```text
//!   callers ──────────► asks ─┐              ┌─► gate: close, at once
//!   the fleet's feed ─► views ┼─► SCHEDULER ─┤
//!   the gate ─────────► idle ─┤     acts     └─► outbox ─► ledger ─┐
//!   the lease clock ──► ticks ┘                                    │ on record
//!                             gate: open, free ◄── board, answers ◄┘
//! ```
//!
//! It never waits for the ledger: time goes on while a write is under way, and
//! what ends takes its phones from it at once. What the ledger refuses is offered
//! again until it is taken, in order, but for new leases, which are taken back:
//! their callers are told, and nobody else has heard of them.
//!
//! Invariants: nobody is told of a change, and no phone is handed out, before it
//! is on record; phones are taken away whether it can be recorded or not.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use fleetgate_lease::{Input, LeaseId, Scheduler};
use fleetgate_ledger::Ledger;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_runner::Udid;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

mod acts;
mod ask;
mod asks;
mod outbox;
mod spoilt;
#[cfg(test)]
mod tests;
mod writing;

pub(super) use ask::{Ask, Reply};
pub(crate) use ask::{Explained, LeaseError, Order};

use super::board::Board;
use super::clock::LeaseClock;
use super::gate::{Gate, Mark};
use super::loading::Loaded;
use super::meters::Meters;
use super::rows::Origin;
use super::views::view;
use crate::feed::{Cursor, Feed, Followed};
use crate::fleet::Fleet;
use outbox::Batch;
use writing::{Failing, UnderWay};

/// How many events of the fleet are looked at together.
const EVENTS: usize = 256;

/// How many callers are heard before what they want is written.
const CALLERS: usize = 64;

/// How often the clock is put on record while a lease is open.
const BEAT: Duration = Duration::from_secs(5);

/// How many requests are remembered whose leases have ended, for callers who
/// looked at the ledger just before.
const RECENT: usize = 1024;

/// Whose request, and what its owner calls it.
pub(super) type Request = (String, String);

/// What a broker needs of the rest of the gateway.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) ledger: Ledger,
    pub(super) fleet: Fleet,
    pub(super) feed: Feed,
    pub(super) meters: Meters,
    /// How many leases one owner may have open.
    pub(super) max_open: usize,
}

/// The task's own.
pub(super) struct Broker {
    around: Surroundings,
    gate: Gate,
    board: Board,
    clock: LeaseClock,
    asks: mpsc::Receiver<Ask>,
    stop: CancellationToken,

    scheduler: Scheduler,
    /// What is kept of the leases that are open.
    origins: HashMap<LeaseId, Origin>,
    requests: HashMap<Request, LeaseId>,
    recent: VecDeque<Request>,
    /// Leases that are being taken back: they were never on record.
    void: HashSet<LeaseId>,
    /// Leases that may be on record, although their callers were told that they
    /// could not be put there: they end when it is clear that they are, unless
    /// their request comes again before.
    orphans: HashSet<LeaseId>,

    /// The phones of which the scheduler wants to know when they are idle.
    questions: HashMap<Udid, Mark>,
    busy: FuturesUnordered<BoxFuture<'static, (Udid, Mark)>>,
    /// Those that one of these waits for; one is enough for each.
    awaited: HashSet<Udid>,
    idle: VecDeque<(Udid, Mark)>,

    /// What was heard of the fleet so far.
    cursor: Cursor,
    head: watch::Receiver<u64>,
    views: HashMap<Udid, fleetgate_lease::DeviceView>,

    gathered: Batch,
    /// The leases that are written each by itself, since one of them is wrong.
    alone: VecDeque<LeaseId>,
    under_way: Option<UnderWay>,
    failing: Option<Failing>,
    /// When the ledger was told of the clock last.
    told: Instant,
    /// Somebody's place in the line may be another.
    has_moved: bool,
    /// The lease that ends together with what is under way on its phones.
    by_force: Option<LeaseId>,
}

impl Broker {
    /// Goes on with what was open. When this returns every phone is where its
    /// lease has it.
    pub(super) fn new(
        loaded: Loaded,
        around: Surroundings,
        asks: mpsc::Receiver<Ask>,
        stop: CancellationToken,
    ) -> Self {
        let Loaded {
            gate,
            board,
            open,
            last_epoch,
            origins,
        } = loaded;
        let clock = gate.clock();
        let next = last_epoch.saturating_add(1);
        let (scheduler, acts) = Scheduler::resume(open, next, clock.now());
        let request = |(id, origin): (&LeaseId, &Origin)| {
            let owner = scheduler.lease(id)?.owner().to_owned();
            Some(((owner, origin.request_id.clone()?), id.clone()))
        };
        let requests = origins.iter().filter_map(request).collect();
        let (cursor, head) = (around.feed.now(), around.feed.head());
        let mut broker = Self {
            around,
            gate,
            board,
            clock,
            asks,
            stop,
            scheduler,
            origins,
            requests,
            recent: VecDeque::new(),
            void: HashSet::new(),
            orphans: HashSet::new(),
            questions: HashMap::new(),
            busy: FuturesUnordered::new(),
            awaited: HashSet::new(),
            idle: VecDeque::new(),
            cursor,
            head,
            views: HashMap::new(),
            gathered: Batch::default(),
            alone: VecDeque::new(),
            under_way: None,
            failing: None,
            told: Instant::now(),
            has_moved: true,
            by_force: None,
        };
        broker.carry_out(acts);
        broker.flush();
        broker.survey();
        broker
    }

    /// Works until it is stopped.
    pub(super) async fn run(mut self) {
        let mut asked = Vec::with_capacity(CALLERS);
        loop {
            self.flush();
            self.line_up();
            let due = self.due();
            tokio::select! {
                () = self.stop.cancelled() => break,
                Some(written) = OptionFuture::from(self.under_way.as_mut().map(UnderWay::end)) => {
                    self.written(written);
                }
                Some((device, mark)) = self.busy.next() => self.is_idle(device, mark),
                Ok(()) = self.head.changed() => self.follow(),
                count = self.asks.recv_many(&mut asked, CALLERS) => {
                    if count == 0 {
                        break;
                    }
                    // What they go by is no older than what they know.
                    self.follow();
                    for ask in asked.drain(..) {
                        self.hear(ask);
                    }
                }
                Some(()) = OptionFuture::from(due.map(sleep_until)) => self.tick(),
            }
        }
        self.finish().await;
    }

    /// When there is something to do that nobody tells of.
    fn due(&self) -> Option<Instant> {
        let timer = self.scheduler.next_timer();
        let timer = timer.map(|at| self.clock.instant(at));
        let write = match &self.failing {
            _ if self.under_way.is_some() => None,
            Some(failing) if failing.is_pausing() => Some(failing.until),
            Some(_) | None => self.has_open().then(|| self.told + BEAT),
        };
        timer.into_iter().chain(write).min()
    }

    fn has_open(&self) -> bool {
        self.scheduler.open().next().is_some()
    }

    /// Time has passed.
    fn tick(&mut self) {
        let now = self.clock.now();
        if self.scheduler.next_timer().is_some_and(|due| due <= now) {
            self.step(Input::Tick).ok();
        }
    }

    /// Takes in every phone as it is now.
    fn survey(&mut self) {
        // Before the look, so that no change after it is missed.
        self.cursor = self.around.feed.now();
        let devices = self.around.fleet.devices(None, usize::MAX);
        self.see(devices.iter());
    }

    /// Takes in the phones that nothing was heard of yet.
    fn look_for_new(&mut self) {
        let is_new = |udid: &Udid| !self.views.contains_key(udid);
        let devices = self.around.fleet.devices_that(is_new, None, usize::MAX);
        self.see(devices.iter());
    }

    /// Takes in what has happened to the fleet.
    fn follow(&mut self) {
        self.head.mark_unchanged();
        loop {
            let events = match self.around.feed.after(self.cursor, EVENTS) {
                Followed::Gap { .. } => return self.survey(),
                Followed::Events(events) => events,
            };
            let Some(last) = events.last() else {
                return;
            };
            self.cursor = self.around.feed.at(last.seq);
            let devices = events.iter().filter_map(|event| match &event.event {
                Some(Event::DeviceChanged(changed)) => changed.device.as_ref(),
                Some(Event::Alarm(_) | Event::Command(_) | Event::HostChanged(_)) | None => None,
            });
            self.see(devices);
        }
    }

    /// Tells the scheduler of those that are not what they were.
    fn see<'a>(&mut self, devices: impl Iterator<Item = &'a fleetgate_proto::v1::Device>) {
        let mut changed = HashMap::new();
        for view in devices.filter_map(view) {
            if self.views.get(&view.udid) != Some(&view) {
                self.views.insert(view.udid.clone(), view.clone());
                changed.insert(view.udid.clone(), view);
            }
        }
        if !changed.is_empty() {
            let changed = changed.into_values().collect();
            self.step(Input::Devices(changed)).ok();
        }
    }

    /// Tells everybody who waits how many are before.
    fn line_up(&mut self) {
        if std::mem::take(&mut self.has_moved) {
            let waiting = self.scheduler.waiting();
            self.board.line_up(waiting.map(fleetgate_lease::Lease::id));
        }
    }
}
