//! The walk along the chain.
//!
//! It reads in slices, each a snapshot of its own, so that it may go on beside a
//! gateway without pinning its WAL; rows are only ever added behind it. If
//! retention removes rows before it, it begins anew, and at last walks within a
//! single snapshot.

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection};

use super::{Break, Fault, VerifyReport};
use crate::bind;
use crate::canonical::{Event, Head};
use crate::chain::hash_of;
use crate::event::EventKind;
use crate::survey::SELECT_UNLISTED;
use crate::tail::{self, Checkpoint};

const SLICE: u32 = 1000;

/// Walks in slices before one in a single snapshot.
const ATTEMPTS: u32 = 3;

pub(super) async fn walk(
    connection: &mut SqliteConnection,
    known: Option<Head>,
) -> Result<VerifyReport, sqlx::Error> {
    for _ in 0..ATTEMPTS {
        let mut walk = Walk::begin(connection, known).await?;
        loop {
            let mut snapshot = connection.begin().await?;
            let step = walk.step(&mut snapshot).await?;
            snapshot.rollback().await?;
            match step {
                Step::On => {}
                Step::Overtaken => break,
                Step::Done => return Ok(walk.report),
            }
        }
    }
    let mut snapshot = connection.begin().await?;
    let mut walk = Walk::begin(&mut snapshot, known).await?;
    while walk.step(&mut snapshot).await? == Step::On {}
    snapshot.rollback().await?;
    Ok(walk.report)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    /// Retention removed rows meanwhile.
    Overtaken,
    Done,
}

struct Walk {
    report: VerifyReport,
    known: Option<Head>,
    bound: Bound,
}

/// How many rows of each table links were found to bind.
#[derive(Default)]
struct Bound {
    commands: u64,
    fates: u64,
    operations: u64,
    transitions: u64,
    checkpoints: u64,
}

impl Walk {
    async fn begin(
        connection: &mut SqliteConnection,
        known: Option<Head>,
    ) -> Result<Self, sqlx::Error> {
        let ledger_id = sqlx::query_scalar("SELECT ledger_id FROM identity")
            .fetch_optional(&mut *connection)
            .await?;
        let checkpoint = newest_checkpoint(connection).await?;
        let head = checkpoint.as_ref().map_or(Head::NONE, |it| it.removed);
        let mut walk = Self {
            report: VerifyReport {
                ledger_id,
                events: 0,
                commands: 0,
                checkpoint,
                head,
                known_compared: false,
                first_break: None,
            },
            known,
            bound: Bound::default(),
        };
        walk.compare();
        Ok(walk)
    }

    /// One slice of the walk, in a snapshot.
    async fn step(&mut self, snapshot: &mut SqliteConnection) -> Result<Step, sqlx::Error> {
        if self.report.first_break.is_some() {
            return Ok(Step::Done);
        }
        if newest_checkpoint(snapshot).await? != self.report.checkpoint {
            return Ok(Step::Overtaken);
        }
        let rows = tail::links(snapshot, self.report.head.seq, SLICE).await?;
        for row in &rows {
            if let Err(broken) = self.link(row)? {
                self.report.first_break = Some(broken);
                return Ok(Step::Done);
            }
            self.compare();
            if self.report.first_break.is_some() {
                return Ok(Step::Done);
            }
        }
        if rows.len() == SLICE as usize {
            return Ok(Step::On);
        }
        self.finish(snapshot).await?;
        Ok(Step::Done)
    }

    /// Takes a link for the head if it holds.
    fn link(&mut self, row: &SqliteRow) -> Result<Result<(), Break>, sqlx::Error> {
        Ok(follow(self.report.head, row)?.map(|(kind, head)| {
            self.bound.count(kind);
            self.report.events += 1;
            self.report.commands = self.bound.commands;
            self.report.head = head;
        }))
    }

    /// Holds the head against the one that is known.
    fn compare(&mut self) {
        let Some(known) = self.known.filter(|known| known.seq == self.report.head.seq) else {
            return;
        };
        self.report.known_compared = true;
        if known.hash != self.report.head.hash {
            self.report.first_break = Some(Break {
                seq: known.seq,
                what: Fault::Rewritten { known },
            });
        }
    }

    /// At the end of the chain: whether it reaches as far as was known, and
    /// whether there is anything beside it.
    async fn finish(&mut self, snapshot: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let seq = self.report.head.seq + 1;
        if self.report.head == Head::NONE {
            self.report.first_break = Some(Break {
                seq,
                what: Fault::NoBeginning,
            });
            return Ok(());
        }
        if let Some(known) = self.known.filter(|known| known.seq >= seq) {
            self.report.known_compared = true;
            self.report.first_break = Some(Break {
                seq,
                what: Fault::CutOff { known },
            });
            return Ok(());
        }
        for (table, bound, count, find) in self.bound.tables() {
            let rows: i64 = sqlx::query_scalar(count).fetch_one(&mut *snapshot).await?;
            if u64::try_from(rows).unwrap_or_default() == bound {
                continue;
            }
            let row: Option<i64> = sqlx::query_scalar(find).fetch_one(&mut *snapshot).await?;
            self.report.first_break = Some(Break {
                seq,
                what: Fault::Outside {
                    table,
                    row: row.unwrap_or_default(),
                },
            });
            return Ok(());
        }
        let unlisted: Option<i64> = sqlx::query_scalar(SELECT_UNLISTED)
            .fetch_one(snapshot)
            .await?;
        self.report.first_break = unlisted.map(|command| Break {
            seq,
            what: Fault::Unlisted { command },
        });
        Ok(())
    }
}

