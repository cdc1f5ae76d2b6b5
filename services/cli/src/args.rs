//! The command line: the options that all verbs share, and the list of verbs.
//!
//! Each verb keeps its own arguments in its own file.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::client::{Context, Server};
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn shared_options_may_stand_before_and_after_the_verb() {
        for line in [
            "fleetgate --server lab:7701 --timeout 2s --output json devices",
            "fleetgate devices --server lab:7701 --timeout 2s --output json",
            "fleetgate devices --server lab:7701 --timeout 2s -o json",
        ] {
            let context = parse(line).unwrap().context();
            assert_eq!(context.server.to_string(), "http://lab:7701", "{line}");
            assert_eq!(context.timeout, Some(Duration::from_secs(2)), "{line}");
            assert_eq!(context.format, Format::Json, "{line}");
        }
    }

    #[test]
    fn the_file_of_a_screenshot_and_its_output_format_do_not_clash() {
        let cli = parse("fleetgate screenshot phone -o json --output json").unwrap();
        assert_eq!(cli.context().format, Format::Json);
        let Verb::Screenshot(screenshot) = cli.verb else {
            panic!("not a screenshot")
        };
        assert_eq!(screenshot.file, std::path::Path::new("json"));
    }

    #[test]
    fn a_tap_takes_a_point_in_exactly_one_way() {
        for good in [
            "fleetgate tap phone --app b --x 10 --y 20.5",
            "fleetgate tap phone --app b --x -1 --y -2",
            "fleetgate tap phone --app b --at-normalized 0.5,0.25 --taps 2",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "fleetgate tap phone --app b",
            "fleetgate tap phone --app b --x 10",
            "fleetgate tap phone --app b --x 10 --y nan",
            "fleetgate tap phone --app b --x 10 --y 20 --at-normalized 0.5,0.5",
            "fleetgate tap phone --app b --at-normalized 1.5,0.5",
            "fleetgate tap phone --app b --at-normalized 0.5",
            "fleetgate tap phone --app b --x 1 --y 1 --taps 0",
            "fleetgate tap phone --x 1 --y 1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_history_filters_by_words_and_refuses_others() {
        let line = "fleetgate history --device phone --kind tap --kind long_press --fate pending --since 15m";
        assert!(parse(line).is_ok());
        assert!(parse("fleetgate history --kind hover").is_err());
        assert!(parse("fleetgate history --limit 0").is_err());
    }

    #[test]
    fn events_are_exported_or_followed_and_never_filtered() {
        for good in [
            "fleetgate history --export",
            "fleetgate history --export --after abc",
            "fleetgate history --follow --after abc -o json",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "fleetgate history --export --follow",
            "fleetgate history --export --device phone",
            "fleetgate history --follow --limit 5",
            "fleetgate history --after abc --kind tap",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_exit_codes_are_in_the_help() {
        let help = Cli::command().render_help().to_string();
        assert!(help.contains("6  fate unknown"), "{help}");
    }
}
