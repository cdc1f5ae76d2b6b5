//! A device's lane: the one task that sends its commands, one at a time.
//!
//! ```text
//!            ┌────────────────────────── one ends: answer its callers ◄─┐
//!            ▼                                                          │
//!   ┌──► IDLE ── something waits ──► RUNNING ───────────────────────────┘
//!   │     │                            │
//!   │     │ closing                    │ closing
//!   │     ▼                            ▼
//!   │   DONE ◄── nothing left ── CLOSING: no command is let in, what was goes on
//!   │                                  │
//!   │                                  │ abandon: the grace has run out
//!   │                                  ▼
//!   │                            ABANDONED: what waits is answered NOT_SENT,
//!   │                            what runs ends by `Contain` ──► DONE
//!   └ in each state: callers are let in or refused, and answered at their
//!     deadline, whatever becomes of their command; and a caller with the id of
//!     a command that has not ended waits for that one
//! ```
//!
//! While the runner may still be executing a mutation that nobody has an answer
//! to, of this session or an earlier one, only reads are started
//! ([`hold`](crate::hold)). While somebody pauses the lane
//! ([`traffic`](crate::traffic)), or the runner is wedged and the session is to
//! wait for another ([`gauge`](crate::gauge)), nothing is.
//!
//! Execution belongs to this task, not to callers: one that goes away or whose
//! deadline passes stops waiting, and its mutation goes on to a fate on record.
//! `status` goes past the lane, as on the runner, in tasks that belong to the
//! lane as well and are bounded in number.
//!
//! A command whose leave is withdrawn while it waits ends then, whatever keeps
//! it from starting, and is not sent; [`OnRecord`] has the last look. One that
//! has started keeps its leave until it has ended.
//!
//! A command that is answered from the queue is answered at once and put on
//! record beside, unless as many entries as the queue has places are pending
//! already; that a mutation is not on record proves as much. What is withdrawn or
//! abandoned is put on record all the same, so that there may be as many again.
//! One that was never
//! let in is not recorded at all: its caller is told, and a flood must not
//! become a flood of writes.
//!
//! [`OnRecord`]: crate::on_record::OnRecord

use std::panic::AssertUnwindSafe;

use fleetgate_runner::Point;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};
use tracing::Instrument;

use crate::config::SessionConfig;
use crate::failure::{Failed, Failure};
use crate::gauge::Gauge;
use crate::job::Success;
use crate::leave::any_withdrawn;
use crate::queue::{Caller, Cut, Expired, Gate, Queue, Refusal, Refused};
use crate::record::{Record, RecordError, Subject};
use crate::recorder::{Ended, Recorder};
use crate::traffic::Traffic;
use crate::turn::Turn;

mod answer;

use answer::{answer, attend, overdue, unsent, until};

/// How a command ended.
pub(crate) type Outcome = Result<Success, Failed>;

/// Where one caller's answer goes.
pub(crate) type ReplyTo = oneshot::Sender<Outcome>;

/// A command and its caller on their way in.
#[derive(Debug)]
pub(crate) struct Submission {
    /// The command.
    pub(crate) turn: Turn<Point>,
    /// Who waits for it.
    pub(crate) caller: Caller<ReplyTo>,
}

/// The two steps of a shutdown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing {
    /// Nobody is let in any more.
    pub(crate) begun: CancellationToken,
    /// Nothing goes on any more.
    pub(crate) abandon: CancellationToken,
    /// The lane has ended.
    pub(crate) gone: CancellationToken,
}

/// The state that the lane's task owns.
#[derive(Debug)]
pub(crate) struct Lane<S, R> {
    stack: S,
    recorder: Recorder<R>,
    limits: SessionConfig,
    closing: Closing,
    traffic: Traffic,
    gauge: Gauge,
    queue: Queue<ReplyTo>,
    /// Commands that go past the queue.
    beside: JoinSet<()>,
    /// Entries about commands that were answered from the queue.
    notes: JoinSet<()>,
}

