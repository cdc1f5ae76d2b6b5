//! `ledger verify`: whether a ledger is still what was written. Reads the file
//! itself, also while a gateway has it open, and asks no gateway.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use fleetgate_gateway::ledger::{Fault, Head, VerifyReport, verify};
use serde::Serialize;

use crate::args::ShortOutput;
use crate::output::{Format, pairs, print};
use crate::when;

/// Look after a ledger.
#[derive(Debug, Args)]
pub(crate) struct Ledger {
    #[command(subcommand)]
    verb: LedgerVerb,
}

#[derive(Debug, Subcommand)]
enum LedgerVerb {
    /// Check that nothing in a ledger was changed, removed or put in
    Verify(Verify),
}

/// Check that nothing in a ledger was changed, removed or put in.
#[derive(Debug, Args)]
#[command(after_help = "\
Ends with 0 only if the ledger is intact, and otherwise names the first break.
Whoever can write the file can also cut its end off, or write all of it anew:
keep the head that this prints elsewhere, and give it to a later run.

Example:
  fleetgate ledger verify --path /var/lib/fleetgate/ledger.db")]
struct Verify {
    /// The ledger's file
    #[arg(long, value_name = "FILE")]
    path: PathBuf,
    /// The head that an earlier run printed
    #[arg(long, value_name = "SEQ:HASH", value_parser = head)]
    known: Option<Head>,
    #[command(flatten)]
    output: ShortOutput,
}

/// The findings as JSON.
#[derive(Debug, Serialize)]
struct VerifyView {
    intact: bool,
    ledger_id: Option<String>,
    events: u64,
    commands: u64,
    head: String,
    known_compared: bool,
    /// Whether the known head is in the chain; absent if it was not compared.
    known_found: Option<bool>,
    pruned_through: Option<String>,
    commands_pruned: Option<u64>,
    first_break: Option<BreakView>,
}

/// The first break as JSON.
#[derive(Debug, Serialize)]
struct BreakView {
    seq: i64,
    what: String,
}

fn head(text: &str) -> Result<Head, String> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| {
        let (seq, hash) = (seq.parse().ok()?, hash.parse().ok()?);
        Some(Head { seq, hash })
    });
    parsed.ok_or_else(|| {
        "not a head: expected a number, a colon and 64 hexadecimal digits".to_owned()
    })
}

impl Ledger {
    /// Its `-o`.
    pub(crate) fn output(&self) -> &ShortOutput {
        let LedgerVerb::Verify(verify) = &self.verb;
        &verify.output
    }

    /// Does it.
    pub(crate) async fn run(self, format: Format) -> anyhow::Result<()> {
        let LedgerVerb::Verify(Verify { path, known, .. }) = self.verb;
        let view = VerifyView::from(verify(&path, known).await?);
        print(format, &view, VerifyView::text)?;
        match view.first_break {
            None => Ok(()),
            Some(found) => bail!("the ledger {} is broken: {}", path.display(), found.what),
        }
    }
}

impl From<VerifyReport> for VerifyView {
    fn from(report: VerifyReport) -> Self {
        let checkpoint = report.checkpoint.as_ref();
        let fault = report.first_break.as_ref().map(|found| &found.what);
        let known_is_missing =
            matches!(fault, Some(Fault::Rewritten { .. } | Fault::CutOff { .. }));
        Self {
            known_found: report.known_compared.then_some(!known_is_missing),
            intact: report.is_intact(),
            pruned_through: checkpoint
                .and_then(|checkpoint| when::stamp(checkpoint.pruned_through.into())),
            commands_pruned: checkpoint.map(|checkpoint| checkpoint.commands_pruned),
            ledger_id: report.ledger_id,
            events: report.events,
            commands: report.commands,
            head: format!("{}:{}", report.head.seq, report.head.hash),
            known_compared: report.known_compared,
            first_break: report.first_break.map(|found| BreakView {
                seq: found.seq,
                what: found.to_string(),
            }),
        }
    }
}

impl VerifyView {
    fn text(&self) -> String {
        let intact = if self.intact { "yes" } else { "no" };
        pairs(
            0,
            [
                ("intact", Some(intact.to_owned())),
                ("ledger", self.ledger_id.clone()),
                ("events", Some(self.events.to_string())),
                ("commands", Some(self.commands.to_string())),
                ("pruned through", self.pruned_through.clone()),
                (
                    "commands pruned",
                    self.commands_pruned.map(|pruned| pruned.to_string()),
                ),
                ("head", Some(self.head.clone())),
                (
                    "known head",
                    self.known_found.map(|found| {
                        let is = if found { "is" } else { "is not" };
                        format!("{is} in the chain")
                    }),
                ),
                (
                    "first break",
                    self.first_break.as_ref().map(|found| found.what.clone()),
                ),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_head_that_is_missing_is_not_said_to_be_in_the_chain() {
        let view = |known_found: Option<bool>| VerifyView {
            intact: known_found != Some(false),
            ledger_id: None,
            events: 1,
            commands: 0,
            head: "1:00".to_owned(),
            known_compared: known_found.is_some(),
            known_found,
            pruned_through: None,
            commands_pruned: None,
            first_break: None,
        };
        assert!(view(Some(true)).text().contains("is in the chain"));
        assert!(view(Some(false)).text().contains("is not in the chain"));
        assert!(!view(None).text().contains("in the chain"));
    }

    #[test]
    fn a_head_is_read_as_it_is_printed() {
        let text = format!("7:{}", "0f".repeat(32));
        let read = head(&text).unwrap();
        assert_eq!(format!("{}:{}", read.seq, read.hash), text);
        for bad in ["7", "7:0f", ":0f", "x:0f"] {
            assert!(head(bad).is_err(), "{bad}");
        }
    }
}
