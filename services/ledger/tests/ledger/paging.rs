//! Pages against a naive filter, and what a token is good for.

use std::time::{Duration, SystemTime};

use fleetgate_ledger::{
    CommandQuery, CommandRow, LeaseStamp, Ledger, LedgerError, NewIntent, NewRecord, Outcome,
    PageToken,
};
use fleetgate_runner::{CommandKind, Effect, Fate, Udid};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};

use crate::support::{Place, at_once, completed, run, tap};

const ROWS: usize = 5000;
const FATES: [Option<Fate>; 6] = [
    None,
    Some(Fate::NotSent),
    Some(Fate::Completed),
    Some(Fate::CompletedResultLost),
    Some(Fate::Failed),
    Some(Fate::Unknown),
];
const PRINCIPALS: [Option<&str>; 3] = [None, Some("token:ci"), Some("oidc:ada")];
const LEASES: [Option<&str>; 4] = [None, Some("l-1"), Some("l-2"), Some("l-3")];

fn devices() -> Vec<Udid> {
    [
        "00008110-000978540290401E",
        "00008020-00060D691AD8003A",
        "0123456789abcdef0123456789abcdef01234567",
    ]
    .map(|udid| udid.parse().unwrap())
    .into()
}

/// 5,000 commands of all sorts, a few of them rare, some at times when the
/// clock was wrong.
async fn filled(place: &Place, random: &mut StdRng) -> (Ledger, Vec<String>) {
    let ledger = place.open().await;
    let devices = devices();
    let ids: Vec<String> = (0..ROWS).map(|n| format!("c{n}")).collect();
    for ids in ids.chunks(500) {
        let writes: Vec<_> = ids
            .iter()
            .map(|id| {
                let fate = if random.random_bool(0.01) {
                    *FATES.choose(random).unwrap()
                } else {
                    Some(Fate::Completed)
                };
                let lease = LEASES.choose(random).unwrap();
                let lease = lease.map(|id| LeaseStamp {
                    id: id.to_owned(),
                    epoch: 1,
                });
                let principal = PRINCIPALS.choose(random).unwrap();
                let command = NewIntent {
                    device: devices.choose(random).unwrap().clone(),
                    kind: *CommandKind::ALL.choose(random).unwrap(),
                    principal: principal.map(ToOwned::to_owned),
                    lease,
                    ..tap(id)
                };
                let ledger = &ledger;
                async move {
                    match fate {
                        None => ledger.intend(command).await,
                        Some(fate) => {
                            let outcome = Outcome {
                                fate,
                                effect: Effect::Unknown,
                                ..completed()
                            };
                            ledger.record(NewRecord { command, outcome }).await
                        }
                    }
                }
            })
            .collect();
        for result in at_once(writes).await {
            result.unwrap();
        }
    }
    let mut plain = place.plain().await;
    run(
        &mut plain,
        "INSERT INTO commands (command_id, device, kind, mutation, parameters, created_us) \
         SELECT 'late-' || seq, device, kind, mutation, '{}', created_us + (seq % 7 - 3) * 3600000000 \
         FROM commands WHERE seq % 100 = 0",
    )
    .await;
    let late = (1..=ROWS)
        .filter(|seq| seq % 100 == 0)
        .map(|seq| format!("late-{seq}"));
    let ids = ids.iter().cloned().chain(late).collect();
    (ledger, ids)
}

async fn all_pages(ledger: &Ledger, query: &CommandQuery) -> Vec<CommandRow> {
    let mut rows = Vec::new();
    let mut query = query.clone();
    loop {
        let page = ledger.commands(query.clone()).await.unwrap();
        assert!(page.commands.len() <= query.page_size as usize);
        let last = page.next.is_none();
        assert!(
            last || page.commands.len() == query.page_size as usize,
            "only the last page may be short"
        );
        rows.extend(page.commands);
        if last {
            return rows;
        }
        // As a client would: through text.
        query.page_token = page.next.map(|token| token.to_string().parse().unwrap());
    }
}

