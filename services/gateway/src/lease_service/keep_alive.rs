//! `KeepAlive`: renewals one after the other, for as long as the stream is open.
//!
//! ```text
//!   WAITING ── a message ──► RENEWING ── on record ──► the lease ──► WAITING
//!    │   │                      └── refused ──► the status, and the end
//!    │   └── its caller has no more ──► the end
//!    └── stop ──► UNAVAILABLE
//! ```
//!
//! A message counts as a call for the rate of its caller. It is taken when the answer to the one before has been, so that a
//! caller that does not read renews nothing.

use fleetgate_proto::v1 as pb;
use futures_util::Stream;
use futures_util::stream::unfold;
use tonic::{Status, Streaming};

use super::{LeaseApi, checked};
use crate::access::Caller;
use crate::convert::only_lease_id;
use crate::deadline::Deadline;
use crate::status;

/// One stream of renewals.
struct Keeping {
    api: LeaseApi,
    caller: Caller,
    messages: Streaming<pb::KeepAliveRequest>,
}

impl LeaseApi {
    /// The answers to a stream of renewals.
    pub(super) fn keep(
        self,
        caller: Caller,
        messages: Streaming<pb::KeepAliveRequest>,
        deadline: Deadline,
    ) -> impl Stream<Item = Result<pb::KeepAliveResponse, Status>> + Send {
        let keeping = Keeping {
            api: self,
            caller,
            messages,
        };
        unfold(Some(keeping), move |keeping| async move {
            let mut keeping = keeping?;
            match deadline.wait(keeping.next()).await {
                Ok(Ok(Some(answer))) => Some((Ok(answer), Some(keeping))),
                Ok(Ok(None)) => None,
                Ok(Err(status)) => Some((Err(status), None)),
                Err(_passed) => Some((Err(status::deadline_exceeded()), None)),
            }
        })
    }
}

impl Keeping {
    async fn next(&mut self) -> Result<Option<pb::KeepAliveResponse>, Status> {
        let stop = self.api.core.stop();
        let message = tokio::select! {
            biased;
            message = self.messages.message() => message?,
            () = stop.cancelled() => return Err(status::watch_draining()),
        };
        let Some(pb::KeepAliveRequest { lease_id, epoch }) = message else {
            return Ok(None);
        };
        // Each is as good as a call of its own.
        self.api.core.access().take(&self.caller)?;
        let id = checked(only_lease_id(&lease_id))?;
        let view = self
            .api
            .renew(&self.caller, id, epoch.try_into().ok())
            .await?;
        let lease = Some(self.api.told(&view));
        Ok(Some(pb::KeepAliveResponse { lease }))
    }
}
