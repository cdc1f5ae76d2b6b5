//! What is told about a command id that may have been used before.
//!
//! A fate that is told here is that of the id's command, whichever call it came
//! with: `NOT_SENT` only where that is proved.

use fleetgate_ledger::{LedgerError, Outcome};
use fleetgate_runner::{CommandId, Effect, Fate, Udid};
use fleetgate_session::Receipt;
use tonic::{Code, Status};

use super::ledger_refusal;
use super::refusal::{Facts, Refusal};
use crate::convert::Violation;
use crate::kept::Refused;

/// What to do about a command that is on record as not sent.
const NEW_ID: &str = "nothing was sent, and nothing will be under this id: use a new one";

/// A command that is not on record, and would be if it were a mutation that
/// was ever sent.
pub(crate) fn never_sent(command_id: &CommandId) -> Status {
    Refusal::new(
        Code::NotFound,
        "NEVER_SENT",
        "no such command is on record, and no mutation is sent without a record",
    )
    .facts(Facts::not_sent(None, Some(command_id.as_str())))
    .into()
}

/// A command that is not on record, which proves nothing.
pub(crate) fn no_record(command_id: &CommandId) -> Status {
    Refusal::new(
        Code::NotFound,
        "NO_RECORD",
        "no such command is on record, and its record may have been pruned",
    )
    .facts(Facts::about(command_id))
    .into()
}

/// A request with the id of another.
pub(crate) fn id_conflict(device: &Udid, command_id: &CommandId, fields: Vec<String>) -> Status {
    let message = format!(
        "the command id belongs to a request that differs in {}",
        fields.join(", ")
    );
    let facts = Facts::not_sent(Some(device.as_str()), Some(command_id.as_str()))
        .with("differing", &fields.join(","))
        .hint(Some(
            "this request was not sent: use a new id for it; the fate of the other is in the ledger",
        ));
    let violations = fields.into_iter().map(|field| Violation {
        field,
        description: "differs from the request that has this command id".to_owned(),
    });
    Refusal::new(Code::AlreadyExists, "COMMAND_ID_CONFLICT", message)
        .facts(facts)
        .violations(violations.collect())
        .into()
}

/// A caller whose deadline passed while it waited for the end of the same
/// command, which goes on.
pub(crate) fn overdue(device: &Udid, command_id: &CommandId) -> Status {
    waiting(
        Code::DeadlineExceeded,
        "DEADLINE_EXCEEDED",
        "the deadline passed",
        device,
        command_id,
    )
}

/// A command whose fate is still open, and nobody knows when that ends.
pub(crate) fn unsettled(device: &Udid, command_id: &CommandId) -> Status {
    waiting(
        Code::Unknown,
        "FATE_UNKNOWN",
        "the command may have been sent, and its fate is not on record yet",
        device,
        command_id,
    )
}

fn waiting(
    code: Code,
    reason: &'static str,
    message: &'static str,
    device: &Udid,
    command_id: &CommandId,
) -> Status {
    let facts = Facts::about(command_id)
        .with("device", device.as_str())
        .outcome(Fate::Unknown, Effect::Unknown, false)
        .hint(Some("look the command up by its id: it may still go on"));
    Refusal::new(code, reason, message).facts(facts).into()
}

/// A recorded refusal, as it was first told.
pub(crate) fn replayed(
    device: &Udid,
    receipt: &Receipt,
    outcome: &Outcome,
    refused: Option<&Refused>,
) -> Status {
    // What an older gateway recorded has no code, and no retry was promised.
    let code = refused.map_or(Code::Unknown, Refused::code);
    let facts = Facts::of(device, receipt)
        .hint(outcome.hint.as_deref())
        .with("replayed", "true");
    let facts = match (receipt.fate, &outcome.hint) {
        (Fate::NotSent, Some(hint)) => facts.hint(Some(&format!("{NEW_ID}; {hint}"))),
        (Fate::NotSent, None) => facts.hint(Some(NEW_ID)),
        (
            Fate::Completed | Fate::CompletedResultLost | Fate::Failed | Fate::Unknown,
            Some(_) | None,
        ) => facts,
    };
    Refusal::new(
        code,
        outcome.reason.clone().unwrap_or_default(),
        outcome.message.clone().unwrap_or_default(),
    )
    .facts(facts)
    .retry(refused.and_then(Refused::retry))
    .into()
}

/// A ledger that could not be asked about a mutation's id: nothing was sent, now,
/// and nobody can say whether it was before. Asking again is safe, since only
/// the first with an id is sent.
pub(crate) fn unclaimed(error: &LedgerError, device: &Udid, command_id: &CommandId) -> Status {
    let facts = Facts::about(command_id)
        .with("device", device.as_str())
        .outcome(Fate::Unknown, Effect::Unknown, false)
        .hint(Some(
            "nothing was sent now, but may have been under this id before: ask again with the \
             same id",
        ));
    ledger_refusal(error).facts(facts).into()
}
