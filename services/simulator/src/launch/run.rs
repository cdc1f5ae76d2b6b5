//! One launch, from the question whether the phone is there to the exit code.
//!
//! Invariant: however this ends (with the runner, with the launch, with the
//! connection or with the lab), the runner that it started has ended too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::debug;

use super::fault::Step;
use super::{Ending, Launch, LaunchEvent, LaunchRequest, Mishap, words};
use crate::lab::LabCore;
use crate::phone::core::PhoneCore;
use crate::runner::Runner;

/// The test run was a success.
const SUCCESS: u8 = 0;
/// The test run failed.
pub(super) const TEST_FAILURE: u8 = 65;
/// There is no such destination, or none that can be used.
const NO_DESTINATION: u8 = 70;

/// The process that is told does not listen any more.
#[derive(Debug)]
struct Gone;

type Told = Result<(), Gone>;

/// What befalls this launch, step by step.
#[derive(Debug)]
struct Mishaps {
    start: Option<Mishap>,
    line: Option<Mishap>,
    life: Option<Mishap>,
    age: Option<Mishap>,
    signal: Option<Mishap>,
    group: Option<Mishap>,
    cable: Option<Mishap>,
}

/// How a launch ended.
#[derive(Debug)]
enum End {
    /// With a runner that was up, or could have been.
    Of(Ending),
    /// Before there was one.
    Exit(u8, String),
}

/// Launches a runner and tells the process that asked for it what to print,
/// until either has ended.
pub(crate) async fn run(
    lab: Arc<LabCore>,
    phone: Arc<PhoneCore>,
    request: LaunchRequest,
    events: mpsc::Sender<LaunchEvent>,
) {
    let process = Process(events);
    if let Err(Gone) = launch(&lab, &phone, request, &process).await {
        debug!("the process that launched is gone");
    }
}

async fn launch(
    lab: &LabCore,
    phone: &Arc<PhoneCore>,
    request: LaunchRequest,
    process: &Process,
) -> Told {
    let (name, udid) = (&phone.name, &phone.udid);
    process
        .tool(format!("Test destination: {name} ({udid})"))
        .await?;
    if let Some(obstacle) = obstacle(lab, phone) {
        process
            .error(format!("cannot test on {udid}: {obstacle}"))
            .await?;
        return process.say(LaunchEvent::Exit(NO_DESTINATION)).await;
    }
    let LaunchRequest { port, mishaps } = request;
    let mishaps = Mishaps::of(phone, mishaps);
    let stays = mishaps.cable.is_some();
    let running = Running::begin(phone, stays, process);
    // Whoever pulled the cable before this began had nothing to end.
    if !stays && !lab.mux.sees_by_cable(udid) {
        running.launch.end(Ending::Unplugged);
    }
    let end = tokio::select! {
        biased;
        ending = running.launch.ended() => End::Of(ending),
        () = process.0.closed() => return Err(Gone),
        end = running.play(port, mishaps, process) => end?,
    };
    // The runner is gone before anybody hears of it.
    drop(running);
    process.end(end).await
}

/// Why nothing can be launched on a phone.
fn obstacle(lab: &LabCore, phone: &PhoneCore) -> Option<&'static str> {
    let (trusted, locked) = phone.look(|state| (state.trusted, state.locked));
    if !lab.mux.sees_by_cable(&phone.udid) {
        Some("it is not plugged in")
    } else if !trusted {
        Some("it does not trust this computer: unlock it and confirm the question there")
    } else if locked {
        Some("it is locked: unlock it")
    } else {
        None
    }
}

impl Mishaps {
    /// What was asked for, and for the other steps what waits on the phone.
    fn of(phone: &PhoneCore, asked: Vec<Mishap>) -> Self {
        let mut asked = asked;
        let mut at = |step| {
            let wanted = asked.iter().position(|mishap| mishap.step() == step);
            match wanted {
                Some(found) => Some(asked.swap_remove(found)),
                None => phone.change(|state| state.launch_faults.take(step)),
            }
        };
        Self {
            start: at(Step::Start),
            line: at(Step::Line),
            life: at(Step::Life),
            age: at(Step::Age),
            signal: at(Step::Signal),
            group: at(Step::Group),
            cable: at(Step::Cable),
        }
    }
}

/// A launch under way; when this is dropped, it is over.
#[derive(Debug)]
struct Running {
    phone: Arc<PhoneCore>,
    launch: Arc<Launch>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.phone.end_launch(&self.launch);
    }
}

impl Running {
    fn begin(phone: &Arc<PhoneCore>, stays_when_unplugged: bool, process: &Process) -> Self {
        let launch = phone.begin_launch(stays_when_unplugged, process.0.clone());
        Self {
            phone: Arc::clone(phone),
            launch,
        }
    }

