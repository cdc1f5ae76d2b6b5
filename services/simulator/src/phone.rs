//! A handle on one phone of a lab: what a person in front of it could do and
//! see, and a little more.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{BundleId, CommandId, Udid};
use tracing::warn;

use crate::fault::Fault;
use crate::lab::LabCore;
use crate::report::{Arrival, ObservedEffect, PhoneReport, Transport};
use crate::ui::{AppState, Screen, ScreenSummary};

pub(crate) mod core;

use self::core::PhoneCore;

/// A handle on one phone of a [`Lab`](crate::Lab). It does not keep the lab
/// running: when the lab is gone, the phone shows its last state.
#[derive(Debug, Clone)]
pub struct Phone {
    core: Arc<PhoneCore>,
    lab: Arc<LabCore>,
}

impl Phone {
    pub(crate) fn new(core: Arc<PhoneCore>, lab: Arc<LabCore>) -> Self {
        Self { core, lab }
    }

    /// Its UDID.
    pub fn udid(&self) -> &Udid {
        &self.core.udid
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Queues a fault behind those that wait already. One that
    /// [`Fault::check`] refuses never applies, and the log says so.
    pub fn fault(&self, fault: impl Into<Fault>) {
        let fault = fault.into();
        if let Err(reason) = fault.check() {
            warn!(%reason, ?fault, "a fault that cannot apply");
        }
        self.core.push_fault(fault);
    }

    /// Forgets the faults that wait.
    pub fn clear_faults(&self) {
        self.core.change(|state| state.faults.clear());
    }

    /// Plugs the cable in.
    pub fn attach(&self) {
        self.attach_over(Transport::Usb);
    }

    /// Pulls the cable.
    pub fn detach(&self) {
        self.detach_from(Transport::Usb);
    }

    /// Makes usbmuxd see it on this transport.
    pub fn attach_over(&self, transport: Transport) {
        let udid = self.udid();
        let serial = self
            .lab
            .serials
            .get(udid)
            .map_or(udid.as_str(), String::as_str);
        self.lab.mux.attach(udid, serial, transport);
        self.core.announce();
    }

    /// Makes usbmuxd lose it on this transport, and every pipe over it break.
    pub fn detach_from(&self, transport: Transport) {
        self.lab.mux.detach(self.udid(), transport);
        self.core.announce();
    }

    /// Pulls the cable and plugs it in again: a new number at usbmuxd.
    pub fn replug(&self) {
        self.lab.mux.replug(self.udid());
        self.core.announce();
    }

    /// Locks or unlocks the screen. On a locked phone, commands for an app
    /// answer `APP_NOT_AVAILABLE`; the others work.
    pub fn set_locked(&self, locked: bool) {
        self.core.change(|state| state.locked = locked);
    }

    /// Puts an app somewhere.
    pub fn set_app_state(&self, bundle: &BundleId, app: AppState) {
        self.core
            .change(|state| state.screen.set_app_state(bundle, app));
    }

    /// Does something to the screen by hand.
    pub fn with_screen<T>(&self, act: impl FnOnce(&mut Screen) -> T) -> T {
        self.core.change(|state| act(&mut state.screen))
    }

    /// Ends the runner, if one is up, and starts another on `port`, with small
    /// uptime and an empty journal.
    pub fn restart_runner(&self, port: u16) {
        self.core.start_runner(port, Duration::ZERO);
    }

    /// Ends the runner in the middle of whatever it does.
    pub fn kill_runner(&self) {
        self.core.kill_runner();
    }

    /// Makes the runner's journal forget an id.
    pub fn evict_from_journal(&self, id: &CommandId) {
        if let Some(runner) = self.core.runner() {
            runner.evict(id);
        }
    }

    /// Everything that can be seen of it.
    pub fn report(&self) -> PhoneReport {
        self.core.report(self.lab.mux.plugged(self.udid()))
    }

    /// Waits until what can be seen of it satisfies `seen`, and gives that.
    pub async fn wait_until(&self, mut seen: impl FnMut(&PhoneReport) -> bool) -> PhoneReport {
        let mut changes = self.core.watch();
        loop {
            changes.mark_unchanged();
            let report = self.report();
            if seen(&report) {
                return report;
            }
            // The sender lives in the core that this handle holds.
            drop(changes.changed().await);
        }
    }

    /// The latest effects of its commands, oldest first.
    pub fn effects(&self) -> Vec<ObservedEffect> {
        self.report().effects
    }

    /// How many times the command with this id had its effect.
    pub fn effects_of(&self, id: &CommandId) -> usize {
        self.report().effects_of(id)
    }

    /// The requests that its runner read, oldest first.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.report().arrivals
    }

    /// The most commands that its runner ever had in hand at once.
    pub fn max_in_flight(&self) -> usize {
        self.core.look(|state| state.max_in_flight)
    }

    /// What its screen shows.
    pub fn screen(&self) -> ScreenSummary {
        self.core.look(|state| state.screen.summary())
    }
}
