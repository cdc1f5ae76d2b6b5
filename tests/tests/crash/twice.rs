//! Killed again before it has put in order what the first kill left.

use fleetgate_proto::v1::{DeviceState, Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{PhoneReport, Scenario};
use fleetgate_tests::foreign::WriteLock;
use fleetgate_tests::invariants::Told;
use fleetgate_tests::scene::{Scene, Wreck};
use fleetgate_tests::{pause, soon};

use crate::steps::{assert_recovered, in_hand, one, said, slow, taps};

/// Restarts and kills again while the next one looks into what was left.
async fn killed_again(killed: Wreck) -> Wreck {
    let scene = killed.restart().await;
    let phone = scene.phone(0);
    soon("the look at what was left", async {
        while scene.device(&phone).await.state() != DeviceState::Reconciling {
            pause().await;
        }
    })
    .await;
    scene.kill().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_dies_while_it_reconciles_leaves_that_to_the_next() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 7);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    let killed = killed_again(killed_again(scene.kill().await).await).await;
    assert_eq!(taps(&phone), (1, 0), "it is still at it");
    let scene = killed.restart().await;
    assert_recovered(&scene, &phone, "tap", call.told().await).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_dies_before_it_can_record_what_it_learnt_leaves_that_to_the_next() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 3);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    let killed = scene.kill().await;
    let scene = killed.restart().await;
    let lock = WriteLock::take(&scene.ledger_path()).await;
    let done = |phone: &PhoneReport| phone.effects_total == 1 && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    let killed = scene.kill_under(lock).await;

    let scene = killed.restart().await;
    assert_recovered(&scene, &phone, "tap", call.told().await).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_phones_are_put_in_order_at_once_and_each_by_its_own_journal() {
    const PHONES: usize = 12;
    let scene = Scene::start(Scenario::fleet(12)).await;
    let phones = scene.lab.phones();
    assert_eq!(phones.len(), PHONES);
    let mut calls = Vec::new();
    for (n, phone) in phones.iter().enumerate() {
        slow(phone, 3);
        calls.push(scene.tap(phone, &format!("tap-{n}")));
    }
    soon(
        "a tap on each",
        scene.lab.wait_until(|load| load.in_flight == PHONES),
    )
    .await;
    let killed = scene.kill().await;
    // Every third loses its runner, and with that what it knew.
    for phone in phones.iter().step_by(3) {
        phone.restart_runner(DEFAULT_PORT);
    }
    let scene = killed.restart().await;
    for (n, (phone, call)) in phones.iter().zip(calls).enumerate() {
        let id = format!("tap-{n}");
        let told = call.told().await;
        assert!(matches!(told, Told::Nothing(_)), "{told:?}");
        let story = scene.story(phone, CommandKind::Tap, &id, vec![told]).await;
        let expected = if n % 3 == 0 {
            (Fate::Unknown, Effect::Unknown)
        } else {
            (Fate::Completed, Effect::Applied)
        };
        assert_eq!(said(&story), expected, "{story:#?}");
        assert_eq!(taps(phone), (1, usize::from(n % 3 != 0)));
    }
    scene.end().await;
}
