//! The ledger's events as a stream: in order, from any cursor, and alive.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::CommandKind;
use fleetgate_tests::{Refusal, Rig, plain, plain_lab, refused, soon};
use tokio::task::JoinSet;
use tonic::{Code, Status, Streaming};

/// A stream and what it has told.
struct Tail(Streaming<pb::TailCommandsResponse>);

impl Tail {
    async fn open(rig: &Rig, request: pb::TailCommandsRequest) -> Self {
        let stream = rig.ledger().tail_commands(request).await.unwrap();
        Self(stream.into_inner())
    }

    async fn next(&mut self) -> Result<Option<(String, Item)>, Status> {
        let message = soon("a message", self.0.message()).await?;
        Ok(message.map(|message| (message.cursor, message.item.unwrap())))
    }

    /// The next event, whatever heartbeats come before it.
    async fn event(&mut self) -> (String, pb::LedgerEvent) {
        loop {
            match self.next().await.unwrap().unwrap() {
                (cursor, Item::Event(event)) => return (cursor, event),
                (_, Item::Heartbeat(_)) => {}
                (_, Item::Gap(gap)) => panic!("a gap: {gap:?}"),
            }
        }
    }

    /// Everything up to the end.
    async fn rest(mut self) -> Vec<(String, pb::LedgerEvent)> {
        let mut events = Vec::new();
        while let Some((cursor, item)) = self.next().await.unwrap() {
            match item {
                Item::Event(event) => events.push((cursor, event)),
                Item::Heartbeat(_) | Item::Gap(_) => panic!("{item:?}"),
            }
        }
        events
    }
}

fn all() -> pb::TailCommandsRequest {
    pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    }
}

fn after(cursor: &str) -> pb::TailCommandsRequest {
    pb::TailCommandsRequest {
        after_cursor: cursor.to_owned(),
        ..pb::TailCommandsRequest::default()
    }
}

fn from_now() -> pb::TailCommandsRequest {
    pb::TailCommandsRequest {
        from_now: true,
        ..pb::TailCommandsRequest::default()
    }
}

/// An event in a few words.
fn words(event: &pb::LedgerEvent) -> String {
    match event.entry.as_ref().unwrap() {
        Entry::Intended(command) => {
            assert_eq!(command.fate(), pb::Fate::Unspecified);
            format!("intended {}", command.command_id)
        }
        Entry::Concluded(command) => {
            assert_ne!(command.fate(), pb::Fate::Unspecified);
            format!("concluded {}", command.command_id)
        }
        Entry::Resolved(resolved) => {
            format!("resolved {}", resolved.command.as_ref().unwrap().command_id)
        }
        Entry::Operation(operation) => format!("{} {}", operation.who, operation.what),
        Entry::Transition(transition) => format!("moved {}", transition.device),
    }
}

/// A rig with one phone, which is on record as plugged in.
async fn plugged() -> Rig {
    let rig = Rig::plain(1).await;
    let request = pb::ListDeviceTransitionsRequest {
        device: rig.udid(0),
        ..pb::ListDeviceTransitionsRequest::default()
    };
    soon("a record of the phone", async {
        loop {
            let listed = rig.fleet().list_device_transitions(request.clone()).await;
            if !listed.unwrap().get_ref().transitions.is_empty() {
                return;
            }
            fleetgate_tests::pause().await;
        }
    })
    .await;
    rig
}

