//! Rows on their way into the database: each says once what its columns hold,
//! for the statement that writes it and for the chain that binds it.
//!
//! Invariant: what is hashed is, byte for byte, what is stored. JSON therefore
//! travels as text, which no JSON function of the database gets to rewrite.

use fleetgate_runner::{BundleId, CommandId};
use serde::Serialize;
use sqlx::SqliteTransaction;

use super::plan::Revision;
use crate::canonical::{Event, Head};
use crate::entry::{KeptReply, NewIntent, NewOperation, NewTransition};
use crate::event::EventKind;
use crate::leases::rows::epoch;
use crate::time::micros;

/// The arrival of an entry is its place in the audit, hence the numbers.
const INSERT_COMMANDS: &str = "
INSERT INTO commands (seq, command_id, device, kind, mutation, app_bundle_id, parameters, asked, caller, created_us,
                      principal, lease_id, lease_epoch)
SELECT e.value ->> 'seq', e.value ->> 'id', e.value ->> 'device', e.value ->> 'kind', e.value ->> 'mutation',
       e.value ->> 'app', e.value ->> 'parameters', e.value ->> 'asked', e.value ->> 'caller', e.value ->> 'at',
       e.value ->> 'principal', e.value ->> 'lease', e.value ->> 'epoch'
FROM json_each(?1) AS e
WHERE true
ORDER BY e.key
ON CONFLICT (command_id) DO NOTHING";

/// The cross join makes the array the outer loop. A fate that is not the
/// revision that it claims to be conflicts.
const INSERT_FATES: &str = "
INSERT INTO fates (seq, command_seq, revision, fate, effect, reason, message, warning, hint, reactivated, attempts,
                   recovered, queue_wait_us, device_time_us, reply, reply_bytes, why, final, concluded_us)
SELECT e.value ->> 'seq', c.seq, e.value ->> 'revision', e.value ->> 'fate', e.value ->> 'effect',
       e.value ->> 'reason', e.value ->> 'message', e.value ->> 'warning', e.value ->> 'hint',
       e.value ->> 'reactivated', e.value ->> 'attempts', e.value ->> 'recovered', e.value ->> 'queueWait',
       e.value ->> 'deviceTime', e.value ->> 'reply', e.value ->> 'replyBytes', e.value ->> 'why',
       e.value ->> 'final', e.value ->> 'at'
FROM json_each(?1) AS e
CROSS JOIN commands AS c ON c.command_id = e.value ->> 'id'
WHERE true
ORDER BY e.key
ON CONFLICT (command_seq, revision) DO NOTHING";

const INSERT_OPERATIONS: &str = "
INSERT INTO operations (seq, who, what, target, detail, at_us)
SELECT e.value ->> 'seq', e.value ->> 'who', e.value ->> 'what', e.value ->> 'target', e.value ->> 'detail',
       e.value ->> 'at'
FROM json_each(?1) AS e
ORDER BY e.key";

const INSERT_TRANSITIONS: &str = "
INSERT INTO device_transitions (seq, device, from_state, to_state, reason, detail, at_us)
SELECT e.value ->> 'seq', e.value ->> 'device', e.value ->> 'from', e.value ->> 'to', e.value ->> 'reason',
       e.value ->> 'detail', e.value ->> 'at'
FROM json_each(?1) AS e
ORDER BY e.key";

const INSERT_LINKS: &str = "
INSERT INTO chain (seq, kind, reference, at_us, hash)
SELECT e.value ->> 'seq', e.value ->> 'kind', e.value ->> 'reference', e.value ->> 'at', unhex(e.value ->> 'hash')
FROM json_each(?1) AS e
ORDER BY e.key";

/// A row of a table.
pub(crate) trait TableRow: Serialize + Sync {
    /// Writes an array of them.
    const INSERT: &'static str;
}

/// Writes rows in one statement; true if all of them were taken.
pub(crate) async fn insert<T: TableRow>(
    transaction: &mut SqliteTransaction<'_>,
    rows: &[T],
) -> Result<bool, sqlx::Error> {
    if rows.is_empty() {
        return Ok(true);
    }
    let inserted = sqlx::query(T::INSERT)
        .bind(json(rows)?)
        .execute(&mut **transaction)
        .await?;
    Ok(usize::try_from(inserted.rows_affected()).is_ok_and(|inserted| inserted == rows.len()))
}

