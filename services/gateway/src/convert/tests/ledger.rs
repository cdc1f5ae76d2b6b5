//! Queries of the ledger.

use std::time::{Duration, UNIX_EPOCH};

use fleetgate_ledger::{CommandQuery, Transition};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, Fate};

use crate::convert::{command_query, transition};

fn query(request: pb::ListCommandsRequest) -> Result<CommandQuery, Vec<String>> {
    command_query(request).map_err(|violations| {
        violations
            .into_iter()
            .map(|violation| violation.field)
            .collect()
    })
}

#[test]
fn every_filter_reaches_the_query() {
    let query = query(pb::ListCommandsRequest {
        kinds: vec![pb::CommandKind::Tap.into()],
        fates: vec![pb::Fate::Unspecified.into(), pb::Fate::Unknown.into()],
        start_time: Some(prost_types::Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        end_time: Some(prost_types::Timestamp {
            seconds: 2,
            nanos: 0,
        }),
        page_size: 2000,
        ..pb::ListCommandsRequest::default()
    })
    .unwrap();
    assert_eq!(query.kinds, [CommandKind::Tap]);
    assert_eq!(query.fates, [None, Some(Fate::Unknown)]);
    assert_eq!(query.from, Some(UNIX_EPOCH + Duration::from_secs(1)));
    assert_eq!(query.to, Some(UNIX_EPOCH + Duration::from_secs(2)));
    assert_eq!(query.page_size, 1000);
    assert_eq!(
        command_query(pb::ListCommandsRequest::default())
            .unwrap()
            .page_size,
        100
    );
}

#[test]
fn filters_that_mean_nothing_are_refused_together() {
    let fields = query(pb::ListCommandsRequest {
        kinds: vec![0],
        fates: vec![99],
        start_time: Some(prost_types::Timestamp {
            seconds: 2,
            nanos: 0,
        }),
        end_time: Some(prost_types::Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        page_size: -1,
        page_token: "no token".to_owned(),
        ..pb::ListCommandsRequest::default()
    })
    .unwrap_err();
    assert_eq!(
        fields,
        ["kinds", "fates", "end_time", "page_size", "page_token"]
    );
}

#[test]
fn a_transition_tells_its_states_and_says_nothing_of_one_that_is_not_known() {
    let moved = Transition {
        seq: 7,
        at: UNIX_EPOCH + Duration::from_secs(1),
        device: "00008110-000978540290401E".parse().unwrap(),
        from: "READY".to_owned(),
        to: "FROM_THE_FUTURE".to_owned(),
        reason: "RUNNER_DIED".to_owned(),
        detail: Some("exit status 1".to_owned()),
    };
    assert_eq!(
        transition(moved),
        pb::DeviceTransition {
            seq: 7,
            time: Some(prost_types::Timestamp {
                seconds: 1,
                nanos: 0,
            }),
            device: "00008110-000978540290401E".to_owned(),
            from: pb::DeviceState::Ready.into(),
            to: pb::DeviceState::Unspecified.into(),
            reason: "RUNNER_DIED".to_owned(),
            detail: Some("exit status 1".to_owned()),
        }
    );
}
