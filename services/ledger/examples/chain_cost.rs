//! What the chain costs a command: `cargo run --release -p fleetgate-ledger
//! --example chain_cost`.
//!
//! Callers intend and conclude commands as fast as they can, and the writer's
//! own clock tells how much of its time went into the chain (reading its end,
//! hashing, inserting its links). What the links add to each commit cannot be
//! told apart there; their share of the bytes that are written is what it is
//! about, and is given besides.

use std::error::Error;
use std::time::Duration;

use fleetgate_ledger::{LeaseStamp, Ledger, LedgerConfig, NewFate, NewIntent, Outcome};
use fleetgate_runner::{CommandId, CommandKind, Effect, Fate};
use serde_json::json;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::task::JoinSet;

const CALLERS: [u32; 3] = [1, 16, 64];
const COMMANDS: u32 = 20_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "callers  commands  entries/commit  writing/command  chain/command  with/without the chain  bytes"
    );
    for callers in CALLERS {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("ledger.db");
        let ledger = Ledger::open(LedgerConfig::new(&path)).await?;
        let commands = COMMANDS.min(callers * 2000);
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            let ledger = ledger.clone();
            tasks.spawn(async move {
                for _ in 0..commands / callers {
                    let command_id = CommandId::mint();
                    ledger.intend(intent(command_id.clone())?).await?;
                    ledger.conclude(fate(command_id)).await?;
                }
                Ok::<_, Box<dyn Error + Send + Sync>>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done?.map_err(|error| error.to_string())?;
        }
        let stats = ledger.stats();
        ledger.close().await;

        let without = stats.writing.saturating_sub(stats.chaining);
        let per_command = |time: Duration| time / u32::try_from(stats.written / 2).unwrap_or(1);
        println!(
            "{callers:>7}  {commands:>8}  {:>14}  {:>15.1?}  {:>13.1?}  {:>22.2}  {}",
            stats.written / stats.commits.max(1),
            per_command(stats.writing),
            per_command(stats.chaining),
            stats.writing.as_secs_f64() / without.as_secs_f64(),
            share(&path).await?,
        );
    }
    Ok(())
}

/// What a command takes in the file, and how much of it is the chain's.
async fn share(path: &std::path::Path) -> Result<String, Box<dyn Error>> {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .connect()
        .await?;
    let (links, commands, pages): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) * 32 + sum(length(kind) + 20) FROM chain), (SELECT count(*) FROM commands), \
         (SELECT page_count * 4096 FROM pragma_page_count)",
    )
    .fetch_one(&mut connection)
    .await?;
    Ok(format!(
        "{} per command, of which the chain about {}",
        pages / commands.max(1),
        links / commands.max(1)
    ))
}

fn intent(command_id: CommandId) -> Result<NewIntent, Box<dyn Error + Send + Sync>> {
    let fields = |fields: &[(&str, serde_json::Value)]| {
        fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    };
    Ok(NewIntent {
        command_id,
        device: "00008110-000978540290401E".parse()?,
        kind: CommandKind::Tap,
        app_bundle_id: Some("com.example.settings".parse()?),
        parameters: fields(&[("x", json!(195.0)), ("y", json!(422.5))]),
        asked: fields(&[("normalized", json!({ "x": 0.5, "y": 0.5 }))]),
        caller: Some("127.0.0.1:47348".to_owned()),
        principal: Some("token:lab-scheduler".to_owned()),
        lease: Some(LeaseStamp {
            id: "01a22d13-0d23-7047-9ea0-e4d6b195021a".to_owned(),
            epoch: 1,
        }),
    })
}

fn fate(command_id: CommandId) -> NewFate {
    NewFate {
        command_id,
        outcome: Outcome {
            fate: Fate::Completed,
            effect: Effect::Applied,
            reason: None,
            message: None,
            warning: None,
            hint: None,
            reactivated: false,
            attempts: 1,
            recovered: false,
            queue_wait: Duration::from_micros(17),
            device_time: Duration::from_millis(230),
            reply: None,
        },
    }
}
