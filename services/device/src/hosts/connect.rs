//! The way to a phone: which host, by which number, and for how long it is worth
//! waiting for one.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{SendError, Udid};
use fleetgate_usbmux::{Port, ResultCode};
use tokio::time::{Instant, sleep, timeout_at};

use super::Hosts;
use super::view::rank;
use crate::error::MuxError;
use crate::inventory::Route;
use crate::pipe::Pipe;
use crate::usbmuxd::UsbmuxdConfig;

impl Hosts {
    /// Connects to a port of a phone, by cable, through the usbmuxd that has it
    /// now.
    ///
    /// A number that usbmuxd denies is looked up again once. A connection that
    /// breaks before it is a pipe is made again for as long as patience lasts:
    /// usbmuxd may be restarting, or the phone may have moved to another host.
    ///
    /// Nothing has reached the phone's listener when this fails, so every error
    /// has the disposition `NotExecuted`. It has no deadline of its own: drop
    /// the future to give up. Before anything is written to the pipe, or what is
    /// read from it is believed, its route is to be confirmed
    /// ([`Hosts::confirm`]).
    pub async fn connect(&self, device: &Udid, port: u16) -> Result<Pipe, SendError> {
        let wire_port = Port::new(port.into()).map_err(MuxError::from)?;
        let began = Instant::now();
        let mut backoff = UsbmuxdConfig::pauses();
        let mut grace = Duration::ZERO;
        let mut denied = false;
        loop {
            let route = self.resolve(device, grace).await?;
            let host = &self.shared.hosts[route.host];
            let config = host.usbmuxd.config();
            let attempt = tokio::select! {
                biased;
                attempt = host.usbmuxd.pipe(device, route, wire_port) => attempt,
                // A usbmuxd that is gone need not say so on every connection.
                () = self.rerouted(device, route) => Err(MuxError::Superseded),
            };
            let error = match attempt {
                Ok(pipe) => return Ok(pipe),
                Err(error) => error,
            };
            if error.denies_number() {
                host.usbmuxd.denied(route);
                if denied {
                    return Err(verdict(error, port));
                }
                denied = true;
            } else if error.is_fleeting() {
                // The table may be behind by a moment: until it has learnt of
                // a usbmuxd's end, it gives the same route again.
                let pause = backoff.pause();
                if Instant::now() + pause > began + config.patience {
                    return Err(verdict(error, port));
                }
                sleep(pause).await;
            } else {
                return Err(verdict(error, port));
            }
            tracing::debug!(
                device.id = %device,
                host = %host.name,
                %error,
                "resolving the device again"
            );
            grace = config.settle;
        }
    }

    /// Connects until the route is confirmed.
    pub(crate) async fn connect_confirmed(
        &self,
        device: &Udid,
        port: u16,
    ) -> Result<Pipe, SendError> {
        loop {
            let pipe = self.connect(device, port).await?;
            if self.confirm(device, pipe.route()).await {
                return Ok(pipe);
            }
        }
    }

    /// Whether a route is still the way to this phone, by all that its usbmuxd
    /// has said by now, and no other host has the phone since.
    pub async fn confirm(&self, device: &Udid, route: Route) -> bool {
        match self.shared.hosts.get(route.host) {
            Some(host) => {
                host.usbmuxd.confirm(device, route).await && self.route(device) == Some(route)
            }
            None => false,
        }
    }

    /// The way to a phone now.
    pub(crate) fn route(&self, device: &Udid) -> Option<Route> {
        let mut best = None;
        for host in &self.shared.hosts {
            let candidate = host.usbmuxd.look(|inventory| {
                let route = inventory.route(device)?;
                Some((rank(inventory.get(device)?), route))
            });
            match (candidate, best) {
                (Some((rank, route)), None) => best = Some((rank, route)),
                (Some((rank, route)), Some((highest, _))) if rank > highest => {
                    best = Some((rank, route));
                }
                (Some(_) | None, _) => {}
            }
        }
        best.map(|(_, route)| route)
    }

    /// Waits until a route is not the way to this phone any more.
    async fn rerouted(&self, device: &Udid, route: Route) {
        let mut view = self.view();
        loop {
            view.borrow_and_update();
            if self.route(device) != Some(route) || view.changed().await.is_err() {
                return;
            }
        }
    }

    /// The way to a phone. Waits for a usbmuxd that was lost just now, for a
    /// phone that a young listening connection has yet to announce, and in any
    /// case for `grace`.
    async fn resolve(&self, device: &Udid, grace: Duration) -> Result<Route, SendError> {
        let graced = Instant::now() + grace;
        let mut view = self.view();
        loop {
            // Every change of a table that matters here becomes one of the view.
            view.borrow_and_update();
            if let Some(route) = self.route(device) {
                return Ok(route);
            }
            let (until, error) = self.outlook(device);
            let changed = timeout_at(until.max(graced), view.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                // The view is a moment behind.
                return self.route(device).ok_or(error);
            }
        }
    }

    /// Until when a phone without a route may get one, and what it means if it
    /// does not.
    ///
    /// A host that is away matters where it had the phone last, or where nobody
    /// knows who had it. A phone that was seen to leave a host is not sought
    /// elsewhere: it is not attached.
    fn outlook(&self, device: &Udid) -> (Instant, SendError) {
        let home = self.shared.home(device);
        let mut until = Instant::now();
        let mut away = None;
        for (index, host) in self.shared.hosts.iter().enumerate() {
            let config = host.usbmuxd.config();
            host.usbmuxd.look(|inventory| {
                let remembered = inventory.get(device).is_some();
                if inventory.connected {
                    if !inventory.settled {
                        until = until.max(config.settles(inventory));
                    }
                } else if remembered || home.is_none_or(|home| home == index) {
                    until = until.max(inventory.since + config.patience);
                    if remembered || away.is_none() {
                        let last_error = inventory.last_error.as_deref();
                        away = Some(MuxError::Unreachable {
                            host: Arc::clone(&host.name),
                            last_error: last_error.unwrap_or("not yet connected").to_owned(),
                        });
                    }
                }
            });
        }
        (until, away.map_or(SendError::NotAttached, SendError::from))
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
