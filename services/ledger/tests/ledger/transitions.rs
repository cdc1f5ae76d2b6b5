//! What phones went through.

use std::time::SystemTime;

use fleetgate_ledger::{CommandQuery, LedgerError, NewTransition, PageToken, Transition};

use crate::support::{OTHER, PHONE, Place, at_once, record, tap, transition};

async fn move_all(ledger: &fleetgate_ledger::Ledger, range: std::ops::Range<u32>) {
    let moves = range.map(|n| ledger.transition(transition(&format!("R{n}"))));
    assert!(at_once(moves).await.iter().all(Result::is_ok));
}

fn reasons(transitions: &[Transition]) -> Vec<&str> {
    transitions.iter().map(|it| it.reason.as_str()).collect()
}

#[tokio::test]
async fn they_read_back_by_phone_the_newest_first_after_a_reopening() {
    let place = Place::new();
    let ledger = place.open().await;
    let before = SystemTime::now();
    let lost = NewTransition {
        device: OTHER.parse().unwrap(),
        from: "READY".to_owned(),
        to: "READY".to_owned(),
        reason: "HOST_LOST".to_owned(),
        detail: None,
    };
    ledger.transition(transition("PLUGGED")).await.unwrap();
    ledger.transition(lost.clone()).await.unwrap();
    ledger.record(record("a")).await.unwrap();
    ledger.transition(transition("RUNNER_READY")).await.unwrap();
    ledger.close().await;

    let ledger = place.open().await;
    let page = ledger
        .transitions(&PHONE.parse().unwrap(), 0, None)
        .await
        .unwrap();
    assert_eq!(reasons(&page.transitions), ["RUNNER_READY", "PLUGGED"]);
    assert_eq!(page.next, None);
    let [newest, oldest] = &page.transitions[..] else {
        panic!("{page:?}")
    };
    // 1 is the beginning, 4 the command.
    assert_eq!((newest.seq, oldest.seq), (5, 2));
    assert_eq!(
        (newest.from.as_str(), newest.to.as_str()),
        ("ATTACHED", "READY")
    );
    assert_eq!(newest.detail, transition("").detail);
    assert!(oldest.at <= newest.at && newest.at <= SystemTime::now());
    assert!(before <= oldest.at + std::time::Duration::from_micros(1));

    let other = ledger.transitions(&lost.device, 0, None).await.unwrap();
    assert_eq!(other.transitions.len(), 1);
    let told = &other.transitions[0];
    assert_eq!(
        (
            &told.device,
            &told.from,
            &told.to,
            &told.reason,
            &told.detail
        ),
        (
            &lost.device,
            &lost.from,
            &lost.to,
            &lost.reason,
            &lost.detail
        )
    );
    let nobody = "00008110-0000000000000000".parse().unwrap();
    let none = ledger.transitions(&nobody, 0, None).await.unwrap();
    assert_eq!((none.transitions.len(), none.next), (0, None));
    ledger.close().await;
}

#[tokio::test]
async fn their_pages_follow_each_other_while_more_is_recorded() {
    let place = Place::new();
    let ledger = place.open().await;
    let phone = PHONE.parse().unwrap();
    move_all(&ledger, 0..25).await;
    let mut seen = Vec::new();
    let mut token: Option<PageToken> = None;
    let mut pages = 0;
    loop {
        let page = ledger.transitions(&phone, 10, token).await.unwrap();
        pages += 1;
        seen.extend(page.transitions.iter().map(|it| it.reason.clone()));
        move_all(&ledger, 100..103).await;
        let Some(next) = page.next else { break };
        token = Some(next.to_string().parse().unwrap());
    }
    assert_eq!(pages, 3);
    let expected: Vec<String> = (0..25).rev().map(|n| format!("R{n}")).collect();
    assert_eq!(seen, expected);
    ledger.close().await;
}

#[tokio::test]
async fn a_page_that_is_just_full_is_the_last_one() {
    let place = Place::new();
    let ledger = place.open().await;
    let phone = PHONE.parse().unwrap();
    move_all(&ledger, 0..10).await;
    let page = ledger.transitions(&phone, 10, None).await.unwrap();
    assert_eq!((page.transitions.len(), page.next), (10, None));
    ledger.close().await;
}

#[tokio::test]
async fn a_page_has_a_hundred_unless_asked_and_a_thousand_at_most() {
    let place = Place::new();
    let ledger = place.open().await;
    let phone = PHONE.parse().unwrap();
    move_all(&ledger, 0..1010).await;
    for (asked, given) in [
        (0, 100),
        (1, 1),
        (1000, 1000),
        (1001, 1000),
        (u32::MAX, 1000),
    ] {
        let page = ledger.transitions(&phone, asked, None).await.unwrap();
        assert_eq!(page.transitions.len(), given, "{asked}");
        assert!(page.next.is_some(), "{asked}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn a_token_is_of_use_for_what_it_was_given_out_for_only() {
    let place = Place::new();
    let ledger = place.open().await;
    let (phone, other) = (PHONE.parse().unwrap(), OTHER.parse().unwrap());
    move_all(&ledger, 0..3).await;
    for name in ["a", "b"] {
        ledger.record(record(name)).await.unwrap();
    }
    let ours = ledger.transitions(&phone, 1, None).await.unwrap().next;
    let commands = CommandQuery {
        device: Some(phone.clone()),
        page_size: 1,
        ..CommandQuery::default()
    };
    let theirs = ledger.commands(commands.clone()).await.unwrap().next;
    assert!(ours.is_some() && theirs.is_some());

    for (device, token) in [(&other, &ours), (&phone, &theirs)] {
        let refused = ledger.transitions(device, 1, token.clone()).await;
        assert!(
            matches!(refused, Err(LedgerError::PageTokenMismatch)),
            "{refused:?}"
        );
    }
    let refused = ledger
        .commands(CommandQuery {
            page_token: ours,
            ..commands
        })
        .await;
    assert!(
        matches!(refused, Err(LedgerError::PageTokenMismatch)),
        "{refused:?}"
    );
    ledger.close().await;
}

#[tokio::test]
async fn they_share_a_commit_with_commands_and_with_each_other() {
    let place = Place::new();
    let ledger = place.open().await;
    let names: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    let entries = names.iter().map(async |name| {
        ledger.transition(transition(name)).await?;
        ledger.intend(tap(name)).await
    });
    let written = at_once(entries).await;
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    let stats = ledger.stats();
    assert_eq!(stats.written, 200);
    assert!(stats.commits <= 3, "{stats:?}");
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn one_that_breaks_a_rule_is_refused_alone() {
    let place = Place::new();
    let ledger = place.open().await;
    let results = at_once(["a", "", "b"].map(|reason| ledger.transition(transition(reason)))).await;
    assert!(
        matches!(
            &results[..],
            [Ok(()), Err(LedgerError::Rejected { .. }), Ok(())]
        ),
        "{results:?}"
    );
    let page = ledger
        .transitions(&PHONE.parse().unwrap(), 0, None)
        .await
        .unwrap();
    assert_eq!(reasons(&page.transitions), ["b", "a"]);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn none_is_ever_changed() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.transition(transition("PLUGGED")).await.unwrap();
    let error = sqlx::query("UPDATE device_transitions SET reason = 'UNPLUGGED'")
        .execute(&mut place.plain().await)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("never changed"), "{error}");
    ledger.close().await;
}
