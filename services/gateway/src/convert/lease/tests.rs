//! Every field that can be wrong is wrong once; a right wish is taken as it is.

use std::time::UNIX_EPOCH;

use super::*;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000)
}

fn devices(names: &[&str]) -> pb::create_lease_request::Wants {
    pb::create_lease_request::Wants::DeviceList(pb::DeviceList {
        devices: names.iter().map(|name| (*name).to_owned()).collect(),
    })
}

fn matching(count: u32, selector: pb::DeviceSelector) -> pb::create_lease_request::Wants {
    pb::create_lease_request::Wants::DeviceMatch(pb::DeviceMatch {
        selector: Some(selector),
        count,
    })
}

fn request(wants: pb::create_lease_request::Wants) -> pb::CreateLeaseRequest {
    pb::CreateLeaseRequest {
        wants: Some(wants),
        ..pb::CreateLeaseRequest::default()
    }
}

fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

fn wished(request: pb::CreateLeaseRequest) -> LeaseWish {
    create_lease(request, &LeasesSection::default(), now()).unwrap()
}

fn wrong(request: pb::CreateLeaseRequest) -> Vec<String> {
    let refused = create_lease(request, &LeasesSection::default(), now()).unwrap_err();
    refused.into_iter().map(|wrong| wrong.field).collect()
}

fn entries_of(count: usize, value: &str) -> HashMap<String, String> {
    let entries = (0..count).map(|n| (format!("k{n}"), value.to_owned()));
    entries.collect()
}

#[test]
fn a_wish_is_taken_as_it_is_and_what_is_absent_stays_absent() {
    let wish = wished(request(devices(&[" left ", "right"])));
    let names = ["left".to_owned(), "right".to_owned()];
    assert_eq!(wish.phones, WishedPhones::Named(names.to_vec()));
    assert_eq!((wish.request_id, wish.priority), (None, 0));
    assert_eq!((wish.ttl, wish.max_duration), (None, None));
    assert_eq!((wish.queue_timeout, wish.begin), (None, None));

    let begin = now() + Duration::from_secs(60);
    let wish = wished(pb::CreateLeaseRequest {
        request_id: "build-7".to_owned(),
        priority: -3,
        ttl: Some(seconds(5)),
        max_duration: Some(seconds(60)),
        queue_timeout: Some(seconds(0)),
        begin_time: Some(begin.into()),
        labels: entries_of(32, ""),
        context: entries_of(1, "7"),
        ..request(matching(0, pb::DeviceSelector::default()))
    });
    let WishedPhones::Matching { selector, count } = &wish.phones else {
        panic!("{wish:?}");
    };
    assert_eq!((selector, count.get()), (&Selector::default(), 1));
    assert_eq!(wish.request_id.as_deref(), Some("build-7"));
    assert_eq!(wish.priority, -3);
    assert_eq!(wish.ttl, Some(Duration::from_secs(5)));
    assert_eq!(wish.max_duration, Some(Duration::from_secs(60)));
    assert_eq!(wish.queue_timeout, Some(Duration::ZERO));
    assert_eq!(wish.begin, Some(begin));
    assert_eq!((wish.labels.len(), wish.context.len()), (32, 1));
}

#[test]
fn everything_that_is_wrong_with_a_wish_is_told_at_once() {
    let all = pb::CreateLeaseRequest {
        request_id: "x".repeat(129),
        wants: None,
        priority: 0,
        ttl: Some(seconds(0)),
        max_duration: Some(seconds(-1)),
        queue_timeout: Some(seconds(24 * 3600 + 1)),
        begin_time: Some((now() + Duration::from_secs(30 * 24 * 3600 + 1)).into()),
        labels: entries_of(33, ""),
        context: entries_of(1, &"x".repeat(257)),
    };
    let fields = [
        "request_id",
        "wants",
        "ttl",
        "max_duration",
        "queue_timeout",
        "begin_time",
        "labels",
        "context",
    ];
    assert_eq!(wrong(all), fields);
}

#[test]
fn terms_are_from_the_least_to_what_is_configured() {
    let ttl = |ttl: prost_types::Duration| {
        wrong_or_not(pb::CreateLeaseRequest {
            ttl: Some(ttl),
            ..request(devices(&["left"]))
        })
    };
    assert_eq!(ttl(seconds(1)), Vec::<String>::new());
    assert_eq!(ttl(seconds(3600)), Vec::<String>::new());
    assert_eq!(ttl(seconds(3601)), ["ttl"]);
    let almost = prost_types::Duration {
        seconds: 0,
        nanos: 999_999_999,
    };
    assert_eq!(ttl(almost), ["ttl"]);
}

fn wrong_or_not(request: pb::CreateLeaseRequest) -> Vec<String> {
    let wish = create_lease(request, &LeasesSection::default(), now());
    wish.map_or_else(
        |wrong| wrong.into_iter().map(|wrong| wrong.field).collect(),
        |_| Vec::new(),
    )
}

#[test]
fn phones_are_named_or_described_and_neither_too_many() {
    let list = "device_list.devices";
    assert_eq!(wrong(request(devices(&[]))), [list]);
    assert_eq!(wrong(request(devices(&["left", " "]))), [list]);
    assert_eq!(wrong(request(devices(&["x"; 1001]))), [list]);
    let any = pb::DeviceSelector::default;
    assert!(wrong_or_not(request(matching(1000, any()))).is_empty());
    let many = request(matching(1001, any()));
    assert_eq!(wrong(many), ["device_match.count"]);
    let odd = pb::DeviceSelector {
        labels: [("no spaces".to_owned(), String::new())].into(),
        model: Some(String::new()),
        os_version: Some("x".repeat(65)),
        host: Some("a\nb".to_owned()),
    };
    let fields = ["labels", "model", "os_version", "host"];
    let fields = fields.map(|field| format!("device_match.selector.{field}"));
    assert_eq!(wrong(request(matching(1, odd))), fields);
}