fn naive(rows: &[CommandRow], query: &CommandQuery) -> Vec<CommandRow> {
    let fate = |row: &CommandRow| {
        row.conclusion
            .as_ref()
            .map(|conclusion| conclusion.outcome.fate)
    };
    rows.iter()
        .filter(|row| {
            query
                .device
                .as_ref()
                .is_none_or(|device| *device == row.device)
        })
        .filter(|row| query.kinds.is_empty() || query.kinds.contains(&row.kind))
        .filter(|row| query.fates.is_empty() || query.fates.contains(&fate(row)))
        .filter(|row| query.from.is_none_or(|from| row.created >= from))
        .filter(|row| query.to.is_none_or(|to| row.created < to))
        .filter(|row| query.principal.is_none() || query.principal == row.principal)
        .filter(|row| {
            let lease = row.lease.as_ref().map(|lease| &lease.id);
            query.lease.is_none() || query.lease.as_ref() == lease
        })
        .cloned()
        .collect()
}

fn any_query(rows: &[CommandRow], random: &mut StdRng) -> CommandQuery {
    let time = |random: &mut StdRng| {
        let created = rows.choose(random).unwrap().created;
        random
            .random_bool(0.4)
            .then(|| created + Duration::from_nanos(random.random_range(0..2000)))
    };
    // Seldom, so that not all of them find nothing.
    let some = |names: &[Option<&str>], random: &mut StdRng| {
        let name = *names.choose(random).unwrap();
        name.filter(|_| random.random_bool(0.3))
            .map(ToOwned::to_owned)
    };
    let (from, to) = (time(random), time(random));
    let (some_kinds, some_fates) = (random.random_range(0..4), random.random_range(0..4));
    CommandQuery {
        device: random
            .random_bool(0.4)
            .then(|| devices().choose(random).unwrap().clone()),
        kinds: CommandKind::ALL.into_iter().sample(random, some_kinds),
        fates: FATES.into_iter().sample(random, some_fates),
        from,
        to,
        principal: some(&PRINCIPALS, random),
        lease: some(&LEASES, random),
        page_size: random.random_range(1..=1000),
        page_token: None,
    }
}

#[tokio::test]
async fn pages_hold_what_a_naive_filter_finds_in_the_same_order() {
    let mut random = StdRng::seed_from_u64(20_261_130);
    let place = Place::new();
    let (ledger, ids) = filled(&place, &mut random).await;
    let everything = CommandQuery {
        page_size: 777,
        ..CommandQuery::default()
    };
    let rows = all_pages(&ledger, &everything).await;
    let listed: Vec<String> = rows
        .iter()
        .rev()
        .map(|row| row.command_id.to_string())
        .collect();
    assert_eq!(listed, ids);

    let mut found = 0;
    for _ in 0..100 {
        let query = any_query(&rows, &mut random);
        let expected = naive(&rows, &query);
        assert!(all_pages(&ledger, &query).await == expected, "{query:?}");
        found += usize::from(!expected.is_empty());
    }
    assert!(found > 30, "the filters should find something: {found}");
    ledger.close().await;
}

#[tokio::test]
async fn commands_recorded_meanwhile_do_not_shift_a_page() {
    let place = Place::new();
    let ledger = place.open().await;
    for n in 0..6 {
        ledger.intend(tap(&format!("c{n}"))).await.unwrap();
    }
    let query = CommandQuery {
        page_size: 3,
        ..CommandQuery::default()
    };
    let first = ledger.commands(query.clone()).await.unwrap();
    ledger.intend(tap("new")).await.unwrap();
    let second = ledger
        .commands(CommandQuery {
            page_token: first.next,
            ..query
        })
        .await
        .unwrap();
    let listed: Vec<String> = first
        .commands
        .iter()
        .chain(&second.commands)
        .map(|row| row.command_id.to_string())
        .collect();
    assert_eq!(listed, ["c5", "c4", "c3", "c2", "c1", "c0"]);
    assert_eq!(second.next, None);
    ledger.close().await;
}

