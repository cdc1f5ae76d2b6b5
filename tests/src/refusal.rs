//! A refused call, taken apart: the code, and what google.rpc's details say.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt;

/// A refused call, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The gRPC code.
    pub code: Code,
    /// The status message.
    pub message: String,
    /// `ErrorInfo`'s reason.
    pub reason: String,
    /// `ErrorInfo`'s domain.
    pub domain: String,
    /// `ErrorInfo`'s metadata.
    pub metadata: BTreeMap<String, String>,
    /// `RetryInfo`'s delay, if there is one.
    pub retry_delay: Option<Duration>,
    /// `BadRequest`'s violations: field and description.
    pub violations: Vec<(String, String)>,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().cloned();
        let (reason, domain, metadata) = info.map_or_else(
            || (String::new(), String::new(), HashMap::new()),
            |info| (info.reason, info.domain, info.metadata),
        );
        let violations = details
            .bad_request()
            .map(|bad| bad.field_violations.clone());
        Self {
            code: status.code(),
            message: status.message().to_owned(),
            reason,
            domain,
            metadata: metadata.into_iter().collect(),
            retry_delay: details.retry_info().and_then(|retry| retry.retry_delay),
            violations: violations
                .unwrap_or_default()
                .into_iter()
                .map(|violation| (violation.field, violation.description))
                .collect(),
        }
    }
}

impl Refusal {
    /// One entry of the metadata; empty if it is absent.
    pub fn meta(&self, key: &str) -> &str {
        self.metadata.get(key).map_or("", String::as_str)
    }
}

/// The error of a call that must fail.
pub fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> Refusal {
    result.expect_err("the call must be refused").into()
}
