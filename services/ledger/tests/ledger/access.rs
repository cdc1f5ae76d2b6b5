//! Who a command was for, and the lease that it was carried out under.

use std::time::Duration;

use fleetgate_ledger::{
    CommandQuery, EventKind, LeaseStamp, Ledger, LedgerConfig, LedgerError, NewIntent, NewRecord,
    RetentionConfig, Subject,
};

use crate::support::{Place, completed, conclude, id, read, record, tap, until};

fn stamp(epoch: u64) -> LeaseStamp {
    LeaseStamp {
        id: "lease-1".to_owned(),
        epoch,
    }
}

fn of(command_id: &str, principal: Option<&str>, lease: Option<LeaseStamp>) -> NewIntent {
    NewIntent {
        principal: principal.map(ToOwned::to_owned),
        lease,
        ..tap(command_id)
    }
}

#[tokio::test]
async fn they_are_kept_and_shown_wherever_a_command_is() {
    let place = Place::new();
    let ledger = place.open().await;
    let kept = [
        ("both", Some("token:ci"), Some(stamp(7))),
        ("nobody", None, None),
        ("principal", Some("cert:CN=scheduler"), None),
        ("lease", None, Some(stamp(0))),
    ];
    for (name, principal, lease) in kept.clone() {
        ledger.intend(of(name, principal, lease)).await.unwrap();
    }
    ledger.conclude(conclude("both")).await.unwrap();
    let recorded = NewRecord {
        command: of("recorded", Some("oidc:ada"), Some(stamp(8))),
        outcome: completed(),
    };
    ledger.record(recorded).await.unwrap();
    ledger.close().await;

    let ledger = place.open().await;
    let expected = |name: &str| {
        let mut kept = kept.iter().filter(|it| it.0 == name);
        let (_, principal, lease) = kept.next().unwrap();
        (principal.map(ToOwned::to_owned), lease.clone())
    };
    for (name, ..) in &kept {
        let row = ledger.command(&id(name)).await.unwrap().unwrap();
        assert_eq!((row.principal, row.lease), expected(name), "{name}");
        assert_eq!(row.caller.as_deref(), Some("grace"));
    }
    let page = ledger.commands(CommandQuery::default()).await.unwrap();
    let recorded = &page.commands[0];
    assert_eq!(recorded.principal.as_deref(), Some("oidc:ada"));
    assert_eq!(recorded.lease, Some(stamp(8)));
    let unsettled = ledger.unsettled(None, None).await.unwrap();
    assert_eq!(unsettled.len(), 3);
    for row in unsettled {
        let expected = expected(row.command_id.as_str());
        assert_eq!((row.principal, row.lease), expected);
    }
    let mut commands = 0;
    for event in ledger.tail(None, 500).await.unwrap().events {
        let Subject::Command(row) = event.subject else {
            continue;
        };
        commands += 1;
        if row.command_id.as_str() == "recorded" {
            assert_eq!(row.lease, Some(stamp(8)));
        } else {
            let expected = expected(row.command_id.as_str());
            assert_eq!((row.principal, row.lease), expected);
        }
    }
    assert_eq!(commands, 6);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn commands_are_found_by_who_asked_for_them_and_by_their_lease() {
    let place = Place::new();
    let ledger = place.open().await;
    let other = LeaseStamp {
        id: "lease-2".to_owned(),
        ..stamp(8)
    };
    for (name, principal, lease) in [
        ("a", Some("token:ci"), Some(stamp(7))),
        ("b", Some("token:ci"), None),
        ("c", None, None),
        ("d", Some("oidc:ada"), Some(other)),
        ("e", Some("token:ci"), Some(stamp(9))),
    ] {
        ledger.intend(of(name, principal, lease)).await.unwrap();
    }
    for (principal, lease, expected) in [
        ("", "", "e d c b a"),
        ("token:ci", "", "e b a"),
        ("oidc:ada", "", "d"),
        ("", "lease-1", "e a"),
        ("", "lease-2", "d"),
        ("token:ci", "lease-1", "e a"),
        ("oidc:ada", "lease-1", ""),
        ("token:c", "", ""),
        ("", "LEASE-1", ""),
    ] {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let query = CommandQuery {
            principal: some(principal),
            lease: some(lease),
            ..CommandQuery::default()
        };
        let page = ledger.commands(query).await.unwrap();
        let ids = page.commands.iter().map(|row| row.command_id.as_str());
        let found = ids.collect::<Vec<_>>().join(" ");
        assert_eq!(found, expected, "{principal} {lease}");
    }
    ledger.close().await;
}

/// However long the names are that somebody asks for.
#[tokio::test]
async fn the_token_of_a_page_is_short() {
    let place = Place::new();
    let ledger = place.open().await;
    let name = "n".repeat(100_000);
    for id in ["a", "b"] {
        ledger.intend(of(id, Some(&name), None)).await.unwrap();
    }
    let query = CommandQuery {
        principal: Some(name),
        page_size: 1,
        ..CommandQuery::default()
    };
    let first = ledger.commands(query.clone()).await.unwrap();
    let token = first.next.unwrap().to_string();
    assert!(token.len() < 500, "{token}");
    let rest = CommandQuery {
        page_token: Some(token.parse().unwrap()),
        ..query
    };
    let rest = ledger.commands(rest).await.unwrap();
    assert_eq!(rest.commands[0].command_id.as_str(), "a");
    ledger.close().await;
}

#[tokio::test]
async fn an_epoch_that_the_file_has_no_room_for_is_refused_alone() {
    let place = Place::new();
    let ledger = place.open().await;
    let (refused, written) = tokio::join!(
        ledger.intend(of("a", None, Some(stamp(1 << 63)))),
        ledger.intend(of("b", None, Some(stamp((1 << 63) - 1)))),
    );
    assert!(
        matches!(refused, Err(LedgerError::Rejected { .. })),
        "{refused:?}"
    );
    written.unwrap();
    let row = ledger.command(&id("b")).await.unwrap().unwrap();
    assert_eq!(row.lease, Some(stamp((1 << 63) - 1)));
    ledger.close().await;
}

#[tokio::test]
async fn empty_names_are_nobodys() {
    let place = Place::new();
    let ledger = place.open().await;
    let unnamed = LeaseStamp {
        id: String::new(),
        epoch: 1,
    };
    for wrong in [of("a", Some(""), None), of("b", None, Some(unnamed))] {
        let refused = ledger.intend(wrong).await;
        assert!(
            matches!(refused, Err(LedgerError::Rejected { .. })),
            "{refused:?}"
        );
    }
    ledger.close().await;
}

/// A read that runs again is the same read, whoever's turn it is; the first word
/// on it says who it was for.
#[tokio::test]
async fn a_read_that_runs_again_keeps_the_principal_that_it_was_recorded_with() {
    let place = Place::new();
    let ledger = place.open().await;
    let by = |principal: &str| {
        let mut read = read("r");
        read.command.principal = Some(principal.to_owned());
        read
    };
    ledger.record(by("token:ci")).await.unwrap();
    ledger.record(by("oidc:ada")).await.unwrap();
    let row = ledger.command(&id("r")).await.unwrap().unwrap();
    assert_eq!(row.principal.as_deref(), Some("token:ci"));
    assert_eq!(row.conclusion.unwrap().revision, 1);
    ledger.close().await;
}

#[tokio::test]
async fn a_command_that_outlives_its_link_is_bound_anew_with_them() {
    let place = Place::new();
    let ledger = place.open().await;
    let open = of("open", Some("token:ci"), Some(stamp(7)));
    ledger.intend(open).await.unwrap();
    ledger.record(record("old")).await.unwrap();
    ledger.record(record("newest")).await.unwrap();
    ledger.close().await;
    let ledger = Ledger::open(LedgerConfig {
        retention: RetentionConfig {
            max_age: Some(Duration::ZERO),
            interval: Duration::from_millis(1),
            ..RetentionConfig::default()
        },
        ..place.config()
    })
    .await
    .unwrap();
    until(|| ledger.stats().pruned == 1).await;
    let events = ledger.tail(None, 500).await.unwrap().events;
    let carried = events.into_iter().find_map(|event| match event.subject {
        Subject::Command(row) if event.kind == EventKind::Carried => Some(row),
        Subject::Command(_)
        | Subject::Ledger { .. }
        | Subject::Operation(_)
        | Subject::Transition(_)
        | Subject::Checkpoint(_) => None,
    });
    let carried = carried.unwrap();
    assert_eq!(carried.command_id.as_str(), "open");
    assert_eq!(carried.principal.as_deref(), Some("token:ci"));
    assert_eq!(carried.lease, Some(stamp(7)));
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}
