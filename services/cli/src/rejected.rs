//! A call that failed, as far as it says what became of the command.
//!
//! The only file that reads a `Status`; what there is to do about one stands in
//! [`advice`]. Where the gateway said nothing about
//! the fate (the connection broke, the deadline passed here before its answer
//! came), a command that changes the device counts as of unknown fate: the
//! error never claims more than is known.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use fleetgate_proto::v1::{Effect, Fate};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::client::{Asked, Client, Context, Server};
use crate::exit::Exit;
use crate::report::in_words;

mod advice;
#[cfg(test)]
mod tests;
mod told;

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
        let hint = Some(advice::unreachable(error).to_owned());
        if advice::wants_certificate(error) {
            return Self {
                code: Code::Unauthenticated,
                reason: Some("CERTIFICATE_REFUSED".to_owned()),
                message: format!("{server} wants a certificate: {cause}"),
                hint,
                ..Self::nothing_sent()
            };
        }
        Self {
            code: Code::Unavailable,
            reason: Some("GATEWAY_UNREACHABLE".to_owned()),
            message: format!("no gateway at {server}: {cause}"),
            hint,
            ..Self::nothing_sent()
        }
    }

    /// What the options say of credentials and trust cannot be used: nothing
    /// was asked.
    pub(crate) fn unprepared(error: &anyhow::Error) -> Self {
        Self {
            code: Code::InvalidArgument,
            reason: Some("CREDENTIALS_UNUSABLE".to_owned()),
            message: in_words(error),
            ..Self::nothing_sent()
        }
    }

    fn nothing_sent() -> Self {
        Self {
            code: Code::Unknown,
            reason: None,
            message: String::new(),
            device: None,
            command_id: None,
            mutation: false,
            fate: Some(Fate::NotSent),
            effect: Some(Effect::None),
            reactivated: false,
            hint: None,
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
            .map(|id| look_up(context, id));
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
            hint: hint(code, info.map(|info| info.reason.as_str()), fact),
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

    /// What there is to do about it.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
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

    /// Whether no gateway has said anything about what was asked.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.reason.is_none() && self.may_pass()
    }

    /// Whether it is the gateway's own last word on what was asked.
    pub(crate) fn is_verdict(&self) -> bool {
        let is_about_the_question = match self.code {
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => true,
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
            | Code::Unauthenticated => false,
        };
        is_about_the_question && self.reason.is_some()
    }

    /// Whether the gateway does not know who asks.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        self.code == Code::Unauthenticated
    }

    /// Whether it is for want of a lease.
    fn is_about_a_lease(&self) -> bool {
        let reason = self.reason().unwrap_or_default();
        reason.starts_with("LEASE_")
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
            Code::PermissionDenied | Code::FailedPrecondition if self.is_about_a_lease() => {
                Exit::NoLease
            }
            Code::PermissionDenied | Code::Unauthenticated => Exit::Denied,
            Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => {
                Exit::Unavailable
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss => Exit::Other,
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({})",
            self.message,
            self.reason().unwrap_or(told::code_name(self.code))
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

/// What there is to do: who calls is a matter of this side's options, all else
/// the gateway knows better.
fn hint<'a>(
    code: Code,
    reason: Option<&str>,
    fact: impl Fn(&str) -> Option<&'a String>,
) -> Option<String> {
    let ours = advice::refused(code, reason, &fact).map(str::to_owned);
    let theirs = fact("hint").cloned();
    if code == Code::Unauthenticated {
        ours.or(theirs)
    } else {
        theirs.or(ours)
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

fn look_up(context: &Context, command_id: &str) -> String {
    let server = if context.is_obvious() {
        String::new()
    } else {
        format!("--server {} ", context.server)
    };
    format!("fleetgate {server}command show {command_id}")
}
