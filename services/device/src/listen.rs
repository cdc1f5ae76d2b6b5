//! The task that keeps one usbmuxd's table: one listening connection at a time,
//! made again whenever it ends.
//!
//! ```text
//!           +--------------- pause (jittered, growing, capped) <--------+
//!           v                                                          |
//!        dialling --Listen answered 0--> listening --EOF, bad frame----+
//!           |                             |     ^                      |
//!           |                    a number |     | event: table changes |
//!           |                   was denied|     +--+                   |
//!           |                             v                            |
//!           |<-------- no pause -------- done                          |
//!           +--failed or silent----------------------------------------+
//! ```
//!
//! Going from dialling to listening begins a generation; leaving listening takes
//! every phone out of routing, in the same step in which watchers learn of it.
//! What was known before a generation is kept until the generation has settled.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use fleetgate_usbmux::{Event, Packet, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::error::MuxError;
use crate::inventory::Inventory;
use crate::usbmuxd::Shared;

/// Why a listening connection was given up.
enum Ended {
    /// usbmuxd denied a number that this connection had announced.
    OutOfStep,
    /// The connection failed.
    Failed(MuxError),
}

/// The task's state.
///
/// Invariant: however the task ends, by its owner's hand or by a panic, no phone
/// is routed after it, since nobody would notice when the phone goes.
pub(crate) struct Listener {
    shared: Arc<Shared>,
    checks: mpsc::Receiver<Check>,
}

/// Somebody who wants to know when all that has arrived is taken in.
pub(crate) type Check = oneshot::Sender<()>;

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, checks: mpsc::Receiver<Check>) -> Self {
        Self { shared, checks }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let shared = &*shared;
        let config = &shared.config;
        let mut backoff = Backoff::new(config.backoff_initial, config.backoff_cap);
        let mut told = String::new();
        loop {
            let (began, ended) = match begin(shared).await {
                Ok(connection) => {
                    let ended = follow(shared, connection, &mut self.checks);
                    (Some(Instant::now()), ended.await)
                }
                Err(error) => (None, Ended::Failed(error)),
            };
            match ended {
                Ended::OutOfStep => {
                    tracing::info!("usbmuxd denied a number that it had announced: listening anew");
                    shared.update(|inventory| inventory.lose("resynchronising".to_owned()));
                }
                Ended::Failed(error) => {
                    let why = error.to_string();
                    // One that stays away is warned of once, not at each try.
                    if began.is_some() || why != told {
                        tracing::warn!(%error, "usbmuxd lost");
                    } else {
                        tracing::debug!(%error, "usbmuxd is still away");
                    }
                    shared.update(|inventory| inventory.lose(why.clone()));
                    told = why;
                    // A connection that ends as soon as it is made is no success.
                    if began.is_some_and(|began| began.elapsed() >= config.backoff_cap) {
                        backoff.reset();
                    }
                    sleep(backoff.pause()).await;
                }
            }
        }
    }
}

/// Makes a listening connection and begins its generation with all the phones
/// that were announced in the same breath.
async fn begin(shared: &Shared) -> Result<Connection, MuxError> {
    let open = timeout(shared.config.handshake, open(shared));
    let mut connection = open.await.map_err(|_| MuxError::Silent)??;
    let batch = Batch::arrived(&mut connection, None)?;
    shared.update(|inventory| {
        inventory.begin();
        batch.apply(inventory);
    });
    tracing::info!("listening to usbmuxd");
    Ok(connection)
}

async fn open(shared: &Shared) -> Result<Connection, MuxError> {
    let stream = shared.dialer.dial().await.map_err(MuxError::Dial)?;
    let mut connection = Connection::new(stream);
    connection
        .ask(&shared.config.client, &Request::Listen)
        .await?;
    Ok(connection)
}

/// Follows the events until there is a reason to listen anew, and tells those
/// who ask when all that has arrived by now has been taken in.
async fn follow(
    shared: &Shared,
    mut connection: Connection,
    checks: &mut mpsc::Receiver<Check>,
) -> Ended {
    let not_before = Instant::now() + shared.config.resync_interval;
    let mut out_of_step = pin!(async {
        sleep_until(not_before).await;
        shared.out_of_step.notified().await;
    });
    let mut events = pin!(apply_events(shared, &mut connection));
    let mut settled = pin!(settle(shared));
    let mut settling = true;
    let mut asked = Vec::new();
    loop {
        tokio::select! {
            // In this order: what is asked is answered in a pass that has found
            // nothing to read after the question had come.
            biased;
            error = &mut events => return Ended::Failed(error),
            () = nothing_withheld(), if !asked.is_empty() => {
                for check in asked.drain(..) {
                    Check::send(check, ()).ok();
                }
            }
            () = &mut settled, if settling => settling = false,
            () = &mut out_of_step => return Ended::OutOfStep,
            Some(check) = checks.recv() => asked.push(check),
        }
    }
}

/// A task that has had its share of the runtime is told of nothing more to
/// read, whether there is or not.
async fn nothing_withheld() {
    poll_fn(|cx| {
        if coop::has_budget_remaining() {
            Poll::Ready(())
        } else {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// Waits until every phone should have been announced, and takes note of that.
async fn settle(shared: &Shared) {
    let mut settles = shared.look(|inventory| shared.config.settles(inventory));
    loop {
        sleep_until(settles).await;
        // Others may have been announced meanwhile.
        let later = shared.look(|inventory| shared.config.settles(inventory));
        if later <= settles {
            break;
        }
        settles = later;
    }
    shared.update(Inventory::settle);
}

async fn apply_events(shared: &Shared, connection: &mut Connection) -> MuxError {
    loop {
        let batch = match connection.packet().await {
            Ok(first) => Batch::arrived(connection, Some(first)),
            Err(error) => return error,
        };
        match batch {
            Ok(batch) => shared.update(|inventory| batch.apply(inventory)),
            Err(error) => return error,
        }
    }
}

/// Events that arrived together, so that watchers see one change.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    unusable: u64,
}

impl Batch {
    /// `first`, and whatever else is here already.
    fn arrived(connection: &mut Connection, first: Option<Packet>) -> Result<Self, MuxError> {
        let mut batch = Self::default();
        let mut next = first;
        loop {
            if let Some(packet) = next {
                batch.read(&packet);
            }
            next = connection.arrived()?;
            if next.is_none() {
                return Ok(batch);
            }
        }
    }

    fn read(&mut self, packet: &Packet) {
        match Event::decode(packet) {
            Ok(event) => self.events.push(event),
            // The stream is intact: one event is lost, not the table.
            Err(error) => {
                tracing::warn!(%error, "ignoring an event that cannot be read");
                self.unusable += 1;
            }
        }
    }

    fn apply(self, inventory: &mut Inventory) {
        for event in &self.events {
            inventory.apply(event);
        }
        inventory.ignored += self.unusable;
    }
}