#[tokio::test]
async fn an_empty_ledger_has_one_empty_page() {
    let place = Place::new();
    let ledger = place.open().await;
    for from in [None, Some(SystemTime::UNIX_EPOCH)] {
        let page = ledger
            .commands(CommandQuery {
                from,
                ..CommandQuery::default()
            })
            .await
            .unwrap();
        assert_eq!((page.commands, page.next), (Vec::new(), None));
    }
    ledger.close().await;
}

#[tokio::test]
async fn the_page_size_has_a_default_and_a_limit() {
    let place = Place::new();
    let ledger = place.open().await;
    let ids: Vec<String> = (0..1001).map(|n| format!("c{n}")).collect();
    at_once(ids.iter().map(|id| ledger.intend(tap(id)))).await;
    for (page_size, expected) in [(0, 100), (1, 1), (1000, 1000), (u32::MAX, 1000)] {
        let page = ledger
            .commands(CommandQuery {
                page_size,
                ..CommandQuery::default()
            })
            .await
            .unwrap();
        assert_eq!(page.commands.len(), expected);
        assert!(page.next.is_some());
    }
    ledger.close().await;
}

#[tokio::test]
async fn a_token_is_good_for_its_own_filters_only() {
    let place = Place::new();
    let ledger = place.open().await;
    for n in 0..4 {
        ledger.intend(tap(&format!("c{n}"))).await.unwrap();
    }
    let query = CommandQuery {
        kinds: vec![CommandKind::Tap, CommandKind::Drag],
        fates: vec![None],
        page_size: 1,
        ..CommandQuery::default()
    };
    let page_token = ledger.commands(query.clone()).await.unwrap().next;
    assert!(page_token.is_some());
    let again = CommandQuery {
        page_token,
        ..query
    };
    let others = [
        CommandQuery {
            kinds: vec![CommandKind::Tap],
            ..again.clone()
        },
        CommandQuery {
            fates: vec![None, Some(Fate::Failed)],
            ..again.clone()
        },
        CommandQuery {
            device: Some(devices()[0].clone()),
            ..again.clone()
        },
        CommandQuery {
            from: Some(SystemTime::UNIX_EPOCH),
            ..again.clone()
        },
        CommandQuery {
            to: Some(SystemTime::now()),
            ..again.clone()
        },
        CommandQuery {
            principal: Some("token:ci".to_owned()),
            ..again.clone()
        },
        CommandQuery {
            lease: Some("l-1".to_owned()),
            ..again.clone()
        },
    ];
    for other in others {
        let result = ledger.commands(other).await;
        assert!(
            matches!(result, Err(LedgerError::PageTokenMismatch)),
            "{result:?}"
        );
    }
    // The same filters in another order, and another page size, are the same.
    let same = CommandQuery {
        kinds: vec![CommandKind::Drag, CommandKind::Tap],
        page_size: 2,
        ..again
    };
    assert_eq!(ledger.commands(same).await.unwrap().commands.len(), 2);
    ledger.close().await;
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger.intend(tap("b")).await.unwrap();
    let query = CommandQuery {
        page_size: 1,
        ..CommandQuery::default()
    };
    let token = ledger
        .commands(query)
        .await
        .unwrap()
        .next
        .unwrap()
        .to_string();
    assert!(token.parse::<PageToken>().is_ok());

    let mut wrong = vec![
        String::new(),
        "?".to_owned(),
        "bm90anNvbg".to_owned(),
        "A".repeat(5000),
    ];
    wrong.extend((1..token.len()).map(|at| token[..at].to_owned()));
    for text in wrong {
        let result = text.parse::<PageToken>();
        assert!(
            matches!(result, Err(LedgerError::InvalidPageToken)),
            "{text}: {result:?}"
        );
    }
    ledger.close().await;
}
