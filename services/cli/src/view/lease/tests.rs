//! How leases are told.

use super::*;

fn held() -> pb::Lease {
    pb::Lease {
        id: "l-1".to_owned(),
        state: pb::LeaseState::Active.into(),
        owner: "token:ci".to_owned(),
        epoch: 7,
        devices: vec!["phone-a".to_owned(), "phone-b".to_owned()],
        wants: Some(Wants::DeviceMatch(pb::DeviceMatch {
            selector: Some(pb::DeviceSelector {
                labels: [("rack".to_owned(), "a".to_owned())].into(),
                os_version: Some("18".to_owned()),
                ..pb::DeviceSelector::default()
            }),
            count: 2,
        })),
        ttl: Some(seconds(60)),
        remaining: Some(seconds(42)),
        context: [("build".to_owned(), "1234".to_owned())].into(),
        ..pb::Lease::default()
    }
}

fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

fn ended() -> pb::Lease {
    pb::Lease {
        id: "l-2".to_owned(),
        state: pb::LeaseState::Revoked.into(),
        owner: "local".to_owned(),
        wants: Some(Wants::DeviceList(pb::DeviceList {
            devices: vec!["phone-c".to_owned()],
        })),
        end_reason: Some("REVOKED".to_owned()),
        ended_by: Some("token:ada".to_owned()),
        end_detail: Some("rack \u{1b}[2J moves".to_owned()),
        ..pb::Lease::default()
    }
}

#[test]
fn a_lease_is_told_in_the_lines_that_it_is_worth() {
    assert_eq!(
        text(&held()),
        "l-1\n\
         \x20 state:   active\n\
         \x20 owner:   token:ci\n\
         \x20 epoch:   7\n\
         \x20 phones:  phone-a, phone-b\n\
         \x20 wants:   2 of rack=a, iOS 18\n\
         \x20 left:    42s\n\
         \x20 ttl:     1m\n\
         \x20 context: build=1234\n"
    );
    let text = text(&ended());
    assert!(
        text.contains("REVOKED by token:ada: rack  [2J moves"),
        "{text}"
    );
}

#[test]
fn leases_are_listed_one_a_line() {
    let text = table(&[held(), ended()], SystemTime::UNIX_EPOCH);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "LEASE  STATE    OWNER     PHONES            LEFT  WHY"
    );
    assert_eq!(
        lines[1],
        "l-1    active   token:ci  phone-a, phone-b  42s   -"
    );
    assert!(lines[2].starts_with("l-2    revoked  local     phone-c           -     REVOKED"));
    assert_eq!(table(&[], SystemTime::UNIX_EPOCH), "no leases\n");
}

#[test]
fn as_json_a_lease_has_its_epoch_and_what_it_wants() {
    let json = serde_json::to_value(LeaseView::from(held())).unwrap();
    assert_eq!(json["lease_id"], "l-1");
    assert_eq!(json["epoch"], 7);
    assert_eq!(json["ttl_ms"], 60_000.0);
    assert_eq!(json["wants"]["count"], 2);
    assert_eq!(json["wants"]["labels"]["rack"], "a");
    let json = serde_json::to_value(LeaseView::from(ended())).unwrap();
    assert_eq!(json["epoch"], serde_json::Value::Null);
    assert_eq!(json["wants"]["devices"][0], "phone-c");
}

#[test]
fn a_wish_without_conditions_is_for_any_phone() {
    let any = Wants::DeviceMatch(pb::DeviceMatch::default());
    assert_eq!(wants(&any), "any 1");
}

#[test]
fn an_explanation_names_what_is_in_the_way_of_each_phone() {
    let reply = pb::ExplainLeaseResponse {
        lease: Some(pb::Lease {
            id: "l-3".to_owned(),
            state: pb::LeaseState::Queued.into(),
            queue_position: Some(1),
            ..pb::Lease::default()
        }),
        summary: "1 matches, 1 wanted: 1 leased".to_owned(),
        wanted: 1,
        devices: vec![pb::DeviceExplanation {
            device: "phone-a".to_owned(),
            obstacle: pb::DeviceObstacle::Leased.into(),
            lease_id: Some("l-1".to_owned()),
            until: None,
        }],
        leases_ahead: Vec::new(),
    };
    assert_eq!(
        ExplainedView::from(reply).text(),
        "l-3\n\
         \x20 state:    queued, place 1 in line\n\
         \x20 in short: 1 matches, 1 wanted: 1 leased\n\
         \n\
         PHONE    OBSTACLE  LEASE  UNTIL\n\
         phone-a  leased    l-1    -\n"
    );
}
