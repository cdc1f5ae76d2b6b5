//! Case 9: two hundred calls before a usbmuxd that accepts nothing, on phones
//! whose runners the gateway has launched.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, launching, pause, plain, plain_lab, soon};
use tokio::task::JoinSet;

use super::{LAUNCHED, LAUNCHING, PLUGGED, all_ready, assert_history, listed};

const PHONES: usize = 8;
const CALLS: usize = 25;

/// Waits until all of the herd stands at the door.
async fn gathered(rig: &Rig) {
    let here = |device: &pb::Device| {
        usize::from(device.command_in_flight.is_some()) + device.queued_commands as usize
    };
    soon("the herd", async {
        while listed(rig).await.iter().map(here).sum::<usize>() < PHONES * CALLS {
            pause().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_herd_before_a_closed_door_costs_no_call_and_no_runner() {
    // Three seconds take 300 ms, and a window of 90 s nine: whatever the machine
    // does, the wait is shorter.
    let lab = plain_lab(PHONES.try_into().unwrap(), 0.1);
    let rig = Arc::new(launching::rig(lab, |_| {}).await);
    let mut mirror = Mirror::follow(rig.channel()).await;
    all_ready(&rig, &mut mirror).await;
    rig.lab.stall_usbmuxd(true);
    let mut calls = JoinSet::new();
    for n in 0..PHONES {
        for call in 0..CALLS {
            let rig = Arc::clone(&rig);
            calls.spawn(async move {
                let id = format!("{n}-{call}");
                let receipt = plain::send(&rig, &rig.udid(n), CommandKind::Tap, &id).await;
                clean(Some(receipt.unwrap()), &id);
            });
        }
    }
    gathered(&rig).await;
    assert_eq!(rig.lab.load().in_flight, 0, "the door is closed");
    tokio::time::sleep(rig.scaled(Duration::from_secs(3))).await;
    rig.lab.stall_usbmuxd(false);
    while let Some(call) = soon("a call", calls.join_next()).await {
        call.unwrap();
    }

    for n in 0..PHONES {
        let phone = rig.phone(n);
        assert_eq!(phone.effects().len(), CALLS);
        for call in 0..CALLS {
            assert_eq!(effects(&phone, &format!("{n}-{call}")).len(), 1);
        }
        let report = phone.report();
        assert_eq!((report.max_in_flight, report.launches), (1, 1));
        assert_history(&rig, &rig.udid(n), &[PLUGGED, LAUNCHING, LAUNCHED]).await;
    }
    drop(mirror);
    Arc::into_inner(rig).unwrap().stop().await;
}
