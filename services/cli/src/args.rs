//! The command line: the options that all verbs share, and the list of verbs.
//!
//! Each verb keeps its own arguments in its own file.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::client::{Context, Server, mint};
use crate::demo::Demo;
use crate::doctor::Doctor;
use crate::exit;
use crate::lab::Lab;
use crate::output::Format;
use crate::serve::Serve;
use crate::verbs::command::Command;
use crate::verbs::cordon::{Cordon, Uncordon};
use crate::verbs::describe::Describe;
use crate::verbs::device::Device;
use crate::verbs::devices::Devices;
use crate::verbs::drain::Drain;
use crate::verbs::history::History;
use crate::verbs::ledger::Ledger;
use crate::verbs::recycle::Recycle;
use crate::verbs::screenshot::Screenshot;
use crate::verbs::tap::Tap;
use crate::verbs::tree::Tree;
use crate::verbs::type_text::TypeText;
use crate::when;

#[cfg(test)]
mod tests;

/// Drives a rack of phones through one gateway: every command is sent at most
/// once, and its fate can be looked up.
///
/// New here? `fleetgate demo` starts a gateway with three simulated phones and
/// shows what it can do.
#[derive(Debug, Parser)]
#[command(name = "fleetgate", version, after_help = exit::HELP, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    client: ClientOptions,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// How the verbs that ask a gateway go about it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Client options")]
struct ClientOptions {
    /// The gateway to ask
    #[arg(long, global = true, env = "FLEETGATE_SERVER", default_value = Server::DEFAULT, value_name = "URL")]
    server: Server,
    /// How long an answer may take, such as 500ms or 2m; the wait in a
    /// device's queue counts
    #[arg(long, global = true, value_parser = when::parse_duration, value_name = "DURATION")]
    timeout: Option<Duration>,
    /// How to print the answer
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "table|json",
        hide_possible_values = true
    )]
    output: Format,
}

/// `-o` where it is not taken by something else.
#[derive(Debug, Args)]
pub(crate) struct ShortOutput {
    /// Short for --output
    #[arg(
        short = 'o',
        value_enum,
        value_name = "table|json",
        hide_possible_values = true,
        help_heading = "Client options"
    )]
    short: Option<Format>,
}

/// `--command-id`, of whatever changes a phone.
#[derive(Debug, Args)]
pub(crate) struct CommandId {
    /// The command's id, instead of a new one: asked again with the same id and
    /// content, it is not done again, and its outcome is told
    #[arg(long, value_name = "ID")]
    command_id: Option<String>,
}

impl CommandId {
    /// The one that was given, or a new one.
    pub(crate) fn or_new(self) -> String {
        self.command_id.unwrap_or_else(mint)
    }
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a gateway
    Serve(Serve),
    /// Run a gateway with three simulated phones and show what it can do
    Demo(Demo),
    /// Run a simulated usbmuxd with phones on it
    Lab(Lab),
    /// Say what is wrong, and what to do about it
    Doctor(Doctor),
    /// List the phones, or watch them
    Devices(Devices),
    /// Show all that is known of one phone
    Describe(Describe),
    /// Name and label a phone
    Device(Device),
    /// Take a phone out of service
    Cordon(Cordon),
    /// Put a phone into service again
    Uncordon(Uncordon),
    /// End a phone's runner and launch it again
    Recycle(Recycle),
    /// End a gateway in peace
    Drain(Drain),
    /// Tap a point of an app
    Tap(Tap),
    /// Type text into the focused input of an app
    Type(TypeText),
    /// Show the accessibility tree of an app
    Tree(Tree),
    /// Save a picture of a phone's screen
    Screenshot(Screenshot),
    /// List commands and their fates, the newest first
    History(History),
    /// Look one command up
    Command(Command),
    /// Look after a ledger's file
    Ledger(Ledger),
}

impl Cli {
    /// What the shared options say.
    pub(crate) fn context(&self) -> Context {
        let short = match &self.verb {
            Verb::Doctor(Doctor { output, .. })
            | Verb::Devices(Devices { output, .. })
            | Verb::Describe(Describe { output, .. })
            | Verb::Cordon(Cordon { output, .. })
            | Verb::Uncordon(Uncordon { output, .. })
            | Verb::Recycle(Recycle { output, .. })
            | Verb::Drain(Drain { output, .. })
            | Verb::Tap(Tap { output, .. })
            | Verb::Type(TypeText { output, .. })
            | Verb::Tree(Tree { output, .. })
            | Verb::History(History { output, .. }) => output.short,
            Verb::Device(device) => device.output().short,
            Verb::Command(command) => command.output().short,
            Verb::Ledger(ledger) => ledger.output().short,
            Verb::Serve(_) | Verb::Demo(_) | Verb::Lab(_) | Verb::Screenshot(_) => None,
        };
        Context {
            server: self.client.server.clone(),
            timeout: self.client.timeout,
            format: short.unwrap_or(self.client.output),
        }
    }
}

impl Verb {
    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        match self {
            Self::Serve(serve) => serve.run().await,
            Self::Demo(demo) => demo.run().await,
            Self::Lab(lab) => lab.run().await,
            Self::Doctor(doctor) => doctor.run(context).await,
            Self::Devices(devices) => devices.run(context).await,
            Self::Describe(describe) => describe.run(context).await,
            Self::Device(device) => device.run(context).await,
            Self::Cordon(cordon) => cordon.run(context).await,
            Self::Uncordon(uncordon) => uncordon.run(context).await,
            Self::Recycle(recycle) => recycle.run(context).await,
            Self::Drain(drain) => drain.run(context).await,
            Self::Tap(tap) => tap.run(context).await,
            Self::Type(type_text) => type_text.run(context).await,
            Self::Tree(tree) => tree.run(context).await,
            Self::Screenshot(screenshot) => screenshot.run(context).await,
            Self::History(history) => history.run(context).await,
            Self::Command(command) => command.run(context).await,
            Self::Ledger(ledger) => ledger.run(context).await,
        }
    }
}
