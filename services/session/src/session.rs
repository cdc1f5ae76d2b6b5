//! The handle to a device's session, and the owner of its task.
//!
//! A [`Session`] only carries jobs in and answers out. Dropping a call's future
//! ends the wait, never a mutation. Everything that runs belongs to the
//! [`SessionTask`]; whoever holds that decides how it ends.

use std::task::{Context, Poll};
use std::time::Duration;

use fleetgate_runner::{Effect, Envelope, Exchange, Fate, RunnerStatus, SendError, Udid};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tower::retry::RetryLayer;
use tower::{Service, ServiceBuilder};
use tracing::Instrument;

use crate::aftermath::{Aftermath, Legacy};
use crate::aim::AimLayer;
use crate::config::SessionConfig;
use crate::contain::ContainLayer;
use crate::docket::Docket;
use crate::failure::{Failed, Failure};
use crate::gauge::{Gauge, Vitals};
use crate::inquiry::Inquiry;
use crate::job::{Job, Success};
use crate::lane::{Closing, Lane, Submission};
use crate::leave::Leave;
use crate::on_record::{Desk, OnRecordLayer};
use crate::queue::Caller;
use crate::record::{Record, RecordError, Unsettled};
use crate::recorder::Recorder;
use crate::recover::RecoverLostLayer;
use crate::resend::Resend;
use crate::resolver::Resolver;
use crate::retry::BusyRetry;
use crate::traffic::{Load, Pause, Traffic};
use crate::turn::Turn;
use crate::window::WindowLayer;

/// How many submissions may be on their way to the lane, which takes them in
/// and refuses them at once: its queue is what bounds the waiting.
const INBOX: usize = 32;

/// One device's session.
///
/// `poll_ready` is always ready; a device that is in too much demand answers
/// [`Failure::LaneFull`].
///
/// ```
/// use std::time::Duration;
///
/// use fleetgate_runner::{Command, CommandId, DeviceCommand, Envelope, Exchange, Fate, Reply};
/// use fleetgate_session::{Job, Leave, Origin, Record, Session, SessionConfig};
/// use tower::{ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A phone that acknowledges everything, and a ledger that keeps nothing.
/// let exchange = service_fn(|exchange: Exchange| async move {
///     exchange.clearance.cleared().await?;
///     exchange.sent.mark();
///     Ok(Envelope::from(Ok(Reply::Done("shutting down".to_owned()))))
/// });
/// let recorder = service_fn(|_: Record| async { Ok(()) });
///
/// let device = "00008110-000978540290401E".parse()?;
/// let config = SessionConfig::default();
/// let (session, task) = Session::spawn(device, exchange, recorder, config, Vec::new());
/// let job = Job {
///     command_id: CommandId::mint(),
///     command: Command::Device(DeviceCommand::Shutdown),
///     deadline: None,
///     origin: Origin::default(),
///     leave: Leave::unconditional(),
/// };
/// let success = session.oneshot(job).await?;
/// assert_eq!(success.receipt.fate, Fate::Completed);
/// task.shutdown(Duration::from_secs(1)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    inbox: mpsc::Sender<Submission>,
    traffic: Traffic,
    gauge: Gauge,
}

impl Session {
    /// Starts a session on the current runtime.
    ///
    /// `exchange` carries out one attempt; it must not write the first byte
    /// before the attempt's clearance has come and its mark is set. `recorder`
    /// answers once an entry is durable. Either may be not ready at times, and
    /// neither is trusted to answer in time, or not to panic.
    ///
    /// `unsettled` are the mutations that earlier sessions of the device left
    /// without a known fate, oldest first. No mutation is sent before those
    /// without any have one, for as long as the configured patience lasts, nor
    /// while the runner says that it is executing one whose window is open.
    pub fn spawn<X, R>(
        device: Udid,
        exchange: X,
        recorder: R,
        config: SessionConfig,
        unsettled: Vec<Unsettled>,
    ) -> (Self, SessionTask)
    where
        X: Service<Exchange, Response = Envelope, Error = SendError> + Clone + Send + 'static,
        X::Future: Send,
        R: Service<Record, Response = (), Error = RecordError> + Clone + Send + 'static,
        R::Future: Send,
    {
        let closing = Closing::default();
        // Whoever asks first for the device must not seem to be the cause of
        // all that follows.
        let lane_span = tracing::info_span!(parent: None, "lane", device.id = %device);
        let aftermath_span = tracing::info_span!(parent: None, "aftermath", device.id = %device);
        let budgets = config.budgets;
        let gauge = Gauge::new(budgets).holding_when_wedged(config.hold_when_wedged);
        let legacy = Legacy::new(unsettled, budgets, config.reconcile_patience, &gauge);
        let (docket, doubts, ids) = Docket::new();
        let recorder = Recorder::new(recorder, device, config.record_patience);
        let failures = gauge.clone();
        // One read or one send, whoever it is for.
        let probe = ServiceBuilder::new()
            .layer(RetryLayer::new(Resend::new(budgets)))
            .map_err(move |error| {
                failures.hear_failure(&error);
                error
            })
            .layer(WindowLayer::new(budgets))
            .service(exchange);
        let inquiry = Inquiry::new(probe.clone());
        // Top = outermost: a command passes from top to bottom.
        let stack = ServiceBuilder::new()
            .layer(AimLayer::new(recorder.clone()))
            .layer(OnRecordLayer::new(Desk {
                recorder: recorder.clone(),
                gauge: gauge.clone(),
                docket,
                budgets,
            }))
            .layer(ContainLayer::new(closing.abandon.clone()))
            .layer(RetryLayer::new(BusyRetry::new(
                budgets,
                config.busy_ceiling,
            )))
            .layer(RecoverLostLayer::new(budgets))
            .service(probe);
        let (inbox, submissions) = mpsc::channel(INBOX);
        let traffic = Traffic::default();
        let aftermath = Aftermath {
            resolver: Resolver::new(
                inquiry.clone(),
                recorder.clone(),
                budgets,
                gauge.clone(),
                ids,
            ),
            doubts,
            inquiry,
            gauge: gauge.clone(),
            budgets,
            closing: closing.clone(),
        };
        let lane = Lane::new(
            stack,
            recorder,
            config,
            closing.clone(),
            traffic.clone(),
            gauge.clone(),
        );
        let mut task = JoinSet::new();
        task.spawn(lane.run(submissions).instrument(lane_span));
        task.spawn(aftermath.run(legacy).instrument(aftermath_span));
        let session = Self {
            inbox,
            traffic,
            gauge,
        };
        (session, SessionTask { task, closing })
    }

