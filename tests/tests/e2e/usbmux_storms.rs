//! usbmuxd at its worst: restarts that give old numbers to other phones,
//! connections that stay silent, and a herd before a closed door.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fleetgate_device::Address;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Asked, Fault, Ids, Injection, Odd, Oddity, Scenario};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Refusal, Rig, pause, plain, refused, soon};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Code;

/// The herd: so many phones, and so many calls to each.
const PHONES: usize = 50;
const CALLS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_of_a_connect_leads_to_the_right_phone() {
    for reach in Reach::ALL {
        let rig = Rig::reaching(reach, Scenario::fleet(2).scaled(0.2), |_| {}).await;
        // From now on the first phone's number is the second phone's.
        rig.phone(0)
            .fault(Injection::UsbmuxdRestart { reuse_ids: true });
        for n in [0, 1] {
            let id = format!("c-{n}");
            let receipt = plain::send(&rig, &rig.udid(n), CommandKind::Tap, &id).await;
            clean(Some(receipt.unwrap()), &id);
            assert_eq!(effects(&rig.phone(n), &id).len(), 1, "{reach:?}");
            assert_eq!(rig.phone(n).effects().len(), 1, "{reach:?}");
        }
        rig.stop().await;
    }
}

async fn mux_host(rig: &Rig) -> pb::MuxHost {
    let request = pb::GetGatewayRequest {};
    let gateway = rig.fleet().get_gateway(request).await.unwrap().into_inner();
    gateway.mux_hosts.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_off_costs_nothing_but_time() {
    for reach in Reach::ALL {
        let rig = Rig::reaching(reach, Scenario::fleet(1).scaled(0.2), |_| {}).await;
        // In the header, in the list, and before the first byte.
        for (n, bytes) in [7, 40, 0].into_iter().enumerate() {
            let cut = Oddity::from(Odd::Cut { bytes });
            rig.lab.oddity(cut.on(Asked::Connect));
            let id = format!("connect-{n}");
            let receipt = plain::send(&rig, &rig.udid(0), CommandKind::Tap, &id).await;
            clean(Some(receipt.unwrap()), &id);
            assert_eq!(effects(&rig.phone(0), &id).len(), 1, "{reach:?}");
        }
        // The next daemon's first words, twice.
        let before = mux_host(&rig).await.generation;
        let cut = Oddity::from(Odd::Cut { bytes: 7 });
        rig.lab.oddity(cut.on(Asked::Listen).times(2));
        rig.lab.start_usbmuxd(Ids::Fresh);
        soon("a whole answer", async {
            loop {
                let host = mux_host(&rig).await;
                if host.connected && host.generation > before {
                    return;
                }
                pause().await;
            }
        })
        .await;
        let receipt = plain::send(&rig, &rig.udid(0), CommandKind::Tap, "after").await;
        clean(Some(receipt.unwrap()), "after");
        rig.stop().await;
    }
}

/// Taps until it is told to stop, each time as soon as the last is answered,
/// and gives what it was told.
async fn tap_on(
    rig: Arc<Rig>,
    n: usize,
    caller: usize,
    stop: CancellationToken,
) -> Vec<(String, Fate)> {
    let udid = rig.udid(n);
    let mut told = Vec::new();
    while !stop.is_cancelled() {
        let id = format!("{n}-{caller}-{}", told.len());
        let fate = match plain::send(&rig, &udid, CommandKind::Tap, &id).await {
            Ok(receipt) => receipt.fate(),
            Err(status) => {
                let refusal = Refusal::from(status);
                Fate::from_str_name(&format!("FATE_{}", refusal.meta("fate")))
                    .unwrap_or_else(|| panic!("{refusal:?}"))
            }
        };
        told.push((id, fate));
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_ever_lands_on_another_phone_however_often_usbmuxd_restarts() {
    let scenario = Scenario::fleet(2).scaled(0.05);
    let rig = Arc::new(Rig::reaching(Reach::Unix, scenario, |_| {}).await);
    let mut callers = JoinSet::new();
    let stop = CancellationToken::new();
    for caller in 0..4 {
        for n in [0, 1] {
            callers.spawn(tap_on(Arc::clone(&rig), n, caller, stop.clone()));
        }
    }
    // Each restart turns the numbers around: while usbmuxd is down, the phone
    // that was plugged in first is plugged in anew, and so comes last.
    for round in 0..6 {
        let busy = rig.lab.wait_until(|load| load.in_flight > 0);
        soon("a command in flight", busy).await;
        rig.lab.stop_usbmuxd();
        let first = rig.phone(round % 2);
        first.detach();
        first.attach();
        rig.lab.start_usbmuxd(Ids::Reused);
        rig.attached().await;
    }
    stop.cancel();
    let told = callers.join_all().await.concat();

    let mut landed = 0;
    for (id, fate) in told {
        let (own, other) = if id.starts_with('0') { (0, 1) } else { (1, 0) };
        assert_eq!(effects(&rig.phone(other), &id).len(), 0, "{id}");
        let times = effects(&rig.phone(own), &id).len();
        match fate {
            Fate::Completed | Fate::CompletedResultLost => assert_eq!(times, 1, "{id}"),
            Fate::NotSent => assert_eq!(times, 0, "{id}"),
            Fate::Unknown => assert!(times <= 1, "{id}"),
            Fate::Failed | Fate::Unspecified => panic!("{id} ended {fate:?}"),
        }
        let on_record = rig.concluded(&id).await.fate();
        if fate == Fate::Unknown && on_record != fate {
            // Found out since, and by what the phone did.
            let landed = matches!(on_record, Fate::Completed | Fate::CompletedResultLost);
            assert!(landed && times == 1, "{id} is on record as {on_record:?}");
        } else {
            assert_eq!(on_record, fate, "{id}");
        }
        landed += times;
    }
    assert!(landed > 0, "some taps came between the restarts");
    for n in [0, 1] {
        let stranger = format!("{}-", 1 - n);
        let effects = rig.phone(n).effects();
        let strange = effects.iter().filter(|effect| {
            let id = effect.command_id.as_ref();
            id.is_none_or(|id| id.as_str().starts_with(&stranger))
        });
        assert_eq!(strange.count(), 0);
    }
    Arc::into_inner(rig).unwrap().stop().await;
}

/// How many sockets lead to the lab's usbmuxd. The tests of one process share
/// its descriptors, so those of one lab are told by its address.
fn sockets(rig: &Rig) -> usize {
    match rig.config.usbmuxd.address.as_ref().unwrap() {
        // The far end of a connection carries the listener's path, and goes
        // when the near end does.
        Address::Unix(path) => lines("/proc/net/unix")
            .iter()
            .filter(|line| line.ends_with(&path.display().to_string()))
            .count(),
        Address::Tcp(address) => {
            let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
            let remote = format!(":{port:04X}");
            // Sockets without an inode belong to nobody any more.
            lines("/proc/net/tcp")
                .iter()
                .map(|line| line.split_whitespace().collect::<Vec<_>>())
                .filter(|socket| socket[2].ends_with(&remote) && socket[9] != "0")
                .count()
        }
    }
}

fn lines(table: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(table)).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_with_the_window_and_leaves_no_socket_behind() {
    for reach in [Reach::Unix, Reach::Tcp] {
        let rig = Rig::reaching(reach, Scenario::fleet(1).scaled(0.02), |_| {}).await;
        let (phone, udid) = (rig.phone(0), rig.udid(0));
        let receipt = plain::send(&rig, &udid, CommandKind::Tap, "warm").await;
        receipt.unwrap();
        let at_rest = sockets(&rig);
        assert!(at_rest > 0, "the listening connection is there");

        // Accepted, then nothing: one window, then the journal, which has
        // never heard of it. That proves nothing.
        phone.fault(Injection::HalfOpen);
        let begin = Instant::now();
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "half-open").await);
        let window = rig.scaled(Duration::from_secs(90));
        assert!(begin.elapsed() >= window, "{:?}", begin.elapsed());
        let unknown = Outcome::unknown();
        unknown
            .assert(&rig, &udid, CommandKind::Tap, "half-open", &refusal)
            .await;
        assert_eq!(effects(&phone, "half-open").len(), 0);

        // The beginning of a reply, then nothing: the journal has the rest.
        phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
        let receipt = plain::send(&rig, &udid, CommandKind::Tap, "partial").await;
        let receipt = receipt.unwrap();
        assert_eq!(
            (receipt.fate(), receipt.effect(), receipt.recovered),
            (Fate::Completed, Effect::Applied, true)
        );
        assert_eq!(effects(&phone, "partial").len(), 1);

        // A read is just read again.
        phone.fault(Injection::HalfOpen);
        let receipt = plain::send(&rig, &udid, CommandKind::Screenshot, "read").await;
        assert_eq!(receipt.unwrap().attempts, 2);

        soon("as many sockets as before", async {
            while sockets(&rig) > at_rest {
                pause().await;
            }
        })
        .await;
        rig.stop().await;
    }
}

/// Sends [`CALLS`] taps to each phone; they come back with their ids.
fn herd(rig: &Arc<Rig>) -> JoinSet<(usize, String, Result<pb::CommandReceipt, tonic::Status>)> {
    let mut calls = JoinSet::new();
    for n in 0..PHONES {
        for call in 0..CALLS {
            let rig = Arc::clone(rig);
            calls.spawn(async move {
                let id = format!("{n}-{call}");
                let receipt = plain::send(&rig, &rig.udid(n), CommandKind::Tap, &id).await;
                (n, id, receipt)
            });
        }
    }
    calls
}

/// Waits until all of the herd stands at the door.
async fn gathered(rig: &Rig) {
    soon("the herd", async {
        loop {
            let request = pb::ListDevicesRequest {
                page_size: 1000,
                ..pb::ListDevicesRequest::default()
            };
            let listed = rig.fleet().list_devices(request).await.unwrap();
            let here = |device: &pb::Device| {
                let running = usize::from(device.command_in_flight.is_some());
                running + device.queued_commands as usize
            };
            let here: usize = listed.get_ref().devices.iter().map(here).sum();
            if here == PHONES * CALLS {
                return;
            }
            pause().await;
        }
    })
    .await;
}

async fn all_land(
    rig: Arc<Rig>,
    mut calls: JoinSet<(usize, String, Result<pb::CommandReceipt, tonic::Status>)>,
) {
    let mut answered = BTreeSet::new();
    while let Some(call) = calls.join_next().await {
        let (n, id, receipt) = call.unwrap();
        clean(Some(receipt.unwrap()), &id);
        assert_eq!(effects(&rig.phone(n), &id).len(), 1, "{id}");
        answered.insert(id);
    }
    assert_eq!(answered.len(), PHONES * CALLS);
    for phone in rig.lab.phones() {
        assert_eq!(phone.effects().len(), CALLS);
        assert_eq!(phone.max_in_flight(), 1);
    }
    Arc::into_inner(rig).unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_herd_before_a_usbmuxd_that_accepts_nothing_gets_in_once_it_does() {
    let phones = PHONES.try_into().unwrap();
    for reach in [Reach::Memory, Reach::Unix] {
        // A window of 9 s: whatever the machine does, the wait is shorter.
        let scenario = Scenario::fleet(phones).scaled(0.1);
        let rig = Arc::new(Rig::reaching(reach, scenario, |_| {}).await);
        rig.lab.stall_usbmuxd(true);
        let calls = herd(&rig);
        gathered(&rig).await;
        assert_eq!(rig.lab.load().in_flight, 0, "the door is closed");
        rig.lab.stall_usbmuxd(false);
        all_land(rig, calls).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_herd_that_comes_while_usbmuxd_restarts_gets_in_once_it_is_back() {
    let phones = PHONES.try_into().unwrap();
    // The gateway waits 5 s for a usbmuxd that was lost just now; this is on
    // the clock of the protocol, which is slowed down for slow machines.
    let scenario = Scenario::fleet(phones).scaled(2.0);
    let rig = Arc::new(Rig::reaching(Reach::Unix, scenario, |_| {}).await);
    rig.lab.stop_usbmuxd();
    let calls = herd(&rig);
    gathered(&rig).await;
    rig.lab.start_usbmuxd(Ids::Fresh);
    all_land(rig, calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_herd_before_a_usbmuxd_that_stays_away_is_told_that_nothing_was_sent() {
    let phones = PHONES.try_into().unwrap();
    let rig = Arc::new(Rig::start(Scenario::fleet(phones).scaled(0.02)).await);
    rig.lab.stop_usbmuxd();
    let mut calls = herd(&rig);
    while let Some(call) = calls.join_next().await {
        let (n, id, receipt) = call.unwrap();
        let refusal = refused(receipt);
        let outcome = Outcome::not_sent(Code::Unavailable, "MUX_UNAVAILABLE");
        outcome
            .assert(&rig, &rig.udid(n), CommandKind::Tap, &id, &refusal)
            .await;
    }
    for phone in rig.lab.phones() {
        assert_eq!(phone.effects(), []);
    }
    Arc::into_inner(rig).unwrap().stop().await;
}
