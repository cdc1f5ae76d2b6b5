//! One usbmuxd: its table of phones, kept by the listen task, and connections to
//! ports of its phones.
//!
//! A connection is made with a number from the table. Between the look-up and
//! usbmuxd's answer the phone can be unplugged or usbmuxd restarted, and after a
//! restart the same number can mean another phone. So the route is looked at
//! again when the answer is there, and whoever writes to the pipe has it
//! confirmed ([`Usbmuxd::confirm`]): a dead usbmuxd's listening connection has
//! ended before its successor can answer anything, and the listen task is made
//! to look whether it has.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::Udid;
use fleetgate_usbmux::{Client, Port, Reply, Request};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::dialer::{BoxStream, Dialer};
use crate::error::MuxError;
use crate::inventory::{Inventory, Route};
use crate::listen::{Check, Listener};
use crate::pipe::Pipe;

/// How one usbmuxd is dealt with.
#[derive(Debug, Clone)]
pub struct UsbmuxdConfig {
    /// How requests name their sender.
    pub client: Client,
    /// How many connections may be dialled at the same time.
    pub max_dials: usize,
    /// How long dialling is tried again for one connection, and how long after
    /// its loss a usbmuxd is waited for.
    pub patience: Duration,
    /// How long a phone may take to be announced, after a listening connection
    /// began or announced another, or after usbmuxd denied the number that the
    /// phone had.
    pub settle: Duration,
    /// How long a connection may take to be dialled, and a listening one to be
    /// made.
    pub handshake: Duration,
    /// The pause after a listening connection's first failure.
    pub backoff_initial: Duration,
    /// The longest such pause.
    pub backoff_cap: Duration,
    /// The shortest life of a listening connection before it is made anew only
    /// because usbmuxd denied a number.
    pub resync_interval: Duration,
}

impl Default for UsbmuxdConfig {
    fn default() -> Self {
        Self {
            client: Client::new("fleetgate", env!("CARGO_PKG_VERSION")),
            max_dials: 32,
            patience: Duration::from_secs(5),
            settle: Duration::from_millis(500),
            handshake: Duration::from_secs(5),
            backoff_initial: Duration::from_millis(100),
            backoff_cap: Duration::from_secs(5),
            resync_interval: Duration::from_secs(5),
        }
    }
}

/// A usbmuxd that announces one phone after the other is given up to this many
/// times the time to settle.
const SETTLE_ROUNDS: u32 = 10;
/// How many may wait for the listen task to look.
const CHECKS: usize = 64;

impl UsbmuxdConfig {
    /// When a listening connection has had its time to announce phones.
    pub(crate) fn settles(&self, inventory: &Inventory) -> Instant {
        let quiet = inventory.last_announced + self.settle;
        quiet.min(inventory.since + self.settle * SETTLE_ROUNDS)
    }

    /// The pauses between two tries to make one connection.
    pub(crate) fn pauses() -> Backoff {
        Backoff::new(Duration::from_millis(20), Duration::from_millis(500))
    }
}

/// A handle to one usbmuxd.
#[derive(Clone)]
pub(crate) struct Usbmuxd {
    shared: Arc<Shared>,
}

/// What the handles and the listen task share.
pub(crate) struct Shared {
    pub(crate) dialer: Dialer,
    pub(crate) config: UsbmuxdConfig,
    /// Wakes the listen task when usbmuxd denied a number.
    pub(crate) out_of_step: Notify,
    /// Asks the listen task to take in all that has arrived.
    checks: mpsc::Sender<Check>,
    inventory: watch::Sender<Inventory>,
    /// Wakes whoever merges the tables of several.
    changed: Arc<Notify>,
    /// Closed when the work is stopped.
    dials: Semaphore,
}

impl Shared {
    /// Ends all work with this usbmuxd: nothing is routed and nothing dialled.
    pub(crate) fn stop(&self) {
        self.dials.close();
        self.update(|inventory| inventory.lose(MuxError::Stopped.to_string()));
    }

    /// Changes the table in one step.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Inventory)) {
        self.inventory.send_modify(change);
        self.changed.notify_one();
    }

    /// Reads the table.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T {
        read(&self.inventory.borrow())
    }
}

/// The task that listens to a usbmuxd. It ends with this.
#[derive(Debug)]
pub(crate) struct UsbmuxdTask(JoinSet<()>);

impl UsbmuxdTask {
    /// Stops the work with this usbmuxd and waits until its socket is closed.
    pub(crate) async fn shutdown(mut self) {
        self.0.shutdown().await;
    }
}

impl fmt::Debug for Usbmuxd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usbmuxd")
            .field("dialer", &self.shared.dialer)
            .finish_non_exhaustive()
    }
}

