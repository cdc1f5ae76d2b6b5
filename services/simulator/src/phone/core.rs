//! One phone: its screen, its runner, the faults that wait for it and the
//! record of what happened to it.
//!
//! Everything that runs on behalf of the phone holds an `Arc` of this. Nothing
//! here waits: changes are made under one lock, and every change bumps a watch
//! that observers wait on.
//!
//! Which runner is up, and by whose doing, is in [`runners`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fleetgate_runner::{CommandId, CommandKind, RunnerCode, Udid};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::fault::{Fault, FaultQueue, Injection, Stage};
use crate::launch::LaunchFaults;
use crate::load::Load;
use crate::lockdown::Lockdown;
use crate::report::{Arrival, Connects, Decline, ObservedEffect, PhoneReport, Transport};
use crate::scenario::PhoneSpec;
use crate::sync::lock;
use crate::ui::Screen;

mod runners;

pub(crate) use runners::Lives;

/// How many effects, arrivals and declines are kept; a lab may run for weeks.
const KEPT: usize = 65_536;

/// One phone of a lab.
#[derive(Debug)]
pub(crate) struct PhoneCore {
    pub(crate) udid: Udid,
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) os_version: String,
    pub(crate) clock: Clock,
    pub(crate) tasks: TaskTracker,
    pub(crate) load: Load,
    stop: CancellationToken,
    state: Mutex<PhoneState>,
    changed: watch::Sender<u64>,
}

/// What changes about a phone.
#[derive(Debug)]
pub(crate) struct PhoneState {
    pub(crate) screen: Screen,
    pub(crate) locked: bool,
    /// Whether commands for an app run out of time while it is locked.
    pub(crate) stalls_when_locked: bool,
    pub(crate) trusted: bool,
    pub(crate) lockdown: Lockdown,
    pub(crate) connects: Connects,
    pub(crate) in_flight: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) coalesced: u64,
    pub(crate) refronts: u64,
    pub(crate) arrivals: VecDeque<Arrival>,
    pub(crate) declines: VecDeque<Decline>,
    pub(crate) faults: FaultQueue,
    pub(crate) launch_faults: LaunchFaults,
    lives: Lives,
    effects: VecDeque<ObservedEffect>,
    effects_total: u64,
}

impl PhoneCore {
    /// A phone as the scenario describes it; its runner is not started yet.
    pub(crate) fn new(
        spec: &PhoneSpec,
        clock: Clock,
        tasks: TaskTracker,
        load: Load,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let mut screen = Screen::new(spec.screen.clone());
        for (bundle, state) in &spec.apps {
            screen.set_app_state(bundle, *state);
        }
        let mut faults = FaultQueue::default();
        spec.faults
            .iter()
            .cloned()
            .for_each(|fault| faults.push(fault));
        let mut launch_faults = LaunchFaults::default();
        let planted = spec.launch_faults.iter().cloned();
        planted.for_each(|fault| launch_faults.push(fault));
        Arc::new(Self {
            udid: spec.udid.clone(),
            name: spec.name.clone(),
            model: spec.model.clone(),
            os_version: spec.os_version.clone(),
            clock,
            tasks,
            load,
            stop,
            state: Mutex::new(PhoneState {
                screen,
                locked: spec.locked,
                stalls_when_locked: false,
                trusted: spec.trusted,
                lockdown: spec.lockdown,
                connects: Connects::default(),
                in_flight: 0,
                max_in_flight: 0,
                coalesced: 0,
                refronts: 0,
                arrivals: VecDeque::new(),
                declines: VecDeque::new(),
                faults,
                launch_faults,
                lives: Lives::default(),
                effects: VecDeque::new(),
                effects_total: 0,
            }),
            changed: watch::Sender::new(0),
        })
    }