pub(crate) fn json<T: Serialize + ?Sized>(rows: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(rows).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// A row of `commands`.
#[derive(Serialize)]
pub(crate) struct CommandJson<'a> {
    pub(crate) seq: i64,
    id: &'a CommandId,
    device: &'a str,
    kind: &'static str,
    mutation: bool,
    app: Option<&'a str>,
    parameters: String,
    asked: String,
    caller: Option<&'a str>,
    at: i64,
    principal: Option<&'a str>,
    lease: Option<&'a str>,
    epoch: Option<i64>,
}

impl TableRow for CommandJson<'_> {
    const INSERT: &'static str = INSERT_COMMANDS;
}

impl<'a> CommandJson<'a> {
    pub(crate) fn of(seq: i64, at: i64, command: &'a NewIntent) -> Result<Self, sqlx::Error> {
        Ok(Self {
            seq,
            id: &command.command_id,
            device: command.device.as_str(),
            kind: command.kind.as_str(),
            mutation: command.kind.is_mutation(),
            app: command.app_bundle_id.as_ref().map(BundleId::as_str),
            parameters: json(&command.parameters)?,
            asked: json(&command.asked)?,
            caller: command.caller.as_deref(),
            at,
            principal: command.principal.as_deref(),
            lease: command.lease.as_ref().map(|lease| lease.id.as_str()),
            epoch: command.lease.as_ref().map(|lease| epoch(lease.epoch)),
        })
    }

    pub(crate) fn bind(&self, event: &mut Event) {
        event.text(self.id.as_str());
        event.text(self.device);
        event.text(self.kind);
        event.integer(self.mutation.into());
        event.text_or_null(self.app);
        event.text(&self.parameters);
        event.text(&self.asked);
        event.text_or_null(self.caller);
        event.integer(self.at);
        if self.principal.is_some() || self.lease.is_some() {
            event.text_or_null(self.principal);
            event.text_or_null(self.lease);
            event.integer_or_null(self.epoch);
        }
    }
}

/// A row of `fates`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FateJson<'a> {
    pub(super) seq: i64,
    id: &'a CommandId,
    revision: i64,
    fate: &'static str,
    effect: &'static str,
    reason: Option<&'a str>,
    message: Option<&'a str>,
    warning: Option<&'a str>,
    hint: Option<&'a str>,
    reactivated: bool,
    attempts: u32,
    recovered: bool,
    queue_wait: i64,
    device_time: i64,
    reply: Option<&'a str>,
    reply_bytes: Option<i64>,
    why: Option<&'a str>,
    r#final: bool,
    at: i64,
}

impl TableRow for FateJson<'_> {
    const INSERT: &'static str = INSERT_FATES;
}

impl<'a> FateJson<'a> {
    pub(super) fn of(seq: i64, at: i64, revision: Revision<'a>) -> Self {
        let outcome = revision.outcome;
        Self {
            seq,
            id: revision.command_id,
            revision: revision.number,
            fate: outcome.fate.as_str(),
            effect: outcome.effect.as_str(),
            reason: outcome.reason.as_deref(),
            message: outcome.message.as_deref(),
            warning: outcome.warning.as_deref(),
            hint: outcome.hint.as_deref(),
            reactivated: outcome.reactivated,
            attempts: outcome.attempts,
            recovered: outcome.recovered,
            queue_wait: micros(outcome.queue_wait),
            device_time: micros(outcome.device_time),
            reply: outcome.reply.as_ref().and_then(KeptReply::text),
            reply_bytes: outcome.reply.as_ref().map(|reply| reply.bytes),
            why: revision.why,
            r#final: revision.is_final,
            at,
        }
    }

