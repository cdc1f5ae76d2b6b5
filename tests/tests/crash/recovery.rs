//! What the phone and its runner went through before the next gateway asks.

use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Fault, Injection, PhoneReport, Scenario};
use fleetgate_tests::invariants::Told;
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{pause, soon};

use crate::steps::{assert_nothing, in_hand, one, said, slow, taps};

/// Asserts that nobody will ever know what became of a tap, and that it is not
/// sent again; it had so many effects.
async fn assert_unknown_for_good(scene: Scene, effects: usize) {
    let phone = scene.phone(0);
    soon("the last word", async {
        loop {
            let found = scene.settled("tap").await;
            if found
                .history
                .last()
                .is_some_and(|word| word.unknown_for_good)
            {
                return;
            }
            pause().await;
        }
    })
    .await;
    let again = scene.tap(&phone, "tap").told().await;
    let Told::Refusal(refusal) = &again else {
        panic!("a refusal, not {again:?}")
    };
    assert_eq!(refusal.meta("fate"), "UNKNOWN", "{refusal:?}");
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", vec![again])
        .await;
    assert_eq!(said(&story), (Fate::Unknown, Effect::Unknown));
    assert_eq!(taps(&phone), (1, effects));
    let other = scene.tap(&phone, "other").told().await;
    assert!(other.succeeded(), "{other:?}");
    assert_eq!(taps(&phone), (2, effects + 1));
    scene.end().await;
}

/// Lets two seconds pass on the phones, so that a runner that is restarted then
/// is seen to be younger than what was sent before: a tap on another phone
/// takes them.
async fn pass_two_seconds(scene: &Scene) {
    let clock = scene.phone(1);
    slow(&clock, 2);
    let told = scene.tap(&clock, "clock").told().await;
    assert!(told.succeeded(), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_was_restarted_before_the_effect_leaves_it_unknown_for_good() {
    let scene = Scene::start(Scenario::fleet(2)).await;
    let phone = scene.phone(0);
    slow(&phone, 30);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    pass_two_seconds(&scene).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    phone.restart_runner(DEFAULT_PORT);
    assert_unknown_for_good(killed.restart().await, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_was_restarted_after_the_effect_leaves_it_unknown_for_good() {
    let scene = Scene::start(Scenario::fleet(2)).await;
    let phone = scene.phone(0);
    phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
    let call = scene.tap(&phone, "tap");
    let done = |phone: &PhoneReport| phone.faults.is_empty() && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    pass_two_seconds(&scene).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    phone.restart_runner(DEFAULT_PORT);
    assert_unknown_for_good(killed.restart().await, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_has_forgotten_proves_nothing() {
    let scene = one().await;
    let phone = scene.phone(0);
    phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
    let call = scene.tap(&phone, "tap");
    let done = |phone: &PhoneReport| phone.faults.is_empty() && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    phone.evict_from_journal(&"tap".parse().unwrap());

    let scene = killed.restart().await;
    let again = scene.tap(&phone, "tap").told().await;
    assert!(!again.succeeded(), "{again:?}");
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", vec![again])
        .await;
    assert_eq!(said(&story), (Fate::Unknown, Effect::Unknown));
    assert_eq!(taps(&phone), (1, 1));
    scene.end().await;
}

/// A gateway that died during a tap, which has ended since, and whose phone is
/// not there.
async fn unplugged(more: &str) -> Scene {
    let scene = Scene::configured(Scenario::fleet(1), more).await;
    let phone = scene.phone(0);
    slow(&phone, 2);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    let done = |phone: &PhoneReport| phone.effects_total == 1 && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    phone.detach();
    killed.restart().await
}

/// Asserts that the fate of the tap is learnt from the phone, which is there
/// again.
async fn assert_learnt(scene: Scene) {
    let phone = scene.phone(0);
    phone.attach();
    soon("the fate", async {
        while scene.settled("tap").await.row.unwrap().fate() == Fate::Unknown {
            pause().await;
        }
    })
    .await;
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", Vec::new())
        .await;
    assert_eq!(said(&story), (Fate::Completed, Effect::Applied));
    assert_eq!(taps(&phone), (1, 1));
    scene.end().await;
}

/// A phone that does not come back is given up for now, so that its command has
/// a fate, and is asked when it does.
async fn assert_given_up_and_learnt(scene: Scene) {
    let given_up = scene.settled("tap").await;
    let row = given_up.row.unwrap();
    assert_eq!((row.fate(), row.effect()), (Fate::Unknown, Effect::Unknown));
    assert!(!given_up.history[0].unknown_for_good);
    assert_learnt(scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_only_the_ledger_knows_is_given_up_for_now_and_asked_when_it_is_back() {
    assert_given_up_and_learnt(unplugged("").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_expected_is_given_up_for_now_and_asked_when_it_is_back() {
    let scenario = Scenario::fleet(1);
    let more = format!("[[device]]\nudid = '{}'\n", scenario.phones[0].udid);
    assert_given_up_and_learnt(unplugged(&more).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_does_not_answer_keeps_nobody_waiting_for_ever() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 2);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    let done = |phone: &PhoneReport| phone.effects_total == 1 && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    // Nothing listens: every question is refused at once.
    phone.kill_runner();

    let scene = killed.restart().await;
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", Vec::new())
        .await;
    assert_eq!(said(&story), (Fate::Unknown, Effect::Unknown));
    // Whatever comes up there next is another runner.
    phone.restart_runner(DEFAULT_PORT);
    assert_unknown_for_good(scene, 1).await;
}
