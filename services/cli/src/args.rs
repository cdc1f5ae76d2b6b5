//! The command line: the options that all verbs share, and the list of verbs.
//!
//! Each verb keeps its own arguments in its own file.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use fleetgate_proto::v1::LeaseRef;

use crate::client::{Access, Context, Server, mint};
use crate::demo::Demo;
use crate::doctor::Doctor;
use crate::exit::{self, Exit};
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
use crate::verbs::instances::Instances;
use crate::verbs::lease::Lease;
use crate::verbs::ledger::Ledger;
use crate::verbs::operations::Operations;
use crate::verbs::recycle::Recycle;
use crate::verbs::screenshot::Screenshot;
use crate::verbs::tap::Tap;
use crate::verbs::token::Token;
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
    /// The gateway to ask; otherwise the one that runs on this host, or whoever
    /// has its port 7700
    #[arg(long, global = true, env = "FLEETGATE_SERVER", value_name = "URL")]
    server: Option<Server>,
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
    #[command(flatten)]
    access: Access,
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

/// The lease under which a phone is driven.
#[derive(Debug, Args)]
pub(crate) struct UnderLease {
    /// The lease that the phone is held by
    #[arg(
        long,
        value_name = "ID",
        env = "FLEETGATE_LEASE",
        hide_env_values = true,
        requires = "epoch"
    )]
    lease: Option<String>,
    /// The lease's epoch
    #[arg(
        long,
        value_name = "N",
        env = "FLEETGATE_LEASE_EPOCH",
        hide_env_values = true,
        requires = "lease"
    )]
    epoch: Option<u64>,
}

impl UnderLease {
    /// As a command names it.
    pub(crate) fn named(self) -> Option<LeaseRef> {
        let (id, epoch) = self.lease.zip(self.epoch)?;
        Some(LeaseRef { id, epoch })
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
    /// List the gateways of this host
    Instances(Instances),
    #[command(flatten)]
    Ask(Question),
    /// Look after a ledger's file
    Ledger(Ledger),
    /// Make, list and revoke the tokens of a gateway
    Token(Token),
}

/// What a gateway is asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Question {
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
    /// Have phones to oneself
    Lease(Lease),
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
    /// List who did what, and which calls were denied, the newest first
    Operations(Operations),
}

impl Cli {
    /// How the answer is printed.
    pub(crate) fn format(&self) -> Format {
        let short = match &self.verb {
            Verb::Serve(_) | Verb::Demo(_) | Verb::Lab(_) => None,
            Verb::Instances(instances) => Some(&instances.output),
            Verb::Ask(question) => question.output(),
            Verb::Ledger(ledger) => Some(ledger.output()),
            Verb::Token(token) => Some(token.output()),
        };
        short
            .and_then(|output| output.short)
            .unwrap_or(self.client.output)
    }

    /// Does it.
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let format = self.format();
        match self.verb {
            Verb::Serve(serve) => serve.run().await?,
            Verb::Demo(demo) => demo.run().await?,
            Verb::Lab(lab) => lab.run().await?,
            Verb::Instances(instances) => instances.run(format).await?,
            Verb::Ask(question) => return question.ask(&self.client.context(format)?).await,
            Verb::Ledger(ledger) => ledger.run(format).await?,
            Verb::Token(token) => token.run(format)?,
        }
        Ok(Exit::Done)
    }
}

impl ClientOptions {
    /// What they say.
    fn context(self, format: Format) -> anyhow::Result<Context> {
        Context::new(self.server, self.access, self.timeout, format)
    }
}

impl Question {
    /// Its `-o`.
    fn output(&self) -> Option<&ShortOutput> {
        match self {
            Self::Doctor(Doctor { output, .. })
            | Self::Devices(Devices { output, .. })
            | Self::Describe(Describe { output, .. })
            | Self::Cordon(Cordon { output, .. })
            | Self::Uncordon(Uncordon { output, .. })
            | Self::Recycle(Recycle { output, .. })
            | Self::Drain(Drain { output, .. })
            | Self::Tap(Tap { output, .. })
            | Self::Type(TypeText { output, .. })
            | Self::Tree(Tree { output, .. })
            | Self::History(History { output, .. })
            | Self::Operations(Operations { output, .. }) => Some(output),
            Self::Device(device) => Some(device.output()),
            Self::Command(command) => Some(command.output()),
            Self::Lease(lease) => lease.output(),
            // It has another -o.
            Self::Screenshot(_) => None,
        }
    }

    /// Asks it.
    async fn ask(self, context: &Context) -> anyhow::Result<Exit> {
        match self {
            Self::Lease(lease) => return lease.run(context).await,
            Self::Doctor(doctor) => doctor.run(context).await?,
            Self::Devices(devices) => devices.run(context).await?,
            Self::Describe(describe) => describe.run(context).await?,
            Self::Device(device) => device.run(context).await?,
            Self::Cordon(cordon) => cordon.run(context).await?,
            Self::Uncordon(uncordon) => uncordon.run(context).await?,
            Self::Recycle(recycle) => recycle.run(context).await?,
            Self::Drain(drain) => drain.run(context).await?,
            Self::Tap(tap) => tap.run(context).await?,
            Self::Type(type_text) => type_text.run(context).await?,
            Self::Tree(tree) => tree.run(context).await?,
            Self::Screenshot(screenshot) => screenshot.run(context).await?,
            Self::History(history) => history.run(context).await?,
            Self::Command(command) => command.run(context).await?,
            Self::Operations(operations) => operations.run(context).await?,
        }
        Ok(Exit::Done)
    }
}
