//! What can go wrong with a launch, as options: one for each
//! [`Mishap`].

use std::time::Duration;

use clap::Args;
use fleetgate_simulator::Mishap;

use crate::when::parse_duration;

/// What goes wrong with this launch. Durations are the phone's: a lab's time
/// scale shortens them.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What goes wrong")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of a command line"
)]
pub(super) struct Behaviour {
    /// Exit with this code before the runner starts
    #[arg(long, value_name = "CODE", group = "start")]
    exit: Option<u8>,
    /// What is said to that
    #[arg(long, value_name = "TEXT", requires = "exit", default_value = "")]
    message: String,
    /// Start and never listen
    #[arg(long, group = "start")]
    never_listen: bool,
    /// Listen so much later
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, group = "start")]
    listen_after: Option<Duration>,
    /// Fail to listen, with this error, and stay
    #[arg(long, value_name = "ERROR", group = "start")]
    listener_fails: Option<String>,
    /// Say port 0 before saying the port
    #[arg(long, group = "line")]
    port_zero: bool,
    /// Write the line with the port in two parts, with a pause between them
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, group = "line")]
    split_line: Option<Duration>,
    /// Print a line of this length before saying the port
    #[arg(long, value_name = "BYTES", group = "line")]
    long_line: Option<usize>,
    /// Die after having listened for so long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, group = "life")]
    die_after: Option<Duration>,
    /// Start again within the same launch after having listened for so long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, group = "life")]
    listen_again_after: Option<Duration>,
    /// Where that one is to listen
    #[arg(long, value_name = "PORT", requires = "listen_again_after")]
    again_on: Option<u16>,
    /// Begin with so much uptime; a runner ends at 24 h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    uptime: Option<Duration>,
    /// Do not end at SIGTERM or SIGINT
    #[arg(long)]
    ignore_sigterm: bool,
    /// Leave a child in the process group that does not end at SIGTERM
    #[arg(long)]
    leave_child: bool,
    /// Go on when the phone's cable is pulled
    #[arg(long)]
    stay_when_unplugged: bool,
}

impl Behaviour {
    /// The same as data.
    pub(super) fn mishaps(&self) -> Vec<Mishap> {
        let if_so = |so: bool, mishap: Mishap| so.then_some(mishap);
        let again = |after| Mishap::ListensAgain {
            after,
            port: self.again_on,
        };
        let all = [
            self.exit.map(|code| Mishap::Exits {
                code,
                message: self.message.clone(),
            }),
            if_so(self.never_listen, Mishap::NeverListens),
            self.listen_after.map(|by| Mishap::ListensLate { by }),
            self.listener_fails
                .clone()
                .map(|error| Mishap::ListenerFailed { error }),
            if_so(self.port_zero, Mishap::PortZero),
            self.split_line.map(|pause| Mishap::SplitLine { pause }),
            self.long_line.map(|bytes| Mishap::LongLine { bytes }),
            self.die_after.map(|after| Mishap::Dies { after }),
            self.listen_again_after.map(again),
            self.uptime.map(|uptime| Mishap::Aged { uptime }),
            if_so(self.ignore_sigterm, Mishap::IgnoresSigterm),
            if_so(self.leave_child, Mishap::LeavesChild),
            if_so(self.stay_when_unplugged, Mishap::StaysWhenUnplugged),
        ];
        all.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        behaviour: Behaviour,
    }

    fn mishaps(line: &str) -> Option<Vec<Mishap>> {
        let line = Line::try_parse_from(line.split(' ')).ok()?;
        Some(line.behaviour.mishaps())
    }

    #[test]
    fn without_options_nothing_goes_wrong() {
        assert_eq!(mishaps("x"), Some(Vec::new()));
    }

    #[test]
    fn what_befalls_different_steps_goes_together() {
        let line = "x --port-zero --die-after 2s --ignore-sigterm --leave-child --uptime 23h";
        let after = Duration::from_secs(2);
        let uptime = Duration::from_secs(23 * 60 * 60);
        let expected = [
            Mishap::PortZero,
            Mishap::Dies { after },
            Mishap::Aged { uptime },
            Mishap::IgnoresSigterm,
            Mishap::LeavesChild,
        ];
        assert_eq!(mishaps(line).unwrap(), expected);
    }

    #[test]
    fn what_befalls_one_step_excludes_each_other() {
        for line in [
            "x --exit 1 --never-listen",
            "x --listen-after 1s --listener-fails in-use",
            "x --port-zero --long-line 9",
            "x --die-after 1s --listen-again-after 1s",
            "x --message why",
            "x --again-on 8100",
        ] {
            assert_eq!(mishaps(line), None, "{line}");
        }
    }
}
