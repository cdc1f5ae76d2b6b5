//! What the ledger tells: by every filter, in pages, after restarts; and what
//! it refuses.

use std::time::{Duration, SystemTime};

use fleetgate_ledger::{Ledger, LedgerConfig, NewIntent, NewRecord, Outcome, Synchronous};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandKind as Kind, CommandRecord, Fate};
use fleetgate_runner::{CommandKind, Effect, RunnerCode, Udid};
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::facts::{clean, moment, rows};
use fleetgate_tests::{Refusal, Rig, plain, refused};
use prost_types::Timestamp;
use tonic::Code;

/// All pages of a query, each with this size.
async fn pages(rig: &Rig, query: &pb::ListCommandsRequest, page_size: i32) -> Vec<CommandRecord> {
    let mut found: Vec<CommandRecord> = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListCommandsRequest {
            page_size,
            page_token,
            ..query.clone()
        };
        let page = rig.ledger().list_commands(request).await.unwrap();
        let page = page.into_inner();
        let most = usize::try_from(page_size).unwrap().clamp(1, 1000);
        assert!(page.commands.len() <= most, "{page_size}");
        found.extend(page.commands);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return found;
        }
    }
}

fn ids(rows: &[CommandRecord]) -> Vec<&str> {
    rows.iter().map(|row| row.command_id.as_str()).collect()
}

/// What a query should find among all rows.
fn naive<'a>(all: &'a [CommandRecord], query: &pb::ListCommandsRequest) -> Vec<&'a str> {
    let device: Option<Udid> = query.device.parse().ok();
    let found = all.iter().filter(|row| {
        let created = moment(row.create_time);
        let from = query.start_time.map(|time| moment(Some(time)));
        let to = query.end_time.map(|time| moment(Some(time)));
        device
            .as_ref()
            .is_none_or(|device| row.device == device.as_str())
            && (query.kinds.is_empty() || query.kinds.contains(&row.kind))
            && (query.fates.is_empty() || query.fates.contains(&row.fate))
            && from.is_none_or(|from| created >= from)
            && to.is_none_or(|to| created < to)
    });
    found.map(|row| row.command_id.as_str()).collect()
}

/// Sends commands of several kinds to three phones, one after the other, so
/// that they end in every way but one that takes a runner's bad memory.
async fn history(rig: &Rig) -> Vec<String> {
    let failure = Injection::Error {
        code: RunnerCode::CommandFailed,
        message: "no".to_owned(),
        hint: None,
        after_effect: false,
    };
    let mut sent = Vec::new();
    for n in 0..3 {
        let (phone, udid) = (rig.phone(n), rig.udid(n));
        for (kind, faults, succeeds) in [
            (CommandKind::Tap, vec![], true),
            (CommandKind::Snapshot, vec![], true),
            (CommandKind::Tap, vec![failure.clone()], false),
            (CommandKind::Button, vec![], true),
            (
                CommandKind::Tap,
                vec![Injection::ConnectResult { number: 3 }],
                false,
            ),
            (CommandKind::Status, vec![], true),
            (
                CommandKind::Drag,
                vec![
                    Injection::ReplyLostAfterExecution,
                    Injection::JournalEvicted,
                ],
                false,
            ),
            (CommandKind::Viewport, vec![], true),
        ] {
            let id = format!("{n}-{kind}-{}", sent.len());
            for fault in faults {
                phone.fault(fault);
            }
            let answer = plain::send(rig, &udid, kind, &id).await;
            assert_eq!(answer.is_ok(), succeeds, "{id}: {answer:?}");
            // The id of a status is minted for it.
            let minted = answer.map(|receipt| receipt.command_id);
            sent.push(minted.unwrap_or(id));
        }
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn every_combination_of_filters_finds_what_was_sent_the_newest_first() {
    let rig = Rig::start(Scenario::fleet(3).scaled(0.05)).await;
    let mut sent = history(&rig).await;
    // The last one is still under way.
    let phone = rig.phone(0);
    let by = Duration::from_secs(60);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::LongPress));
    let ((), pending) = {
        let (udid, kind) = (rig.udid(0), CommandKind::LongPress);
        let pending = plain::send(&rig, &udid, kind, "pending");
        let asking = async {
            phone.wait_until(|phone| phone.in_flight == 1).await;
            sent.push("pending".to_owned());
            let all = rows(&rig).await;
            let newest_first: Vec<_> = sent.iter().rev().map(String::as_str).collect();
            assert_eq!(ids(&all), newest_first);
            assert_eq!(all[0].fate(), Fate::Unspecified);
            assert_eq!(phone.report().in_flight, 1, "it is under way all the while");
        };
        tokio::join!(asking, pending)
    };
    pending.unwrap();

    let all = rows(&rig).await;
    let middle = all[all.len() / 2].create_time;
    let late = all[2].create_time;
    let spans: [(Option<Timestamp>, Option<Timestamp>); 5] = [
        (None, None),
        (middle, None),
        (None, middle),
        (middle, late),
        (late, late),
    ];
    let devices = [
        String::new(),
        rig.udid(0),
        rig.udid(2).to_lowercase().replace('-', ""),
    ];
    let kinds: [&[Kind]; 4] = [
        &[],
        &[Kind::Tap],
        &[Kind::Snapshot, Kind::Status, Kind::Viewport],
        &[Kind::Shutdown],
    ];
    let fates: [&[Fate]; 5] = [
        &[],
        &[Fate::Completed],
        &[Fate::NotSent, Fate::Unknown],
        &[Fate::Failed],
        &[Fate::CompletedResultLost, Fate::Unspecified],
    ];
    let mut found_some = 0;
    for (start_time, end_time) in spans {
        for device in &devices {
            for kinds in kinds {
                for fates in fates {
                    let query = pb::ListCommandsRequest {
                        device: device.clone(),
                        kinds: kinds.iter().map(|kind| i32::from(*kind)).collect(),
                        fates: fates.iter().map(|fate| i32::from(*fate)).collect(),
                        start_time,
                        end_time,
                        ..pb::ListCommandsRequest::default()
                    };
                    let expected = naive(&all, &query);
                    for page_size in [2, 1000] {
                        let found = pages(&rig, &query, page_size).await;
                        assert_eq!(ids(&found), expected, "{query:?}");
                    }
                    found_some += usize::from(!expected.is_empty());
                }
            }
        }
    }
    assert!(found_some > 60, "{found_some} queries found something");
    rig.stop().await;
}

