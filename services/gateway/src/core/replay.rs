//! What is told of a mutation that has ended before it was asked for.

use fleetgate_ledger::{CommandRow, Conclusion};
use fleetgate_runner::{Fate, Reply, Udid};
use fleetgate_session::Receipt;
use tonic::Status;
use tracing::{Span, debug};

use super::Ran;
use crate::kept::Kept;
use crate::status;

/// What is on record of a command's end, if anything is.
pub(crate) fn recorded(row: &CommandRow) -> Option<Receipt> {
    let outcome = &row.conclusion.as_ref()?.outcome;
    Some(Receipt {
        command_id: row.command_id.clone(),
        kind: row.kind,
        fate: outcome.fate,
        effect: outcome.effect,
        reactivated: outcome.reactivated,
        warning: outcome.warning.clone(),
        attempts: outcome.attempts,
        recovered: outcome.recovered,
        queue_wait: outcome.queue_wait,
        device_time: outcome.device_time,
    })
}

/// What became of a mutation that is on record, as it was first told.
pub(super) fn replay(device: Udid, row: CommandRow) -> Result<Ran, Status> {
    let (Some(mut receipt), Some(Conclusion { outcome, .. })) = (recorded(&row), row.conclusion)
    else {
        return Err(status::unsettled(&device, &row.command_id));
    };
    let span = Span::current();
    span.record("fleetgate.command.attempts", receipt.attempts);
    span.record("fleetgate.command.fate", receipt.fate.as_str());
    debug!(device.id = %device, fleetgate.command.id = %receipt.command_id, "replayed");
    let message = match (outcome.fate, Kept::read(outcome.reply.as_ref())) {
        (Fate::Completed | Fate::CompletedResultLost, Some(Kept::Said(message))) => message,
        // The reply was not kept. What cannot be told again is lost.
        (Fate::Completed | Fate::CompletedResultLost, Some(Kept::Refused(_)) | None) => {
            receipt.fate = Fate::CompletedResultLost;
            String::new()
        }
        (Fate::NotSent | Fate::Failed | Fate::Unknown, Some(Kept::Refused(refused))) => {
            return Err(status::replayed(
                &device,
                &receipt,
                &outcome,
                Some(&refused),
            ));
        }
        (Fate::NotSent | Fate::Failed | Fate::Unknown, Some(Kept::Said(_)) | None) => {
            return Err(status::replayed(&device, &receipt, &outcome, None));
        }
    };
    Ok(Ran {
        device,
        receipt,
        reply: Reply::Done(message),
        replayed: true,
    })
}
