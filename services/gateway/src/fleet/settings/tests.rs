//! What operators set, with a real ledger: what holds, and what is on record.

use fleetgate_ledger::{LedgerConfig, Operation, Subject};
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;

const PHONE: &str = "00008110-000978540290401E";
const OTHER: &str = "00008020-00060D691AD8003A";

fn udid(text: &str) -> Udid {
    text.parse().unwrap()
}

struct Place {
    directory: TempDir,
}

/// A life of a gateway, as far as settings go.
struct Life {
    ledger: Ledger,
    settings: Settings,
    task: SettingsTask,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        Self { directory }
    }

    async fn live(&self) -> Life {
        let config = LedgerConfig::new(self.directory.path().join("ledger.db"));
        let ledger = Ledger::open(config).await.unwrap();
        let loaded = Settings::load(ledger.clone(), &Devices::default()).await;
        let (settings, task) = loaded.unwrap();
        Life {
            ledger,
            settings,
            task,
        }
    }
}

impl Life {
    async fn operations(&self) -> Vec<Operation> {
        let page = self.ledger.tail(None, 500).await.unwrap();
        let operation = |subject| match subject {
            Subject::Operation(operation) => Some(operation),
            Subject::Command(_)
            | Subject::Transition(_)
            | Subject::Ledger { .. }
            | Subject::Checkpoint(_) => None,
        };
        let subjects = page.events.into_iter().map(|event| event.subject);
        subjects.filter_map(operation).collect()
    }

    async fn end(self) {
        self.task.shutdown().await;
        self.ledger.close().await;
    }
}

fn named(alias: &str) -> Change {
    Change {
        alias: Some(Some(alias.to_owned())),
        ..Change::default()
    }
}

fn later(milliseconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_millis(milliseconds)
}

#[tokio::test]
async fn what_was_set_is_there_after_a_restart_with_who_did_it_on_record() {
    let place = Place::new();
    let life = place.live().await;
    let (phone, changes) = (udid(PHONE), life.settings.changes());
    let done = life.settings.update(&phone, named("left"), "me").await;
    assert_eq!(done.unwrap(), life.settings.get(&phone));
    let until = Some(later(3_600_000));
    let cordoned = life
        .settings
        .cordon(&phone, "battery".to_owned(), until, "you");
    cordoned.await.unwrap();
    assert_eq!(*changes.borrow(), 2);
    let before = life.settings.get(&phone);
    life.end().await;

    let life = place.live().await;
    assert_eq!(life.settings.get(&phone), before);
    assert_eq!(life.settings.by_alias("left"), Some(phone.clone()));
    assert_eq!(life.settings.known(), std::slice::from_ref(&phone));
    let again = life
        .settings
        .cordon(&phone, "battery".to_owned(), until, "them");
    assert_eq!(again.await.unwrap(), before);
    let operations = life.operations().await;
    let told: Vec<_> = operations
        .iter()
        .map(|operation| (operation.who.as_str(), operation.what.as_str()))
        .collect();
    assert_eq!(told, [("me", "update-device"), ("you", "cordon-device")]);
    life.end().await;
}

#[tokio::test]
async fn of_many_who_want_an_alias_at_once_one_gets_it() {
    let place = Place::new();
    let life = place.live().await;
    let phones: Vec<Udid> = (0..40)
        .map(|n| udid(&format!("00008110-{n:016X}")))
        .collect();
    let asked = phones
        .iter()
        .map(|phone| life.settings.update(phone, named("left"), "me"));
    let answers = join_all(asked).await;
    let (mut got, mut refused) = (0, 0);
    for answer in answers {
        match answer {
            Ok(_) => got += 1,
            Err(SettingsError::AliasTaken { device, .. }) => {
                assert_eq!(device, phones[0], "the first to ask");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((got, refused), (1, 39));
    life.end().await;
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_done_all_the_same() {
    let place = Place::new();
    let life = place.live().await;
    let (phone, other) = (udid(PHONE), udid(OTHER));
    let mut changes = life.settings.changes();
    {
        let asked = life.settings.update(&phone, named("left"), "me");
        let mut asked = std::pin::pin!(asked);
        let polled = futures_util::poll(asked.as_mut());
        assert!(polled.await.is_pending());
    }
    changes.changed().await.unwrap();
    assert_eq!(life.settings.by_alias("left"), Some(phone));
    assert_eq!(life.settings.by_alias("right"), None);
    life.settings
        .update(&other, named("right"), "me")
        .await
        .unwrap();
    life.end().await;
}

#[tokio::test]
async fn what_the_ledger_does_not_take_changes_nothing() {
    let place = Place::new();
    let life = place.live().await;
    let phone = udid(PHONE);
    life.ledger.close().await;
    let refused = life.settings.update(&phone, named("left"), "me").await;
    assert!(matches!(
        refused,
        Err(SettingsError::Ledger(LedgerError::Closed))
    ));
    assert_eq!(life.settings.get(&phone).alias, None);
    assert_eq!(life.settings.by_alias("left"), None);
    assert_eq!(*life.settings.changes().borrow(), 0);
    life.task.shutdown().await;
    let refused = life.settings.uncordon(&phone, "me").await;
    assert!(matches!(refused, Err(SettingsError::Ledger(_))));
}

#[tokio::test]
async fn a_cordon_ends_by_the_clock_and_one_that_ran_out_meanwhile_at_once() {
    let place = Place::new();
    let life = place.live().await;
    let (phone, other) = (udid(PHONE), udid(OTHER));
    let mut changes = life.settings.changes();
    let until = later(150);
    for device in [&phone, &other] {
        let cordon = life
            .settings
            .cordon(device, "battery".to_owned(), Some(until), "me");
        assert!(cordon.await.unwrap().cordon.is_some());
    }
    let ended = async {
        let gone = |device| life.settings.get(device).cordon.is_none();
        while !(gone(&phone) && gone(&other)) {
            changes.changed().await.unwrap();
        }
    };
    timeout(Duration::from_secs(20), ended).await.unwrap();
    assert!(SystemTime::now() >= until);
    let short = life
        .settings
        .cordon(&phone, "battery".to_owned(), Some(later(1)), "me");
    short.await.unwrap();
    life.end().await;

    let life = place.live().await;
    let mut changes = life.settings.changes();
    let ended = async {
        while life.settings.get(&phone).cordon.is_some() {
            changes.changed().await.unwrap();
        }
    };
    timeout(Duration::from_secs(20), ended).await.unwrap();
    let operations = life.operations().await;
    let ends = operations
        .iter()
        .filter(|operation| operation.what == "cordon-ended");
    let who: Vec<_> = ends.map(|operation| operation.who.as_str()).collect();
    assert_eq!(who, ["fleetgate"; 3]);
    life.end().await;
}
