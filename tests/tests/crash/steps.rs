//! Killed before and while a command is on its way to the phone, at each step.

use std::time::Duration;

use fleetgate_proto::v1::{DeviceState, Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, Phone, PhoneReport, Scenario};
use fleetgate_tests::foreign::{WriteLock, until_concluded, until_intended};
use fleetgate_tests::invariants::{Story, Told};
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{pause, soon};

/// One phone.
pub(crate) async fn one() -> Scene {
    Scene::start(Scenario::fleet(1)).await
}

/// Makes the next tap of a phone take this long.
pub(crate) fn slow(phone: &Phone, seconds: u64) {
    let by = Duration::from_secs(seconds);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
}

/// Waits until the phone has a command in hand.
pub(crate) async fn in_hand(phone: &Phone) {
    soon("a command", phone.wait_until(|phone| phone.in_flight == 1)).await;
}

/// How often taps were sent to a phone, and had an effect.
pub(crate) fn taps(phone: &Phone) -> (usize, usize) {
    let report = phone.report();
    (report.arrivals_of(CommandKind::Tap), report.effects.len())
}

/// The caller of a gateway that died was told nothing.
#[track_caller]
pub(crate) fn assert_nothing(told: &Told) {
    assert!(matches!(told, Told::Nothing(_)), "{told:?}");
}

/// What the ledger says in the end.
pub(crate) fn said(story: &Story) -> (Fate, Effect) {
    let row = story.on_record.row.as_ref().unwrap();
    (row.fate(), row.effect())
}

