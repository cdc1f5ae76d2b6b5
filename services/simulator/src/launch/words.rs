//! The lines that a runner logs, as the launcher's reference has them, and a
//! few of `xcodebuild`'s own around them.
//!
//! Of a command, only its kind and its id are logged: never what was typed.

use std::time::Duration;

use fleetgate_runner::{CommandId, CommandKind};

use super::Ending;

pub(super) fn starting(requested: u16) -> String {
    format!("ARGENT_RUNNER_STARTING requestedPort={requested}")
}

pub(super) fn listening(port: u16) -> String {
    format!("ARGENT_RUNNER_LISTENING port={port}")
}

pub(super) fn listener_failed(error: &str) -> String {
    format!("ARGENT_RUNNER_LISTENER_FAILED error={error}")
}

pub(super) fn serving() -> String {
    "ARGENT_RUNNER_SERVING".to_owned()
}

fn named(id: Option<&CommandId>) -> &str {
    id.map_or("-", CommandId::as_str)
}

pub(crate) fn accepted(kind: CommandKind, id: Option<&CommandId>) -> String {
    let id = named(id);
    format!("ARGENT_RUNNER_COMMAND_ACCEPTED command={kind} commandId={id}")
}

pub(crate) fn finished(kind: CommandKind, id: Option<&CommandId>, ok: bool) -> String {
    let (id, ok) = (named(id), u8::from(ok));
    format!("ARGENT_RUNNER_COMMAND_FINISHED command={kind} commandId={id} ok={ok}")
}

pub(crate) fn coalesced(id: Option<&CommandId>) -> String {
    format!(
        "ARGENT_RUNNER_DUPLICATE_SEND_COALESCED commandId={}",
        named(id)
    )
}

pub(crate) fn busy(kind: CommandKind, since: Duration) -> String {
    let since = since.as_secs_f64();
    format!("ARGENT_RUNNER_BUSY command={kind} abandonedFor={since:.1}")
}

pub(crate) fn wedged(since: Duration) -> String {
    format!(
        "ARGENT_RUNNER_WEDGED abandonedFor={:.1}",
        since.as_secs_f64()
    )
}

pub(crate) fn drained() -> String {
    "ARGENT_RUNNER_ABANDONED_WORK_DRAINED".to_owned()
}

/// What the runner logs when it ends in this way, if it can still log.
pub(super) fn stopped(ending: Ending) -> Option<String> {
    let outcome = match ending {
        Ending::ShutDown => "shutdown",
        Ending::Expired => "expired",
        Ending::Killed | Ending::Unplugged | Ending::Replaced | Ending::Restarted => return None,
    };
    Some(format!("ARGENT_RUNNER_STOPPED outcome={outcome}"))
}

/// Why the test run failed, if it did.
pub(super) fn failed(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::ShutDown | Ending::Expired | Ending::Restarted => None,
        Ending::Killed => Some("the runner ended unexpectedly"),
        Ending::Unplugged => Some("the connection to the phone was lost"),
        Ending::Replaced => Some("the runner was ended: another test run started it anew"),
    }
}
