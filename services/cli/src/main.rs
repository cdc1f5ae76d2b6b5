//! The fleetgate binary.
//!
//! Parses the command line, runs one verb, and turns its outcome into text on
//! stderr and an exit code.

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::{Format, note};
use crate::rejected::Rejected;

mod args;
mod client;
mod demo;
mod exit;
mod lab;
mod logs;
mod output;
mod rejected;
mod serve;
mod signals;
mod verbs;
mod view;
mod when;
mod words;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = cli.context();
    match cli.verb.run(&context).await {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            note(&told(&error, context.format));
            Exit::of(&error).into()
        }
    }
}

/// An error as it goes to stderr.
fn told(error: &anyhow::Error, format: Format) -> String {
    match (error.downcast_ref::<Rejected>(), format) {
        (Some(rejected), Format::Table) => rejected.text().trim_end().to_owned(),
        (Some(rejected), Format::Json) => rejected.json().to_string(),
        (None, Format::Table) => format!("error: {error:#}"),
        (None, Format::Json) => {
            let exit_code = Exit::of(error).number();
            serde_json::json!({ "error": { "message": format!("{error:#}"), "exit_code": exit_code } }).to_string()
        }
    }
}
