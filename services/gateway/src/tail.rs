//! `TailCommands`: the ledger's events as a stream.
//!
//! ```text
//!   READING ── a page ──► TELLING ── nothing left of it ──► READING
//!      │                                                       ▲
//!      └── no more ──► heartbeat, once ──► WAITING ── recorded ─┤
//!                                             │ └── heartbeat ──┘
//!                                             └── stop ──► UNAVAILABLE
//! ```
//!
//! A page is read when the reader has taken the one before it, so that a slow
//! reader costs one page of memory and no connection to the database, however
//! slow it is. Where retention has overtaken it, it is told of the gap.
//!
//! The reading itself is a task: the stream is polled only while its reader has
//! room, and a query that stood still in the middle would keep its connection.
//! A few readers who do not read would then be all that the ledger can serve.
//!
//! Who may not look at the whole fleet is told of what happened to phones that it
//! may look at, as their labels are by then. Of what was done otherwise, an
//! operator of the whole fleet is told, and everybody of what they did themselves.
//!
//! Invariant: events come in order, and of those that its reader may hear of
//! none is left out but behind a gap.

use std::time::{Duration, SystemTime};
use std::vec;

use fleetgate_identity::Role;
use fleetgate_ledger::{Cursor, Ledger, LedgerError, LedgerEvent, Subject};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::Udid;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::Instrument;

use crate::access::{Access, Caller, sees_everything};
use crate::convert::{event, timestamp};
use crate::deadline::Deadline;
use crate::status;

/// How many events are read at once.
const PAGE: u32 = 64;

/// The phone that a denied call was about, among its details.
const DEVICE: &str = "device";

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the oldest event that is kept.
    Oldest,
    /// After this one.
    After(Cursor),
    /// With the next.
    Now,
}

/// What a stream is made of.
#[derive(Debug)]
pub(crate) struct TailConfig {
    pub(crate) from: Start,
    /// Whether it ends with what is recorded by now.
    pub(crate) until_now: bool,
    pub(crate) heartbeat: Duration,
    pub(crate) reader: Reader,
    pub(crate) deadline: Deadline,
    /// Ends it, once all is told.
    pub(crate) stop: CancellationToken,
}

/// Who reads.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) access: Access,
    pub(crate) caller: Caller,
}

impl Reader {
    /// An event as it may hear of it, if it may.
    fn heard(&self, mut event: LedgerEvent) -> Option<LedgerEvent> {
        let Self { access, caller } = self;
        let sees = |device: &Udid| access.may_see(caller, device);
        let may_hear = match &mut event.subject {
            Subject::Command(row) => sees(&row.device),
            Subject::Transition(moved) => sees(&moved.device),
            Subject::Operation(operation) => {
                let udid = |text: &str| text.parse().ok();
                let device = operation.target.as_deref().and_then(udid);
                let about = operation.detail.get(DEVICE).and_then(Value::as_str);
                // What it was denied on a phone that is hidden from it was told as
                // if there were none: so is this.
                if about.and_then(udid).is_some_and(|device| !sees(&device)) {
                    operation.detail.remove(DEVICE);
                }
                caller.principal.fleet_wide() >= Some(Role::Operator)
                    || operation.who == caller.name()
                    || device.is_some_and(|device| sees(&device))
            }
            Subject::Ledger { .. } | Subject::Checkpoint(_) => sees_everything(caller),
        };
        may_hear.then_some(event)
    }
}

/// One reader of the ledger's events.
#[derive(Debug)]
struct Tail {
    reader: Reader,
    ledger: Ledger,
    head: watch::Receiver<u64>,
    cursor: Option<Cursor>,
    page: vec::IntoIter<LedgerEvent>,
    /// The look at the ledger that is under way, if one is.
    reading: JoinSet<Result<Found, LedgerError>>,
    /// The last event that is to be told.
    until: Option<u64>,
    heartbeat: Duration,
    stop: CancellationToken,
    /// All that was recorded when it began has been told.
    caught_up: bool,
    /// When something was told last.
    told: Instant,
}

/// What a look at the ledger finds.
#[derive(Debug)]
enum Found {
    /// What comes next, if anything does.
    Events(Vec<LedgerEvent>),
    /// That it is not kept any more.
    Gap {
        /// Where to go on.
        resume: Cursor,
        /// What may be missing.
        pruned_through: Option<SystemTime>,
    },
}

/// Why a stream ends.
#[derive(Debug)]
enum End {
    /// All that was asked for has been told.
    Complete,
    /// It cannot go on.
    Broken(Status),
}

impl From<LedgerError> for End {
    fn from(error: LedgerError) -> Self {
        Self::Broken(status::ledger(&error))
    }
}