#[test]
fn keys_and_values_are_bounded_in_bytes() {
    let labels = |key: usize, value: usize| {
        let labels = [("k".repeat(key), "v".repeat(value))].into();
        wrong_or_not(pb::CreateLeaseRequest {
            labels,
            ..request(devices(&["left"]))
        })
    };
    assert!(labels(63, 256).is_empty());
    assert_eq!(labels(64, 0), ["labels"]);
    assert_eq!(labels(1, 257), ["labels"]);
    assert_eq!(labels(0, 0), ["labels"]);
}

#[test]
fn a_change_is_bounded_like_a_wish_and_sets_or_removes_a_label() {
    let update = |request| {
        let change = update_lease(request, &LeasesSection::default());
        change.map_err(|wrong| wrong.into_iter().map(|wrong| wrong.field).collect())
    };
    let (id, change) = update(pb::UpdateLeaseRequest {
        lease_id: "a-lease".to_owned(),
        priority: Some(4),
        set_labels: entries_of(1, "v"),
        remove_labels: vec!["old".to_owned()],
        ..pb::UpdateLeaseRequest::default()
    })
    .unwrap();
    assert_eq!(id.as_str(), "a-lease");
    assert_eq!(change.priority, Some(Priority(4)));
    assert_eq!((change.ttl, change.max_duration), (None, None));
    assert!(change.remove_labels.contains("old"));
    let refused: Result<_, Vec<String>> = update(pb::UpdateLeaseRequest {
        lease_id: "not an id".to_owned(),
        ttl: Some(seconds(0)),
        max_duration: Some(seconds(24 * 3600 + 1)),
        set_labels: entries_of(1, "v"),
        remove_labels: vec!["k0".to_owned()],
        ..pb::UpdateLeaseRequest::default()
    });
    let fields = ["lease_id", "ttl", "max_duration", "remove_labels"];
    assert_eq!(refused.unwrap_err(), fields);
}

#[test]
fn a_lease_is_taken_away_for_a_reason() {
    let revoke = |reason: &str, mode: i32| {
        revoke_lease(&pb::RevokeLeaseRequest {
            lease_id: "a-lease".to_owned(),
            reason: reason.to_owned(),
            mode,
        })
    };
    let now = |mode: pb::RevokeMode| revoke("demo", mode.into()).unwrap().2;
    assert!(!now(pb::RevokeMode::Unspecified));
    assert!(!now(pb::RevokeMode::Drain));
    assert!(now(pb::RevokeMode::Now));
    let wrong = revoke(" ", 9).unwrap_err();
    let fields: Vec<_> = wrong.iter().map(|wrong| wrong.field.as_str()).collect();
    assert_eq!(fields, ["reason", "mode"]);
}

#[test]
fn leases_are_listed_by_states_of_this_api() {
    let list = |states: Vec<i32>| {
        list_leases(pb::ListLeasesRequest {
            states,
            page_size: 7,
            ..pb::ListLeasesRequest::default()
        })
    };
    let known = (1..=9).collect();
    let filter = list(known).unwrap();
    assert_eq!((filter.states.len(), filter.page_size), (9, 7));
    assert_eq!(filter.states[3], LeaseState::Draining);
    for unknown in [0, 10, -1] {
        let wrong = list(vec![1, unknown]).unwrap_err();
        assert_eq!(wrong[0].field, "states");
    }
    let wrong = list_leases(pb::ListLeasesRequest {
        page_size: -1,
        page_token: "no token".to_owned(),
        ..pb::ListLeasesRequest::default()
    });
    let wrong: Vec<_> = wrong.unwrap_err().into_iter().map(|w| w.field).collect();
    assert_eq!(wrong, ["page_size", "page_token"]);
}

#[test]
fn what_a_lease_says_of_itself_is_bounded_in_all() {
    let both = |labels, context| {
        wrong_or_not(pb::CreateLeaseRequest {
            labels,
            context,
            ..request(devices(&["left"]))
        })
    };
    // 16 keys of 2 or 3 bytes and their values are 4,134 bytes.
    let half = || entries_of(16, &"v".repeat(253));
    let less = || entries_of(15, &"v".repeat(253));
    assert_eq!(both(half(), less()), Vec::<String>::new());
    assert_eq!(both(half(), entries_of(17, &"v".repeat(253))), ["labels"]);
}

#[test]
fn a_key_is_said_to_be_too_long_or_to_hold_what_cannot_be_seen() {
    let told = |key: &str| {
        let labels = HashMap::from([(key.to_owned(), String::new())]);
        let asked = pb::CreateLeaseRequest {
            labels,
            ..request(devices(&["left"]))
        };
        let wrong = create_lease(asked, &LeasesSection::default(), now()).unwrap_err();
        let words: Vec<_> = wrong.into_iter().map(|wrong| wrong.description).collect();
        words.join("; ")
    };
    let unseen = "must have keys without control characters";
    assert_eq!(told("a\u{7}b"), unseen);
    assert!(told(&"k".repeat(64)).contains("63 bytes"));
    assert!(!told(&"k".repeat(64)).contains(unseen));
}
