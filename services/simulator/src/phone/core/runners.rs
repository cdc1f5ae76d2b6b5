//! The runners of a phone, one after the other, and the launches that some of
//! them belong to.
//!
//! Invariant: at most one runner is up at a time, one that has ended is
//! cancelled with everything that it was doing, and none that was launched
//! outlives its launch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::{Instrument, info_span};

use super::{PhoneCore, PhoneState};
use crate::launch::{Ending, Launch, LaunchEvent};
use crate::runner::{Boot, Runner, worker};

/// The first of the ports that a runner takes which was told none.
const FREE_PORTS: u16 = 49152;
/// How many of them there are; lockdown's is not among them.
const HOW_MANY: u16 = 8192;

/// Which runner is up, and what came before it.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    runner: Option<Arc<Runner>>,
    launch: Option<Arc<Launch>>,
    free: u16,
    pub(super) incarnations: u64,
    pub(super) launches: u64,
}

impl Lives {
    /// The launch that is under way, if one is.
    pub(super) fn launch(&self) -> Option<u64> {
        self.launch.as_ref().map(|launch| launch.id)
    }

    /// A port that no runner of this phone has had for a long time.
    fn free_port(&mut self) -> u16 {
        let port = FREE_PORTS + self.free;
        self.free = (self.free + 1) % HOW_MANY;
        port
    }

    /// Ends the runner that is up if it is of that kind.
    fn end(&mut self, ending: Ending, is_it: impl Fn(&Runner) -> bool) {
        if let Some(runner) = self.runner.take_if(|runner| is_it(runner)) {
            runner.end(ending);
        }
    }
}

/// Which launch a runner belongs to.
#[derive(Debug)]
enum By<'a> {
    /// That of the runner whose place it takes, if that one has one.
    Predecessor,
    /// This, as long as it is under way.
    Launch(&'a Arc<Launch>),
}

impl PhoneCore {
    /// The runner that is up, if one is.
    pub(crate) fn runner(&self) -> Option<Arc<Runner>> {
        self.look(|state| state.lives.runner.clone())
    }

    /// The runner that listens on `port`, if one does.
    pub(crate) fn runner_on(&self, port: u16) -> Option<Arc<Runner>> {
        self.runner().filter(|runner| runner.port == port)
    }

    /// The runner that is up if it was started by this launch.
    pub(crate) fn runner_of(&self, launch: &Arc<Launch>) -> Option<Arc<Runner>> {
        self.runner().filter(|runner| runner.is_of(launch))
    }

    /// Ends the runner that is up, if any, and starts another with an empty
    /// journal. It takes the other's place in its launch, if there is one.
    pub(crate) fn start_runner(self: &Arc<Self>, port: u16, uptime: Duration) {
        self.start(port, uptime, &By::Predecessor);
    }

    /// Starts the runner of a launch, on any free port if it is told 0. None if
    /// the launch is over.
    pub(crate) fn launch_runner(
        self: &Arc<Self>,
        port: u16,
        uptime: Duration,
        launch: &Arc<Launch>,
    ) -> Option<Arc<Runner>> {
        self.start(port, uptime, &By::Launch(launch))
    }

    /// Starts a launch's runner anew, if the launch is not over.
    pub(crate) fn restart_launched(self: &Arc<Self>, launch: &Arc<Launch>, port: u16) {
        self.start(port, Duration::ZERO, &By::Launch(launch));
    }

    fn start(self: &Arc<Self>, port: u16, uptime: Duration, by: &By<'_>) -> Option<Arc<Runner>> {
        let started = self.change(|PhoneState { lives, .. }| {
            let launch = match by {
                By::Predecessor => lives.runner.as_ref().and_then(|runner| runner.launch()),
                By::Launch(launch) => {
                    let current = lives.launch.as_ref();
                    current.filter(|current| Arc::ptr_eq(current, launch))?;
                    Some(Arc::clone(launch))
                }
            };
            let port = if port == 0 { lives.free_port() } else { port };
            let stop = self.stop.child_token();
            let (runner, jobs) = Runner::new(port, Boot::after(uptime), stop, launch.clone());
            let runner = Arc::new(runner);
            if let Some(old) = lives.runner.replace(Arc::clone(&runner)) {
                let same = launch.is_some_and(|launch| old.is_of(&launch));
                old.end(if same {
                    Ending::Restarted
                } else {
                    Ending::Replaced
                });
            }
            lives.incarnations += 1;
            Some((runner, jobs, lives.incarnations))
        });
        let (runner, jobs, incarnation) = started?;
        let port = runner.port;
        let span = info_span!("runner", device.id = %self.udid, incarnation, port);
        let work = worker::run(Arc::clone(self), Arc::clone(&runner), jobs);
        self.tasks.spawn(work.instrument(span));
        Some(runner)
    }

    /// Ends this runner, unless another has taken its place already.
    pub(crate) fn end_runner(&self, runner: &Arc<Runner>, ending: Ending) {
        runner.end(ending);
        self.change(|state| {
            let lives = &mut state.lives;
            lives.end(ending, |up| std::ptr::eq(up, Arc::as_ptr(runner)));
        });
    }

    /// Ends whatever runner is up.
    pub(crate) fn kill_runner(&self) {
        self.change(|state| state.lives.end(Ending::Killed, |_| true));
    }

    /// A launch begins: one that is under way is over, and so is whatever
    /// runner is up.
    pub(crate) fn begin_launch(
        &self,
        stays_when_unplugged: bool,
        events: mpsc::Sender<LaunchEvent>,
    ) -> Arc<Launch> {
        self.change(|PhoneState { lives, .. }| {
            lives.launches += 1;
            let launch = Launch::new(lives.launches, stays_when_unplugged, events);
            let launch = Arc::new(launch);
            if let Some(old) = lives.launch.replace(Arc::clone(&launch)) {
                old.end(Ending::Replaced);
            }
            lives.end(Ending::Replaced, |_| true);
            launch
        })
    }

    /// A launch is over, and its runner with it.
    pub(crate) fn end_launch(&self, launch: &Arc<Launch>) {
        launch.end(Ending::Killed);
        self.change(|PhoneState { lives, .. }| {
            lives.end(Ending::Killed, |up| up.is_of(launch));
            lives.launch.take_if(|current| Arc::ptr_eq(current, launch));
        });
    }

    /// The cable was pulled: what was launched through it is over.
    pub(crate) fn lose_cable(&self) {
        self.change(|PhoneState { lives, .. }| {
            let gone = lives.launch.take_if(|launch| !launch.stays_when_unplugged);
            if let Some(launch) = gone {
                launch.end(Ending::Unplugged);
                lives.end(Ending::Unplugged, |up| up.is_of(&launch));
            }
        });
    }
}
