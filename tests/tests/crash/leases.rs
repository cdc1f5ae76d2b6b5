//! Case 23: holders that are killed, gateways that are, and both. Nobody gets a
//! phone twice, an outage takes nothing from a lease, and what its holder knows
//! of it is good after.

use std::process::Stdio;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate, LeaseChange, LeaseState};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, PhoneReport, Scenario};
use fleetgate_tests::binary;
use fleetgate_tests::facts::wait;
use fleetgate_tests::invariants::Told;
use fleetgate_tests::leasing::{self, Caller, Cast, any, by, seconds, span, these};
use fleetgate_tests::scene::{Scene, Wreck};
use fleetgate_tests::{Refusal, refused, soon};
use tokio::process::Child;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::steps::{in_hand, slow, taps};

/// Phones are asked once how they are, and are then ready.
pub(crate) const ASKING: &str = "[health]\nprobe_interval = '600s'\nfacts = false\n";

/// A gateway that lends so many phones, and those who know it.
pub(crate) async fn lending(scenario: Scenario) -> (Scene, Cast) {
    let scene = Scene::configured(scenario, ASKING).await;
    let cast = Cast::at(&scene.tokens());
    leasing::known(&cast.caller("anna", scene.channel())).await;
    ready(&scene).await;
    (scene, cast)
}

pub(crate) async fn ready(scene: &Scene) {
    leasing::all_ready(scene.channel(), scene.lab.phones().len()).await;
}

async fn restarted(killed: Wreck) -> Scene {
    let scene = killed.restart().await;
    ready(&scene).await;
    scene
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(told: Result<T, Status>, reason: &str) -> Refusal {
    let refusal = refused(told);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (Code::PermissionDenied, reason), "{refusal:?}");
    refusal
}

/// A holder in a process of its own, which keeps its lease for as long as it
/// lives.
struct Holder {
    child: Child,
    lease: pb::Lease,
}

