//! What is oldest goes, and the ledger still verifies.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_ledger::{
    EventKind, Fault, Ledger, LedgerConfig, LedgerError, NewFate, RetentionConfig, Subject, verify,
};
use sqlx::{AssertSqlSafe, Connection};

use crate::support::{
    PHONE, Place, at_once, completed, conclude, count, id, operation, record, resolve, run,
    settings, tap, transition, unknown, until,
};

const OLD: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

async fn open_with(place: &Place, retention: RetentionConfig) -> Ledger {
    Ledger::open(LedgerConfig {
        retention,
        ..place.config()
    })
    .await
    .unwrap()
}

/// Everything that may go, goes at once.
fn nothing_kept() -> RetentionConfig {
    RetentionConfig {
        max_age: Some(Duration::ZERO),
        interval: Duration::from_millis(1),
        ..RetentionConfig::default()
    }
}

/// 3000 commands, the first one open until the end, and one that stays open.
/// They are the work of a ledger that keeps everything.
async fn filled(place: &Place) {
    let ledger = place.open().await;
    ledger.intend(tap("slow")).await.unwrap();
    ledger.intend(tap("open")).await.unwrap();
    ledger.record(record(OLD)).await.unwrap();
    ledger.operation(operation("cordon")).await.unwrap();
    let ids: Vec<String> = (0..2996).map(|n| format!("c{n}")).collect();
    at_once(ids.iter().map(|id| ledger.record(record(id)))).await;
    ledger.conclude(conclude("slow")).await.unwrap();
    ledger.record(record("newest")).await.unwrap();
    ledger.close().await;
}

/// The numbers of pruned commands settle here: all but `open` and `newest`.
async fn pruned(place: &Place) -> Ledger {
    let ledger = open_with(place, nothing_kept()).await;
    until(|| ledger.stats().pruned >= 2998).await;
    ledger
}

#[tokio::test]
async fn what_is_too_old_goes_and_an_open_intent_and_the_newest_stay() {
    let place = Place::new();
    filled(&place).await;
    let known = verify(&place.path(), None).await.unwrap().head;
    let before = SystemTime::now();
    let ledger = pruned(&place).await;
    assert_eq!(ledger.stats().pruned, 2998);
    for (name, kept) in [
        ("open", true),
        ("newest", true),
        ("slow", false),
        ("c0", false),
    ] {
        let row = ledger.command(&id(name)).await.unwrap();
        assert_eq!(row.is_some(), kept, "{name}");
    }
    let through = ledger.pruned_through().await.unwrap().unwrap();
    assert!(UNIX_EPOCH < through && through <= before);

    let report = ledger.verify(Some(known)).await.unwrap();
    assert_eq!(report.first_break, None);
    assert!(!report.known_compared, "its link was removed");
    let checkpoint = report.checkpoint.unwrap();
    assert_eq!(checkpoint.commands_pruned, 2998);
    assert_eq!(checkpoint.pruned_through, through);

    // What was carried is as good as ever.
    ledger.conclude(conclude("open")).await.unwrap();
    assert!(matches!(
        ledger.intend(tap("newest")).await,
        Err(LedgerError::Duplicate { .. })
    ));
    ledger.record(record("later")).await.unwrap();
    until(|| ledger.stats().pruned >= 3000).await;
    assert_eq!(ledger.command(&id("open")).await.unwrap(), None);
    ledger.close().await;
    assert_eq!(verify(&place.path(), None).await.unwrap().first_break, None);
}

#[tokio::test]
async fn nothing_is_removed_that_is_young_enough() {
    let place = Place::new();
    filled(&place).await;
    let ledger = open_with(
        &place,
        RetentionConfig {
            max_age: Some(Duration::from_secs(3600)),
            ..nothing_kept()
        },
    )
    .await;
    ledger.record(record("later")).await.unwrap();
    ledger.close().await;
    let report = verify(&place.path(), None).await.unwrap();
    assert_eq!((report.commands, report.checkpoint), (3001, None));
}

