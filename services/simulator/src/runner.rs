//! One runner process of a phone: what it takes, what it remembers, and how it
//! answers.
//!
//! ```text
//!   connection ──▶ framing ──▶ status ───────────────────────────▶ reply
//!                  400, 413       │ anything else
//!                                 ▼
//!                  in flight already? ──yes──▶ share its outcome ─▶ reply
//!                                 │ no: journal `accepted`
//!                                 ▼
//!                  serial queue ─▶ gate ─▶ execution ─▶ journal ─▶ reply
//!                                  busy,     within
//!                                  wedged    its budget
//! ```
//!
//! Owns the journal, the gate, the counters and the queue's entrance. The queue
//! is worked off in [`worker`], commands do what they do in [`execute`], bytes
//! come and go in [`connection`]. What a runner does to the screen is the
//! phone's to keep.
//!
//! Invariant: an id is in flight at most once, and whoever sends it again
//! meanwhile gets the same outcome.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use fleetgate_runner::{Command, CommandId, CommandKind, RunnerError, RunnerState, RunnerStatus};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::gate::{Gate, Verdict};
use crate::journal::Journal;
use crate::launch::{Ending, Launch, words};
use crate::phone::core::{InFlight, InHand, PhoneCore};
use crate::report::RunnerReport;
use crate::sync::lock;

pub(crate) mod connection;
mod execute;
pub(crate) mod worker;

/// How many commands may wait; far more than any client sends.
const QUEUE: usize = 1024;

/// A runner process.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The port that it listens on.
    pub(crate) port: u16,
    /// Cancelled when it ends, with everything that it was doing.
    pub(crate) stop: CancellationToken,
    boot: Boot,
    launch: Option<Arc<Launch>>,
    ending: OnceLock<Ending>,
    queue: mpsc::Sender<Job>,
    book: Mutex<Book>,
    /// Its own alone: one that was killed may have commands in hand for a
    /// moment after the next is up.
    in_hand: InHand,
}

/// When a runner started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boot {
    seen: Instant,
    uptime: Duration,
}

impl Boot {
    /// A runner that has been up for so long on the phone's clock.
    pub(crate) fn after(uptime: Duration) -> Self {
        Self {
            seen: Instant::now(),
            uptime,
        }
    }
}

/// What a runner remembers.
#[derive(Debug, Default)]
struct Book {
    journal: Journal,
    gate: Gate,
    in_flight: HashMap<CommandId, Pending>,
    suppressed: u64,
    recorded: u64,
}

/// What became of a command, for everyone who waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    status: u16,
    body: Bytes,
    /// Whether it passed the gate, and so whether faults of the reply can
    /// befall it.
    ran: bool,
}

/// An outcome to come; its sender vanishes without one when the runner ends.
type Pending = watch::Receiver<Option<Outcome>>;

/// What a request asks of the queue.
#[derive(Debug)]
pub(crate) enum Task {
    /// Execute this.
    Run(Command),
    /// Answer this when its turn comes: the request is well-typed and lacks
    /// what its command needs.
    Refuse(CommandKind, RunnerError),
}

impl Task {
    fn kind(&self) -> CommandKind {
        match self {
            Self::Run(command) => command.kind(),
            Self::Refuse(kind, _) => *kind,
        }
    }
}

/// One entry of the queue.
#[derive(Debug)]
pub(crate) struct Job {
    id: Option<CommandId>,
    task: Task,
    outcome: watch::Sender<Option<Outcome>>,
    in_flight: InFlight,
}

impl Runner {
    /// A runner and the far end of its queue.
    pub(crate) fn new(
        port: u16,
        boot: Boot,
        stop: CancellationToken,
        launch: Option<Arc<Launch>>,
    ) -> (Self, mpsc::Receiver<Job>) {
        let (queue, jobs) = mpsc::channel(QUEUE);
        (
            Self {
                port,
                stop,
                boot,
                launch,
                ending: OnceLock::new(),
                queue,
                book: Mutex::default(),
                in_hand: InHand::default(),
            },
            jobs,
        )
    }