    /// Looks at the phone without changing it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&PhoneState) -> T) -> T {
        look(&lock(&self.state))
    }

    /// Changes the phone and tells everyone who watches it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut PhoneState) -> T) -> T {
        let changed = change(&mut lock(&self.state));
        self.announce();
        changed
    }

    /// Tells everyone who watches the phone that something is different.
    pub(crate) fn announce(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    /// Ticks after every change.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The fault that befalls a command at this stage, if one does.
    pub(crate) fn take_fault(&self, stage: Stage, kind: Option<CommandKind>) -> Option<Injection> {
        self.change(|state| state.faults.take(stage, kind))
    }

    /// Queues a fault behind those that wait.
    pub(crate) fn push_fault(&self, fault: Fault) {
        self.change(|state| state.faults.push(fault));
    }

    /// Notes a request that a runner read with so many commands in hand.
    pub(crate) fn note_arrival(
        &self,
        kind: CommandKind,
        command_id: Option<CommandId>,
        beside: usize,
    ) {
        let at = self.clock.at();
        self.change(|state| {
            if state.arrivals.len() == KEPT {
                state.arrivals.pop_front();
            }
            state.arrivals.push_back(Arrival {
                command_id,
                kind,
                beside,
                at,
            });
        });
    }

    /// Notes a command that was turned away at the head of the queue.
    pub(crate) fn note_decline(
        &self,
        kind: CommandKind,
        command_id: Option<CommandId>,
        code: RunnerCode,
    ) {
        let at = self.clock.at();
        self.change(|state| {
            if state.declines.len() == KEPT {
                state.declines.pop_front();
            }
            state.declines.push_back(Decline {
                command_id,
                kind,
                code,
                at,
            });
        });
    }

    /// Lets a command act on the screen and notes what it did. If it did
    /// nothing, nothing is noted.
    pub(crate) fn act<E>(
        &self,
        kind: CommandKind,
        command_id: Option<&CommandId>,
        act: impl FnOnce(&mut Screen) -> Result<String, E>,
    ) -> Result<(), E> {
        let at = self.clock.at();
        self.change(|state| {
            let what = act(&mut state.screen)?;
            if state.effects.len() == KEPT {
                state.effects.pop_front();
            }
            state.effects_total += 1;
            let seq = state.effects_total;
            let command_id = command_id.cloned();
            state.effects.push_back(ObservedEffect {
                seq,
                command_id,
                kind,
                what,
                at,
            });
            Ok(())
        })
    }

    /// Everything that can be seen of the phone.
    pub(crate) fn report(&self, plugged: Vec<Transport>) -> PhoneReport {
        let runner = self.runner();
        // The runner has a lock of its own, never taken under the phone's.
        let runner = runner.map(|runner| runner.report(&self.clock));
        self.look(|state| PhoneReport {
            udid: self.udid.to_string(),
            name: self.name.clone(),
            model: self.model.clone(),
            os_version: self.os_version.clone(),
            plugged,
            trusted: state.trusted,
            lockdown: state.lockdown,
            locked: state.locked,
            runner,
            incarnations: state.lives.incarnations,
            launch: state.lives.launch(),
            launches: state.lives.launches,
            in_flight: state.in_flight,
            max_in_flight: state.max_in_flight,
            coalesced: state.coalesced,
            refronts: state.refronts,
            connects: state.connects,
            effects_total: state.effects_total,
            effects: state.effects.iter().cloned().collect(),
            arrivals: state.arrivals.iter().cloned().collect(),
            declines: state.declines.iter().cloned().collect(),
            faults: state.faults.waiting(),
            launch_faults: state.launch_faults.waiting(),
            screen: state.screen.summary(),
        })
    }
}

/// How many commands one runner has in hand.
#[derive(Debug, Clone, Default)]
pub(crate) struct InHand(Arc<AtomicUsize>);

impl InHand {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// One command between its acceptance by the runner and its verdict. Counts
/// itself while it exists, with its runner, on the phone and in the lab.
#[derive(Debug)]
pub(crate) struct InFlight {
    phone: Arc<PhoneCore>,
    in_hand: InHand,
}

impl InFlight {
    pub(crate) fn count(phone: &Arc<PhoneCore>, in_hand: &InHand) -> Self {
        in_hand.0.fetch_add(1, Ordering::AcqRel);
        phone.change(|state| {
            state.in_flight += 1;
            state.max_in_flight = state.max_in_flight.max(state.in_flight);
        });
        phone.load.enter();
        Self {
            phone: Arc::clone(phone),
            in_hand: in_hand.clone(),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.phone.load.leave();
        self.phone.change(|state| state.in_flight -= 1);
        self.in_hand.0.fetch_sub(1, Ordering::AcqRel);
    }
}
