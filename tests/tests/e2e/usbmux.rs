//! What usbmuxd says and how it comes and goes, from the caller's side: twins,
//! spellings, refusals, replugs and restarts.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandKind as Kind, DeviceState, Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Ids, Injection, PhoneSpec, Scenario, Transport};
use fleetgate_tests::facts::{clean, effects, rows};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, lane, pause, plain, refused, soon};
use tonic::Code;

const UNATTACHED: Outcome = Outcome::not_sent(Code::Unavailable, "DEVICE_UNATTACHED");

async fn devices(rig: &Rig) -> Vec<pb::Device> {
    let request = pb::ListDevicesRequest::default();
    let listed = rig.fleet().list_devices(request).await.unwrap();
    listed.into_inner().devices
}

async fn until_state(rig: &Rig, udid: &str, state: DeviceState) {
    until(rig, udid, |device| device.state() == state).await;
}

async fn until(rig: &Rig, udid: &str, holds: impl Fn(&pb::Device) -> bool) -> pb::Device {
    soon("the state of a phone", async {
        loop {
            let device = lane::device(rig, udid).await;
            if holds(&device) {
                return device;
            }
            pause().await;
        }
    })
    .await
}

async fn mux_host(rig: &Rig) -> pb::MuxHost {
    let request = pb::GetGatewayRequest {};
    let gateway = rig.fleet().get_gateway(request).await.unwrap().into_inner();
    gateway.mux_hosts.into_iter().next().unwrap()
}

/// Sends a tap that must land exactly once, at the first attempt.
async fn lands(rig: &Rig, n: usize, command_id: &str) {
    let receipt = plain::send(rig, &rig.udid(n), CommandKind::Tap, command_id).await;
    clean(Some(receipt.unwrap()), command_id);
    assert_eq!(effects(&rig.phone(n), command_id).len(), 1, "{command_id}");
}

/// Sends a command that must not reach the phone.
async fn fails(rig: &Rig, kind: CommandKind, command_id: &str, outcome: Outcome) {
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let arrived = phone.arrivals().len();
    let refusal = refused(plain::send(rig, &udid, kind, command_id).await);
    outcome.assert(rig, &udid, kind, command_id, &refusal).await;
    assert_eq!(effects(&phone, command_id), [] as [String; 0]);
    assert_eq!(
        phone.arrivals().len(),
        arrived,
        "nothing reached the runner"
    );
}

