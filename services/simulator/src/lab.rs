//! A running lab: the phones, the usbmuxd that they hang on, and everything
//! that runs on their behalf.
//!
//! Owns every task of the simulation. Invariant: when the [`Lab`] is dropped or
//! shut down, no task of it goes on, and its unix socket is gone.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetgate_runner::Udid;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span, info_span};

use crate::clock::Clock;
use crate::load::{Load, LoadReport};
use crate::mux::{Ids, Mux, Replug};
use crate::oddity::{Oddities, Oddity};
use crate::phone::Phone;
use crate::phone::core::PhoneCore;
use crate::scenario::Scenario;
use crate::stray::Stray;
use crate::sync::{lock, until_stopped};
use crate::{control, socket, usbmuxd};

/// How much an in-memory connection holds in each direction.
const DUPLEX_BUFFER: usize = 64 * 1024;

/// A running lab.
#[derive(Debug)]
pub struct Lab {
    core: Arc<LabCore>,
}

/// What the lab's tasks share.
#[derive(Debug)]
pub(crate) struct LabCore {
    pub(crate) mux: Mux,
    pub(crate) phones: BTreeMap<Udid, Arc<PhoneCore>>,
    /// How usbmuxd spells each phone's UDID.
    pub(crate) serials: BTreeMap<Udid, String>,
    pub(crate) listeners: Listeners,
    pub(crate) oddities: Oddities,
    pub(crate) clock: Clock,
    pub(crate) load: Load,
    pub(crate) stop: CancellationToken,
    tasks: TaskTracker,
}

impl LabCore {
    /// Runs `work` until it ends or the lab does.
    pub(crate) fn spawn(&self, span: Span, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let work = async move {
            until_stopped(&stop, work).await;
        };
        self.tasks.spawn(work.instrument(span));
    }

    /// An in-memory connection to usbmuxd.
    fn connect(self: &Arc<Self>) -> DuplexStream {
        let (near, far) = tokio::io::duplex(DUPLEX_BUFFER);
        let lab = Arc::clone(self);
        self.spawn(info_span!("usbmuxd", client = "memory"), async move {
            usbmuxd::converse(&lab, far).await;
        });
        near
    }

    /// Pulls a phone's cables and plugs them in again.
    pub(crate) fn replug(self: &Arc<Self>, phone: &Arc<PhoneCore>, how: Replug) {
        let Replug {
            attached_first,
            gap,
        } = how;
        let udid = &phone.udid;
        if attached_first {
            let old = self.mux.double(udid);
            self.after(gap, move |lab| lab.mux.retire(&old));
        } else if gap.is_zero() {
            self.mux.replug(udid);
        } else {
            let plugs = self.mux.unplug(udid);
            self.after(gap, move |lab| lab.mux.plug(plugs));
        }
        phone.lose_cable();
    }

    /// Does something when this much time has passed on the phones.
    fn after(self: &Arc<Self>, gap: Duration, act: impl FnOnce(&Self) + Send + 'static) {
        if gap.is_zero() {
            return act(self);
        }
        let lab = Arc::clone(self);
        self.spawn(info_span!("replug"), async move {
            lab.clock.sleep(gap).await;
            act(&lab);
        });
    }

    /// A handle on a phone.
    pub(crate) fn phone(self: &Arc<Self>, udid: &Udid) -> Option<Phone> {
        let phone = self.phones.get(udid)?;
        Some(Phone::new(Arc::clone(phone), Arc::clone(self)))
    }
}

impl Lab {
    /// Starts a scenario. The current thread must be in a tokio runtime. Of
    /// two phones with one UDID, the second is left out.
    pub fn start(scenario: Scenario) -> Self {
        let Scenario {
            time_scale,
            phones: specs,
            strays,
        } = scenario;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (clock, load, mux) = (Clock::start(time_scale), Load::default(), Mux::new());
        let (mut phones, mut serials) = (BTreeMap::new(), BTreeMap::new());
        for spec in specs {
            if phones.contains_key(&spec.udid) {
                continue;
            }
            let phone = PhoneCore::new(
                &spec,
                clock,
                tasks.clone(),
                load.clone(),
                stop.child_token(),
            );
            if spec.runner {
                phone.start_runner(spec.port, spec.uptime);
            }
            for transport in spec.connection {
                mux.attach(&spec.udid, &spec.serial, transport);
            }
            serials.insert(spec.udid.clone(), spec.serial);
            phones.insert(spec.udid, phone);
        }
        for stray in strays {
            mux.add_stray(stray);
        }
        let (listeners, oddities) = (Listeners::default(), Oddities::default());
        Self {
            core: Arc::new(LabCore {
                mux,
                phones,
                serials,
                listeners,
                oddities,
                clock,
                load,
                stop,
                tasks,
            }),
        }
    }

