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

use fleetgate_runner::{SendError, Udid};
use fleetgate_usbmux::{Client, Port, Request, ResultCode};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
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
    /// began or after usbmuxd refused the number that the phone had.
    pub settle: Duration,
    /// How long a listening connection may take to be made.
    pub handshake: Duration,
    /// The pause after a listening connection's first failure.
    pub backoff_initial: Duration,
    /// The longest such pause.
    pub backoff_cap: Duration,
    /// The shortest life of a listening connection before it is made anew only
    /// because usbmuxd refused a number.
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

/// The first pause between two tries to dial one connection.
const DIAL_PAUSE: Duration = Duration::from_millis(20);
/// How many may wait for the listen task to look.
const CHECKS: usize = 64;
/// The longest one.
const DIAL_PAUSE_CAP: Duration = Duration::from_millis(500);

/// A handle to one usbmuxd.
#[derive(Clone)]
pub struct Usbmuxd {
    shared: Arc<Shared>,
}

/// What the handles and the listen task share.
pub(crate) struct Shared {
    pub(crate) dialer: Dialer,
    pub(crate) config: UsbmuxdConfig,
    /// Wakes the listen task when usbmuxd refused a number.
    pub(crate) out_of_step: Notify,
    /// Asks the listen task to take in all that has arrived.
    checks: mpsc::Sender<Check>,
    inventory: watch::Sender<Arc<Inventory>>,
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
        self.inventory
            .send_modify(|inventory| change(Arc::make_mut(inventory)));
    }
}

/// Owns the listen task of one usbmuxd: the task ends with it.
#[derive(Debug)]
pub struct UsbmuxdTask(JoinSet<()>);

