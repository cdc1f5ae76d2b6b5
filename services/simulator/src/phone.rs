//! A handle on one phone of a lab: what a person in front of it could do and
//! see, and a little more.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{BundleId, CommandId, Udid};
use tokio::sync::mpsc;
use tracing::{info_span, warn};

use crate::fault::Fault;
use crate::lab::LabCore;
use crate::launch::{self, LaunchEvent, LaunchFault, LaunchRequest};
use crate::lockdown::Lockdown;
use crate::mux::Replug;
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
    /// With the cable, a runner that was launched ends.
    pub fn detach_from(&self, transport: Transport) {
        self.lab.mux.detach(self.udid(), transport);
        match transport {
            Transport::Usb => self.core.lose_cable(),
            Transport::Network => self.core.announce(),
        }
    }

    /// Pulls the cable and plugs it in again: a new number at usbmuxd. A runner
    /// that was launched ends.
    pub fn replug(&self) {
        self.replug_so(Replug::default());
    }

    /// The same in a particular way.
    pub fn replug_so(&self, how: Replug) {
        self.lab.replug(&self.core, how);
    }

    /// Locks or unlocks the screen. On a locked phone, commands for an app
    /// answer `APP_NOT_AVAILABLE`, the others work, and nothing can be launched.
    pub fn set_locked(&self, locked: bool) {
        self.core.change(|state| {
            state.locked = locked;
            state.stalls_when_locked = false;
        });
    }

    /// Locks the screen such that commands for an app run out of time, without
    /// having had an effect, instead of answering.
    pub fn lock_and_stall(&self) {
        self.core.change(|state| {
            state.locked = true;
            state.stalls_when_locked = true;
        });
    }

    /// Makes it trust this host, or not. Without trust nothing can be launched;
    /// when it begins, listeners are told that it has paired.
    pub fn set_trusted(&self, trusted: bool) {
        let before = self
            .core
            .change(|state| std::mem::replace(&mut state.trusted, trusted));
        if trusted && !before {
            self.lab.mux.pair(self.udid());
        }
    }

    /// Changes how its lockdown answers, to whoever connects from now on.
    pub fn set_lockdown(&self, lockdown: Lockdown) {
        self.core.change(|state| state.lockdown = lockdown);
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

    /// Starts another runner on the port of the one that is up, with small
    /// uptime and an empty journal, as an iPhone does of which nobody is told.
    /// False if none is up.
    pub fn restart_runner_silently(&self) -> bool {
        let up = self.core.runner();
        if let Some(runner) = &up {
            self.core.start_runner(runner.port, Duration::ZERO);
        }
        up.is_some()
    }

    /// Sets what the runner has counted, as far as it is told to: issues that
    /// it muted, failures that it recorded. False if none is up.
    pub fn set_runner_counters(&self, suppressed: Option<u64>, recorded: Option<u64>) -> bool {
        let up = self.core.runner();
        if let Some(runner) = &up {
            runner.set_counters(suppressed, recorded);
            self.core.announce();
        }
        up.is_some()
    }

    /// Queues something that goes wrong with a launch. One that
    /// [`LaunchFault::check`] refuses never applies, and the log says so.
    pub fn launch_fault(&self, fault: impl Into<LaunchFault>) {
        let fault = fault.into();
        if let Err(reason) = fault.check() {
            warn!(%reason, ?fault, "a fault that cannot apply");
        }
        self.core.change(|state| state.launch_faults.push(fault));
    }

    /// Forgets what waits for a launch.
    pub fn clear_launch_faults(&self) {
        self.core.change(|state| state.launch_faults.clear());
    }

    /// Launches a runner as [`launch`](crate::launch) has it. It lives for as
    /// long as the events are received.
    pub fn launch(&self, request: LaunchRequest) -> mpsc::Receiver<LaunchEvent> {
        let (events, told) = mpsc::channel(launch::EVENTS);
        let span = info_span!("launch", device.id = %self.udid());
        let (lab, phone) = (Arc::clone(&self.lab), Arc::clone(&self.core));
        self.lab
            .spawn(span, launch::run(lab, phone, request, events));
        told
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
