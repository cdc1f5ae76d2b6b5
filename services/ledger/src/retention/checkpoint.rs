//! What a step of retention leaves where it removed something.

use serde::Serialize;
use sqlx::SqliteTransaction;

use super::{Beginning, Going};
use crate::batch::rows::TableRow;

const INSERT_CHECKPOINT: &str = "
INSERT INTO checkpoints (seq, ledger_id, chain_seq, chain_hash, pruned_through_us, commands_pruned, at_us)
SELECT e.value ->> 'seq', e.value ->> 'ledger', e.value ->> 'chainSeq', unhex(e.value ->> 'chainHash'),
       e.value ->> 'prunedThrough', e.value ->> 'commandsPruned', e.value ->> 'at'
FROM json_each(?1) AS e";

/// A row of `checkpoints`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckpointJson {
    pub(super) seq: i64,
    pub(super) ledger: String,
    pub(super) chain_seq: i64,
    chain_hash: String,
    pub(super) pruned_through: i64,
    pub(super) commands_pruned: i64,
    pub(super) at: i64,
}

impl TableRow for CheckpointJson {
    const INSERT: &'static str = INSERT_CHECKPOINT;
}

impl CheckpointJson {
    pub(super) async fn next(
        transaction: &mut SqliteTransaction<'_>,
        beginning: &Beginning,
        going: &Going,
        at: i64,
    ) -> Result<Self, sqlx::Error> {
        let ledger = sqlx::query_scalar("SELECT ledger_id FROM identity")
            .fetch_one(&mut **transaction)
            .await?;
        let newest: Option<(i64, i64, i64)> = sqlx::query_as(
            "SELECT seq, pruned_through_us, commands_pruned FROM checkpoints ORDER BY seq DESC LIMIT 1",
        )
        .fetch_optional(&mut **transaction)
        .await?;
        let (seq, through, commands) = newest.unwrap_or_default();
        Ok(Self {
            seq: seq + 1,
            ledger,
            chain_seq: beginning.last.seq,
            chain_hash: beginning.last.hash.to_string(),
            pruned_through: through.max(going.through),
            commands_pruned: commands.saturating_add(going.count()),
            at,
        })
    }
}
