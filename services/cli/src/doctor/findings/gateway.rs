//! What a gateway says of itself, its usbmuxds and its ledger.

use bytesize::ByteSize;
use fleetgate_proto::v1::{DeviceState, LedgerHealth, MuxHost};

use super::Finding;
use crate::doctor::evidence::{Answers, Space};

/// A file system with less than this left is about to be full.
const LITTLE: u64 = 500 << 20;
/// So is one with less than one part in so many left.
const SMALL_PART: u64 = 20;
/// What nothing more can be expected to fit into.
const NOTHING: u64 = 1 << 20;

pub(super) fn examine(answers: &Answers, space: Option<Space>, findings: &mut Vec<Finding>) {
    let gateway = &answers.gateway;
    if gateway.draining {
        let finding = Finding::warning("GATEWAY_DRAINING", "the gateway");
        findings.push(
            finding
                .what("it has been told to stop, and takes no new commands")
                .advice("wait until it has ended, and start another"),
        );
    }
    if gateway.version != env!("CARGO_PKG_VERSION") {
        let what = format!(
            "it is version {}, and this command is version {}",
            gateway.version,
            env!("CARGO_PKG_VERSION")
        );
        let finding = Finding::info("VERSIONS_DIFFER", "the gateway").what(what);
        findings.push(finding.advice("nothing, unless something is not understood"));
    }
    findings.extend(gateway.mux_hosts.iter().filter_map(host));
    if let Some(ledger) = &gateway.ledger {
        findings.extend(health(ledger, space));
    }
    let heard = gateway.mux_hosts.iter().any(|host| host.connected);
    let attached = answers
        .devices
        .iter()
        .any(|device| device.state() != DeviceState::Detached);
    if heard && !attached {
        findings.push(no_phones("the gateway"));
    }
}

/// There is nothing to drive.
pub(super) fn no_phones(place: &str) -> Finding {
    Finding::error("NO_PHONES", place)
        .what("no phone is attached by cable")
        .advice(
            "plug one in, unlock it, and tap Trust; where `idevice_id -l` does not list it either, \
             change the cable or the port, or restart usbmuxd",
        )
}

fn host(host: &MuxHost) -> Option<Finding> {
    let place = format!("host {} at {}", host.name, host.address);
    if !host.connected {
        let why = host.last_error.as_deref().unwrap_or("no reason given");
        return Some(
            Finding::error("USBMUXD_UNREACHABLE", &place)
                .what(format!("the gateway cannot listen to this usbmuxd: {why}"))
                .advice(
                    "see that usbmuxd runs there (on Linux, `systemctl status usbmuxd`; on macOS \
                     it comes with the system) and that the gateway's user may open its socket; \
                     the gateway connects by itself once it can",
                ),
        );
    }
    (host.ignored_entries > 0).then(|| {
        Finding::info("ENTRIES_IGNORED", &place)
            .what(format!(
                "{} of its announcements could not be understood",
                host.ignored_entries
            ))
            .advice("nothing, unless a phone is missing; the gateway's log has each of them")
    })
}

fn health(ledger: &LedgerHealth, space: Option<Space>) -> Option<Finding> {
    let free = space.map(|space| space.free).or(ledger.free_bytes);
    if !ledger.writable {
        let why = ledger.last_error.as_deref().unwrap_or("no reason given");
        let free = free.map_or_else(String::new, |free| format!(" ({} are free)", size(free)));
        return Some(
            Finding::error("LEDGER_FAILING", &ledger.path)
                .what(format!(
                    "the ledger cannot be written, so that mutations are refused: {why}{free}"
                ))
                .advice(
                    "free space on its file system, and see that the gateway's user may write it; \
                     the gateway goes on by itself once it can",
                ),
        );
    }
    room(&ledger.path, free?, space.map(|space| space.total))
}

/// What the room that is left means.
pub(super) fn room(path: &str, free: u64, total: Option<u64>) -> Option<Finding> {
    let advice = "free space, move the ledger ([ledger] path), or keep less of it ([ledger] \
                  retention_max_age, retention_max_size); a full disk stops all mutations";
    let part = total.is_some_and(|total| free < total / SMALL_PART);
    let of = total.map_or_else(String::new, |total| format!(" of {}", size(total)));
    let what = format!("{}{of} are free where the ledger is", size(free));
    let finding = if free < NOTHING {
        Finding::error("DISK_FULL", path)
    } else if free < LITTLE || part {
        Finding::warning("DISK_LOW", path)
    } else {
        return None;
    };
    Some(finding.what(what).advice(advice))
}

fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}