    /// How busy the device is, and how its runner fares.
    pub fn load(&self) -> Load {
        self.traffic.load(self.gauge.condition())
    }

    /// What is noticed of the runner: the present state, and every change.
    pub fn vitals(&self) -> watch::Receiver<Vitals> {
        self.gauge.vitals()
    }

    /// From now on nothing that is queued starts, neither mutations nor reads,
    /// until every [`Pause`] has been dropped.
    ///
    /// What is in flight goes on ([`idle`](Self::idle)); `status` goes past. What
    /// waits keeps its place, and ends not sent at its deadline. A session that
    /// is shut down meanwhile waits for the pause's end for its grace only.
    pub fn pause(&self) -> Pause {
        self.traffic.pause()
    }

    /// Waits until nothing is in flight on the lane. Nothing will be as long as
    /// the caller has a [`Pause`] from before; otherwise something may be by the
    /// time that this is read.
    pub async fn idle(&self) {
        self.traffic.until_idle().await;
    }

    /// Tells the session what somebody beside it has heard from the runner.
    pub fn hear(&self, status: &RunnerStatus) {
        self.gauge.hear_status(status);
    }
}

impl Service<Job> for Session {
    type Response = Success;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Success, Failed>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, job: Job) -> Self::Future {
        let inbox = self.inbox.clone();
        Box::pin(async move {
            let deadline = job.deadline;
            let turn = Turn::from(job);
            let joins = turn.leave.is_to_join();
            // The lane's turn has the leave, for as long as it is needed.
            let unanswered = Turn {
                leave: Leave::unconditional(),
                ..turn.clone()
            };
            let closed = |fate, effect| Failed {
                receipt: unanswered.receipt(fate, effect),
                failure: if joins {
                    Failure::NotUnderWay
                } else {
                    Failure::Closed
                },
            };
            let (to, answer) = oneshot::channel();
            let submission = Submission {
                turn,
                caller: Caller { deadline, to },
            };
            if inbox.send(submission).await.is_err() {
                return Err(closed(Fate::NotSent, Effect::None));
            }
            match answer.await {
                Ok(outcome) => outcome,
                // The lane is gone without a word, as when its task was
                // dropped. The tally says whether it had sent anything; clones
                // share it.
                Err(_dropped) => {
                    let (fate, effect) = unanswered.tally.without_answer();
                    Err(closed(fate, effect))
                }
            }
        })
    }
}

/// The owner of a session's tasks. Dropping it ends the session at once, with
/// fates that the record does not learn; [`shutdown`](Self::shutdown) is the
/// proper end.
#[derive(Debug)]
#[must_use = "dropping it ends the session"]
pub struct SessionTask {
    task: JoinSet<()>,
    closing: Closing,
}

impl SessionTask {
    /// Ends the session and returns once every command that was let in has its
    /// fate on record.
    ///
    /// Nobody is let in from now on ([`Failure::Closed`]). What was let in may
    /// go on for `grace`; then what has not started ends as not sent, and what is
    /// in flight ends as unknown if it was sent, both for the reason
    /// `GATEWAY_DRAINING`. Putting that on record may take the configured
    /// patience on top.
    pub async fn shutdown(mut self, grace: Duration) {
        self.closing.begun.cancel();
        if tokio::time::timeout(grace, self.ended()).await.is_err() {
            self.closing.abandon.cancel();
        }
        self.ended().await;
    }

    async fn ended(&mut self) {
        while let Some(ended) = self.task.join_next().await {
            if let Err(error) = ended {
                // Not in the panic's words, which may be about anything.
                let by_panic = error.is_panic();
                tracing::error!(by_panic, "a task of a session did not end by itself");
            }
        }
    }
}

#[cfg(test)]
mod tests;