    /// Everything from the start of the runner to its end.
    async fn play(&self, port: u16, mishaps: Mishaps, process: &Process) -> Result<End, Gone> {
        if mishaps.signal.is_some() {
            process.say(LaunchEvent::IgnoreSigterm).await?;
        }
        if mishaps.group.is_some() {
            process.say(LaunchEvent::LeaveChild).await?;
        }
        if let Some(Mishap::Exits { code, message }) = mishaps.start {
            return Ok(End::Exit(code, message));
        }
        process.tool("Testing started".to_owned()).await?;
        process.runner(words::starting(port)).await?;
        match mishaps.start {
            Some(Mishap::NeverListens) => std::future::pending::<()>().await,
            Some(Mishap::ListenerFailed { error }) => {
                process.runner(words::listener_failed(&error)).await?;
                std::future::pending::<()>().await;
            }
            Some(Mishap::ListensLate { by }) => self.phone.clock.sleep(by).await,
            Some(_) | None => {}
        }
        let uptime = match mishaps.age {
            Some(Mishap::Aged { uptime }) => uptime,
            Some(_) | None => Duration::ZERO,
        };
        let Some(runner) = self.phone.launch_runner(port, uptime, &self.launch) else {
            return Ok(End::Of(self.launch.ended().await));
        };
        self.say_where(&runner, mishaps.line, process).await?;
        process.runner(words::serving()).await?;
        self.serve(runner, mishaps.life, process).await.map(End::Of)
    }

    async fn say_where(&self, runner: &Runner, line: Option<Mishap>, process: &Process) -> Told {
        let listening = words::listening(runner.port);
        match line {
            Some(Mishap::PortZero) => process.runner(words::listening(0)).await?,
            Some(Mishap::LongLine { bytes }) => process.tool("=".repeat(bytes)).await?,
            Some(Mishap::SplitLine { pause }) => {
                let (begins, ends) = listening.split_at(listening.len() - 2);
                process
                    .say(LaunchEvent::RunnerBegins(begins.to_owned()))
                    .await?;
                self.phone.clock.sleep(pause).await;
                return process.say(LaunchEvent::RunnerEnds(ends.to_owned())).await;
            }
            Some(_) | None => {}
        }
        process.runner(listening).await
    }

    /// Waits until the runner has ended, and every one that took its place.
    async fn serve(
        &self,
        mut runner: Arc<Runner>,
        life: Option<Mishap>,
        process: &Process,
    ) -> Result<Ending, Gone> {
        let mut interference = std::pin::pin!(self.interfere(life));
        loop {
            tokio::select! {
                biased;
                () = runner.stop.cancelled() => {}
                () = &mut interference => return Ok(Ending::Killed),
            }
            match self.phone.runner_of(&self.launch) {
                None => return Ok(runner.ending()),
                Some(next) => {
                    process.runner(words::starting(next.port)).await?;
                    process.runner(words::listening(next.port)).await?;
                    process.runner(words::serving()).await?;
                    runner = next;
                }
            }
        }
    }

    /// What befalls the runner while it serves; returns when it is to die.
    async fn interfere(&self, life: Option<Mishap>) {
        match life {
            Some(Mishap::Dies { after }) => return self.phone.clock.sleep(after).await,
            Some(Mishap::ListensAgain { after, port }) => {
                self.phone.clock.sleep(after).await;
                self.phone.restart_launched(&self.launch, port.unwrap_or(0));
            }
            Some(_) | None => {}
        }
        std::future::pending::<()>().await;
    }
}

/// The process that launches, as far as it can be told things.
#[derive(Debug)]
struct Process(mpsc::Sender<LaunchEvent>);

impl Process {
    async fn say(&self, event: LaunchEvent) -> Told {
        self.0.send(event).await.map_err(|_| Gone)
    }

    async fn tool(&self, line: String) -> Told {
        self.say(LaunchEvent::Tool(line)).await
    }

    async fn error(&self, line: String) -> Told {
        self.say(LaunchEvent::Error(line)).await
    }

    async fn runner(&self, line: String) -> Told {
        self.say(LaunchEvent::Runner(line)).await
    }

    /// How it ended, in words and as the exit code.
    async fn end(&self, end: End) -> Told {
        let code = match end {
            End::Exit(code, message) => {
                if !message.is_empty() {
                    self.error(message).await?;
                }
                code
            }
            End::Of(ending) => {
                if let Some(line) = words::stopped(ending) {
                    self.runner(line).await?;
                }
                if let Some(reason) = words::failed(ending) {
                    self.error(format!("Testing failed: {reason}")).await?;
                    TEST_FAILURE
                } else {
                    self.tool("Testing succeeded".to_owned()).await?;
                    SUCCESS
                }
            }
        };
        self.say(LaunchEvent::Exit(code)).await
    }
}
