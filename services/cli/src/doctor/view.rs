//! How the doctor puts it.

use serde::Serialize;

use super::evidence::Evidence;
use super::findings::{Finding, Severity, named};
use crate::output::{clean, lines, pairs};
use crate::view::fleet::census;

/// The findings as JSON.
#[derive(Debug, Serialize)]
pub(super) struct DoctorView {
    server: String,
    gateway_version: Option<String>,
    errors: usize,
    warnings: usize,
    findings: Vec<Finding>,
    /// What was looked at.
    #[serde(skip)]
    looked_at: String,
}

impl DoctorView {
    /// What was found, in this evidence.
    pub(super) fn new(evidence: &Evidence, findings: Vec<Finding>) -> Self {
        let count = |severity| {
            let same = findings
                .iter()
                .filter(|finding| finding.severity == severity);
            same.count()
        };
        let answers = evidence.gateway.as_ref().ok();
        Self {
            server: evidence.server.clone(),
            gateway_version: answers.map(|answers| answers.gateway.version.clone()),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            looked_at: match answers {
                Some(answers) => format!("{}, {}", evidence.server, census(answers.devices.iter())),
                None => "this host".to_owned(),
            },
            findings,
        }
    }

    /// How many errors there are.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// One finding after the other, and a summary.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            text += &shown(finding);
            text += "\n";
        }
        let counted = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            count => format!("{count} {noun}s"),
        };
        let summary = match (self.errors, self.warnings) {
            (0, 0) => "nothing is wrong".to_owned(),
            (errors, warnings) => format!(
                "{}, {}",
                counted(errors, "error"),
                counted(warnings, "warning")
            ),
        };
        format!("{text}{summary} ({})\n", clean(&self.looked_at))
    }
}

fn shown(finding: &Finding) -> String {
    let head = format!("{}: {}", finding.severity, named(&finding.places));
    let facts = pairs(
        2,
        [
            ("what", Some(finding.what.clone())),
            ("do", Some(finding.advice.clone())),
            ("code", Some(finding.code.to_owned())),
        ],
    );
    let log = match finding.log.as_slice() {
        [] => String::new(),
        log => {
            let log = log.iter().map(|line| format!("    {}", clean(line)));
            format!("  the last lines of its log:\n{}", lines(log))
        }
    };
    format!("{}\n{facts}{log}", clean(&head))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::evidence::{Answers, NoGateway};
    use super::*;

    fn evidence() -> Evidence {
        Evidence {
            server: "http://127.0.0.1:7700".to_owned(),
            now: SystemTime::UNIX_EPOCH,
            gateway: Ok(Answers::default()),
            space: None,
            credentials: None,
            local: None,
        }
    }

    fn finding() -> Finding {
        Finding {
            severity: Severity::Error,
            code: "RUNNER_NOT_STARTED",
            what: "its runner did not come up: EXITED: exit status: 65".to_owned(),
            places: vec!["anna".to_owned()],
            advice: "see its log".to_owned(),
            log: vec!["Developer Mode is off\u{1b}[2J".to_owned()],
        }
    }

    #[test]
    fn a_finding_says_what_where_and_what_to_do() {
        let view = DoctorView::new(&evidence(), vec![finding()]);
        assert_eq!(
            view.text(),
            "error: anna\n\
             \x20 what: its runner did not come up: EXITED: exit status: 65\n\
             \x20 do:   see its log\n\
             \x20 code: RUNNER_NOT_STARTED\n\
             \x20 the last lines of its log:\n\
             \x20   Developer Mode is off [2J\n\
             \n\
             1 error, 0 warnings (http://127.0.0.1:7700, no phones)\n"
        );
        assert_eq!(view.errors(), 1);
    }

    #[test]
    fn a_fleet_that_is_well_is_told_in_one_line() {
        assert_eq!(
            DoctorView::new(&evidence(), Vec::new()).text(),
            "nothing is wrong (http://127.0.0.1:7700, no phones)\n"
        );
    }

    #[test]
    fn json_keys_are_stable() {
        let none = Evidence {
            gateway: Err(NoGateway::Odd(String::new())),
            ..evidence()
        };
        assert_eq!(
            serde_json::to_value(DoctorView::new(&none, vec![finding()])).unwrap(),
            serde_json::json!({
                "server": "http://127.0.0.1:7700",
                "gateway_version": null,
                "errors": 1,
                "warnings": 0,
                "findings": [{
                    "severity": "error",
                    "code": "RUNNER_NOT_STARTED",
                    "what": "its runner did not come up: EXITED: exit status: 65",
                    "where": ["anna"],
                    "advice": "see its log",
                    "log": ["Developer Mode is off\u{1b}[2J"],
                }],
            })
        );
    }
}
