//! Queries of the ledger.

use std::time::{Duration, UNIX_EPOCH};

use fleetgate_ledger::CommandQuery;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, Fate, Udid};

use crate::convert::command_query;

fn query(request: pb::ListCommandsRequest) -> Result<CommandQuery, Vec<String>> {
    let udid: Udid = "00008110-000978540290401E".parse().unwrap();
    command_query(request, |name| (name == "left").then_some(udid)).map_err(|violations| {
        violations
            .into_iter()
            .map(|violation| violation.field)
            .collect()
    })
}

#[test]
fn every_filter_reaches_the_query() {
    let query = query(pb::ListCommandsRequest {
        device: "left".to_owned(),
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
        page_token: String::new(),
    })
    .unwrap();
    assert!(query.device.is_some());
    assert_eq!(query.kinds, [CommandKind::Tap]);
    assert_eq!(query.fates, [None, Some(Fate::Unknown)]);
    assert_eq!(query.from, Some(UNIX_EPOCH + Duration::from_secs(1)));
    assert_eq!(query.to, Some(UNIX_EPOCH + Duration::from_secs(2)));
    assert_eq!(query.page_size, 1000);
    assert_eq!(
        command_query(pb::ListCommandsRequest::default(), |_| None)
            .unwrap()
            .page_size,
        100
    );
}

#[test]
fn filters_that_mean_nothing_are_refused_together() {
    let fields = query(pb::ListCommandsRequest {
        device: "right".to_owned(),
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
    })
    .unwrap_err();
    assert_eq!(
        fields,
        [
            "device",
            "kinds",
            "fates",
            "end_time",
            "page_size",
            "page_token"
        ]
    );
}
