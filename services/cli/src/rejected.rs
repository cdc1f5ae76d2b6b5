//! A call that failed, as far as it says what became of the command.
//!
//! The only file that reads a `Status`. Where the gateway said nothing about
//! the fate (the connection broke, the deadline passed here before its answer
//! came), a command that changes the device counts as of unknown fate: the
//! error never claims more than is known.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use fleetgate_proto::v1::{Effect, Fate};
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::client::{Asked, Client, Context, Server};
use crate::exit::Exit;
use crate::output::{clean, pairs};
use crate::words;

#[cfg(test)]
mod tests;

/// What the gateway's own errors carry in `ErrorInfo.domain`.
const DOMAIN: &str = "fleetgate";

/// A call that failed.
#[derive(Debug, Clone)]
pub(crate) struct Rejected {
    code: Code,
    /// `None` if it was not the gateway that answered.
    reason: Option<String>,
    message: String,
    device: Option<String>,
    command_id: Option<String>,
    /// Whether it was to change the device.
    mutation: bool,
    fate: Option<Fate>,
    effect: Option<Effect>,
    reactivated: bool,
    hint: Option<String>,
    retry_after: Option<Duration>,
    violations: Vec<(String, String)>,
    look_up: Option<String>,
}

/// The same as JSON.
#[derive(Debug, Serialize)]
struct View<'a> {
    code: &'static str,
    reason: Option<&'a str>,
    message: &'a str,
    device: Option<&'a str>,
    command_id: Option<&'a str>,
    fate: Option<String>,
    effect: Option<String>,
    reactivated: bool,
    hint: Option<&'a str>,
    retry_after_ms: Option<u128>,
    violations: Vec<ViolationView<'a>>,
    look_up: Option<&'a str>,
    exit_code: u8,
}

/// One field that the gateway did not accept.
#[derive(Debug, Serialize)]
struct ViolationView<'a> {
    field: &'a str,
    description: &'a str,
}

impl Client {
    /// What a failed call proves.
    pub(crate) fn rejected(&self, status: &Status, asked: Asked) -> Rejected {
        Rejected::of(status, asked, self.context())
    }

    /// What a call proves whose deadline passed on this side.
    pub(crate) fn expired(&self, asked: Asked) -> Rejected {
        Rejected::expired(asked, self.context())
    }
}

impl Rejected {
    /// No connection was made: nothing was asked.
    pub(crate) fn unreachable(server: &Server, error: &(dyn Error + 'static)) -> Self {
        let cause = std::iter::successors(Some(error), |error| (*error).source())
            .last()
            .unwrap_or(error);
        Self {
            code: Code::Unavailable,
            reason: Some("GATEWAY_UNREACHABLE".to_owned()),
            message: format!("no gateway at {server}: {cause}"),
            device: None,
            command_id: None,
            mutation: false,
            fate: Some(Fate::NotSent),
            effect: Some(Effect::None),
            reactivated: false,
            hint: Some(
                "start one with `fleetgate serve` or `fleetgate demo`, or name another with --server".to_owned(),
            ),
            retry_after: None,
            violations: Vec::new(),
            look_up: None,
        }
    }

    /// The deadline passed on this side.
    pub(crate) fn expired(asked: Asked, context: &Context) -> Self {
        let status = Status::deadline_exceeded("no answer came in time");
        Self::of(&status, asked, context)
    }

    fn of(status: &Status, asked: Asked, context: &Context) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN);
        let fact = |key: &str| {
            info.and_then(|info| info.metadata.get(key))
                .filter(|fact| !fact.is_empty())
        };

