//! The fleetgate binary.
//!
//! Parses the command line, runs one verb, and turns its outcome into text on
//! stderr and an exit code.

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::note;

mod args;
mod client;
mod demo;
mod descriptors;
mod doctor;
mod exit;
mod follow;
mod lab;
mod labels;
mod logs;
mod mirror;
mod output;
mod rejected;
mod report;
mod screen;
mod serve;
mod signals;
mod verbs;
mod view;
mod when;
mod words;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = cli.format();
    match cli.run().await {
        Ok(exit) => exit.into(),
        Err(error) => {
            note(&report::told(&error, format));
            Exit::of(&error).into()
        }
    }
}