/// What makes no sense about a query.
type Change = fn(&mut pb::ListCommandsRequest);

/// Asserts that a call was refused for one field.
#[track_caller]
fn assert_field(refusal: &Refusal, field: &str) {
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::InvalidArgument, "INVALID_ARGUMENT"),
        "{refusal:?}"
    );
    let fields: Vec<_> = refusal.violations.iter().map(|(field, _)| field).collect();
    assert!(
        fields.len() == 1 && fields[0].starts_with(field),
        "{field}: {refusal:?}"
    );
    assert_eq!(refusal.retry_delay, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_makes_no_sense_is_refused_by_its_field() {
    let rig = Rig::plain(1).await;
    for n in 0..3 {
        let id = format!("c-{n}");
        let sent = plain::send(&rig, &rig.udid(0), CommandKind::Tap, &id).await;
        sent.unwrap();
    }
    let default = pb::ListCommandsRequest::default;
    let first = pb::ListCommandsRequest {
        page_size: 1,
        kinds: vec![Kind::Tap.into()],
        ..default()
    };
    let page = rig.ledger().list_commands(first.clone()).await.unwrap();
    let page_token = page.into_inner().next_page_token;
    assert_ne!(page_token, "");
    let changes: [(&str, Change); 6] = [
        ("kinds", |query| query.kinds = vec![99]),
        ("kinds", |query| query.kinds = vec![0]),
        ("fates", |query| query.fates = vec![-1]),
        ("page_size", |query| query.page_size = -1),
        ("page_token", |query| query.page_token = "2".to_owned()),
        ("end_time", |query| {
            let time = |seconds| Some(Timestamp { seconds, nanos: 0 });
            (query.start_time, query.end_time) = (time(2), time(1));
        }),
    ];
    let mut queries: Vec<_> = changes
        .map(|(field, change)| {
            let mut query = default();
            change(&mut query);
            (field, query)
        })
        .into();
    // The token of a query with other filters.
    for kinds in [vec![], vec![Kind::Drag.into()]] {
        let page_token = page_token.clone();
        queries.push((
            "page_token",
            pb::ListCommandsRequest {
                page_token,
                kinds,
                ..default()
            },
        ));
    }
    for (field, request) in queries {
        let answer = rig.ledger().list_commands(request.clone()).await;
        let refusal = answer.expect_err(&format!("{request:?}")).into();
        assert_field(&refusal, field);
    }
    let device = "nobody".to_owned();
    let request = pb::ListCommandsRequest {
        device,
        ..default()
    };
    let refusal = refused(rig.ledger().list_commands(request).await);
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::NotFound, "DEVICE_UNKNOWN")
    );
    // Its own query may go on with it, in pages of another size.
    let rest = pb::ListCommandsRequest {
        page_token,
        page_size: 7,
        ..first
    };
    let rest = rig.ledger().list_commands(rest).await.unwrap().into_inner();
    assert_eq!(ids(&rest.commands), ["c-1", "c-0"]);

    for (command_id, code, reason) in [
        ("never", Code::NotFound, "NEVER_SENT"),
        ("", Code::InvalidArgument, "INVALID_ARGUMENT"),
        ("two words", Code::InvalidArgument, "INVALID_ARGUMENT"),
    ] {
        let command_id = command_id.to_owned();
        let request = pb::GetCommandRequest { command_id };
        let refusal = refused(rig.ledger().get_command(request).await);
        assert_eq!((refusal.code, refusal.reason.as_str()), (code, reason));
        assert_eq!(refusal.retry_delay, None);
    }
    rig.stop().await;
}

