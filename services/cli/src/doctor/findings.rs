//! What is wrong, what with, and what to do: a pure function of the evidence.
//!
//! One cause is one finding: while a usbmuxd is lost, its phones are not blamed,
//! and a phone that does not trust its host is not blamed for its runner.

use std::fmt;

use serde::Serialize;

use super::evidence::Evidence;

mod credentials;
mod gateway;
mod local;
mod phones;
#[cfg(test)]
mod tests;

/// How many are named where many have the same.
const NAMED: usize = 5;

/// How bad it is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// Something does not work.
    Error,
    /// Something may soon not work.
    Warning,
    /// Something is to be known.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// One thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// A stable name for its kind.
    pub(super) code: &'static str,
    /// What is wrong.
    pub(super) what: String,
    /// What with; several if the rest is the same for all of them.
    #[serde(rename = "where")]
    pub(super) places: Vec<String>,
    /// What to do.
    pub(super) advice: String,
    /// The last lines of a runner's output, where they tell more.
    pub(super) log: Vec<String>,
}

impl Finding {
    fn error(code: &'static str, place: &str) -> Self {
        Self::new(Severity::Error, code, place)
    }

    fn warning(code: &'static str, place: &str) -> Self {
        Self::new(Severity::Warning, code, place)
    }

    fn info(code: &'static str, place: &str) -> Self {
        Self::new(Severity::Info, code, place)
    }

    fn new(severity: Severity, code: &'static str, place: &str) -> Self {
        Self {
            severity,
            code,
            what: String::new(),
            places: vec![place.to_owned()],
            advice: String::new(),
            log: Vec::new(),
        }
    }

    fn what(self, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ..self
        }
    }

    fn advice(self, advice: impl Into<String>) -> Self {
        Self {
            advice: advice.into(),
            ..self
        }
    }

    fn log(self, log: Vec<String>) -> Self {
        Self { log, ..self }
    }

    /// Whether it says the same of something else.
    fn is_like(&self, other: &Self) -> bool {
        (self.severity, self.code) == (other.severity, other.code)
            && self.what == other.what
            && self.advice == other.advice
            && self.log == other.log
    }
}

/// All of them, the worst first.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &evidence.gateway {
        Ok(answers) => {
            gateway::examine(answers, evidence.space, &mut findings);
            phones::examine(answers, evidence.now, &mut findings);
        }
        Err(none) => {
            findings.push(local::no_gateway(&evidence.server, none));
            if let Some(local) = &evidence.local {
                local::examine(local, &mut findings);
            }
        }
    }
    if let Some(found) = &evidence.credentials {
        credentials::examine(found, evidence.now, &mut findings);
    }
    // Stable: within one severity the cause comes before what may follow from it.
    findings.sort_by_key(|finding| finding.severity);
    // A thousand phones without a port are one thing to mend.
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        match merged.iter_mut().find(|known| known.is_like(&finding)) {
            Some(known) => known.places.extend(finding.places),
            None => merged.push(finding),
        }
    }
    merged
}

/// Some of many by name, and how many more there are.
pub(super) fn named(names: &[String]) -> String {
    let first = &names[..names.len().min(NAMED)];
    match names.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