/// The events, as messages.
pub(crate) async fn tail(
    ledger: Ledger,
    config: TailConfig,
) -> Result<impl Stream<Item = Result<pb::TailCommandsResponse, Status>> + Send, Status> {
    let TailConfig {
        from,
        until_now,
        heartbeat,
        reader,
        deadline,
        stop,
    } = config;
    let head = ledger.watch();
    let now = deadline
        .bound(async { ledger.now().await.map_err(|error| status::ledger(&error)) })
        .await?;
    let tail = Tail {
        reader,
        told: Instant::now(),
        cursor: match from {
            Start::Oldest => None,
            Start::After(cursor) => Some(cursor),
            Start::Now => now,
        },
        until: until_now.then(|| now.map_or(0, |now| seq(now.head().seq))),
        page: Vec::new().into_iter(),
        reading: JoinSet::new(),
        ledger,
        head,
        heartbeat,
        stop,
        caught_up: false,
    };
    Ok(unfold(Some(tail), move |tail| async move {
        let mut tail = tail?;
        match deadline.wait(tail.next()).await {
            Ok(Ok(message)) => {
                tail.told = Instant::now();
                Some((Ok(message), Some(tail)))
            }
            Ok(Err(End::Complete)) => None,
            Ok(Err(End::Broken(status))) => Some((Err(status), None)),
            Err(_passed) => Some((Err(status::deadline_exceeded()), None)),
        }
    }))
}

impl Tail {
    async fn next(&mut self) -> Result<pb::TailCommandsResponse, End> {
        loop {
            // Others have a turn, however many events are left out.
            consume_budget().await;
            if let Some(next) = self.page.next() {
                if self.until.is_some_and(|until| seq(next.seq) > until) {
                    return Err(End::Complete);
                }
                self.cursor = Some(next.cursor);
                if let Some(heard) = self.reader.heard(next) {
                    return Ok(self.message(Item::Event(event(heard))));
                }
                if self.told + self.heartbeat <= Instant::now() {
                    return Ok(self.beat());
                }
                continue;
            }
            // Before the look, so that no change after it is missed.
            self.head.mark_unchanged();
            match self.look().await? {
                Found::Events(events) if !events.is_empty() => self.page = events.into_iter(),
                Found::Events(_nothing_new) if self.until.is_some() => return Err(End::Complete),
                Found::Events(_nothing_new) if !self.caught_up => {
                    self.caught_up = true;
                    return Ok(self.beat());
                }
                Found::Events(_nothing_new) => {
                    if let Some(beat) = self.wait().await? {
                        return Ok(beat);
                    }
                }
                Found::Gap {
                    resume,
                    pruned_through,
                } => {
                    self.cursor = Some(resume);
                    return Ok(self.message(Item::Gap(pb::Gap {
                        pruned_through: pruned_through.map(timestamp),
                    })));
                }
            }
        }
    }

    /// Reads on, to the end of the page whether the stream is polled or not.
    async fn look(&mut self) -> Result<Found, LedgerError> {
        let look = look(self.ledger.clone(), self.cursor);
        self.reading.spawn(look.in_current_span());
        match self.reading.join_next().await {
            Some(Ok(found)) => found,
            // Its panic has been reported.
            Some(Err(_)) | None => Err(LedgerError::Interrupted),
        }
    }

    /// Waits for something to be recorded; gives a heartbeat if that takes
    /// long.
    async fn wait(&mut self) -> Result<Option<pb::TailCommandsResponse>, End> {
        tokio::select! {
            biased;
            changed = self.head.changed() => match changed {
                Ok(()) => Ok(None),
                Err(_closed) => Err(End::Broken(status::stream_draining())),
            },
            () = self.stop.cancelled() => Err(End::Broken(status::stream_draining())),
            () = sleep_until(self.told + self.heartbeat) => Ok(Some(self.beat())),
        }
    }

    fn beat(&self) -> pb::TailCommandsResponse {
        self.message(Item::Heartbeat(pb::Heartbeat {
            time: Some(timestamp(SystemTime::now())),
        }))
    }

    fn message(&self, item: Item) -> pb::TailCommandsResponse {
        pb::TailCommandsResponse {
            cursor: self
                .cursor
                .map(|cursor| cursor.to_string())
                .unwrap_or_default(),
            item: Some(item),
        }
    }
}

async fn look(ledger: Ledger, after: Option<Cursor>) -> Result<Found, LedgerError> {
    match ledger.tail(after, PAGE).await {
        Ok(page) => Ok(Found::Events(page.events)),
        Err(LedgerError::CursorGap { resume }) => Ok(Found::Gap {
            resume,
            pruned_through: ledger.pruned_through().await?,
        }),
        Err(error) => Err(error),
    }
}

/// Links are numbered from 1.
fn seq(seq: i64) -> u64 {
    u64::try_from(seq).unwrap_or_default()
}
