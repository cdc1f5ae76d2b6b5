//! What all services share, and the one way that every command goes.
//!
//! ```text
//! request ─► checked ─► device found ─► noted ─► its session ─► reply or status
//! ```
//!
//! A handler's future may be dropped at any await. All that is lost then is the
//! wait: the session owns the command from the moment that it has it.

use std::sync::Arc;
use std::time::SystemTime;

use fleetgate_ledger::Ledger;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{Reply, Udid};
use fleetgate_session::{Job, Receipt, Success};
use prost::Message;
use tonic::{Request, Response, Status};
use tower::ServiceExt;
use tracing::{Span, debug};

use crate::convert::{Asked, CommandRequest, CommandResponse, ask, receipt};
use crate::deadline::Deadline;
use crate::fleet::{Fleet, NoSession};
use crate::pending::Pending;
use crate::screenshot::Parts;
use crate::status;

/// What all services share. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Core(Arc<Shared>);

/// The parts of a [`Core`].
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) fleet: Fleet,
    pub(crate) ledger: Ledger,
    pub(crate) pending: Pending,
    pub(crate) start_time: SystemTime,
    pub(crate) max_request_bytes: usize,
    pub(crate) max_reply_bytes: usize,
}

/// A command that succeeded in time.
struct Ran {
    device: Udid,
    receipt: Receipt,
    reply: Reply,
}

impl Core {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    pub(crate) fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.0.pending
    }

    pub(crate) fn start_time(&self) -> SystemTime {
        self.0.start_time
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
        } = self.run(request).await?;
        let message = A::from_reply(receipt(facts.clone()), reply)
            .ok_or_else(|| status::wrong_reply(&device, &facts))?;
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
        } = self.run(request).await?;
        let Reply::Screenshot(screenshot) = reply else {
            return Err(status::wrong_reply(&device, &facts));
        };
        Parts::new(receipt(facts.clone()), screenshot.png)
            .map_err(|error| status::not_png(&device, &facts, error))
    }

    async fn run<Q: CommandRequest>(&self, request: Request<Q>) -> Result<Ran, Status> {
        let deadline = Deadline::of(&request);
        let caller = request.remote_addr().map(|address| address.to_string());
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
        let session = self
            .fleet()
            .session(&device)
            .map_err(|reason| match reason {
                NoSession::PortUnknown => status::runner_port_unknown(&device, &asked.command_id),
                NoSession::Draining => status::draining(&device, &asked.command_id),
            })?;

        let admitted = self.pending().admit(&device, &asked);
        let Asked {
            device: _,
            command_id,
            command,
        } = asked;
        let job = Job {
            command_id,
            command,
            deadline: deadline.instant(),
            caller,
        };
        let answer = session.oneshot(job).await;
        admitted.answered(&answer);

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
        if deadline.has_passed() {
            return Err(status::late(&device, &receipt));
        }
        Ok(Ran {
            device,
            receipt,
            reply,
        })
    }
}