fn one_phone(spec: impl FnOnce(&mut PhoneSpec)) -> Scenario {
    let mut scenario = Scenario::fleet(1).scaled(0.02);
    spec(&mut scenario.phones[0]);
    scenario
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_are_one_phone_by_cable_and_none_without_it() {
    use Transport::{Network, Usb};
    for order in [[Usb, Network], [Network, Usb]] {
        let rig = Rig::start(one_phone(|phone| phone.connection = order.to_vec())).await;
        let (phone, udid) = (rig.phone(0), rig.udid(0));
        assert_eq!(devices(&rig).await.len(), 1, "{order:?}");
        lands(&rig, 0, "by-cable").await;

        phone.detach();
        until_state(&rig, &udid, DeviceState::Detached).await;
        assert_eq!(phone.report().plugged, [Network]);
        fails(&rig, CommandKind::Tap, "no-cable", UNATTACHED).await;
        // A read is tried three times, and no more leads to the twin.
        let read = Outcome {
            attempts: 3,
            ..UNATTACHED
        };
        fails(&rig, CommandKind::Snapshot, "no-cable-read", read).await;
        assert_eq!(devices(&rig).await.len(), 1, "{order:?}");

        phone.attach();
        until_state(&rig, &udid, DeviceState::Attached).await;
        lands(&rig, 0, "again-by-cable").await;
        // A twin that comes and goes changes nothing.
        phone.detach_from(Network);
        phone.attach_over(Network);
        lands(&rig, 0, "twin-back").await;
        assert_eq!(phone.report().connects.network, 0, "{order:?}");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_spelling_of_a_udid_is_one_phone() {
    const DASHED: &str = "00008020-00060D691AD8003A";
    const LONG: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";
    let dashed_spellings = [
        DASHED,
        "00008020-00060d691ad8003a",
        "0000802000060D691AD8003A",
        "0000802000060d691ad8003a",
    ];
    let long_upper = LONG.to_uppercase();
    let long_spellings = [LONG, long_upper.as_str()];
    for (canonical, spellings) in [(DASHED, &dashed_spellings[..]), (LONG, &long_spellings)] {
        for serial in spellings {
            let rig = Rig::start(one_phone(|phone| {
                phone.udid = canonical.parse().unwrap();
                (*serial).clone_into(&mut phone.serial);
            }))
            .await;
            let listed = devices(&rig).await;
            assert_eq!(listed.len(), 1, "{serial}");
            assert_eq!(listed[0].udid, canonical, "{serial}");

            for (n, asked) in spellings.iter().enumerate() {
                let id = format!("c-{n}");
                let receipt = plain::send(&rig, asked, CommandKind::Tap, &id).await;
                clean(Some(receipt.unwrap()), &id);
                assert_eq!(effects(&rig.phone(0), &id).len(), 1);
                assert_eq!(rig.find(&id).await.unwrap().device, canonical);
            }
            for asked in spellings {
                let request = pb::ListCommandsRequest {
                    device: (*asked).to_owned(),
                    ..pb::ListCommandsRequest::default()
                };
                let found = rig.ledger().list_commands(request).await.unwrap();
                assert_eq!(found.get_ref().commands.len(), spellings.len(), "{asked}");
            }
            assert_eq!(devices(&rig).await.len(), 1, "{serial}");
            rig.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connect_says_why_and_proves_that_nothing_was_sent() {
    const DOWN: Outcome = Outcome::not_sent(Code::Unavailable, "RUNNER_NOT_LISTENING");
    const OURS: Outcome = Outcome {
        retry: false,
        hint: false,
        ..Outcome::not_sent(Code::Internal, "MUX_REFUSED")
    };
    const ODD: Outcome = Outcome::not_sent(Code::Unavailable, "MUX_UNAVAILABLE");
    let rig = Rig::plain(1).await;
    for (number, outcome) in [
        (3, DOWN),
        (4, DOWN),
        (1, OURS),
        (6, OURS),
        (5, ODD),
        (99, ODD),
    ] {
        rig.phone(0).fault(Injection::ConnectResult { number });
        let id = format!("result-{number}");
        fails(&rig, CommandKind::Tap, &id, outcome).await;
        if outcome != DOWN {
            let message = rig.find(&id).await.unwrap().message.unwrap();
            assert!(message.contains(&format!(" {number} ")), "{message}");
        }
        lands(&rig, 0, &format!("after-{number}")).await;
    }
    // A read that no connection was made for is tried again.
    rig.phone(0)
        .fault(Fault::from(Injection::ConnectResult { number: 3 }).times(2));
    let read = plain::send(&rig, &rig.udid(0), CommandKind::Viewport, "read").await;
    assert_eq!(read.unwrap().attempts, 3);
    // A runner that is down is the same story, without a fault.
    rig.phone(0).kill_runner();
    fails(&rig, CommandKind::Tap, "down", DOWN).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_usbmuxd_denies_is_looked_up_again_once() {
    let rig = Rig::plain(1).await;
    // Replugged while it is asked for: the second number is the right one.
    rig.phone(0).fault(Injection::Replug);
    lands(&rig, 0, "stale").await;
    assert_eq!(rig.phone(0).report().connects.usb, 2);

    // Denied without having gone: that is believed until usbmuxd has been
    // listened to anew.
    rig.phone(0).fault(Injection::ConnectResult { number: 2 });
    fails(&rig, CommandKind::Tap, "denied", UNATTACHED).await;
    assert_eq!(rig.phone(0).report().connects.usb, 3);
    rig.attached().await;
    lands(&rig, 0, "back").await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replug_between_two_commands_is_not_noticed() {
    for reach in Reach::ALL {
        let rig = Rig::reaching(reach, Scenario::fleet(2).scaled(0.02), |_| {}).await;
        for round in 0..20 {
            // Without a pause: the gateway may not have heard of it yet.
            rig.phone(0).replug();
            lands(&rig, 0, &format!("replug-{round}")).await;
        }
        assert_eq!(rig.phone(1).effects(), []);
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replug_during_a_command_loses_the_reply_and_not_the_fate() {
    for reach in Reach::ALL {
        let rig = Rig::reaching(reach, Scenario::fleet(1).scaled(0.05), |_| {}).await;
        let (phone, udid) = (rig.phone(0), rig.udid(0));
        let by = Duration::from_secs(8);
        phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
        let (receipt, ()) =
            tokio::join!(plain::send(&rig, &udid, CommandKind::Tap, "cut"), async {
                phone.wait_until(|phone| phone.in_flight == 1).await;
                phone.replug();
            });
        let receipt = receipt.unwrap();
        assert!(receipt.recovered, "{receipt:?}");
        assert_eq!(
            (receipt.fate(), receipt.effect(), receipt.attempts),
            (Fate::Completed, Effect::Applied, 1)
        );
        assert_eq!(effects(&phone, "cut").len(), 1);
        assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 1, "sent once");
        let row = rig.find("cut").await.unwrap();
        assert!(row.recovered && row.fate() == Fate::Completed, "{row:?}");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unplugged_phone_takes_the_fate_of_its_command_along() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let by = Duration::from_secs(20);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let (refusal, ()) = tokio::join!(plain::send(&rig, &udid, CommandKind::Tap, "gone"), async {
        phone.wait_until(|phone| phone.in_flight == 1).await;
        phone.detach();
    });
    let refusal = refused(refusal);
    let unknown = Outcome::unknown();
    unknown
        .assert(&rig, &udid, CommandKind::Tap, "gone", &refusal)
        .await;
    // It did happen, on a phone that nobody could reach, and it stays once.
    phone.wait_until(|phone| phone.effects_total == 1).await;
    phone.attach();
    until_state(&rig, &udid, DeviceState::Attached).await;
    lands(&rig, 0, "after").await;
    assert_eq!(effects(&phone, "gone").len(), 1);
    let request = pb::GetRunnerCommandStatusRequest {
        device: udid,
        command_id: "gone".to_owned(),
    };
    let entry = rig.automation().get_runner_command_status(request).await;
    assert_eq!(entry.unwrap().get_ref().kind(), Kind::Tap);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_usbmuxd_that_is_gone_is_said_to_be_and_found_when_it_is_back() {
    const GONE: Outcome = Outcome::not_sent(Code::Unavailable, "MUX_UNAVAILABLE");
    for reach in Reach::ALL {
        let rig = Rig::reaching(reach, Scenario::fleet(2).scaled(0.02), |_| {}).await;
        lands(&rig, 0, "before").await;
        let before = mux_host(&rig).await;
        assert!(
            before.connected && before.last_error.is_none(),
            "{before:?}"
        );

        rig.lab.stop_usbmuxd();
        // Where they are is not known any more; what is known stays.
        for phone in [0, 1] {
            let stale = until(&rig, &rig.udid(phone), |device| device.stale).await;
            assert_eq!(stale.state(), DeviceState::Attached);
        }
        let gone = mux_host(&rig).await;
        assert!(!gone.connected && gone.last_error.is_some(), "{gone:?}");
        fails(&rig, CommandKind::Tap, "gone", GONE).await;

        rig.lab.start_usbmuxd(Ids::Fresh);
        rig.attached().await;
        lands(&rig, 0, "back-0").await;
        lands(&rig, 1, "back-1").await;
        let back = mux_host(&rig).await;
        assert!(
            back.connected && back.generation > before.generation,
            "{back:?}"
        );
        let ids: Vec<_> = rows(&rig)
            .await
            .into_iter()
            .map(|row| row.command_id)
            .collect();
        assert_eq!(ids, ["back-1", "back-0", "gone", "before"]);
        rig.stop().await;
    }
}