impl Holder {
    /// Waits until it has the phone. `who` looks.
    async fn start(scene: &Scene, device: &str, ttl: Duration, who: &Caller) -> Self {
        let ttl = format!("{}ms", ttl.as_millis());
        let mut command = binary::command();
        command
            .env("FLEETGATE_SERVER", &scene.server.url)
            .args(["lease", "run", "--device", device, "--ttl", &ttl])
            // Ends with its standard input, and so with this test.
            .args(["--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("the binary starts");
        let lease = soon("the holder's lease", async {
            loop {
                if let Some(held) = who.device(device).await.lease {
                    return who.get(&held.lease_id).await;
                }
                fleetgate_tests::pause().await;
            }
        })
        .await;
        assert_eq!(lease.state(), LeaseState::Active);
        assert_eq!(lease.owner, "anonymous");
        Self { child, lease }
    }

    /// Kills it with SIGKILL, and gives what its lease was by then.
    async fn kill(mut self) -> pb::Lease {
        self.child.start_kill().expect("a process that runs");
        soon("its end", self.child.wait()).await.expect("a status");
        self.lease
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_is_killed_has_its_phone_for_what_was_left_of_its_ttl() {
    let (scene, cast) = lending(Scenario::fleet(1)).await;
    let udid = scene.phone(0).udid().to_string();
    let berta = cast.caller("berta", scene.channel());
    let ttl = Duration::from_secs(2);
    let holder = Holder::start(&scene, &udid, ttl, &berta).await;
    let waits = berta.queue(these(&[&udid])).await;
    let mut watch = berta.watch(&waits.id).await;
    let mut held = berta.watch(&holder.lease.id).await;
    // It keeps its lease: it has had it for longer than one ttl.
    let kept = |log: &leasing::Log| {
        let kept = log
            .news
            .iter()
            .filter(|told| told.change == LeaseChange::Updated);
        kept.count() >= 4
    };
    held.wait("four renewals", kept).await;
    let looked = Instant::now();
    let left = wait(berta.get(&holder.lease.id).await.remaining);
    let lease = holder.kill().await;
    let killed = Instant::now();
    let granted = watch.until(LeaseChange::Granted).await;
    assert!(granted.at >= looked + left, "not before its time");
    let late = granted.at - killed;
    assert!(late < ttl + Duration::from_secs(3), "{late:?}");
    let ended = held.end().await.news.pop().unwrap().lease;
    assert_eq!(ended.end_reason(), "TTL_EXPIRED");
    assert!(granted.lease.epoch > lease.epoch);
    berta.tap(&udid, "next", by(&granted.lease)).await.unwrap();
    assert_eq!(taps(&scene.phone(0)), (1, 1));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_takes_nothing_from_a_lease_and_gives_nothing_to_it_but_the_last_seconds() {
    let (scene, cast) = lending(Scenario::fleet(1)).await;
    let phone = scene.phone(0);
    let udid = phone.udid().to_string();
    let anna = cast.caller("anna", scene.channel());
    let berta = cast.caller("berta", scene.channel());
    let ttl = Duration::from_secs(9);
    let wish = pb::CreateLeaseRequest {
        ttl: span(ttl),
        ..any(1)
    };
    let lease = anna.take(wish).await;
    let patience = Duration::from_secs(20);
    let wish = pb::CreateLeaseRequest {
        queue_timeout: span(patience),
        ..any(1)
    };
    let waits = berta.queue(wish).await;
    anna.tap(&udid, "before", by(&lease)).await.unwrap();
    anna.watch(&lease.id)
        .await
        .until(LeaseChange::Expiring)
        .await;
    let looked = Instant::now();
    let left = [
        wait(anna.get(&lease.id).await.remaining),
        wait(berta.get(&waits.id).await.remaining),
    ];
    let killed = scene.kill().await;
    let down = Instant::now();
    // The outage itself: longer than what is left to the lease.
    assert!(left[0] <= ttl / 3, "{left:?}");
    tokio::time::sleep(Duration::from_secs(4)).await;
    let up = Instant::now();
    let scene = restarted(killed).await;

    let anna = cast.caller("anna", scene.channel());
    let berta = cast.caller("berta", scene.channel());
    let now = anna.get(&lease.id).await;
    let place = berta.get(&waits.id).await;
    let ran = (down - looked) + up.elapsed();
    assert_eq!((now.state(), now.epoch), (LeaseState::Active, lease.epoch));
    assert_eq!(place.queue_position(), 1);
    let restored = [wait(now.remaining), wait(place.remaining)];
    for (left, restored) in left.into_iter().zip(restored) {
        assert!(
            restored >= left.saturating_sub(ran),
            "{restored:?} of {left:?}"
        );
        // What had run is on record every five seconds.
        let most = left + Duration::from_secs(6);
        assert!(restored <= most, "{restored:?} of {left:?}");
    }
    // By what its holder knows of it the phone is driven, and by nothing else.
    anna.tap(&udid, "after", by(&lease)).await.unwrap();
    let early = Some(pb::LeaseRef {
        id: waits.id.clone(),
        epoch: lease.epoch + 1,
    });
    let early = refused(berta.tap(&udid, "early", early).await);
    assert_eq!(early.reason, "LEASE_NOT_ACTIVE", "{early:?}");
    assert_refused(berta.tap(&udid, "none", None).await, "LEASE_HELD_BY_OTHER");

    let looked = Instant::now();
    let left = wait(anna.get(&lease.id).await.remaining);
    let granted = berta
        .watch(&waits.id)
        .await
        .until(LeaseChange::Granted)
        .await;
    assert!(granted.at >= looked + left, "not before its time");
    assert!(granted.lease.epoch > lease.epoch);
    assert_refused(anna.tap(&udid, "late", by(&lease)).await, "LEASE_EXPIRED");
    berta.tap(&udid, "next", by(&granted.lease)).await.unwrap();
    assert_eq!(order(&phone.report()), ["before", "after", "next"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_and_gateway_killed_the_phone_is_the_next_ones_after_the_ttl() {
    let (scene, cast) = lending(Scenario::fleet(1)).await;
    let udid = scene.phone(0).udid().to_string();
    let berta = cast.caller("berta", scene.channel());
    let ttl = Duration::from_secs(2);
    let holder = Holder::start(&scene, &udid, ttl, &berta).await;
    let waits = berta.queue(these(&[&udid])).await;
    let lease = holder.kill().await;
    let killed = scene.kill().await;
    let scene = restarted(killed).await;
    let berta = cast.caller("berta", scene.channel());
    let granted = berta
        .watch(&waits.id)
        .await
        .until(LeaseChange::Granted)
        .await;
    let ended = berta.get(&lease.id).await;
    assert_eq!(ended.end_reason(), "TTL_EXPIRED");
    assert!(granted.lease.epoch > lease.epoch);
    berta.tap(&udid, "next", by(&granted.lease)).await.unwrap();
    // The dead holder comes back with what it knew.
    let ghost = scene.send(&scene.phone(0), CommandKind::Tap, "ghost");
    assert!(!ghost.told().await.succeeded());
    assert_eq!(order(&scene.phone(0).report()), ["next"]);
    scene.end().await;
}

/// The ids of the commands that had an effect, in order.
fn order(phone: &PhoneReport) -> Vec<&str> {
    let effects = phone.effects.iter();
    let ids = effects.filter_map(|effect| effect.command_id.as_ref());
    ids.map(fleetgate_runner::CommandId::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_a_holders_command_its_fate_and_its_lease_are_known_after() {
    let (scene, cast) = lending(Scenario::fleet(1)).await;
    let phone = scene.phone(0);
    let udid = phone.udid().to_string();
    let anna = cast.caller("anna", scene.channel());
    let lease = anna.take(any(1)).await;
    slow(&phone, 3);
    let call = anna.tapping(&udid, "tap", by(&lease));
    in_hand(&phone).await;
    let killed = scene.kill().await;
    let told = Told::from(call.told().await);
    assert!(matches!(told, Told::Nothing(_)), "{told:?}");
    let scene = killed.restart().await;
    let anna = cast.caller("anna", scene.channel());
    let again = Told::from(anna.tap(&udid, "tap", by(&lease)).await);
    assert!(again.succeeded(), "{again:?}");
    let story = scene.story(&phone, CommandKind::Tap, "tap", vec![told, again]);
    let row = story.await.on_record.row.unwrap();
    assert_eq!(
        (row.fate(), row.effect()),
        (Fate::Completed, Effect::Applied)
    );
    assert_eq!(
        (row.principal, row.lease),
        (Some(anna.principal()), by(&lease))
    );
    anna.tap(&udid, "then", by(&lease)).await.unwrap();
    assert_eq!(order(&phone.report()), ["tap", "then"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_a_lease_drains_the_next_holder_comes_after_what_was_in_flight() {
    let (scene, cast) = lending(Scenario::fleet(1)).await;
    let phone = scene.phone(0);
    let udid = phone.udid().to_string();
    let anna = cast.caller("anna", scene.channel());
    let berta = cast.caller("berta", scene.channel());
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    slow(&phone, 4);
    let call = anna.tapping(&udid, "tap", by(&lease));
    in_hand(&phone).await;
    let drains = anna.release(&lease.id).await.unwrap();
    assert_eq!(drains.state(), LeaseState::Draining);
    let killed = scene.kill().await;
    assert!(call.told().await.is_err());
    assert_eq!(taps(&phone), (1, 0), "it is still at it");
    let scene = killed.restart().await;
    let anna = cast.caller("anna", scene.channel());
    let berta = cast.caller("berta", scene.channel());
    let ended = anna.until(&lease.id, LeaseState::Released).await;
    assert_eq!(ended.end_reason(), "RELEASED");
    assert_refused(anna.tap(&udid, "late", by(&lease)).await, "LEASE_RELEASED");
    let granted = berta
        .watch(&waits.id)
        .await
        .until(LeaseChange::Granted)
        .await;
    assert!(granted.lease.epoch > lease.epoch);
    berta.tap(&udid, "next", by(&granted.lease)).await.unwrap();
    let report = phone.report();
    assert_eq!(order(&report), ["tap", "next"]);
    assert_eq!(report.max_in_flight, 1, "never two at once");
    let story = scene.story(&phone, CommandKind::Tap, "tap", Vec::new());
    let row = story.await.on_record.row.unwrap();
    assert_eq!((row.fate(), row.lease), (Fate::Completed, by(&lease)));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_a_command_under_a_lease_that_ends_its_effect_is_its_own() {
    let (scene, cast) = lending(Scenario::fleet(1)).await;
    let phone = scene.phone(0);
    let udid = phone.udid().to_string();
    let anna = cast.caller("anna", scene.channel());
    let berta = cast.caller("berta", scene.channel());
    let wish = pb::CreateLeaseRequest {
        ttl: seconds(2),
        ..any(1)
    };
    let lease = anna.take(wish).await;
    let waits = berta.queue(any(1)).await;
    // Executed, and nobody has heard of it.
    phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
    let call = anna.tapping(&udid, "tap", by(&lease));
    let done = |phone: &PhoneReport| phone.faults.is_empty() && phone.in_flight == 0;
    soon("the tap", phone.wait_until(done)).await;
    let killed = scene.kill().await;
    assert!(call.told().await.is_err());
    let scene = restarted(killed).await;
    let berta = cast.caller("berta", scene.channel());
    let granted = berta
        .watch(&waits.id)
        .await
        .until(LeaseChange::Granted)
        .await;
    berta.tap(&udid, "next", by(&granted.lease)).await.unwrap();
    assert_eq!(order(&phone.report()), ["tap", "next"]);
    for (id, lease) in [("tap", &lease), ("next", &granted.lease)] {
        let found = scene.settled(id).await.row.unwrap();
        assert_eq!((found.fate(), found.lease), (Fate::Completed, by(lease)));
    }
    scene.end().await;
}