async fn press(rig: &Rig, id: &str) {
    plain::send(rig, &rig.udid(0), CommandKind::Button, id)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_order_and_any_cursor_goes_on_behind_its_event() {
    let rig = plugged().await;
    press(&rig, "a").await;
    plain::send(&rig, &rig.udid(0), CommandKind::Screenshot, "b")
        .await
        .unwrap();
    press(&rig, "c").await;

    let events = Tail::open(&rig, all()).await.rest().await;
    let told: Vec<_> = events.iter().map(|(_, event)| words(event)).collect();
    assert_eq!(
        told,
        [
            "ledger opened",
            &format!("moved {}", rig.udid(0)),
            "intended a",
            "concluded a",
            "concluded b",
            "intended c",
            "concluded c",
        ]
    );
    let seqs: Vec<_> = events.iter().map(|(_, event)| event.seq).collect();
    assert_eq!(seqs, (1..=7).collect::<Vec<_>>());
    let Some(Entry::Concluded(command)) = &events[6].1.entry else {
        panic!("a conclusion")
    };
    assert_eq!(*command, rig.find("c").await.unwrap());

    // The same after a restart, from every point.
    let rig = rig.restart_gateway().await;
    for (n, (cursor, _)) in events.iter().enumerate() {
        let request = pb::TailCommandsRequest {
            until_now: true,
            ..after(cursor)
        };
        let mut rest = Tail::open(&rig, request).await.rest().await;
        // The phone has been found anew since.
        let since = rest.split_off(events.len() - n - 1);
        assert_eq!(rest, events[n + 1..]);
        for (_, event) in since {
            assert!(words(&event).starts_with("moved "), "{event:?}");
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_recorded_is_told_at_once_and_silence_is_filled_with_heartbeats() {
    let rig = Rig::configured(plain_lab(1, 0.02), |config| {
        config.server.heartbeat_interval = Duration::from_millis(20);
    })
    .await;
    press(&rig, "before").await;
    let mut tail = Tail::open(&rig, from_now()).await;
    let mut cursors = Vec::new();
    for _ in 0..3 {
        let (cursor, item) = tail.next().await.unwrap().unwrap();
        assert!(matches!(item, Item::Heartbeat(_)), "{item:?}");
        cursors.push(cursor);
    }
    assert!(cursors.iter().all(|cursor| *cursor == cursors[0]));

    press(&rig, "now").await;
    let (_, intended) = tail.event().await;
    let (last, concluded) = tail.event().await;
    assert_eq!(
        (words(&intended), words(&concluded)),
        ("intended now".to_owned(), "concluded now".to_owned())
    );
    let (cursor, item) = tail.next().await.unwrap().unwrap();
    assert!(matches!(item, Item::Heartbeat(_)));
    assert_eq!(cursor, last);

    // A heartbeat's cursor is as good as an event's.
    let mut resumed = Tail::open(&rig, after(&cursors[0])).await;
    assert_eq!(words(&resumed.event().await.1), "intended now");
    drop((tail, resumed));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_retention_removed_is_told_as_a_gap_and_the_stream_goes_on() {
    let rig = Rig::configured(plain_lab(1, 0.02), |config| {
        config.ledger.retention_interval = Duration::from_millis(20);
    })
    .await;
    // The newest of all always stays.
    for id in ["a", "b", "newest"] {
        press(&rig, id).await;
    }
    let (cursor, _) = Tail::open(&rig, after("")).await.event().await;
    let mut paused = rig.pause().await;
    paused.config.ledger.retention_max_age = Some(Duration::from_millis(1));
    let rig = paused.resume().await;
    soon("the removal of what is old", async {
        while rig.find("b").await.is_some() {
            fleetgate_tests::pause().await;
        }
    })
    .await;

    let mut tail = Tail::open(&rig, after(&cursor)).await;
    let (resume, item) = tail.next().await.unwrap().unwrap();
    let Item::Gap(gap) = item else {
        panic!("a gap: {item:?}")
    };
    assert!(gap.pruned_through.is_some());
    assert_ne!(resume, cursor);
    let mut seq = None;
    loop {
        let event = match tail.next().await.unwrap().unwrap() {
            (_, Item::Event(event)) => event,
            (_, Item::Heartbeat(_)) => continue,
            // That the phone is plugged in is recorded at any time, and then is
            // old as well.
            (_, Item::Gap(_)) => {
                seq = None;
                continue;
            }
        };
        assert!(seq.is_none_or(|seq| event.seq == seq + 1), "{event:?}");
        seq = Some(event.seq);
        match words(&event).as_str() {
            "retention pruned" => break,
            told if told.starts_with("moved ") => {}
            told => assert!(event.carried && told.ends_with("newest"), "{event:?}"),
        }
    }
    drop(tail);

    // Without a cursor nothing is missed that was ever promised.
    let (_, item) = Tail::open(&rig, after(""))
        .await
        .next()
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(item, Item::Event(_)), "{item:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_misses_nothing_and_keeps_nobody_waiting() {
    const PRESSES: usize = 200;
    let rig = plugged().await;
    let mut slow = Tail::open(&rig, from_now()).await;
    for n in 0..PRESSES {
        press(&rig, &format!("p-{n}")).await;
    }
    let mut last = None;
    for n in 0..PRESSES {
        for word in ["intended", "concluded"] {
            let (_, event) = slow.event().await;
            assert_eq!(words(&event), format!("{word} p-{n}"));
            assert!(last.is_none_or(|last| event.seq == last + 1));
            last = Some(event.seq);
        }
    }
    drop(slow);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_stops_tells_everything_and_then_where_to_go_on() {
    let rig = plugged().await;
    let mut tail = Tail::open(&rig, from_now()).await;
    press(&rig, "last").await;
    let mut stopping = JoinSet::new();
    stopping.spawn(rig.stop());
    assert_eq!(words(&tail.event().await.1), "intended last");
    assert_eq!(words(&tail.event().await.1), "concluded last");
    let end = loop {
        match tail.next().await {
            Ok(Some((_, Item::Heartbeat(_)))) => {}
            Ok(other) => panic!("{other:?}"),
            Err(status) => break Refusal::from(status),
        }
    };
    assert_eq!(
        (end.code, end.reason.as_str()),
        (Code::Unavailable, "GATEWAY_DRAINING")
    );
    assert!(end.retry_delay.is_some());
    drop(tail);
    stopping.join_next().await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_at_its_callers_deadline() {
    let rig = Rig::plain(1).await;
    let mut request = tonic::Request::new(from_now());
    request.set_timeout(Duration::from_millis(100));
    let stream = rig.ledger().tail_commands(request).await.unwrap();
    let mut tail = Tail(stream.into_inner());
    let end = loop {
        match tail.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("ended in peace"),
            Err(status) => break status,
        }
    };
    // tonic's client reports its own clock's deadline as cancelled.
    assert!(
        matches!(end.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{end:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_is_none_is_refused() {
    let rig = Rig::plain(1).await;
    let refusal = refused(rig.ledger().tail_commands(after("no cursor")).await);
    assert_eq!(refusal.code, Code::InvalidArgument);
    assert_eq!(refusal.violations[0].0, "after_cursor");

    let other = Rig::plain(1).await;
    let (foreign, _) = Tail::open(&other, after("")).await.event().await;
    other.stop().await;
    let mut tail = Tail::open(&rig, after(&foreign)).await;
    let refusal = Refusal::from(tail.next().await.unwrap_err());
    assert_eq!(refusal.code, Code::InvalidArgument);
    assert_eq!(refusal.violations[0].0, "after_cursor");

    let both = pb::TailCommandsRequest {
        from_now: true,
        ..after(&foreign)
    };
    let refusal = refused(rig.ledger().tail_commands(both).await);
    assert_eq!(refusal.code, Code::InvalidArgument);
    assert_eq!(refusal.violations[0].0, "from_now");
    rig.stop().await;
}
