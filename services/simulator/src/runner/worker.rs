//! The runner's serial queue: one command at a time, in the order accepted.
//!
//! A command comes to the head, passes the gate or is turned away, and runs
//! under its budget. What overruns is abandoned: it goes on in a task of its
//! own while its caller is answered. The runner ends by itself after 24 hours,
//! and after a `shutdown` whose reply is flushed.
//!
//! Everything but `status` comes this way, `screenshot` included: field reports
//! of runners that still took pictures while stuck are of other versions, and
//! the protocol says that whatever follows an abandoned command is turned away.
//!
//! Invariant: no two commands execute within their budgets at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fleetgate_runner::{Command, CommandId, CommandKind, Envelope, RunnerCode, RunnerError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tracing::{Instrument, debug};

use super::execute::Execution;
use super::{Job, Outcome, Runner, Task};
use crate::fault::Stage;
use crate::gate::Verdict;
use crate::launch::{Ending, words};
use crate::phone::core::PhoneCore;
use crate::sync::until_stopped;

/// How long a runner's session lasts.
const SESSION: Duration = Duration::from_secs(24 * 60 * 60);

/// Works off a runner's queue until the runner ends.
pub(crate) async fn run(phone: Arc<PhoneCore>, runner: Arc<Runner>, mut jobs: mpsc::Receiver<Job>) {
    let left = SESSION.saturating_sub(runner.boot.uptime);
    tokio::select! {
        biased;
        () = runner.stop.cancelled() => {}
        () = phone.clock.sleep(left) => phone.end_runner(&runner, Ending::Expired),
        () = work_off(&phone, &runner, &mut jobs) => phone.end_runner(&runner, Ending::ShutDown),
    }
    debug!("runner ended");
}

/// Returns after a `shutdown`.
async fn work_off(phone: &Arc<PhoneCore>, runner: &Arc<Runner>, jobs: &mut mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        let kind = job.task.kind();
        let (envelope, ran) = decide(phone, runner, job.id.clone(), job.task).await;
        let shut_down = kind == CommandKind::Shutdown && envelope.result.is_ok();
        let evict = ran && phone.take_fault(Stage::Journal, Some(kind)).is_some();
        let body = Bytes::from(envelope.encode());
        // Whoever learns of the end, from the journal or the reply, may send the
        // next command at once.
        drop(job.in_flight);
        if let Some(id) = &job.id {
            let mut book = runner.book();
            book.journal
                .finish(id, kind, envelope.result.as_ref().err().cloned(), &body);
            if evict {
                book.journal.evict(id);
            }
            book.in_flight.remove(id);
        }
        runner.log(|| words::finished(kind, job.id.as_ref(), envelope.result.is_ok()));
        job.outcome.send_replace(Some(Outcome {
            status: envelope.status(),
            body,
            ran,
        }));
        if shut_down {
            // Whoever waits for the reply lets go of it once it is flushed.
            job.outcome.closed().await;
            return;
        }
    }
}

/// The verdict on one command, and whether it passed the gate.
async fn decide(
    phone: &Arc<PhoneCore>,
    runner: &Arc<Runner>,
    id: Option<CommandId>,
    task: Task,
) -> (Envelope, bool) {
    if let Some(id) = &id {
        runner.book().journal.start(id);
    }
    let kind = task.kind();
    let verdict = match phone.take_fault(Stage::Gate, Some(kind)) {
        Some(_) => Verdict::Busy(Duration::ZERO),
        None => runner.verdict(&phone.clock),
    };
    let turned_away = |id, code: RunnerCode, since| {
        phone.note_decline(kind, id, code.clone());
        (turned_away(code, since), false)
    };
    match (verdict, task) {
        (Verdict::Busy(since), _) => {
            runner.log(|| words::busy(kind, since));
            turned_away(id, RunnerCode::RunnerBusy, since)
        }
        (Verdict::Wedged(since), _) => {
            runner.log(|| words::wedged(since));
            turned_away(id, RunnerCode::RunnerWedged, since)
        }
        (Verdict::Open, Task::Refuse(_, error)) => (Envelope::from(Err(error)), true),
        (Verdict::Open, Task::Run(command)) => (execute(phone, runner, id, command).await, true),
    }
}

fn turned_away(code: RunnerCode, since: Duration) -> Envelope {
    let (state, hint) = if code == RunnerCode::RunnerWedged {
        ("stuck", "recycle the runner's session")
    } else {
        ("draining", "send the command again in a moment")
    };
    let message = format!(
        "abandoned work has been {state} for {} ms",
        since.as_millis()
    );
    Envelope::from(Err(RunnerError {
        code,
        message,
        hint: Some(hint.to_owned()),
    }))
}

/// Runs a command in a task of its own, for as long as its budget allows.
async fn execute(
    phone: &Arc<PhoneCore>,
    runner: &Arc<Runner>,
    id: Option<CommandId>,
    command: Command,
) -> Envelope {
    let kind = command.kind();
    let budget = phone.clock.budgets().budget(kind.class()).runner;
    let reactivated = Arc::new(AtomicBool::new(false));
    let work = runner.book().gate.begin();
    let (done, verdict) = oneshot::channel();
    let execution = Execution {
        phone: Arc::clone(phone),
        runner: Arc::clone(runner),
        id,
        reactivated: Arc::clone(&reactivated),
    };
    let task = {
        let runner = Arc::clone(runner);
        async move {
            let envelope = execution.run(&command).await;
            if runner.book().gate.end(work) {
                runner.log(words::drained);
            }
            execution.phone.announce();
            // Nobody is there to take the verdict of abandoned work.
            drop(done.send(envelope));
        }
    };
    let stop = runner.stop.clone();
    phone
        .tasks
        .spawn(async move { until_stopped(&stop, task).await }.in_current_span());
    match timeout(budget, verdict).await {
        Ok(Ok(envelope)) => envelope,
        // The runner is ending, and this with it.
        Ok(Err(_)) => std::future::pending().await,
        Err(_) => {
            runner.book().gate.abandon(work, Instant::now());
            phone.announce();
            let error = RunnerError {
                code: RunnerCode::CommandTimedOut,
                message: format!("{kind} overran its budget and was abandoned"),
                hint: Some("the command may still take effect".to_owned()),
            };
            Envelope {
                reactivated: reactivated.load(Ordering::Acquire),
                ..Envelope::from(Err(error))
            }
        }
    }
}