/// Asserts that a tap was found to be completed by the gateway that followed,
/// and that its caller gets that instead of a second tap.
pub(crate) async fn assert_recovered(scene: &Scene, phone: &Phone, id: &str, told: Told) {
    let before = phone.report().arrivals_of(CommandKind::Tap);
    assert_nothing(&told);
    let again = scene.tap(phone, id).told().await;
    let Told::Receipt(receipt) = &again else {
        panic!("a recovered reply, not {again:?}")
    };
    assert!(receipt.recovered && receipt.replayed, "{receipt:?}");
    let story = scene
        .story(phone, CommandKind::Tap, id, vec![told, again])
        .await;
    assert_eq!(said(&story), (Fate::Completed, Effect::Applied));
    assert!(story.on_record.row.unwrap().recovered);
    assert_eq!(story.on_phone.effects.len(), 1);
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_intent_nothing_was_sent_and_the_id_is_as_good_as_new() {
    let scene = one().await;
    let phone = scene.phone(0);
    let lock = WriteLock::take(&scene.ledger_path()).await;
    let call = scene.tap(&phone, "tap");
    // The connection is made beside the intent, which cannot come.
    let connected = |phone: &PhoneReport| phone.connects.usb > 0;
    soon("the connection", phone.wait_until(connected)).await;
    assert_eq!(
        scene.device(&phone).await.command_in_flight.as_deref(),
        Some("tap")
    );
    let killed = scene.kill_under(lock).await;
    assert_nothing(&call.told().await);

    let scene = killed.restart().await;
    let absent = scene.look_up("tap").await.unwrap_err();
    assert_eq!(absent.reason, "NEVER_SENT", "{absent:?}");
    assert_eq!(taps(&phone), (0, 0));
    let told = scene.tap(&phone, "tap").told().await;
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", vec![told])
        .await;
    assert_eq!(said(&story), (Fate::Completed, Effect::Applied));
    assert!(!story.on_record.row.unwrap().recovered);
    assert_eq!(taps(&phone), (1, 1));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_intent_and_send_the_fate_is_unknown_and_nothing_is_ever_sent() {
    let scene = one().await;
    let phone = scene.phone(0);
    scene.lab.stall_usbmuxd(true);
    let call = scene.tap(&phone, "tap");
    until_intended(&scene.ledger_path(), "tap").await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    killed.lab.stall_usbmuxd(false);

    let scene = killed.restart().await;
    // That its journal does not know it proves nothing.
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", Vec::new())
        .await;
    assert_eq!(said(&story), (Fate::Unknown, Effect::Unknown));
    let again = scene.tap(&phone, "tap").told().await;
    let Told::Refusal(refusal) = &again else {
        panic!("a refusal, not {again:?}")
    };
    assert_eq!(refusal.code, tonic::Code::Unknown, "{refusal:?}");
    assert_eq!(refusal.meta("fate"), "UNKNOWN", "{refusal:?}");
    assert_eq!(refusal.retry_delay, None, "{refusal:?}");
    assert_eq!(taps(&phone), (0, 0));
    // Others go their way.
    let other = scene.tap(&phone, "other").told().await;
    assert!(other.succeeded(), "{other:?}");
    assert_eq!(taps(&phone), (1, 1));
    scene
        .story(&phone, CommandKind::Tap, "tap", vec![again])
        .await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_phone_is_at_it_the_fate_is_learnt_before_another_mutation_is_sent() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 3);
    let (call, waiting) = (scene.tap(&phone, "tap"), scene.tap(&phone, "waits"));
    in_hand(&phone).await;
    // Which of the two is at the phone was up to the network.
    let in_flight = scene.device(&phone).await.command_in_flight.unwrap();
    let queued = if in_flight == "tap" { "waits" } else { "tap" };
    let killed = scene.kill().await;
    assert_nothing(&waiting.told().await);
    let told = call.told().await;
    assert_nothing(&told);

    let scene = killed.restart().await;
    assert_eq!(taps(&phone), (1, 0), "it is still at it");
    let absent = scene.look_up(queued).await.unwrap_err();
    assert_eq!(absent.reason, "NEVER_SENT", "what waited was never sent");
    let next = scene.tap(&phone, "next").told().await;
    assert!(next.succeeded(), "{next:?}");
    let order: Vec<_> = phone
        .effects()
        .into_iter()
        .map(|effect| effect.command_id)
        .collect();
    assert_eq!(
        order,
        [in_flight.as_str(), "next"].map(|id| Some(id.parse().unwrap()))
    );
    assert_eq!(phone.max_in_flight(), 1, "never two at once");
    assert_recovered(&scene, &phone, &in_flight, told).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_with_half_of_the_reply_the_rest_is_in_the_journal() {
    let scene = one().await;
    let phone = scene.phone(0);
    phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
    let call = scene.tap(&phone, "tap");
    let done = |phone: &PhoneReport| {
        phone.faults.is_empty() && phone.effects_total == 1 && phone.in_flight == 0
    };
    soon("the tap", phone.wait_until(done)).await;
    let killed = scene.kill().await;
    let scene = killed.restart().await;
    assert_recovered(&scene, &phone, "tap", call.told().await).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_asks_for_a_lost_reply_the_next_one_asks_on() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 2);
    phone.fault(Fault::from(Injection::ReplyLostDuringExecution).on(CommandKind::Tap));
    let call = scene.tap(&phone, "tap");
    let asked = |phone: &PhoneReport| phone.arrivals_of(CommandKind::CommandStatus) > 0;
    soon("a question", phone.wait_until(asked)).await;
    let killed = scene.kill().await;
    assert_eq!(taps(&phone), (1, 0), "it is still at it");
    let scene = killed.restart().await;
    assert_recovered(&scene, &phone, "tap", call.told().await).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_reply_and_fate_the_fate_is_in_the_journal() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 2);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    let lock = WriteLock::take(&scene.ledger_path()).await;
    // The gateway has the reply when it complains of the lock.
    scene.complaint("fate is not on record yet").await;
    assert_eq!(taps(&phone), (1, 1));
    let killed = scene.kill_under(lock).await;

    let scene = killed.restart().await;
    assert_recovered(&scene, &phone, "tap", call.told().await).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_fate_it_is_told_to_whoever_asks_again() {
    let scene = one().await;
    let phone = scene.phone(0);
    let call = scene.tap(&phone, "tap");
    until_concluded(&scene.ledger_path(), "tap").await;
    let killed = scene.kill().await;
    let told = call.told().await;

    let scene = killed.restart().await;
    let again = scene.tap(&phone, "tap").told().await;
    let Told::Receipt(receipt) = &again else {
        panic!("a success, not {again:?}")
    };
    assert!(receipt.replayed && !receipt.recovered, "{receipt:?}");
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", vec![told, again])
        .await;
    assert_eq!(said(&story), (Fate::Completed, Effect::Applied));
    assert_eq!(taps(&phone), (1, 1));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_against_a_command_is_learnt_too() {
    let scene = one().await;
    let phone = scene.phone(0);
    phone.fault(Injection::Error {
        code: RunnerCode::CommandFailed,
        message: "the phone said no".to_owned(),
        hint: None,
        after_effect: true,
    });
    phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
    let call = scene.tap(&phone, "tap");
    let done = |phone: &PhoneReport| phone.faults.is_empty() && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);

    let scene = killed.restart().await;
    let again = scene.tap(&phone, "tap").told().await;
    let Told::Refusal(refusal) = &again else {
        panic!("a refusal, not {again:?}")
    };
    assert_eq!(refusal.reason, "COMMAND_FAILED", "{refusal:?}");
    assert!(refusal.message.contains("the phone said no"), "{refusal:?}");
    let story = scene
        .story(&phone, CommandKind::Tap, "tap", vec![again])
        .await;
    assert_eq!(said(&story), (Fate::Failed, Effect::Unknown));
    assert_eq!(taps(&phone), (1, 1));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_runner_is_busy_nobody_takes_the_offer_up_again() {
    let scene = one().await;
    let phone = scene.phone(0);
    phone.fault(
        Fault::from(Injection::Busy)
            .on(CommandKind::Tap)
            .times(1000),
    );
    let call = scene.tap(&phone, "tap");
    let declined = |phone: &PhoneReport| phone.declines.len() >= 2;
    soon("a second offer", phone.wait_until(declined)).await;
    let killed = scene.kill().await;
    assert_nothing(&call.told().await);
    phone.clear_faults();
    let (sent, _) = taps(&phone);

    let scene = killed.restart().await;
    let found = scene.settled("tap").await;
    let row = found.row.unwrap();
    // The journal may know an earlier offer only, and the last be on its way.
    let known = matches!(
        (row.fate(), row.effect()),
        (Fate::Unknown, Effect::Unknown) | (Fate::Failed, Effect::None)
    );
    assert!(known, "{row:?}");
    let again = scene.tap(&phone, "tap").told().await;
    assert!(!again.succeeded(), "{again:?}");
    let other = scene.tap(&phone, "other").told().await;
    assert!(other.succeeded(), "{other:?}");
    assert_eq!(
        taps(&phone),
        (sent + 1, 1),
        "one more, and that is the other"
    );
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_are_served_while_mutations_wait_for_the_fate_of_an_earlier_one() {
    let scene = one().await;
    let phone = scene.phone(0);
    slow(&phone, 6);
    let call = scene.tap(&phone, "tap");
    in_hand(&phone).await;
    let killed = scene.kill().await;
    let scene = killed.restart().await;
    soon("the look at what was left", async {
        while scene.device(&phone).await.state() != DeviceState::Reconciling {
            pause().await;
        }
    })
    .await;
    let status = scene
        .send(&phone, CommandKind::Status, "status")
        .told()
        .await;
    assert!(status.succeeded(), "{status:?}");
    assert_eq!(taps(&phone), (1, 0), "all that while the first goes on");
    assert_recovered(&scene, &phone, "tap", call.told().await).await;
    assert_eq!(scene.device(&phone).await.state(), DeviceState::Attached);
    scene.end().await;
}