/// Whether a link, with what it binds, is the one that follows `head`.
pub(crate) fn follow(
    head: Head,
    row: &SqliteRow,
) -> Result<Result<(EventKind, Head), Break>, sqlx::Error> {
    let seq: i64 = row.try_get("link")?;
    let broken = |seq, what| Ok(Err(Break { seq, what }));
    if seq != head.seq + 1 {
        return if head == Head::NONE {
            broken(seq, Fault::NoBeginning)
        } else {
            broken(head.seq + 1, Fault::Missing)
        };
    }
    let word: String = row.try_get("event")?;
    let Some(kind) = EventKind::from_word(&word) else {
        return broken(seq, Fault::UnknownKind { kind: word });
    };
    let present = match kind {
        EventKind::Opened => "identity_seq",
        EventKind::Intended | EventKind::Carried => "seq",
        EventKind::Recorded
        | EventKind::Concluded
        | EventKind::Repeated
        | EventKind::Resolved
        | EventKind::CarriedFate => "fate_seq",
        EventKind::Operation => "operation_seq",
        EventKind::Transition => "transition_seq",
        EventKind::Pruned => "checkpoint_seq",
    };
    if row.try_get::<Option<i64>, _>(present)?.is_none() {
        return broken(seq, Fault::Unbound { kind });
    }
    let mut event = Event::new(seq, &word, row.try_get("reference")?, row.try_get("at_us")?);
    match kind {
        EventKind::Opened => bind::identity(row, &mut event)?,
        EventKind::Intended | EventKind::Carried => bind::command(row, &mut event)?,
        EventKind::Recorded => {
            bind::command(row, &mut event)?;
            bind::fate(row, &mut event)?;
        }
        EventKind::Concluded
        | EventKind::Repeated
        | EventKind::Resolved
        | EventKind::CarriedFate => bind::fate(row, &mut event)?,
        EventKind::Operation => bind::operation(row, &mut event)?,
        EventKind::Transition => bind::transition(row, &mut event)?,
        EventKind::Pruned => bind::checkpoint(row, &mut event)?,
    }
    let next = head.next(&event);
    if hash_of(row.try_get("hash")?)? != next.hash {
        return broken(seq, Fault::Changed { kind });
    }
    Ok(Ok((kind, next)))
}

impl Bound {
    fn count(&mut self, kind: EventKind) {
        match kind {
            EventKind::Opened => {}
            EventKind::Intended | EventKind::Carried => self.commands += 1,
            EventKind::Recorded => {
                self.commands += 1;
                self.fates += 1;
            }
            EventKind::Concluded
            | EventKind::Repeated
            | EventKind::Resolved
            | EventKind::CarriedFate => self.fates += 1,
            EventKind::Operation => self.operations += 1,
            EventKind::Transition => self.transitions += 1,
            EventKind::Pruned => self.checkpoints += 1,
        }
    }

    /// Each table with the rows of it that are bound, and how to count all of
    /// them and find one that is not.
    fn tables(&self) -> [(&'static str, u64, &'static str, &'static str); 5] {
        [
            (
                "commands",
                self.commands,
                "SELECT count(*) FROM commands",
                "SELECT max(seq) FROM commands WHERE seq NOT IN (                  SELECT reference FROM chain WHERE kind IN ('intended', 'carried') UNION ALL                  SELECT f.command_seq FROM chain AS h JOIN fates AS f ON f.seq = h.reference                  WHERE h.kind = 'recorded')",
            ),
            (
                "fates",
                self.fates,
                "SELECT count(*) FROM fates",
                "SELECT max(seq) FROM fates WHERE seq NOT IN (SELECT reference FROM chain                  WHERE kind IN ('recorded', 'concluded', 'repeated', 'resolved', 'carried_fate'))",
            ),
            (
                "operations",
                self.operations,
                "SELECT count(*) FROM operations",
                "SELECT max(seq) FROM operations WHERE seq NOT IN (                  SELECT reference FROM chain WHERE kind = 'operation')",
            ),
            (
                "device_transitions",
                self.transitions,
                "SELECT count(*) FROM device_transitions",
                "SELECT max(seq) FROM device_transitions WHERE seq NOT IN (\
                 SELECT reference FROM chain WHERE kind = 'transition')",
            ),
            (
                "checkpoints",
                self.checkpoints,
                "SELECT count(*) FROM checkpoints",
                "SELECT max(seq) FROM checkpoints WHERE seq NOT IN (                  SELECT reference FROM chain WHERE kind = 'pruned')",
            ),
        ]
    }
}

/// Where the chain begins, if older events were removed.
pub(crate) async fn newest_checkpoint(
    connection: &mut SqliteConnection,
) -> Result<Option<Checkpoint>, sqlx::Error> {
    sqlx::query("SELECT * FROM checkpoints ORDER BY seq DESC LIMIT 1")
        .fetch_optional(connection)
        .await?
        .as_ref()
        .map(Checkpoint::decode)
        .transpose()
}