impl UsbmuxdTask {
    /// Stops the work with this usbmuxd and waits until its socket is closed.
    pub async fn shutdown(mut self) {
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
    /// Starts to listen to a usbmuxd.
    pub fn spawn(dialer: Dialer, config: UsbmuxdConfig) -> (Self, UsbmuxdTask) {
        let span = tracing::info_span!("usbmuxd", address = dialer.label());
        let (checks, asked) = mpsc::channel(CHECKS);
        let shared = Arc::new(Shared {
            dialer,
            out_of_step: Notify::new(),
            checks,
            inventory: watch::Sender::new(Arc::new(Inventory::new())),
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

    /// Where it is, for people.
    pub(crate) fn address(&self) -> &str {
        self.shared.dialer.label()
    }

    /// The table of phones, now and from now on.
    pub fn inventory(&self) -> watch::Receiver<Arc<Inventory>> {
        self.shared.inventory.subscribe()
    }

    /// Whether a route is still the way to this phone.
    pub fn is_current(&self, device: &Udid, route: Route) -> bool {
        self.shared.inventory.borrow().route(device) == Some(route)
    }

    /// Whether a route is still the way to this phone, by all that usbmuxd's
    /// listening connection has said by now: also by its end, although nobody
    /// may have noticed that yet.
    pub async fn confirm(&self, device: &Udid, route: Route) -> bool {
        let mut inventory = self.inventory();
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
                () = &mut looked => return self.is_current(device, route),
                // Nobody looks while there is no listening connection.
                changed = inventory.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                }
            }
        }
    }

    /// Connects to a port of a phone, by cable.
    ///
    /// A number that usbmuxd denies is looked up again once. A connection that
    /// breaks before it is a pipe is made again for as long as patience lasts:
    /// usbmuxd may be restarting.
    ///
    /// Nothing has reached the phone's listener when this fails, so every error
    /// has the disposition `NotExecuted`. It has no deadline of its own: drop
    /// the future to give up.
    pub async fn connect(&self, device: &Udid, port: u16) -> Result<Pipe, SendError> {
        let wire_port = Port::new(port.into()).map_err(MuxError::from)?;
        let until = Instant::now() + self.shared.config.patience;
        let mut backoff = Backoff::new(DIAL_PAUSE, DIAL_PAUSE_CAP);
        let mut grace = Duration::ZERO;
        let mut denied = false;
        loop {
            let route = self.resolve(device, grace).await?;
            let error = match self.pipe(device, route, wire_port).await {
                Ok(pipe) => return Ok(pipe),
                Err(error) => error,
            };
            if error.denies_number() {
                self.refused(route);
                if denied {
                    return Err(verdict(error, port));
                }
                denied = true;
            } else if error.is_fleeting() {
                // The table may be behind by a moment: until it has learnt of
                // a usbmuxd's end, it gives the same route again.
                let pause = backoff.pause();
                if Instant::now() + pause > until {
                    return Err(verdict(error, port));
                }
                sleep(pause).await;
            } else {
                return Err(verdict(error, port));
            }
            tracing::debug!(device.id = %device, %error, "resolving the device again");
            grace = self.shared.config.settle;
        }
    }

    /// The way to a phone. Waits for a usbmuxd that was lost just now, for a
    /// phone that a young listening connection has yet to announce, and in any
    /// case for `grace`.
    async fn resolve(&self, device: &Udid, grace: Duration) -> Result<Route, SendError> {
        let config = &self.shared.config;
        let graced = Instant::now() + grace;
        let mut inventory = self.inventory();
        loop {
            let (until, error) = {
                let inventory = inventory.borrow_and_update();
                if let Some(route) = inventory.route(device) {
                    return Ok(route);
                }
                if inventory.connected {
                    (inventory.since + config.settle, SendError::NotAttached)
                } else {
                    let last_error = inventory.last_error.clone();
                    let last_error = last_error.unwrap_or_else(|| "not yet connected".to_owned());
                    (
                        inventory.since + config.patience,
                        MuxError::Unreachable { last_error }.into(),
                    )
                }
            };
            if timeout_at(until.max(graced), inventory.changed())
                .await
                .is_err()
            {
                return Err(error);
            }
        }
    }

    /// Turns a fresh connection into a pipe.
    async fn pipe(&self, device: &Udid, route: Route, port: Port) -> Result<Pipe, MuxError> {
        let mut connection = Connection::new(self.dial().await?);
        let request = Request::Connect {
            device: route.device,
            port,
        };
        connection.ask(&self.shared.config.client, &request).await?;
        if !self.is_current(device, route) {
            return Err(MuxError::Superseded);
        }
        let (early, stream) = connection.into_parts();
        Ok(Pipe::new(early, stream, route))
    }

    /// Dials, again and again for a while: a usbmuxd whose queue is full refuses
    /// what it will take a moment later.
    async fn dial(&self) -> Result<BoxStream, MuxError> {
        let until = Instant::now() + self.shared.config.patience;
        let mut backoff = Backoff::new(DIAL_PAUSE, DIAL_PAUSE_CAP);
        loop {
            let error = {
                let _permit = self
                    .shared
                    .dials
                    .acquire()
                    .await
                    .map_err(|_| MuxError::Stopped)?;
                match self.shared.dialer.dial().await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => error,
                }
            };
            let pause = backoff.pause();
            if Instant::now() + pause > until {
                return Err(MuxError::Dial(error));
            }
            sleep(pause).await;
        }
    }

    /// usbmuxd does not know a number that the table holds: the number goes, and
    /// the listening connection is made anew to learn what usbmuxd does know.
    fn refused(&self, route: Route) {
        let mut known = false;
        self.shared.inventory.send_if_modified(|inventory| {
            known = Arc::make_mut(inventory).invalidate(route);
            known
        });
        if known {
            self.shared.out_of_step.notify_one();
        }
    }
}

/// What a failure to connect means to whoever sends commands.
fn verdict(error: MuxError, port: u16) -> SendError {
    if let MuxError::Refused { result } = error {
        match result {
            ResultCode::BadDevice => return SendError::NotAttached,
            ResultCode::ConnectionRefused | ResultCode::ConnectionTimedOut => {
                return SendError::NotListening { port: Some(port) };
            }
            ResultCode::BadCommand | ResultCode::BadVersion => {
                return SendError::Misunderstood(Arc::new(error));
            }
            ResultCode::Ok | ResultCode::Other(_) => {}
        }
    }
    error.into()
}