fn old_tap(n: usize, device: &Udid) -> NewRecord {
    NewRecord {
        command: NewIntent {
            command_id: format!("old-{n:04}").parse().unwrap(),
            device: device.clone(),
            kind: CommandKind::Tap,
            app_bundle_id: None,
            parameters: serde_json::Map::new(),
            asked: serde_json::Map::new(),
            caller: None,
            principal: None,
            lease: None,
        },
        outcome: Outcome {
            fate: fleetgate_runner::Fate::Completed,
            effect: Effect::Applied,
            reason: None,
            message: Some("x".repeat(500)),
            warning: None,
            hint: None,
            reactivated: false,
            attempts: 1,
            recovered: false,
            queue_wait: Duration::ZERO,
            device_time: Duration::from_millis(1),
            reply: None,
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_commands_come_in_pages_that_nothing_shifts() {
    let paused = Rig::plain(2).await.pause().await;
    // One after the other, for the order's sake, and without a wait for the disk.
    let config = LedgerConfig {
        synchronous: Synchronous::Normal,
        ..LedgerConfig::new(&paused.config.ledger.path)
    };
    let ledger = Ledger::open(config).await.unwrap();
    let phones = paused.lab.phones();
    for n in 0..5000 {
        let record = old_tap(n, phones[n % 2].udid());
        ledger.record(record).await.unwrap();
    }
    ledger.close().await;
    drop(ledger);
    let rig = paused.resume().await;

    let everything = pb::ListCommandsRequest::default();
    let page = |page_size, page_token| {
        let (mut ledger, query) = (rig.ledger(), everything.clone());
        async move {
            let query = pb::ListCommandsRequest {
                page_size,
                page_token,
                ..query
            };
            ledger.list_commands(query).await.unwrap().into_inner()
        }
    };
    assert_eq!(page(0, String::new()).await.commands.len(), 100);
    assert_eq!(page(5000, String::new()).await.commands.len(), 1000);

    let (mut found, mut page_token) = (Vec::new(), String::new());
    for n in 0.. {
        let next = page(1000, page_token).await;
        found.extend(next.commands);
        page_token = next.next_page_token;
        if page_token.is_empty() {
            break;
        }
        // What comes meanwhile is not of these pages.
        let id = format!("new-{n}");
        let sent = plain::send(&rig, &rig.udid(0), CommandKind::Tap, &id).await;
        sent.unwrap();
    }
    let expected: Vec<_> = (0..5000).rev().map(|n| format!("old-{n:04}")).collect();
    assert_eq!(ids(&found), expected);

    let of_one = pb::ListCommandsRequest {
        device: rig.udid(1),
        ..everything
    };
    let found = pages(&rig, &of_one, 300).await;
    let odd: Vec<_> = expected
        .iter()
        .filter(|id| id.ends_with(['1', '3', '5', '7', '9']))
        .collect();
    assert_eq!(ids(&found), odd);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_gateway_keeps_everything() {
    let rig = Rig::start(Scenario::fleet(3).scaled(0.02)).await;
    history(&rig).await;
    let before = rows(&rig).await;
    assert_eq!(before.len(), 24);
    let rig = rig.restart_gateway().await;
    assert_eq!(rows(&rig).await, before);
    let sent = plain::send(&rig, &rig.udid(0), CommandKind::Tap, "after").await;
    clean(Some(sent.unwrap()), "after");
    let after = rows(&rig).await;
    assert_eq!(after[0].command_id, "after");
    assert_eq!(after[1..], before);
    assert!(moment(after[0].create_time) <= SystemTime::now());
    rig.stop().await;
}
