//! What all services share, and the one way that every command goes.
//!
//! ```text
//! request ─► checked ─► device found ─► id claimed ─► let in ─► its session ─► reply
//!                                            └─► on record: replayed ─────────┘
//! ```
//!
//! A handler's future may be dropped at any await. All that is lost then is the
//! wait: the session owns the command from the moment that it has it.

use std::future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use fleetgate_ledger::Ledger;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandId, Reply, Udid};
use fleetgate_session::{Failed, Failure, Job, Origin, Receipt, Session, Success};
use prost::Message;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};
use tower::ServiceExt;
use tracing::{Instrument, Span, debug};

use crate::access::{Access, Caller, Place};
use crate::claim::{Claim, Claims};
use crate::config::LeasesSection;
use crate::convert::{CommandRequest, CommandResponse, ask, receipt};
use crate::deadline::Deadline;
use crate::feed::Feed;
use crate::fleet::Fleet;
use crate::leases::Leases;
use crate::pending::{Admitted, Pending};
use crate::screenshot::Parts;
use crate::status;

mod admission;
mod replay;

use admission::{Admission, role, stamp};
pub(crate) use replay::recorded;
use replay::replay;

/// What all services share. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Core(Arc<Shared>);

/// The parts of a [`Core`].
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) fleet: Fleet,
    pub(crate) ledger: Ledger,
    pub(crate) feed: Feed,
    pub(crate) pending: Pending,
    pub(crate) access: Access,
    pub(crate) leases: Leases,
    /// What may be asked for of a lease.
    pub(crate) lease_limits: LeasesSection,
    pub(crate) start_time: SystemTime,
    /// How long a fate is waited for that nobody here is about to find out.
    pub(crate) settle_patience: Duration,
    pub(crate) heartbeat_interval: Duration,
    /// Waits for the answers to mutations; each ends with its session's.
    pub(crate) attended: TaskTracker,
    /// Ends streams that do not end by themselves.
    pub(crate) stop: CancellationToken,
    /// Tells whoever runs the gateway that a caller wants its end.
    pub(crate) quit: CancellationToken,
    pub(crate) max_request_bytes: usize,
    pub(crate) max_reply_bytes: usize,
}

/// A command that succeeded in time.
struct Ran {
    device: Udid,
    receipt: Receipt,
    reply: Reply,
    /// It had ended before this call.
    replayed: bool,
}

impl Ran {
    fn in_time(self, deadline: Deadline) -> Result<Self, Status> {
        if deadline.has_passed() {
            Err(status::late(&self.device, &self.receipt))
        } else {
            Ok(self)
        }
    }
}

/// A [`Core`] that ends without it.
#[derive(Debug, Clone)]
pub(crate) struct WeakCore(Weak<Shared>);

impl WeakCore {
    /// The core, while it lives.
    pub(crate) fn upgrade(&self) -> Option<Core> {
        self.0.upgrade().map(Core)
    }
}

