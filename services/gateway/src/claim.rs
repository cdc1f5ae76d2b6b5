//! A command id belongs to one request: the claim to it.
//!
//! ```text
//!   under way here? ── with other content ─────────────────► ALREADY_EXISTS
//!          │
//!          ▼           ┌── with other content ─────────────► ALREADY_EXISTS
//!     on record? ──────┤── a read ─────────────────────────► run
//!          │           ├── a mutation with a fate ─────────► replay
//!          │           ├── one without that is under way ──► run
//!          ▼           └── one without that is not ──► wait for its fate, and
//!         run                                           look again
//! ```
//!
//! A command that is run while it is under way is joined to itself by its
//! session, which holds it until it has ended.
//!
//! Only an id that the caller named is looked for: one that was minted here is
//! new. The claim is staked in memory before the ledger is asked, so that of
//! two calls at once one is the first, whatever devices they name. What happens
//! between the look at the ledger and the intent, the intent finds out: its id
//! must be new, and if it is not, the caller comes back here.
//!
//! Invariant: nothing is run for an id whose mutation may have been sent.

use std::time::Duration;

use fleetgate_ledger::{CommandRow, Ledger};
use fleetgate_runner::Udid;
use tokio::time::timeout;
use tonic::Status;

use crate::convert::{Asked, Content, asked};
use crate::deadline::Deadline;
use crate::pending::{Admitted, Other, Pending};
use crate::status;

/// What is to be done for a caller.
#[derive(Debug)]
pub(crate) enum Claim {
    /// Run the command.
    Run(Admitted),
    /// Tell what became of it.
    Replay(Box<CommandRow>),
}

/// What claims are made against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claims<'a> {
    pub(crate) pending: &'a Pending,
    pub(crate) ledger: &'a Ledger,
    /// How long a fate is waited for that nobody here is about to find out.
    pub(crate) patience: Duration,
}

impl Claims<'_> {
    /// Claims the id of a request for it.
    pub(crate) async fn claim(
        &self,
        device: &Udid,
        request: &Asked,
        deadline: Deadline,
    ) -> Result<Claim, Status> {
        let id = &request.command_id;
        let conflict = |Other { fields }| status::id_conflict(device, id, fields);
        loop {
            let admitted = self.pending.admit(device, request).map_err(conflict)?;
            if !request.named {
                return Ok(Claim::Run(admitted));
            }
            // Before the look, so that no change after it is missed.
            let mut head = self.ledger.watch();
            // Not bounded by the deadline: a caller that is late is still told
            // the truth, and the ledger's own patience is short.
            let row = match self.ledger.command(id).await {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Claim::Run(admitted)),
                // A read needs no record, and a mutation is told at its intent.
                Err(error) if !request.command.is_mutation() => {
                    tracing::warn!(%error, "a read runs without a look at the ledger");
                    return Ok(Claim::Run(admitted));
                }
                Err(error) => {
                    admitted.withdrawn();
                    return Err(status::unclaimed(&error, device, id));
                }
            };
            if let Some(fields) = differing(&row, device, request) {
                admitted.withdrawn();
                return Err(status::id_conflict(device, id, fields));
            }
            let under_way = row.conclusion.is_none() && !admitted.is_first();
            if under_way || !request.command.is_mutation() {
                return Ok(Claim::Run(admitted));
            }
            admitted.withdrawn();
            if row.conclusion.is_some() {
                return Ok(Claim::Replay(Box::new(row)));
            }
            // Left without a fate by an earlier gateway, or by a ledger that
            // could not be written.
            let change = timeout(self.patience, head.changed());
            match deadline.wait(change).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(_)) | Err(_)) => return Err(status::unsettled(device, id)),
                Err(_passed) => return Err(status::overdue(device, id)),
            }
        }
    }
}

/// The fields in which a request differs from the one on record.
fn differing(row: &CommandRow, device: &Udid, request: &Asked) -> Option<Vec<String>> {
    let fields = asked(&request.command);
    let theirs = Content {
        device,
        kind: request.command.kind(),
        app_bundle_id: request.command.bundle_id(),
        asked: &fields,
    };
    let ours = Content {
        device: &row.device,
        kind: row.kind,
        app_bundle_id: row.app_bundle_id.as_ref(),
        // What was recorded before this was kept, and a read, which has no
        // other fields, are compared by the rest.
        asked: row.asked.as_ref().unwrap_or(&fields),
    };
    let differing = ours.differing(&theirs);
    (!differing.is_empty()).then_some(differing)
}
