//! A command id belongs to one request: the claim to it.
//!
//! ```text
//!                        ┌── other content ──────────────► ALREADY_EXISTS
//!   id under way here? ──┤
//!            │           └── the same ──► wait for its end, and look again
//!            ▼ no
//!                        ┌── other content ──────────────► ALREADY_EXISTS
//!   id on record? ───────┤── a read ──────────────────────► run it again
//!            │           ├── a mutation with a fate ──────► replay
//!            ▼ no        └── one without ──► wait for its fate, and look again
//!           run
//! ```
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
        let overdue = || status::overdue(device, id);
        loop {
            let admitted = self.pending.admit(device, request).map_err(conflict)?;
            if !request.named {
                return Ok(Claim::Run(admitted));
            }
            if !admitted.is_first() {
                deadline
                    .wait(admitted.ended())
                    .await
                    .map_err(|_passed| overdue())?;
                continue;
            }
            // Before the look, so that no change after it is missed.
            let mut head = self.ledger.watch();
            let found = deadline.wait(self.ledger.command(id)).await;
            let row = match found.map_err(|_passed| status::unclaimed(device, id))? {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Claim::Run(admitted)),
                // A read needs no record, and a mutation is told at its intent.
                Err(error) if !request.command.is_mutation() => {
                    tracing::warn!(%error, "a read runs without a look at the ledger");
                    return Ok(Claim::Run(admitted));
                }
                Err(error) => {
                    admitted.withdrawn();
                    return Err(status::ledger_before(&error, device, id));
                }
            };
            if let Some(fields) = differing(&row, device, request) {
                admitted.withdrawn();
                return Err(status::id_conflict(device, id, fields));
            }
            if !request.command.is_mutation() {
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
                Err(_passed) => return Err(overdue()),
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
