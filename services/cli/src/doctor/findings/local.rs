//! What is found on this host if there is no gateway.

use super::Finding;
use super::gateway::{no_phones, room};
use crate::doctor::evidence::{Host, LedgerFile, Local, Mux, NoGateway, Parts};

/// There is no gateway.
pub(super) fn no_gateway(server: &str, none: &NoGateway) -> Finding {
    match none {
        NoGateway::Unreachable { why, advice } => Finding::error("NO_GATEWAY", server)
            .what(why.as_str())
            .advice(format!("{advice}; what follows was found on this host")),
        NoGateway::Closed { why, advice } => Finding::error("NOT_LET_IN", server)
            .what(format!(
                "the gateway there does not let this caller in: {why}"
            ))
            .advice(advice.as_str()),
        NoGateway::Odd(why) => Finding::error("GATEWAY_ODD", server)
            .what(format!(
                "what listens there does not answer as a gateway does: {why}"
            ))
            .advice(
                "see what it is, and name the gateway with --server; what follows was found on \
                 this host",
            ),
    }
}

pub(super) fn examine(local: &Local, findings: &mut Vec<Finding>) {
    let place = match &local.config {
        Some(path) => path.display().to_string(),
        None => "the environment".to_owned(),
    };
    let Parts { hosts, ledger } = match &local.parts {
        Ok(parts) => parts,
        Err(why) => {
            findings.push(
                Finding::error("CONFIG_UNUSABLE", &place)
                    .what(why.as_str())
                    .advice("mend it: `fleetgate serve` would end with the same error"),
            );
            return;
        }
    };
    findings.extend(hosts.iter().filter_map(host));
    let cabled = |host: &Host| match host.mux {
        Mux::Phones { cabled, .. } => Some(cabled),
        Mux::Missing | Mux::Refused | Mux::Forbidden | Mux::Silent | Mux::Odd(_) => None,
    };
    let answers: Vec<_> = hosts.iter().filter_map(cabled).collect();
    if !answers.is_empty() && answers.iter().all(|cabled| *cabled == 0) {
        findings.push(no_phones("this host"));
    }
    findings.extend(file(ledger));
}

fn host(host: &Host) -> Option<Finding> {
    let place = format!("host {} at {}", host.name, host.address);
    let (code, what, advice) = match &host.mux {
        Mux::Phones { .. } => return None,
        Mux::Missing => (
            "USBMUXD_MISSING",
            "there is no such socket".to_owned(),
            "install and start usbmuxd (on Linux, `systemctl start usbmuxd`; on macOS it comes \
             with the system), or name another with [usbmuxd] address or [[host]]",
        ),
        Mux::Refused => (
            "USBMUXD_REFUSES",
            "nothing listens there".to_owned(),
            "start usbmuxd there; a socket's file that an earlier one left behind does no harm",
        ),
        Mux::Forbidden => (
            "USBMUXD_REFUSES",
            "this user may not connect to it".to_owned(),
            "run the gateway as a user who may, or give this one access to the socket",
        ),
        Mux::Silent => (
            "USBMUXD_SILENT",
            "it was connected to, and did not answer in time".to_owned(),
            "restart usbmuxd",
        ),
        Mux::Odd(why) => (
            "USBMUXD_ODD",
            format!("what listens there does not answer as a usbmuxd does: {why}"),
            "see what it is, and name the usbmuxd with [usbmuxd] address or [[host]]",
        ),
    };
    Some(Finding::error(code, &place).what(what).advice(advice))
}

fn file(ledger: &LedgerFile) -> Option<Finding> {
    let path = ledger.path.display().to_string();
    if let Some(why) = &ledger.unwritable {
        return Some(
            Finding::error("LEDGER_UNWRITABLE", &path)
                .what(format!("the ledger cannot be written there: {why}"))
                .advice(
                    "give the gateway's user the right to write there, free space, or name another \
                     place with [ledger] path",
                ),
        );
    }
    let space = ledger.space?;
    room(&path, space.free, Some(space.total))
}