        let code = status.code();
        let command_id = fact("command_id").cloned().or(asked.command_id);
        let stated = fact("fate")
            .and_then(|name| Fate::from_str_name(&format!("FATE_{}", stem(name, "FATE_"))));
        let fate = stated.or_else(|| asked.mutation.then(|| without_word(code, info.is_some())));
        let effect = fact("effect")
            .and_then(|name| Effect::from_str_name(&format!("EFFECT_{}", stem(name, "EFFECT_"))))
            .or_else(|| fate.map(effect_of));
        let uncertain = code == Code::DeadlineExceeded || fate.is_some_and(is_open);
        let look_up = command_id
            .as_ref()
            .filter(|_| uncertain)
            .map(|id| look_up(&context.server, id));
        Self {
            code,
            reason: info.map(|info| info.reason.clone()),
            message: match status.message() {
                "" => code.description().to_owned(),
                message => message.to_owned(),
            },
            device: fact("device").cloned(),
            command_id,
            mutation: asked.mutation,
            fate,
            effect,
            reactivated: fact("reactivated").is_some_and(|fact| fact == "true"),
            hint: fact("hint").cloned(),
            retry_after: details.retry_info().and_then(|retry| retry.retry_delay),
            violations: details.bad_request().map_or_else(Vec::new, |request| {
                let violations = request.field_violations.iter();
                violations
                    .map(|violation| (violation.field.clone(), violation.description.clone()))
                    .collect()
            }),
            look_up,
        }
    }

    /// The gateway's reason, or the runner's code.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether the same may be answered otherwise a moment later: the gateway or
    /// the way to it was at fault, and not the question.
    pub(crate) fn may_pass(&self) -> bool {
        match self.code {
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => true,
            Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => false,
        }
    }

    /// What the process ends with.
    pub(crate) fn exit(&self) -> Exit {
        // What only reads may be asked again, whatever became of it.
        let late_read = !self.mutation && self.code == Code::DeadlineExceeded;
        match self.fate {
            Some(Fate::Unspecified | Fate::Unknown) if !late_read => return Exit::FateUnknown,
            // It happened, and something went wrong besides.
            Some(Fate::Completed | Fate::CompletedResultLost) => return Exit::Other,
            // Busy and wedged runners too gave a verdict, but did nothing.
            Some(Fate::Failed) if self.code != Code::Unavailable => return Exit::Failed,
            Some(Fate::Unspecified | Fate::Unknown | Fate::Failed | Fate::NotSent) | None => {}
        }
        match self.code {
            Code::InvalidArgument | Code::OutOfRange => Exit::Usage,
            Code::NotFound => Exit::NotFound,
            Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => {
                Exit::Unavailable
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated => Exit::Other,
        }
    }

    /// All of it for people, over several lines.
    pub(crate) fn text(&self) -> String {
        let facts = [
            ("code", Some(code_name(self.code).to_owned())),
            ("reason", self.reason.clone()),
            ("device", self.device.clone()),
            ("command", self.command_id.clone()),
            ("fate", self.fate.map(|fate| words::fate(fate.into()))),
            (
                "effect",
                self.effect.map(|effect| words::effect(effect.into())),
            ),
            (
                "note",
                self.reactivated
                    .then(|| "the app was brought to the front first".to_owned()),
            ),
            (
                "retry",
                self.retry_after
                    .map(|after| format!("safe after {}", humantime::format_duration(after))),
            ),
        ];
        let violations = self
            .violations
            .iter()
            .map(|(field, problem)| ("field", Some(format!("{field}: {problem}"))));
        let advice = [
            ("hint", self.hint.clone()),
            ("look up", self.look_up.clone()),
        ];
        format!(
            "error: {}\n{}",
            clean(&self.message),
            pairs(2, facts.into_iter().chain(violations).chain(advice))
        )
    }

    /// All of it for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let view = View {
            code: code_name(self.code),
            reason: self.reason.as_deref(),
            message: &self.message,
            device: self.device.as_deref(),
            command_id: self.command_id.as_deref(),
            fate: self.fate.map(|fate| words::fate(fate.into())),
            effect: self.effect.map(|effect| words::effect(effect.into())),
            reactivated: self.reactivated,
            hint: self.hint.as_deref(),
            retry_after_ms: self.retry_after.map(|after| after.as_millis()),
            violations: self
                .violations
                .iter()
                .map(|(field, description)| ViolationView { field, description })
                .collect(),
            look_up: self.look_up.as_deref(),
            exit_code: self.exit().number(),
        };
        serde_json::json!({ "error": view })
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({})",
            self.message,
            self.reason().unwrap_or(code_name(self.code))
        )
    }
}

impl Error for Rejected {}

/// The fate of a mutation that nobody stated: with the gateway's own word the
/// code decides, without it only codes that no broken connection produces.
fn without_word(code: Code, from_gateway: bool) -> Fate {
    match code {
        Code::InvalidArgument
        | Code::NotFound
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Unimplemented => Fate::NotSent,
        Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::ResourceExhausted
        | Code::Unavailable
            if from_gateway =>
        {
            Fate::NotSent
        }
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => Fate::Unknown,
    }
}

/// What a fate that came without an effect proves.
fn effect_of(fate: Fate) -> Effect {
    match fate {
        Fate::NotSent => Effect::None,
        Fate::Completed | Fate::CompletedResultLost => Effect::Applied,
        Fate::Unspecified | Fate::Failed | Fate::Unknown => Effect::Unknown,
    }
}

/// True while looking the command up may still tell more.
fn is_open(fate: Fate) -> bool {
    match fate {
        Fate::Unspecified | Fate::Unknown => true,
        Fate::NotSent | Fate::Completed | Fate::CompletedResultLost | Fate::Failed => false,
    }
}

/// The name of an enum's value without its prefix, in upper case.
fn stem(name: &str, prefix: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix(prefix).unwrap_or(&name).to_owned()
}

fn look_up(server: &Server, command_id: &str) -> String {
    let server = if server.is_default() {
        String::new()
    } else {
        format!("--server {server} ")
    };
    format!("fleetgate {server}command show {command_id}")
}

/// The code as the gRPC specification spells it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