    /// The launch that it belongs to, if it was launched.
    pub(crate) fn launch(&self) -> Option<Arc<Launch>> {
        self.launch.clone()
    }

    pub(crate) fn is_of(&self, launch: &Arc<Launch>) -> bool {
        let its = self.launch.as_ref();
        its.is_some_and(|its| Arc::ptr_eq(its, launch))
    }

    /// Ends it, with everything that it was doing, unless it has ended before.
    pub(crate) fn end(&self, ending: Ending) {
        self.ending.get_or_init(|| ending);
        self.stop.cancel();
    }

    /// How many commands it has in hand.
    fn in_hand(&self) -> usize {
        self.in_hand.get()
    }

    /// How it ended.
    pub(crate) fn ending(&self) -> Ending {
        *self.ending.get_or_init(|| Ending::Killed)
    }

    /// Logs a line, if anybody reads it.
    fn log(&self, line: impl FnOnce() -> String) {
        if let Some(launch) = &self.launch {
            launch.log(line());
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Takes a command into the queue, or attaches to it if its id is in
    /// flight. `None` if the runner is ending.
    async fn submit(
        &self,
        phone: &Arc<PhoneCore>,
        id: Option<CommandId>,
        task: Task,
    ) -> Option<Pending> {
        // The place is reserved first, so that the order of the queue is that
        // of the journal.
        let place = self.queue.reserve().await.ok()?;
        let kind = task.kind();
        let (outcome, pending) = watch::channel(None);
        let running = {
            let mut book = self.book();
            let running = id.as_ref().and_then(|id| book.in_flight.get(id).cloned());
            if running.is_some() {
                self.log(|| words::coalesced(id.as_ref()));
            } else {
                if let Some(id) = &id {
                    book.journal.accept(id, kind);
                    book.in_flight.insert(id.clone(), pending.clone());
                }
                // Before the worker can have finished it.
                self.log(|| words::accepted(kind, id.as_ref()));
                place.send(Job {
                    id,
                    task,
                    outcome,
                    in_flight: InFlight::count(phone, &self.in_hand),
                });
            }
            running
        };
        if running.is_some() {
            phone.change(|state| state.coalesced += 1);
        }
        Some(running.unwrap_or(pending))
    }

    /// What the gate says now.
    fn verdict(&self, clock: &Clock) -> Verdict {
        self.book()
            .gate
            .verdict(Instant::now(), clock.budgets().wedge_threshold())
    }

    /// What `status` answers.
    fn status(&self, clock: &Clock) -> RunnerStatus {
        let state = match self.verdict(clock) {
            Verdict::Open => RunnerState::Idle,
            Verdict::Busy(_) => RunnerState::Busy,
            Verdict::Wedged(_) => RunnerState::Wedged,
        };
        let book = self.book();
        RunnerStatus {
            uptime: self.uptime(clock),
            state,
            suppressed_issues: book.suppressed,
            recorded_failures: book.recorded,
        }
    }

    fn uptime(&self, clock: &Clock) -> Duration {
        self.boot.uptime.saturating_add(clock.since(self.boot.seen))
    }

    /// Forgets an id, as 64 newer ones would make it.
    pub(crate) fn evict(&self, id: &CommandId) {
        self.book().journal.evict(id);
    }

    /// Sets what it has counted, as far as it is told to.
    pub(crate) fn set_counters(&self, suppressed: Option<u64>, recorded: Option<u64>) {
        let mut book = self.book();
        book.suppressed = suppressed.unwrap_or(book.suppressed);
        book.recorded = recorded.unwrap_or(book.recorded);
    }

    /// What can be seen of it from outside.
    pub(crate) fn report(&self, clock: &Clock) -> RunnerReport {
        let RunnerStatus {
            uptime,
            state,
            suppressed_issues,
            recorded_failures,
        } = self.status(clock);
        RunnerReport {
            port: self.port,
            launch: self.launch.as_ref().map(|launch| launch.id),
            state,
            uptime,
            suppressed_issues,
            recorded_failures,
        }
    }
}
