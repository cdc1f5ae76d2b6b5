//! Building a status, and keeping it small.
//!
//! A status travels in HTTP headers, where clients take 8 KiB by default: the
//! message twice (once percent-encoded, once in the details' base64), the
//! details once. Everything here is cut to fit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use fleetgate_runner::{Effect, Fate};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use crate::convert::Violation;

/// The domain of every `ErrorInfo`.
const DOMAIN: &str = "fleetgate";

/// The most of a message, in bytes as it travels.
pub(super) const MAX_MESSAGE: usize = 2048;
/// The most of one detail.
pub(super) const MAX_DETAIL: usize = 256;
/// The most violations that are told.
pub(super) const MAX_VIOLATIONS: usize = 12;

/// The metadata of an `ErrorInfo`.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts(HashMap<String, String>);

impl Facts {
    pub(super) fn with(mut self, key: &str, value: &str) -> Self {
        self.0
            .insert(key.to_owned(), cut(value, MAX_DETAIL).to_owned());
        self
    }

    pub(super) fn with_some(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub(super) fn hint(self, hint: Option<&str>) -> Self {
        self.with_some("hint", hint)
    }

    pub(super) fn outcome(self, fate: Fate, effect: Effect, reactivated: bool) -> Self {
        self.with("fate", fate.as_str())
            .with("effect", effect.as_str())
            .with("reactivated", &reactivated.to_string())
    }
}

/// A status in the making.
#[derive(Debug)]
pub(super) struct Refusal {
    code: Code,
    reason: Cow<'static, str>,
    message: Cow<'static, str>,
    facts: Facts,
    retry: Option<Duration>,
    violations: Vec<Violation>,
}

impl Refusal {
    pub(super) fn new(
        code: Code,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            facts: Facts::default(),
            retry: None,
            violations: Vec::new(),
        }
    }

    pub(super) fn facts(self, facts: Facts) -> Self {
        Self { facts, ..self }
    }

    /// When the same may be asked again; `None` where that is not safe.
    pub(super) fn retry(self, retry: Option<Duration>) -> Self {
        Self { retry, ..self }
    }

    pub(super) fn violations(self, violations: Vec<Violation>) -> Self {
        Self { violations, ..self }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let Refusal {
            code,
            reason,
            message,
            facts,
            retry,
            violations,
        } = refusal;
        let mut details = ErrorDetails::new();
        details.set_error_info(cut(&reason, MAX_DETAIL), DOMAIN, facts.0);
        if retry.is_some() {
            details.set_retry_info(retry);
        }
        if !violations.is_empty() {
            let told = violations.into_iter().take(MAX_VIOLATIONS);
            let told = told.map(|Violation { field, description }| {
                FieldViolation::new(cut(&field, MAX_DETAIL), cut(&description, MAX_DETAIL))
            });
            details.set_bad_request(told.collect::<Vec<_>>());
        }
        Self::with_error_details(code, cut(&message, MAX_MESSAGE), details)
    }
}

/// The longest beginning of `text` that takes at most `limit` bytes when it is
/// percent-encoded for a header, whole characters only.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    let mut used = 0;
    for (at, char) in text.char_indices() {
        used += if char.is_ascii_alphanumeric() || "-_.:/,;()".contains(char) {
            1
        } else {
            3 * char.len_utf8()
        };
        if used > limit {
            return &text[..at];
        }
    }
    text
}
