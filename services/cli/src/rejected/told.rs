//! A refused call in words: for people, and as JSON.

use serde::Serialize;
use tonic::Code;

use super::Rejected;
use crate::output::{clean, pairs};
use crate::words;

/// A refused call as JSON.
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

impl Rejected {
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

/// The code as the gRPC specification spells it.
pub(super) fn code_name(code: Code) -> &'static str {
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