impl<S, R> Lane<S, R>
where
    S: Service<Turn<Point>, Response = Success, Error = Failed> + Clone + Send + 'static,
    S::Future: Send,
    R: Service<Record, Response = (), Error = RecordError> + Clone + Send + 'static,
    R::Future: Send,
{
    /// A lane with nothing in it.
    pub(crate) fn new(
        stack: S,
        recorder: Recorder<R>,
        limits: SessionConfig,
        closing: Closing,
        traffic: Traffic,
        gauge: Gauge,
    ) -> Self {
        let queue = Queue::new(limits.queue_capacity);
        let (beside, notes) = (JoinSet::new(), JoinSet::new());
        Self {
            stack,
            recorder,
            limits,
            closing,
            traffic,
            gauge,
            queue,
            beside,
            notes,
        }
    }

    /// Serves callers until the lane is closed and empty.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Submission>) {
        let Closing { begun, abandon, .. } = self.closing.clone();
        let mut running = OptionFuture::from(None);
        let (gauge, traffic) = (self.gauge.clone(), self.traffic.clone());
        // Whoever works beside the lane ends with it.
        let _gone = self.closing.gone.clone().drop_guard();
        // No callers are let in; no submission is on its way; what is left is
        // not waited for.
        let (mut closed, mut drained, mut abandoned) = (false, false, false);
        loop {
            self.expire();
            self.withdraw();
            // In this order: an abandonment opens the gate as well.
            let (is_paused, by_gauge) = (traffic.is_paused(), gauge.gate());
            let gate = match by_gauge {
                Gate::Open if abandon.is_cancelled() => Gate::Reads,
                Gate::Open | Gate::Reads | Gate::Shut => by_gauge,
            };
            let started = traffic.start(&mut self.queue, gate, ReplyTo::is_closed);
            if let Some((turn, flight)) = started {
                let execution = self.execute(turn).map(|outcome| (outcome, flight));
                running = OptionFuture::from(Some(execution));
            }
            traffic.set_queued(self.queue.len());
            if drained && self.is_idle() {
                return;
            }
            if closed && self.is_idle() {
                // From here on there is nothing to attach to.
                inbox.close();
            }
            tokio::select! {
                // What has ended is answered before it can expire, and nobody
                // is let in once the lane is closing.
                biased;
                Some((outcome, flight)) = &mut running => {
                    running = OptionFuture::from(None);
                    self.finish(outcome);
                    drop(flight);
                }
                () = abandon.cancelled(), if !abandoned => {
                    abandoned = true;
                    self.abandon();
                }
                () = begun.cancelled(), if !closed => closed = true,
                () = gauge.until_gate_is_not(by_gauge) => {}
                () = traffic.until_paused_is(!is_paused) => {}
                () = until(self.queue.next_deadline()) => {}
                () = any_withdrawn(self.queue.leaves()) => {}
                Some(ended) = self.beside.join_next() => report(ended),
                Some(ended) = self.notes.join_next() => report(ended),
                submission = inbox.recv(), if !drained => match submission {
                    Some(Submission { turn, caller })
                        if turn.leave.is_to_join() && !self.knows(&turn) =>
                    {
                        answer(caller.to, Err(unsent(&turn, Failure::NotUnderWay)));
                    }
                    Some(Submission { turn, caller }) if closed && !self.knows(&turn) => {
                        answer(caller.to, Err(unsent(&turn, Failure::Closed)));
                    }
                    Some(submission) => self.admit(submission),
                    None => drained = true,
                },
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.queue.running().is_none()
            && self.queue.len() == 0
            && self.beside.is_empty()
            && self.notes.is_empty()
    }

    fn admit(&mut self, submission: Submission) {
        let Submission { turn, caller } = submission;
        if let Some(withdrawn) = turn.leave.withdrawn()
            && !self.knows(&turn)
        {
            let worth_a_note = self.is_worth_a_note();
            let (to, last) = (caller.to, true);
            self.cut(
                Cut { turn, to, last },
                Failure::Withdrawn(withdrawn),
                worth_a_note,
            );
            return;
        }
        if self.queue.is_crowded() {
            self.queue.make_room(ReplyTo::is_closed);
        }
        let is_known = self.knows(&turn);
        let refused = if !turn.command.kind().bypasses_queue() || is_known {
            self.queue.push(turn, caller).err().map(|refused| {
                let Refused { turn, to, why } = *refused;
                let failure = match why {
                    Refusal::Full => Failure::LaneFull {
                        limit: self.limits.queue_capacity,
                    },
                    Refusal::Conflict(fields) => Failure::IdConflict { fields },
                };
                (turn, to, self.explain(failure))
            })
        } else if self.beside.len() < self.limits.bypass_limit {
            let execution = self.execute(turn.clone());
            self.beside.spawn(attend(turn, execution, caller));
            None
        } else {
            // Nobody who goes past the lane waits for a pause to end.
            let limit = self.limits.bypass_limit;
            Some((turn, caller.to, Failure::LaneFull { limit }))
        };
        if let Some((turn, to, failure)) = refused {
            // What an id stands for goes on, whoever finds no place to wait.
            let goes_on = is_known && !matches!(failure, Failure::IdConflict { .. });
            let failed = if goes_on {
                Failed {
                    failure,
                    ..overdue(&turn)
                }
            } else {
                unsent(&turn, failure)
            };
            answer(to, Err(failed));
        }
    }

    /// True if a command with the same id is in the queue. To its end it is
    /// what the id stands for, whatever is asked for under it.
    fn knows(&self, turn: &Turn<Point>) -> bool {
        self.queue.holds(&turn.command_id)
    }

    /// The turn's way through the stack, which ends even if the stack panics.
    fn execute(&self, turn: Turn<Point>) -> BoxFuture<'static, Outcome> {
        let stack = self.stack.clone();
        let span = turn.span.clone();
        let execution = async move {
            // What the exchange's panics become is `Contain`'s business; this
            // is for a panic above it, such as the recorder's.
            let crashed = turn.clone();
            let outcome = AssertUnwindSafe(stack.oneshot(turn)).catch_unwind().await;
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(_panic) => {
                    let (fate, effect) = crashed.tally.without_answer();
                    Err(Failed {
                        receipt: crashed.receipt(fate, effect),
                        failure: Failure::Crashed,
                    })
                }
            };
            let (Ok(Success { receipt, .. }) | Err(Failed { receipt, .. })) = &outcome;
            tracing::Span::current().record("fleetgate.command.fate", receipt.fate.as_str());
            outcome
        };
        execution.instrument(span).boxed()
    }

    fn finish(&mut self, outcome: Outcome) {
        let mut callers = self.queue.finish().peekable();
        let mut outcome = Some(outcome);
        while let Some(to) = callers.next() {
            // A snapshot is large: the last caller gets the original.
            let copy = if callers.peek().is_some() {
                outcome.clone()
            } else {
                outcome.take()
            };
            if let Some(copy) = copy {
                answer(to, copy);
            }
        }
    }

    fn expire(&mut self) {
        let Expired { waiting, running } = self.queue.expire(Instant::now());
        for cut in waiting {
            let worth_a_note = self.is_worth_a_note();
            self.cut(cut, Failure::DeadlineInQueue, worth_a_note);
        }
        for (turn, to) in running {
            answer(to, Err(overdue(&turn)));
        }
    }

    fn withdraw(&mut self) {
        for (cut, withdrawn) in self.queue.withdraw() {
            self.cut(cut, Failure::Withdrawn(withdrawn), true);
        }
    }

    /// A ledger that is slower than deadlines pass must not pile up entries that
    /// prove no more than their absence.
    fn is_worth_a_note(&self) -> bool {
        self.notes.len() < self.limits.queue_capacity
    }

    /// The failure of a command that was not sent, with what that is probably
    /// due to.
    fn explain(&self, failure: Failure) -> Failure {
        if self.traffic.is_paused() {
            failure.while_paused()
        } else {
            self.gauge.explain(failure)
        }
    }

    fn abandon(&mut self) {
        for cut in self.queue.drain() {
            self.cut(cut, Failure::Closed, true);
        }
    }

    /// Answers a caller whose command will not be sent for its sake.
    fn cut(&mut self, cut: Cut<ReplyTo>, failure: Failure, worth_a_note: bool) {
        let Cut { turn, to, last } = cut;
        let turn = turn.begin(Instant::now());
        let failed = unsent(&turn, self.explain(failure));
        if last && worth_a_note {
            let recorder = self.recorder.clone();
            let failed = failed.clone();
            // Without the turn's leave: nothing more is done by it.
            let Turn {
                command,
                origin,
                span,
                ..
            } = turn;
            let note = async move {
                let subject = Subject::from(command);
                recorder.note(Ended::failed(subject, origin, &failed)).await;
            };
            self.notes.spawn(note.instrument(span));
        }
        answer(to, Err(failed));
    }
}

/// A task that belongs to the lane has ended; its callers, if any, have been
/// told.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        // Not in the panic's words, which may be about anything.
        let by_panic = error.is_panic();
        tracing::error!(by_panic, "a task beside the lane did not end by itself");
    }
}
