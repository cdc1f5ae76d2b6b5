//! What a watcher of one lease is told, and in which order.

use fleetgate_lease::{EndReason, What};
use fleetgate_proto::v1::LeaseChange;
use futures_util::StreamExt;
use tokio::time::advance;

use super::*;
use crate::leases::board::Board;
use crate::leases::samples::Sample;

fn config() -> WatchConfig {
    WatchConfig {
        clock: LeaseClock::resume(Duration::from_secs(1)),
        heartbeat: Duration::from_secs(15),
        deadline: Deadline::default(),
        stop: CancellationToken::new(),
    }
}

type Told = futures_util::stream::BoxStream<'static, Result<pb::WatchLeaseResponse, Status>>;

fn follow(board: &Board, lease: &Lease, config: WatchConfig) -> Told {
    let follower = Follower(board.follow(lease.id()).unwrap());
    watch(Followed::Open(follower), config, |_| true).boxed()
}

async fn next(told: &mut Told) -> (LeaseChange, pb::Lease) {
    let message = told.next().await.unwrap().unwrap();
    (message.change(), message.lease.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_told_as_it_is_and_then_every_change_to_its_end() {
    let (board, queued) = (Board::default(), Sample::queued("token:ci", &[1], 6));
    board.publish(&queued.lease(), What::Created);
    let mut told = follow(&board, &queued.lease(), config());
    let (change, lease) = next(&mut told).await;
    assert_eq!(change, LeaseChange::Snapshot);
    assert_eq!(
        (lease.state(), lease.queue_position),
        (pb::LeaseState::Queued, None)
    );

    board.line_up([queued.lease().id()].into_iter());
    let (change, lease) = next(&mut told).await;
    assert_eq!(
        (change, lease.queue_position),
        (LeaseChange::Queued, Some(1))
    );

    let granted = queued.clone().granting();
    board.publish(&granted.lease(), What::Granted);
    let (change, lease) = next(&mut told).await;
    assert_eq!((change, lease.epoch), (LeaseChange::Granted, 7));
    assert_eq!(lease.queue_position, None);

    let renewed = granted.clone().renewed();
    board.publish(&renewed.lease(), What::Renewed);
    assert_eq!(next(&mut told).await.0, LeaseChange::Updated);

    let ending = granted.clone().ending(EndReason::Revoked);
    board.publish(&ending.lease(), What::Draining);
    let (change, lease) = next(&mut told).await;
    assert_eq!(change, LeaseChange::Draining);
    assert_eq!(lease.end_reason.as_deref(), Some("REVOKED"));

    let ended = granted.ended(EndReason::Revoked);
    board.publish(&ended.lease(), What::Ended);
    let (change, lease) = next(&mut told).await;
    assert_eq!(
        (change, lease.state()),
        (LeaseChange::Ended, pb::LeaseState::Revoked)
    );
    assert!(told.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_late_misses_neither_the_grant_nor_the_end() {
    let (board, queued) = (Board::default(), Sample::queued("token:ci", &[1], 6));
    board.publish(&queued.lease(), What::Created);
    let mut told = follow(&board, &queued.lease(), config());
    assert_eq!(next(&mut told).await.0, LeaseChange::Snapshot);

    let granted = queued.clone().granting();
    board.publish(&granted.lease(), What::Granted);
    board.publish(&granted.clone().renewed().lease(), What::Renewed);
    let ending = granted.clone().ending(EndReason::Released);
    board.publish(&ending.lease(), What::Draining);
    let ended = granted.ended(EndReason::Released);
    board.publish(&ended.lease(), What::Ended);

    let (change, lease) = next(&mut told).await;
    assert_eq!(
        (change, lease.state()),
        (LeaseChange::Granted, pb::LeaseState::Active)
    );
    let (change, lease) = next(&mut told).await;
    assert_eq!(
        (change, lease.state()),
        (LeaseChange::Draining, pb::LeaseState::Draining)
    );
    let (change, lease) = next(&mut told).await;
    assert_eq!(
        (change, lease.state()),
        (LeaseChange::Ended, pb::LeaseState::Released)
    );
    assert!(told.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_ended_is_told_once() {
    let ended = Sample::granted("token:ci", &[1]).ended(EndReason::Released);
    let view = LeaseView {
        lease: ended.lease(),
        position: None,
    };
    let mut told = watch(Followed::Ended(view), config(), |_| true).boxed();
    let (change, lease) = next(&mut told).await;
    assert_eq!(change, LeaseChange::Snapshot);
    assert_eq!(lease.state(), pb::LeaseState::Released);
    assert!(told.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn it_is_told_once_per_term_that_little_is_left_and_now_and_then_that_nothing_is_new() {
    let (board, granted) = (Board::default(), Sample::granted("token:ci", &[1]));
    board.publish(&granted.lease(), What::Granted);
    let mut told = follow(&board, &granted.lease(), config());
    assert_eq!(next(&mut told).await.0, LeaseChange::Snapshot);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(next(&mut told).await.0);
    }
    let beat = LeaseChange::Heartbeat;
    // A third of 60 s is left after 40 s.
    assert_eq!(seen, [beat, beat, LeaseChange::Expiring, beat]);
    advance(Duration::from_millis(1)).await;
    board.publish(&granted.clone().renewed().lease(), What::Renewed);
    assert_eq!(next(&mut told).await.0, LeaseChange::Updated);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_a_status_when_the_gateway_does() {
    let (board, granted) = (Board::default(), Sample::granted("token:ci", &[1]));
    board.publish(&granted.lease(), What::Granted);
    let config = config();
    let stop = config.stop.clone();
    let mut told = follow(&board, &granted.lease(), config);
    assert_eq!(next(&mut told).await.0, LeaseChange::Snapshot);
    stop.cancel();
    let status = told.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert!(told.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_hear_of_the_phones_that_were_granted_is_told_that_there_is_no_lease() {
    let (board, queued) = (Board::default(), Sample::queued("token:ci", &[1], 6));
    board.publish(&queued.lease(), What::Created);
    let follower = Follower(board.follow(queued.lease().id()).unwrap());
    let may_hear = |lease: &Lease| lease.devices().is_empty();
    let mut told = watch(Followed::Open(follower), config(), may_hear).boxed();
    assert_eq!(next(&mut told).await.0, LeaseChange::Snapshot);
    board.publish(&queued.granting().lease(), What::Granted);
    let status = told.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), tonic::Code::NotFound);
    assert!(told.next().await.is_none());
}