/// What phones went through goes with the links that bind it; what holds for
/// them stays.
#[tokio::test]
async fn transitions_go_with_the_beginning_and_settings_never() {
    let place = Place::new();
    let ledger = place.open().await;
    let kept = settings(PHONE, Some("front"));
    ledger
        .set_device(kept.clone(), operation("update_device"))
        .await
        .unwrap();
    ledger.transition(transition("PLUGGED")).await.unwrap();
    ledger.intend(tap("open")).await.unwrap();
    let names: Vec<String> = (0..1500).map(|n| format!("R{n}")).collect();
    at_once(names.iter().map(|it| ledger.transition(transition(it)))).await;
    ledger.close().await;

    let ledger = open_with(&place, nothing_kept()).await;
    let mut plain = place.plain().await;
    while count(&mut plain, "SELECT count(*) FROM device_transitions").await > 0 {}
    plain.close().await.unwrap();
    let phone = PHONE.parse().unwrap();
    let left = ledger.transitions(&phone, 0, None).await.unwrap();
    assert_eq!((left.transitions.len(), left.next), (0, None));
    assert_eq!(
        *ledger.device_settings().await.unwrap(),
        *std::slice::from_ref(&kept)
    );
    assert_eq!(ledger.stats().pruned, 0);
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(report.first_break, None);
    assert!(
        report.events < 20 && report.checkpoint.is_some(),
        "{report:?}"
    );

    ledger.conclude(conclude("open")).await.unwrap();
    ledger.close().await;
    // Kept for as long as it is young.
    let ledger = place.open().await;
    ledger.transition(transition("RUNNER_READY")).await.unwrap();
    ledger.close().await;
    let ledger = open_with(
        &place,
        RetentionConfig {
            max_age: Some(Duration::from_secs(3600)),
            ..nothing_kept()
        },
    )
    .await;
    let left = ledger.transitions(&phone, 0, None).await.unwrap();
    assert_eq!(left.transitions.len(), 1);
    assert_eq!(ledger.device_settings().await.unwrap(), [kept]);
    ledger.close().await;
    assert!(verify(&place.path(), None).await.unwrap().is_intact());
}

#[tokio::test]
async fn a_transition_that_was_changed_keeps_the_beginning_from_being_removed() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.transition(transition("PLUGGED")).await.unwrap();
    ledger.record(record("a")).await.unwrap();
    ledger.record(record("b")).await.unwrap();
    ledger.close().await;
    let mut plain = place.plain().await;
    run(
        &mut plain,
        "DROP TRIGGER device_transitions_are_never_changed",
    )
    .await;
    run(
        &mut plain,
        "UPDATE device_transitions SET reason = 'UNPLUGGED'",
    )
    .await;
    plain.close().await.unwrap();
    let before = verify(&place.path(), None).await.unwrap().first_break;
    let ledger = open_with(&place, nothing_kept()).await;
    for n in 0..3 {
        ledger.record(record(&format!("later-{n}"))).await.unwrap();
    }
    ledger.close().await;
    let after = verify(&place.path(), None).await.unwrap();
    let changed = Fault::Changed {
        kind: EventKind::Transition,
    };
    assert_eq!(
        after.first_break.as_ref().map(|it| &it.what),
        Some(&changed)
    );
    assert_eq!((after.first_break, after.checkpoint), (before, None));
}

#[tokio::test]
async fn pruned_through_heeds_the_time_that_an_id_tells() {
    let place = Place::new();
    let ledger = place.open().await;
    assert_eq!(ledger.pruned_through().await.unwrap(), None);
    // Of the year 2100.
    let id = "03bb2cc3-d800-7000-8000-000000000000";
    ledger.record(record(id)).await.unwrap();
    ledger.record(record("newest")).await.unwrap();
    ledger.close().await;
    let ledger = open_with(&place, nothing_kept()).await;
    until(|| ledger.stats().pruned == 1).await;
    let through = ledger.pruned_through().await.unwrap().unwrap();
    assert_eq!(through, UNIX_EPOCH + Duration::from_secs(4_102_444_800));
    ledger.close().await;
}

#[tokio::test]
async fn what_is_too_much_goes_and_the_file_shrinks() {
    const MOST: u64 = 600_000;
    let place = Place::new();
    filled(&place).await;
    let full = fs::metadata(place.path()).unwrap().len();
    assert!(full > 2 * MOST, "{full}");
    let ledger = open_with(
        &place,
        RetentionConfig {
            max_bytes: Some(MOST),
            max_age: None,
            interval: Duration::from_millis(1),
        },
    )
    .await;
    until(|| ledger.stats().pruned > 0).await;
    // The run ends with an operation, and the pages are given back after it.
    let mut plain = place.plain().await;
    loop {
        let (pages, free): (i64, i64) = sqlx::query_as(
            "SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count)",
        )
        .fetch_one(&mut plain)
        .await
        .unwrap();
        if free == 0 && pages.unsigned_abs() * 4096 <= MOST {
            break;
        }
        tokio::task::yield_now().await;
    }
    plain.close().await.unwrap();
    ledger.close().await;
    let left = fs::metadata(place.path()).unwrap().len();
    assert!(left <= MOST, "{left}");
    let report = verify(&place.path(), None).await.unwrap();
    assert_eq!(report.first_break, None);
    assert!(report.commands < 3000 && report.checkpoint.is_some());
}