    /// An in-memory connection to the lab's usbmuxd. It is closed at once while
    /// the daemon is down.
    pub fn connect(&self) -> DuplexStream {
        self.core.connect()
    }

    /// Makes connections to the lab's usbmuxd like [`Lab::connect`], for as
    /// long as the lab runs; afterwards they are closed at once.
    pub fn dialer(&self) -> impl Fn() -> DuplexStream + Clone + Send + Sync + 'static {
        let core = Arc::clone(&self.core);
        move || core.connect()
    }

    /// Serves usbmuxd on a unix socket. A socket that nobody serves any more
    /// is replaced.
    pub async fn serve_unix(&self, path: impl Into<PathBuf>) -> io::Result<()> {
        socket::serve_unix(&self.core, path.into()).await
    }

    /// Serves usbmuxd on TCP, and says where. Port 0 takes any that is free.
    pub async fn serve_tcp(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        socket::serve_tcp(&self.core, address).await
    }

    /// Serves the [control API](crate::control), and says where. Only a
    /// loopback address is taken: the API asks nobody who they are.
    pub async fn serve_control(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        control::serve(&self.core, address).await
    }

    /// A handle on a phone.
    pub fn phone(&self, udid: &Udid) -> Option<Phone> {
        self.core.phone(udid)
    }

    /// Handles on all phones, by UDID.
    pub fn phones(&self) -> Vec<Phone> {
        self.core
            .phones
            .keys()
            .filter_map(|udid| self.core.phone(udid))
            .collect()
    }

    /// How many commands all runners together have in hand.
    pub fn load(&self) -> LoadReport {
        *self.core.load.watch().borrow()
    }

    /// Waits until the runners' commands in hand satisfy `seen`.
    pub async fn wait_until(&self, seen: impl FnMut(&LoadReport) -> bool) -> LoadReport {
        let mut load = self.core.load.watch();
        // The sender lives in the core that this handle holds.
        load.wait_for(seen)
            .await
            .map(|load| *load)
            .unwrap_or_default()
    }

    /// Ends usbmuxd: its sockets, its connections, its numbers.
    pub fn stop_usbmuxd(&self) {
        self.core.mux.stop();
    }

    /// Starts usbmuxd, ending the one that is up, if any.
    pub fn start_usbmuxd(&self, ids: Ids) {
        self.core.mux.start(ids);
    }

    /// Makes usbmuxd answer no new connection, or begin to again.
    pub fn stall_usbmuxd(&self, stalled: bool) {
        self.core.mux.stall(stalled);
    }

    /// Makes usbmuxd announce something that is no phone of this lab.
    pub fn stray(&self, stray: Stray) {
        self.core.mux.add_stray(stray);
    }

    /// Takes all such announcements back.
    pub fn clear_strays(&self) {
        self.core.mux.clear_strays();
    }

    /// Makes usbmuxd give an odd answer.
    pub fn oddity(&self, oddity: impl Into<Oddity>) {
        self.core.oddities.push(oddity.into());
    }

    /// Forgets the odd answers that wait.
    pub fn clear_oddities(&self) {
        self.core.oddities.clear();
    }

    /// Ends the lab and waits until everything in it has ended.
    pub async fn shutdown(self) {
        self.core.stop.cancel();
        self.core.tasks.close();
        self.core.tasks.wait().await;
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.core.stop.cancel();
    }
}

/// The programs that listen for events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listeners(Arc<Mutex<Vec<String>>>);

impl Listeners {
    /// Notes a program for as long as the result lives.
    pub(crate) fn enter(&self, name: String) -> Listening {
        lock(&self.0).push(name.clone());
        Listening {
            all: self.clone(),
            name,
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// One program that listens.
#[derive(Debug)]
pub(crate) struct Listening {
    all: Listeners,
    name: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut names = lock(&self.all.0);
        if let Some(at) = names.iter().position(|name| *name == self.name) {
            names.remove(at);
        }
    }
}
