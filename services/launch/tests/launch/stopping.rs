//! How a group is ended by its owner.

use std::time::Duration;

use fleetgate_launch::ExitStatus;

use crate::support::{NOBODY, Place, device, exited, listening, lives, soon, until};

#[tokio::test]
async fn sigterm_is_enough_for_a_group_that_obeys() {
    let place = Place::new();
    let spec = place.script(
        "sleep 600 & echo $! > $HERE/member
         echo ARGENT_RUNNER_LISTENING port=8100; wait",
    );
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    assert_eq!(soon(running.next()).await, listening(8100));
    let (leader, member) = (running.pid(), place.pid("member").await);
    let stopped = soon(running.stop()).await;
    assert_eq!(stopped.status, Some(ExitStatus::Signal(15)));
    assert!(!stopped.killed);
    assert_eq!(stopped.outlived, NOBODY);
    assert!(!lives(leader) && !lives(member));
}

#[tokio::test]
async fn a_leader_that_ignores_sigterm_is_killed_when_its_grace_has_passed() {
    let place = Place::new();
    let mut spec = place.script(
        "trap '' TERM; echo ARGENT_RUNNER_LISTENING port=8100; while :; do sleep 600; done",
    );
    spec.stop_grace = Duration::from_millis(200);
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    assert_eq!(soon(running.next()).await, listening(8100));
    let stopped = soon(running.stop()).await;
    assert_eq!(stopped.status, Some(ExitStatus::Signal(9)));
    assert!(stopped.killed);
    assert_eq!(place.processes(), NOBODY);
}

#[tokio::test]
async fn a_member_that_ignores_sigterm_is_killed_also_when_its_leader_obeyed() {
    let place = Place::new();
    let mut spec = place.script(
        "(trap '' TERM; echo ready > $HERE/ready; while :; do sleep 600; done) &
         trap 'exit 7' TERM; wait",
    );
    spec.stop_grace = Duration::from_millis(300);
    let running = place.open().start(&device(), &spec).await.unwrap();
    place.written("ready").await;
    let stopped = soon(running.stop()).await;
    assert!(stopped.killed);
    assert_eq!(stopped.outlived, NOBODY);
    assert_eq!(place.processes(), NOBODY);
}

#[tokio::test]
async fn members_that_outlive_their_leader_are_ended_all_the_same() {
    let place = Place::new();
    // The second sleep is the child of a process that is gone.
    let spec = place.script(
        "sleep 600 & echo $! > $HERE/member
         (sleep 600 & echo $! > $HERE/orphan)
         exit 3",
    );
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    assert_eq!(soon(running.next()).await, exited(3));
    let (member, orphan) = (place.pid("member").await, place.pid("orphan").await);
    assert!(lives(member) && lives(orphan));
    let stopped = soon(running.stop()).await;
    assert_eq!(stopped.status, Some(ExitStatus::Code(3)));
    assert_eq!(stopped.outlived, NOBODY);
    assert!(!lives(member) && !lives(orphan));
    assert!(!place.record(&device()).exists());
}

#[tokio::test]
async fn a_runner_that_nobody_owns_any_more_is_killed_with_its_group() {
    let place = Place::new();
    let launcher = place.open();
    let spec = place.script("trap '' TERM; sleep 600 & echo $! > $HERE/member; wait; wait");
    let running = launcher.start(&device(), &spec).await.unwrap();
    let (leader, member) = (running.pid(), place.pid("member").await);
    drop(running);
    until(|| !lives(leader) && !lives(member)).await;
    // The next one may follow at once.
    let again = launcher.start(&device(), &spec).await.unwrap();
    drop(again);
    let again = launcher.start(&device(), &spec).await.unwrap();
    soon(again.stop()).await;
}

#[tokio::test]
async fn a_stop_that_is_given_up_kills_the_group() {
    let place = Place::new();
    let spec = place.script(
        "(trap '' TERM; echo ready > $HERE/ready; while :; do sleep 600; done) &
         trap 'exit 7' TERM; wait",
    );
    // Before and after the leader's end.
    for patience in [0, 500] {
        let running = place.open().start(&device(), &spec).await.unwrap();
        place.written("ready").await;
        let stop = running.stop();
        tokio::time::timeout(Duration::from_millis(patience), stop)
            .await
            .unwrap_err();
        until(|| place.processes().is_empty()).await;
        std::fs::remove_file(place.file("ready")).unwrap();
    }
}

#[tokio::test]
async fn a_process_that_ended_by_itself_needs_no_signal() {
    let place = Place::new();
    let mut running = place
        .open()
        .start(&device(), &place.script("true"))
        .await
        .unwrap();
    assert_eq!(soon(running.next()).await, exited(0));
    let stopped = soon(running.stop()).await;
    assert_eq!(stopped.status, Some(ExitStatus::Code(0)));
    assert!(!stopped.killed);
}