impl Core {
    /// For whoever must not keep it alive.
    pub(crate) fn downgrade(&self) -> WeakCore {
        WeakCore(Arc::downgrade(&self.0))
    }

    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    pub(crate) fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.0.pending
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.0.leases
    }

    pub(crate) fn lease_limits(&self) -> &LeasesSection {
        &self.0.lease_limits
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn start_time(&self) -> SystemTime {
        self.0.start_time
    }

    pub(crate) fn heartbeat_interval(&self) -> Duration {
        self.0.heartbeat_interval
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    pub(crate) fn quit(&self) -> &CancellationToken {
        &self.0.quit
    }

    pub(crate) fn max_request_bytes(&self) -> usize {
        self.0.max_request_bytes
    }

    pub(crate) fn max_reply_bytes(&self) -> usize {
        self.0.max_reply_bytes
    }

    /// Runs a command and answers with one message.
    pub(crate) async fn answer<Q, A>(&self, request: Request<Q>) -> Result<Response<A>, Status>
    where
        Q: CommandRequest,
        A: CommandResponse + Message,
    {
        let Ran {
            device,
            receipt: facts,
            reply,
            replayed,
        } = self.run(request).await?;
        let told = pb::CommandReceipt {
            replayed,
            ..receipt(facts.clone())
        };
        let message =
            A::from_reply(told, reply).ok_or_else(|| status::wrong_reply(&device, &facts))?;
        let (bytes, limit) = (message.encoded_len(), self.max_reply_bytes());
        if bytes > limit {
            return Err(status::reply_too_large(&device, &facts, bytes, limit));
        }
        Ok(Response::new(message))
    }

    /// Takes a screenshot and answers with its parts.
    pub(crate) async fn screenshot(
        &self,
        request: Request<pb::CaptureScreenshotRequest>,
    ) -> Result<Parts, Status> {
        let Ran {
            device,
            receipt: facts,
            reply,
            replayed: _,
        } = self.run(request).await?;
        let Reply::Screenshot(screenshot) = reply else {
            return Err(status::wrong_reply(&device, &facts));
        };
        Parts::new(receipt(facts.clone()), screenshot.png)
            .map_err(|error| status::not_png(&device, &facts, error))
    }

    async fn run<Q: CommandRequest>(&self, request: Request<Q>) -> Result<Ran, Status> {
        let deadline = Deadline::of(&request);
        let caller = Caller::of(&request)?;
        let asked = ask(request.into_inner()).map_err(status::invalid)?;
        let span = Span::current();
        span.record("fleetgate.command.id", asked.command_id.as_str());
        span.record("fleetgate.command.kind", asked.command.kind().as_str());
        let device = self
            .fleet()
            .resolve(&asked.device)
            .await
            .ok_or_else(|| status::device_unknown(&asked.device, Some(&asked.command_id)))?;
        span.record("device.id", device.as_str());
        let (id, role) = (Some(&asked.command_id), role(&asked.command));
        self.access()
            .check_as(&caller, role, &device, &asked.device, id)?;
        let answer = loop {
            // From before the claim, so that nothing is missed between the two.
            let mut moved = pin!(self.pending().moved());
            moved.as_mut().enable();
            let admitted = match self.claims().claim(&device, &asked, deadline).await? {
                Claim::Run(admitted) => admitted,
                Claim::Replay(row) => {
                    let ran = replay(device, *row)?;
                    return ran.in_time(deadline);
                }
            };
            let admission = self.admission(&caller, &device, &asked, &admitted).await;
            let admission = match admission {
                Ok(Some(admission)) => admission,
                Ok(None) => {
                    admitted.withdrawn();
                    self.until_moved(moved, &device, &asked.command_id, deadline)
                        .await?;
                    continue;
                }
                Err(refused) => {
                    admitted.withdrawn();
                    return Err(refused);
                }
            };
            let Admission {
                session,
                leave,
                place,
            } = admission;
            let job = Job {
                command_id: asked.command_id.clone(),
                command: asked.command.clone(),
                deadline: deadline.instant(),
                origin: Origin {
                    address: caller.address.map(|address| address.to_string()),
                    principal: Some(caller.name().to_owned()),
                    lease: asked.lease.as_ref().map(stamp),
                },
                leave,
            };
            let answer = self.attend(session, job, admitted, place).await;
            match answer {
                // Recorded since it was looked for.
                Err(failed) if asked.named && matches!(failed.failure, Failure::Duplicate) => {}
                // Whoever asked first has not handed it in yet, or it has ended
                // since.
                Err(failed) if matches!(failed.failure, Failure::NotUnderWay) => {
                    self.until_moved(moved, &device, &asked.command_id, deadline)
                        .await?;
                }
                answer @ (Ok(_) | Err(_)) => break answer,
            }
        };

        let outcome = match &answer {
            Ok(success) => &success.receipt,
            Err(failed) => &failed.receipt,
        };
        let fate = outcome.fate.as_str();
        span.record("fleetgate.command.attempts", outcome.attempts);
        span.record("fleetgate.command.fate", fate);
        debug!(device.id = %device, fleetgate.command.id = %outcome.command_id, fate, "answered");

        let Success { receipt, reply } =
            answer.map_err(|failed| status::failed(&device, &failed))?;
        let ran = Ran {
            device,
            receipt,
            reply,
            replayed: false,
        };
        ran.in_time(deadline)
    }

    /// Waits until something has happened to a command that is noted.
    async fn until_moved(
        &self,
        moved: impl Future<Output = ()>,
        device: &Udid,
        command_id: &CommandId,
        deadline: Deadline,
    ) -> Result<(), Status> {
        match deadline.wait(timeout(self.0.settle_patience, moved)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_elapsed)) => Err(status::unsettled(device, command_id)),
            Err(_passed) => Err(status::overdue(device, command_id)),
        }
    }

    /// Hands a job to its session and waits for the answer. That to a mutation
    /// is waited for by a task, whether its caller stays or not: if the session
    /// has not let it in, somebody must hear of it and take the note away.
    async fn attend(
        &self,
        session: Session,
        job: Job,
        mut admitted: Admitted,
        place: Option<Place>,
    ) -> Result<Success, Failed> {
        let mutation = job.command.is_mutation();
        admitted.handed_over();
        let attended = async move {
            let answer = session.oneshot(job).await;
            admitted.answered(&answer);
            drop(place);
            answer
        };
        if !mutation {
            return attended.await;
        }
        let attended = self.0.attended.spawn(attended.in_current_span());
        match attended.await {
            Ok(answer) => answer,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Nobody aborts it: the whole runtime is ending.
                Err(_cancelled) => future::pending().await,
            },
        }
    }

    fn claims(&self) -> Claims<'_> {
        Claims {
            pending: &self.0.pending,
            ledger: &self.0.ledger,
            patience: self.0.settle_patience,
        }
    }
}
