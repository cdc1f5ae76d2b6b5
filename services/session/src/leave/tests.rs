//! Leave that is given, withdrawn, or left behind by its giver.

use std::time::Duration;

use tokio_test::task::spawn;

use super::*;
use crate::testing::withdrawn;

#[tokio::test(start_paused = true)]
async fn what_nobody_withdraws_is_waited_for_without_end_and_without_work() {
    let (gone, left_behind) = watch::channel(None);
    drop(gone);
    let (_giver, given) = watch::channel(None);
    let leaves = [
        Leave::unconditional(),
        Leave::until(left_behind),
        Leave::until(given),
    ];
    assert!(leaves.iter().all(|leave| leave.withdrawn().is_none()));
    let mut waiting = spawn(any_withdrawn(leaves.iter()));
    assert!(waiting.poll().is_pending());
    // Once all have been looked at, nothing more is to be done.
    assert!(waiting.poll().is_pending());
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!waiting.is_woken(), "it spins");
    assert!(spawn(any_withdrawn([].iter())).poll().is_pending());
}

#[tokio::test(start_paused = true)]
async fn each_of_many_leaves_is_waited_for_and_stays_withdrawn_when_its_giver_is_gone() {
    let channels: Vec<_> = (0..3).map(|_| watch::channel(None)).collect();
    let leaves: Vec<_> = channels
        .iter()
        .flat_map(|(_, given)| [Leave::until(given.clone()), Leave::unconditional()])
        .collect();
    for (at, (giver, _)) in channels.into_iter().enumerate().rev() {
        let left = &leaves[..2 * (at + 1)];
        let mut waiting = spawn(any_withdrawn(left.iter()));
        assert!(waiting.poll().is_pending());
        giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
        drop(giver);
        assert!(waiting.is_woken() && waiting.poll().is_ready());
        let why = leaves[2 * at].withdrawn();
        assert_eq!(why, Some(withdrawn("LEASE_EXPIRED")));
        assert!(spawn(any_withdrawn(leaves.iter())).poll().is_ready());
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_withdrawal_lets_go_of_the_leave_when_it_stops_waiting() {
    let (giver, receiver) = watch::channel(None);
    let leave = Leave::until(receiver);
    let mut waiting = spawn(any_withdrawn(std::iter::once(&leave)));
    assert!(waiting.poll().is_pending());
    drop(waiting);
    assert_eq!(giver.receiver_count(), 1);
    drop(leave);
    giver.closed().await;
}
