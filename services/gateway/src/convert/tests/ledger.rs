//! Queries of the ledger.

use std::time::{Duration, UNIX_EPOCH};

use fleetgate_ledger::{CommandQuery, Operation, OperationQuery, OperationRow, Transition};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, Fate};

use crate::convert::{Violation, command_query, operation_query, operation_record, transition};

fn query(request: pb::ListCommandsRequest) -> Result<CommandQuery, Vec<String>> {
    command_query(request).map_err(fields)
}

fn fields(violations: Vec<Violation>) -> Vec<String> {
    let fields = violations.into_iter().map(|violation| violation.field);
    fields.collect()
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
        principal: "token:ci".to_owned(),
        lease_id: "l-1".to_owned(),
        page_size: 2000,
        ..pb::ListCommandsRequest::default()
    })
    .unwrap();
    assert_eq!(query.kinds, [CommandKind::Tap]);
    assert_eq!(query.fates, [None, Some(Fate::Unknown)]);
    assert_eq!(query.from, Some(UNIX_EPOCH + Duration::from_secs(1)));
    assert_eq!(query.to, Some(UNIX_EPOCH + Duration::from_secs(2)));
    assert_eq!(query.principal.as_deref(), Some("token:ci"));
    assert_eq!(query.lease.as_deref(), Some("l-1"));
    assert_eq!(query.page_size, 1000);
    let all = CommandQuery {
        page_size: 100,
        ..CommandQuery::default()
    };
    assert_eq!(command_query(pb::ListCommandsRequest::default()), Ok(all));
}

#[test]
fn every_filter_of_operations_reaches_the_query() {
    let query = operation_query(pb::ListOperationsRequest {
        who: "token:ci".to_owned(),
        what: "deny-call".to_owned(),
        target: "l-1".to_owned(),
        start_time: Some(prost_types::Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        page_size: 2000,
        page_token: String::new(),
    })
    .unwrap();
    assert_eq!(query.who.as_deref(), Some("token:ci"));
    assert_eq!(query.what.as_deref(), Some("deny-call"));
    assert_eq!(query.target.as_deref(), Some("l-1"));
    assert_eq!(query.since, Some(UNIX_EPOCH + Duration::from_secs(1)));
    assert_eq!((query.page_size, query.page_token), (1000, None));
    let all = OperationQuery {
        page_size: 100,
        ..OperationQuery::default()
    };
    assert_eq!(
        operation_query(pb::ListOperationsRequest::default()),
        Ok(all)
    );

    let wrong = operation_query(pb::ListOperationsRequest {
        page_size: -1,
        page_token: "no token".to_owned(),
        ..pb::ListOperationsRequest::default()
    });
    assert_eq!(fields(wrong.unwrap_err()), ["page_size", "page_token"]);
}

#[test]
fn an_operation_is_told_whole_with_its_place_and_its_time() {
    let row = OperationRow {
        seq: 7,
        at: UNIX_EPOCH + Duration::from_secs(1),
        operation: Operation {
            who: "token:ci".to_owned(),
            what: "deny-call".to_owned(),
            target: None,
            detail: [("repeated".to_owned(), 3.into())].into_iter().collect(),
        },
    };
    let repeated = prost_types::Value {
        kind: Some(prost_types::value::Kind::NumberValue(3.0)),
    };
    let expected = pb::OperationRecord {
        seq: 7,
        time: Some(prost_types::Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        operation: Some(pb::Operation {
            who: "token:ci".to_owned(),
            what: "deny-call".to_owned(),
            target: None,
            detail: Some(prost_types::Struct {
                fields: [("repeated".to_owned(), repeated)].into(),
            }),
        }),
    };
    assert_eq!(operation_record(row), expected);
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