impl Usbmuxd {
    /// Starts to listen to a usbmuxd, which is this one of several.
    pub(crate) fn spawn(
        host: usize,
        name: &str,
        dialer: Dialer,
        config: UsbmuxdConfig,
        changed: Arc<Notify>,
    ) -> (Self, UsbmuxdTask) {
        let span = tracing::info_span!("usbmuxd", host = name, address = dialer.label());
        let (checks, asked) = mpsc::channel(CHECKS);
        let shared = Arc::new(Shared {
            dialer,
            out_of_step: Notify::new(),
            checks,
            inventory: watch::Sender::new(Inventory::new(host)),
            changed,
            dials: Semaphore::new(config.max_dials),
            config,
        });
        let usbmuxd = Self {
            shared: Arc::clone(&shared),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(Listener::new(shared, asked).run().instrument(span));
        (usbmuxd, UsbmuxdTask(tasks))
    }

    pub(crate) fn config(&self) -> &UsbmuxdConfig {
        &self.shared.config
    }

    /// Where it is, for people.
    pub(crate) fn address(&self) -> Arc<str> {
        self.shared.dialer.shared_label()
    }

    /// Reads the table of phones as it is now.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T {
        self.shared.look(read)
    }

    /// The way to a phone, if it is attached by cable.
    pub(crate) fn route(&self, device: &Udid) -> Option<Route> {
        self.look(|inventory| inventory.route(device))
    }

    /// Whether a route is still the way to this phone, by all that usbmuxd's
    /// listening connection has said by now: also by its end, although nobody
    /// may have noticed that yet.
    pub(crate) async fn confirm(&self, device: &Udid, route: Route) -> bool {
        let mut inventory = self.shared.inventory.subscribe();
        let (check, checked) = oneshot::channel();
        let mut looked = pin!(async {
            self.shared.checks.send(check).await.ok();
            checked.await.ok();
        });
        loop {
            if inventory.borrow_and_update().route(device) != Some(route) {
                return false;
            }
            tokio::select! {
                () = &mut looked => return self.route(device) == Some(route),
                // Nobody looks while there is no listening connection.
                changed = inventory.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                }
            }
        }
    }

    /// Turns a fresh connection into a pipe.
    pub(crate) async fn pipe(
        &self,
        device: &Udid,
        route: Route,
        port: Port,
    ) -> Result<Pipe, MuxError> {
        let mut connection = Connection::new(self.dial().await?);
        let request = Request::Connect {
            device: route.device,
            port,
        };
        connection.ask(&self.shared.config.client, &request).await?;
        if self.route(device) != Some(route) {
            return Err(MuxError::Superseded);
        }
        let (early, stream) = connection.into_parts();
        Ok(Pipe::new(early, stream, route))
    }

    /// Asks something on a connection of its own.
    pub(crate) async fn request(&self, request: &Request) -> Result<Reply, MuxError> {
        let mut connection = Connection::new(self.dial().await?);
        connection
            .request(&self.shared.config.client, request)
            .await
    }

    /// Dials, again and again for a while: a usbmuxd whose queue is full refuses
    /// what it will take a moment later.
    async fn dial(&self) -> Result<BoxStream, MuxError> {
        let config = &self.shared.config;
        let until = Instant::now() + config.patience;
        let mut backoff = UsbmuxdConfig::pauses();
        loop {
            let error = {
                let permit = self.shared.dials.acquire();
                let _permit = permit.await.map_err(|_| MuxError::Stopped)?;
                match timeout(config.handshake, self.shared.dialer.dial()).await {
                    Ok(Ok(stream)) => return Ok(stream),
                    Ok(Err(error)) => error,
                    Err(elapsed) => elapsed.into(),
                }
            };
            let pause = backoff.pause();
            if Instant::now() + pause > until {
                return Err(MuxError::Dial(error));
            }
            sleep(pause).await;
        }
    }

    /// usbmuxd denies a number that the table holds: it is not used any more,
    /// and the listening connection is made anew to learn what usbmuxd does
    /// know.
    pub(crate) fn denied(&self, route: Route) {
        let mut news = false;
        self.shared.update(|inventory| news = inventory.deny(route));
        if news {
            self.shared.out_of_step.notify_one();
        }
    }

    /// Drops what is only remembered of phones that have turned up elsewhere.
    pub(crate) fn supersede<'a>(&self, devices: impl Iterator<Item = &'a Udid>) {
        self.shared.inventory.send_if_modified(|inventory| {
            devices.for_each(|device| inventory.supersede(device));
            // Nobody was told of them any more.
            false
        });
    }
}
