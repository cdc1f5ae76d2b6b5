//! Case 7: every number that usbmuxd refuses a connection with, and none.

use fleetgate_proto::v1::{DeviceState, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Asked, Fault, Injection, Odd, Oddity, PhoneReport};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, launching, plain, plain_lab, refused};
use tonic::Code;

use super::{
    LAUNCHED, LAUNCHING, PLUGGED, READY, all_ready, assert_history, lands, ready, seldom_asked,
    until_launches,
};

const SCALE: f64 = 0.2;

/// What a connection that is refused `times` times does to a tap that is the
/// first to try, and what its caller is told.
async fn refuses(rig: &Rig, number: u32, times: u32, code: Code, reason: &str) {
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let arrived = phone.report().arrivals_of(CommandKind::Tap);
    let refusal = Fault::from(Injection::ConnectResult { number });
    phone.fault(refusal.times(times));
    let id = format!("refused-{number}-{times}");
    let told = refused(plain::send(rig, &udid, CommandKind::Tap, &id).await);
    assert_eq!((told.code, &*told.reason), (code, reason), "{number}");
    assert_eq!(told.meta("fate"), "NOT_SENT");
    // It is safe to try again unless it is our own fault.
    assert_eq!(told.retry_delay.is_some(), code != Code::Internal);
    let row = rig.concluded(&id).await;
    assert_eq!(row.fate(), Fate::NotSent);
    if !matches!(number, 2..=4) {
        let message = row.message.unwrap();
        assert!(message.contains(&format!(" {number} ")), "{message}");
    }
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), arrived);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_held_against_a_runner_only_if_it_says_that_nobody_listens() {
    let rig = seldom_asked(Reach::Memory, plain_lab(2, SCALE)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = ready(&rig).await;
    for (number, code, reason) in [
        (1, Code::Internal, "MUX_REFUSED"),
        (6, Code::Internal, "MUX_REFUSED"),
        (5, Code::Unavailable, "MUX_UNAVAILABLE"),
        (99, Code::Unavailable, "MUX_UNAVAILABLE"),
    ] {
        refuses(&rig, number, 1, code, reason).await;
        lands(&rig, &phone, &format!("after-{number}")).await;
    }
    // A number that is not there at all.
    rig.lab
        .oddity(Oddity::from(Odd::NoNumber).on(Asked::Connect));
    let told = refused(plain::send(&rig, &udid, CommandKind::Tap, "none").await);
    assert_eq!(told.reason, "MUX_UNAVAILABLE");
    lands(&rig, &phone, "after-none").await;
    assert_history(&rig, &udid, &[PLUGGED, READY]).await;

    // Nobody listens: the runner is asked, and says that it does.
    for number in [3, 4] {
        let asked = phone.report().arrivals_of(CommandKind::Status);
        refuses(&rig, number, 1, Code::Unavailable, "RUNNER_NOT_LISTENING").await;
        let is_asked = |phone: &PhoneReport| phone.arrivals_of(CommandKind::Status) > asked;
        phone.wait_until(is_asked).await;
        lands(&rig, &phone, &format!("after-{number}")).await;
    }
    assert_history(&rig, &udid, &[PLUGGED, READY]).await;

    // Or the question is refused as well: then it is not ready, until it is.
    let mut expected = vec![PLUGGED, READY];
    for number in [3, 4] {
        refuses(&rig, number, 2, Code::Unavailable, "RUNNER_NOT_LISTENING").await;
        expected.extend(["READY RUNNER_UNREACHABLE ATTACHED", READY]);
        let transitions = expected.len() - 2;
        let back = |seen: &Seen| seen.reasons(&udid).len() >= transitions;
        mirror.until("the runner", back).await;
        all_ready(&rig, &mut mirror).await;
        lands(&rig, &phone, &format!("again-{number}")).await;
        assert_history(&rig, &udid, &expected).await;
    }
    assert_history(&rig, &rig.udid(1), &[PLUGGED, READY]).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_number_is_looked_up_again_once_and_then_believed() {
    let rig = seldom_asked(Reach::Memory, plain_lab(2, SCALE)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = ready(&rig).await;
    // It has another number by the time at which it is asked for.
    phone.fault(Injection::Replug);
    lands(&rig, &phone, "renumbered").await;
    let replugged = "READY REPLUGGED READY";
    assert_history(&rig, &udid, &[PLUGGED, READY, replugged]).await;

    refuses(&rig, 2, 1, Code::Unavailable, "DEVICE_UNATTACHED").await;
    let stale = |seen: &Seen| seen.devices[&udid].stale;
    let seen = mirror.until("doubt", stale).await;
    assert_eq!(seen.state(&udid), Some(DeviceState::Ready));
    // usbmuxd is listened to anew, and tells of the phone again.
    all_ready(&rig, &mut mirror).await;
    lands(&rig, &phone, "listed-again").await;
    let (lost, back) = ("READY HOST_LOST READY", "READY HOST_BACK READY");
    assert_history(&rig, &udid, &[PLUGGED, READY, replugged, lost, back]).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launched_runner_on_whose_port_nobody_listens_is_launched_again_and_no_other() {
    let rig = launching::rig(plain_lab(1, SCALE), |_| {}).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    until_launches(&mut mirror, &udid, 1).await;
    for (number, code, reason) in [
        (1, Code::Internal, "MUX_REFUSED"),
        (6, Code::Internal, "MUX_REFUSED"),
        (99, Code::Unavailable, "MUX_UNAVAILABLE"),
    ] {
        refuses(&rig, number, 1, code, reason).await;
        lands(&rig, &phone, &format!("after-{number}")).await;
    }
    assert_history(&rig, &udid, &[PLUGGED, LAUNCHING, LAUNCHED]).await;

    refuses(&rig, 3, 2, Code::Unavailable, "RUNNER_NOT_LISTENING").await;
    let again = until_launches(&mut mirror, &udid, 2).await;
    assert_eq!(again.runner.unwrap().failures, 1);
    lands(&rig, &phone, "by-the-second").await;
    assert_history(
        &rig,
        &udid,
        &[
            PLUGGED,
            LAUNCHING,
            LAUNCHED,
            "READY RUNNER_UNREACHABLE RECYCLING",
            "RECYCLING LAUNCHING LAUNCHING",
            LAUNCHED,
        ],
    )
    .await;
    rig.stop().await;
}