    pub(super) fn bind(&self, event: &mut Event) {
        event.text(self.id.as_str());
        event.integer(self.revision);
        event.text(self.fate);
        event.text(self.effect);
        event.text_or_null(self.reason);
        event.text_or_null(self.message);
        event.text_or_null(self.warning);
        event.text_or_null(self.hint);
        event.integer(self.reactivated.into());
        event.integer(self.attempts.into());
        event.integer(self.recovered.into());
        event.integer(self.queue_wait);
        event.integer(self.device_time);
        event.text_or_null(self.reply);
        event.integer_or_null(self.reply_bytes);
        event.text_or_null(self.why);
        event.integer(self.r#final.into());
        event.integer(self.at);
    }
}

/// A row of `operations`.
#[derive(Serialize)]
pub(crate) struct OperationJson<'a> {
    pub(super) seq: i64,
    who: &'a str,
    what: &'a str,
    target: Option<&'a str>,
    detail: String,
    at: i64,
}

impl TableRow for OperationJson<'_> {
    const INSERT: &'static str = INSERT_OPERATIONS;
}

impl<'a> OperationJson<'a> {
    pub(crate) fn of(seq: i64, at: i64, operation: &'a NewOperation) -> Result<Self, sqlx::Error> {
        Ok(Self {
            seq,
            who: &operation.who,
            what: &operation.what,
            target: operation.target.as_deref(),
            detail: json(&operation.detail)?,
            at,
        })
    }

    pub(crate) fn bind(&self, event: &mut Event) {
        event.text(self.who);
        event.text(self.what);
        event.text_or_null(self.target);
        event.text(&self.detail);
        event.integer(self.at);
    }
}

/// A row of `device_transitions`.
#[derive(Serialize)]
pub(crate) struct TransitionJson<'a> {
    pub(crate) seq: i64,
    device: &'a str,
    from: &'a str,
    to: &'a str,
    reason: &'a str,
    detail: Option<&'a str>,
    at: i64,
}

impl TableRow for TransitionJson<'_> {
    const INSERT: &'static str = INSERT_TRANSITIONS;
}

impl<'a> TransitionJson<'a> {
    pub(crate) fn of(seq: i64, at: i64, transition: &'a NewTransition) -> Self {
        Self {
            seq,
            device: transition.device.as_str(),
            from: &transition.from,
            to: &transition.to,
            reason: &transition.reason,
            detail: transition.detail.as_deref(),
            at,
        }
    }

    pub(crate) fn bind(&self, event: &mut Event) {
        event.text(self.device);
        event.text(self.from);
        event.text(self.to);
        event.text(self.reason);
        event.text_or_null(self.detail);
        event.integer(self.at);
    }
}

/// A row of `chain`.
#[derive(Serialize)]
pub(crate) struct LinkJson {
    seq: i64,
    kind: &'static str,
    reference: i64,
    at: i64,
    hash: String,
}

impl TableRow for LinkJson {
    const INSERT: &'static str = INSERT_LINKS;
}

/// Links that are being added to the chain.
pub(crate) struct Links {
    pub(crate) head: Head,
    pub(crate) rows: Vec<LinkJson>,
}

impl Links {
    pub(crate) fn after(head: Head) -> Self {
        Self {
            head,
            rows: Vec::new(),
        }
    }

    /// The number of the next link.
    pub(super) fn next(&self) -> i64 {
        self.head.seq + 1
    }

    /// Adds a link that binds an operation, and gives that as a row.
    pub(super) fn operation<'a>(
        &mut self,
        seq: i64,
        at: i64,
        operation: &'a NewOperation,
    ) -> Result<OperationJson<'a>, sqlx::Error> {
        let row = OperationJson::of(seq, at, operation)?;
        self.add(EventKind::Operation, seq, at, |event| row.bind(event));
        Ok(row)
    }

    /// Adds a link that binds what `bind` puts into it.
    pub(crate) fn add(
        &mut self,
        kind: EventKind,
        reference: i64,
        at: i64,
        bind: impl FnOnce(&mut Event),
    ) {
        let kind = kind.as_str();
        let mut event = Event::new(self.next(), kind, reference, at);
        bind(&mut event);
        self.head = self.head.next(&event);
        self.rows.push(LinkJson {
            seq: self.head.seq,
            kind,
            reference,
            at,
            hash: self.head.hash.to_string(),
        });
    }
}
