//! The beginning of the chain that one step removes, and what goes with it.

use std::collections::{BTreeSet, HashMap, HashSet};

use sqlx::{Row, SqliteTransaction};

use super::STEP;
use crate::batch::rows::json;
use crate::canonical::Head;
use crate::event::EventKind;
use crate::tail;
use crate::time::since_epoch;
use crate::verify::{Break, follow, newest_checkpoint};

const SELECT_BOUND: &str = "
SELECT c.seq, c.command_id, c.created_us, count(f.seq) AS fates
FROM json_each(?1) AS e
CROSS JOIN commands AS c ON c.seq = e.value
LEFT JOIN fates AS f ON f.command_seq = c.seq
GROUP BY c.seq";

/// The links that are to be removed, by what they bind.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) last: Head,
    /// The youngest of their times.
    pub(super) through: i64,
    pub(super) commands: BTreeSet<i64>,
    /// By the command that each is a fate of.
    pub(super) fates: HashMap<i64, HashSet<i64>>,
    pub(super) operations: Vec<i64>,
    pub(super) transitions: Vec<i64>,
    pub(super) checkpoints: Vec<i64>,
}

impl Beginning {
    /// Reads it, and sees that it is what was written.
    pub(super) async fn read(
        transaction: &mut SqliteTransaction<'_>,
        before: i64,
    ) -> Result<Result<Self, Break>, sqlx::Error> {
        let removed = newest_checkpoint(transaction).await?;
        let mut beginning = Self {
            last: removed.map_or(Head::NONE, |checkpoint| checkpoint.removed),
            through: 0,
            commands: BTreeSet::new(),
            fates: HashMap::new(),
            operations: Vec::new(),
            transitions: Vec::new(),
            checkpoints: Vec::new(),
        };
        // Not after the last link that was removed: one that should not be there
        // any more is to be seen.
        for row in tail::links(transaction, 0, STEP).await? {
            let at = row.try_get("at_us")?;
            if at >= before {
                break;
            }
            match follow(beginning.last, &row)? {
                Ok((kind, head)) => {
                    beginning.last = head;
                    beginning.through = beginning.through.max(at);
                    beginning.add(kind, row.try_get("reference")?, row.try_get("seq")?);
                }
                Err(broken) => return Ok(Err(broken)),
            }
        }
        Ok(Ok(beginning))
    }

    fn add(&mut self, kind: EventKind, reference: i64, command: Option<i64>) {
        match kind {
            EventKind::Opened => {}
            EventKind::Intended | EventKind::Carried => {
                self.commands.insert(reference);
            }
            EventKind::Recorded => {
                self.commands.extend(command);
                self.fate(command, reference);
            }
            EventKind::Concluded
            | EventKind::Repeated
            | EventKind::Resolved
            | EventKind::CarriedFate => self.fate(command, reference),
            EventKind::Operation => self.operations.push(reference),
            EventKind::Transition => self.transitions.push(reference),
            EventKind::Pruned => self.checkpoints.push(reference),
        }
    }

    fn fate(&mut self, command: Option<i64>, fate: i64) {
        if let Some(command) = command {
            self.fates.entry(command).or_default().insert(fate);
        }
    }

    pub(super) fn holds_fate(&self, command: i64, fate: i64) -> bool {
        self.fates
            .get(&command)
            .is_some_and(|fates| fates.contains(&fate))
    }
}

/// The commands that go with the beginning, and their fates.
#[derive(Debug, Default)]
pub(super) struct Going {
    pub(super) commands: Vec<i64>,
    /// The youngest of their times.
    pub(super) through: i64,
}

impl Going {
    pub(super) async fn among(
        transaction: &mut SqliteTransaction<'_>,
        beginning: &Beginning,
        newest: i64,
    ) -> Result<Self, sqlx::Error> {
        let rows: Vec<(i64, String, i64, i64)> = sqlx::query_as(SELECT_BOUND)
            .bind(json(&beginning.commands)?)
            .fetch_all(&mut **transaction)
            .await?;
        let mut going = Self::default();
        for (command, id, created, fates) in rows {
            let bound = beginning.fates.get(&command).map_or(0, HashSet::len);
            if bound == 0 || i64::try_from(bound) != Ok(fates) || command == newest {
                continue;
            }
            going.commands.push(command);
            going.through = going.through.max(created).max(minted(&id));
        }
        Ok(going)
    }

    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.commands.len()).unwrap_or(i64::MAX)
    }
}

/// The time that an id tells, if it tells one.
fn minted(id: &str) -> i64 {
    id.parse()
        .ok()
        .and_then(|id: fleetgate_runner::CommandId| id.minted())
        .map_or(0, since_epoch)
}