#[tokio::test]
async fn a_reader_of_events_is_told_what_it_missed_and_where_to_go_on() {
    let place = Place::new();
    filled(&place).await;
    let ledger = place.open().await;
    let old = ledger.tail(None, 3).await.unwrap().cursor;
    ledger.close().await;

    let ledger = pruned(&place).await;
    ledger.close().await;
    let ledger = place.open().await;
    let resume = match ledger.tail(old, 10).await {
        Err(LedgerError::CursorGap { resume }) => resume,
        other => panic!("{other:?}"),
    };
    let rest = ledger.tail(Some(resume), 500).await.unwrap();
    assert_eq!(rest, ledger.tail(None, 500).await.unwrap());
    let kinds: Vec<EventKind> = rest.events.iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&EventKind::Carried) && kinds.contains(&EventKind::Pruned));
    let noted = rest.events.iter().any(|event| {
        matches!(&event.subject, Subject::Operation(it) if it.who == "ledger" && it.what == "prune")
    });
    assert!(noted, "{kinds:?}");
    ledger.close().await;
}

#[tokio::test]
async fn entries_are_written_while_there_is_something_to_remove() {
    let place = Place::new();
    filled(&place).await;
    let ledger = open_with(&place, nothing_kept()).await;
    for n in 0..300 {
        let name = format!("n{n}");
        ledger.intend(tap(&name)).await.unwrap();
        ledger
            .conclude(NewFate {
                command_id: id(&name),
                outcome: unknown(),
            })
            .await
            .unwrap();
        // Retention may have been faster.
        match ledger.resolve(resolve(&name, completed())).await {
            Ok(()) | Err(LedgerError::NotIntended { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    ledger.close().await;
    let report = verify(&place.path(), None).await.unwrap();
    assert_eq!(report.first_break, None);
}

#[tokio::test]
async fn a_forged_checkpoint_shows() {
    let whole = Place::new();
    filled(&whole).await;
    pruned(&whole).await.close().await;
    let cases = [
        "UPDATE checkpoints SET pruned_through_us = 1",
        "UPDATE checkpoints SET commands_pruned = 1",
        "UPDATE checkpoints SET chain_hash = zeroblob(32)",
        "UPDATE checkpoints SET chain_seq = chain_seq + 1",
        "DELETE FROM checkpoints",
        // More removed, and a checkpoint that covers it up.
        "INSERT INTO checkpoints SELECT k.seq + 1, k.ledger_id, h.seq, h.hash, k.pruned_through_us, \
         k.commands_pruned, k.at_us FROM checkpoints AS k, (SELECT * FROM chain ORDER BY seq LIMIT 1) AS h \
         ORDER BY k.seq DESC LIMIT 1; DELETE FROM chain WHERE seq = (SELECT min(seq) FROM chain)",
    ];
    for statements in cases {
        let place = Place::new();
        fs::copy(whole.path(), place.path()).unwrap();
        let mut plain = place.plain().await;
        run(&mut plain, "DROP TRIGGER checkpoints_are_never_changed").await;
        sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(&mut plain)
            .await
            .unwrap();
        plain.close().await.unwrap();
        let found = verify(&place.path(), None).await.unwrap().first_break;
        assert!(
            matches!(
                found.as_ref().map(|it| &it.what),
                Some(
                    Fault::Changed { .. }
                        | Fault::Missing
                        | Fault::NoBeginning
                        | Fault::Unbound { .. }
                        | Fault::Outside { .. }
                )
            ),
            "{statements}: {found:?}"
        );
    }
}

/// A command that must outlive its link is bound anew; what was made of it
/// meanwhile must not be.
#[tokio::test]
async fn retention_does_not_make_good_what_was_tampered_with() {
    let place = Place::new();
    filled(&place).await;
    let mut plain = place.plain().await;
    run(&mut plain, "DROP TRIGGER commands_are_never_changed").await;
    run(
        &mut plain,
        "UPDATE commands SET caller = 'mallory' WHERE command_id = 'open'",
    )
    .await;
    plain.close().await.unwrap();
    let before = verify(&place.path(), None).await.unwrap();
    let ledger = open_with(&place, nothing_kept()).await;
    for n in 0..5 {
        ledger.record(record(&format!("later-{n}"))).await.unwrap();
    }
    ledger.close().await;
    let after = verify(&place.path(), None).await.unwrap();
    assert_eq!(
        after.first_break.as_ref().map(|it| (it.seq, &it.what)),
        Some((
            3,
            &Fault::Changed {
                kind: EventKind::Intended
            }
        ))
    );
    assert_eq!(after.first_break, before.first_break);
    assert_eq!(after.checkpoint, None);
}
