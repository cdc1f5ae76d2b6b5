//! Case 1: a phone that usbmuxd lists twice, by cable and over Wi-Fi, in either
//! order.

use fleetgate_proto::v1::{DeviceState, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Transport;
use fleetgate_tests::lane::device;
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, plain, plain_lab, refused};
use tonic::Code;

use super::{PLUGGED, READY, all_ready, assert_history, lands, listed, ready, seldom_asked};

/// Sends commands for a phone that is not there by cable.
async fn nothing_reaches(rig: &Rig, round: &str) {
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let arrived = phone.arrivals().len();
    for kind in [CommandKind::Tap, CommandKind::Snapshot] {
        let id = format!("{round}-{kind}");
        let refusal = refused(plain::send(rig, &udid, kind, &id).await);
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::Unavailable, "DEVICE_UNATTACHED")
        );
        assert_eq!(rig.concluded(&id).await.fate(), Fate::NotSent);
    }
    assert_eq!(phone.arrivals().len(), arrived, "nothing came");
}

/// Waits until whatever usbmuxd has said so far has been heard: it says one
/// thing after the other.
async fn heard(rig: &Rig, mirror: &mut Mirror) {
    rig.phone(1).detach();
    let other = rig.udid(1);
    mirror.until_state(&other, DeviceState::Detached).await;
    rig.phone(1).attach();
    mirror.until_state(&other, DeviceState::Ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_and_its_twin_are_one_phone_by_cable_whichever_is_told_first() {
    use Transport::{Network, Usb};
    for order in [[Usb, Network], [Network, Usb]] {
        let mut lab = plain_lab(2, 0.02);
        lab.phones[0].connection = order.to_vec();
        let rig = seldom_asked(Reach::Unix, lab).await;
        let (phone, udid) = (rig.phone(0), rig.udid(0));
        let mut mirror = ready(&rig).await;
        assert_eq!(listed(&rig).await.len(), 2, "{order:?}");
        lands(&rig, &phone, "by-cable").await;

        phone.detach();
        let gone = mirror.until_state(&udid, DeviceState::Detached).await;
        assert_eq!(gone.state_reason, "UNPLUGGED");
        assert_eq!(phone.report().plugged, [Network]);
        nothing_reaches(&rig, "twin-there").await;
        phone.detach_from(Network);
        heard(&rig, &mut mirror).await;
        nothing_reaches(&rig, "twin-gone").await;
        phone.attach_over(Network);
        heard(&rig, &mut mirror).await;
        nothing_reaches(&rig, "twin-back").await;
        let known = listed(&rig).await;
        assert_eq!(known.len(), 2, "{order:?}");
        assert_eq!(device(&rig, &udid).await.state(), DeviceState::Detached);

        phone.attach();
        all_ready(&rig, &mut mirror).await;
        lands(&rig, &phone, "again-by-cable").await;
        phone.detach_from(Network);
        lands(&rig, &phone, "without-twin").await;
        phone.attach_over(Network);
        heard(&rig, &mut mirror).await;
        lands(&rig, &phone, "with-twin").await;

        // Which number was used: the cable's, each time.
        let connects = phone.report().connects;
        assert_eq!((connects.network, connects.refused), (0, 0), "{order:?}");
        // Four taps, and one question each time that it was plugged in.
        assert_eq!(connects.usb, 6, "{order:?}");
        let cable = "READY UNPLUGGED DETACHED";
        assert_history(&rig, &udid, &[PLUGGED, READY, cable, PLUGGED, READY]).await;
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_there_over_wifi_alone_is_known_and_waits_for_its_cable() {
    let mut lab = plain_lab(2, 0.02);
    lab.phones[0].connection = vec![Transport::Network];
    let rig = seldom_asked(Reach::Unix, lab).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    mirror.until_state(&udid, DeviceState::Detached).await;
    nothing_reaches(&rig, "wifi").await;
    phone.attach();
    all_ready(&rig, &mut mirror).await;
    lands(&rig, &phone, "by-cable").await;
    assert_eq!(phone.report().connects.network, 0);
    assert_history(&rig, &udid, &[PLUGGED, READY]).await;
    rig.stop().await;
}
