//! What a phone went through, as the ledger has it: the evidence of a test.

use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::{DeviceState, DeviceTransition, ListDeviceTransitionsRequest};
use tonic::transport::Channel;

use crate::mirror::Seen;
use crate::{pause, soon};

const LATE: &str = "ATTACHED RUNNER_UNREACHABLE ATTACHED";

/// A transition in words: `READY RUNNER_DIED RECYCLING`.
pub fn words(told: &DeviceTransition) -> String {
    let name = |state: DeviceState| {
        let name = state.as_str_name();
        name.strip_prefix("DEVICE_STATE_").unwrap_or(name)
    };
    format!("{} {} {}", name(told.from()), told.reason, name(told.to()))
}

/// Everything that is on record of a phone, the oldest first.
pub async fn rows(channel: Channel, udid: &str) -> Vec<DeviceTransition> {
    let mut fleet = FleetServiceClient::new(channel);
    let request = ListDeviceTransitionsRequest {
        device: udid.to_owned(),
        page_size: 1000,
        ..ListDeviceTransitionsRequest::default()
    };
    let listed = fleet.list_device_transitions(request).await;
    let page = listed.expect("ListDeviceTransitions").into_inner();
    assert_eq!(page.next_page_token, "", "one page holds all");
    let mut rows = page.transitions;
    rows.reverse();
    rows
}

/// The same in words, once it is like this: what happens is on record a moment
/// after it was told.
///
/// A runner that is there and answers too late, of a phone that was not ready
/// anyway, is a busy machine's doing and left out.
pub async fn until(
    channel: Channel,
    udid: &str,
    what: &str,
    is: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    soon(what, async {
        loop {
            let rows = rows(channel.clone(), udid).await;
            let told = rows.iter().map(words).filter(|told| told != LATE);
            let told: Vec<_> = told.collect();
            if is(&told) {
                return told;
            }
            pause().await;
        }
    })
    .await
}

/// The same, once there is so much.
pub async fn of(channel: Channel, udid: &str, length: usize) -> Vec<String> {
    let what = format!("a history of {length} entries");
    until(channel, udid, &what, |told| told.len() >= length).await
}

/// Asserts that a phone went through this and nothing else.
pub async fn assert_is(channel: Channel, udid: &str, expected: &[&str]) {
    let history = of(channel, udid, expected.len()).await;
    assert_eq!(history, expected, "{udid}");
}

/// Asserts that what a watcher was told of a phone is what is on record of it,
/// without a hole.
pub async fn assert_was_told(channel: Channel, udid: &str, seen: &Seen) {
    let own = seen.transitions.iter().filter(|told| told.device == udid);
    let told: Vec<_> = own.map(words).collect();
    assert!(!told.is_empty(), "nothing was told of {udid}");
    soon("what was told to be on record", async {
        loop {
            let rows = rows(channel.clone(), udid).await;
            let rows: Vec<_> = rows.iter().map(words).collect();
            if rows.windows(told.len()).any(|part| part == told) {
                return;
            }
            pause().await;
        }
    })
    .await;
}

/// Asserts that what is on record of a phone leads without a hole to where a
/// watcher saw it last. Of a phone that flaps, several steps can be one entry.
pub async fn assert_leads(channel: Channel, udid: &str, seen: &Seen) {
    let mut own = seen.transitions.iter().filter(|told| told.device == udid);
    let last = own.next_back().expect("something was told").to();
    soon("the last state to be on record", async {
        loop {
            let rows = rows(channel.clone(), udid).await;
            for pair in rows.windows(2) {
                assert_eq!(pair[0].to(), pair[1].from(), "{pair:?}");
            }
            let summed_up = |row: &DeviceTransition| row.reason == "TRANSITIONS_LEFT_OUT";
            if rows.iter().any(summed_up) && rows.last().is_some_and(|row| row.to() == last) {
                return;
            }
            pause().await;
        }
    })
    .await;
}
