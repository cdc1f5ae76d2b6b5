//! What is known, what it explains, and what may be started.

use super::*;
use crate::hold::Hold;

fn gauge() -> Gauge {
    Gauge::new(Budgets::default())
}

fn busy() -> Failure {
    Failure::Runner(crate::testing::busy().result.unwrap_err())
}

fn drain(failure: &Failure) -> Drain {
    let Failure::Draining { drain, .. } = failure else {
        panic!("not explained by a drain: {failure:?}")
    };
    *drain
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_counted_from_the_command_that_was_abandoned() {
    let gauge = gauge();
    let since = Instant::now();
    gauge.hear(Some(Sign::Abandoned));
    tokio::time::sleep(Duration::from_secs(5)).await;
    gauge.hear(Some(Sign::Busy));
    assert_eq!(gauge.condition(), Condition::Draining { since });
    gauge.hear(Some(Sign::Abandoned));
    let since = Instant::now();
    assert_eq!(gauge.condition(), Condition::Draining { since });
}

#[tokio::test(start_paused = true)]
async fn a_pause_grows_with_the_drain_and_never_passes_the_moment_of_the_wedge() {
    let gauge = gauge();
    gauge.hear(Some(Sign::Abandoned));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        pauses.push(drain(&gauge.explain(busy())).pause().as_secs());
        tokio::time::sleep(Duration::from_secs(23)).await;
    }
    // After 0, 23, 46, 69, 92 and 115 of 120 seconds.
    assert_eq!(pauses, [1, 11, 23, 30, 28, 5]);
}

#[test]
fn only_what_did_not_run_is_explained_by_a_drain() {
    let gauge = gauge();
    assert!(
        matches!(gauge.explain(busy()), Failure::Runner(_)),
        "none is known"
    );
    gauge.hear(Some(Sign::Busy));
    let limit = 1;
    for failure in [
        busy(),
        Failure::LaneFull { limit },
        Failure::DeadlineInQueue,
    ] {
        let reason = failure.reason().to_owned();
        let explained = gauge.explain(failure);
        assert_eq!(explained.reason(), reason);
        drain(&explained);
    }
    for failure in [
        Failure::DeadlineExceeded,
        Failure::Closed,
        Failure::Duplicate,
    ] {
        let told = failure.to_string();
        assert_eq!(gauge.explain(failure).to_string(), told);
    }
}

#[test]
fn a_stuck_runner_outranks_a_reconciliation() {
    let gauge = gauge();
    let (one, other) = (Hold::on(&gauge), Hold::on(&gauge));
    drop(other);
    assert_eq!(gauge.condition(), Condition::Reconciling);
    gauge.hear(Some(Sign::Wedged));
    assert_eq!(gauge.condition(), Condition::Wedged);
    gauge.hear(Some(Sign::Executed));
    assert_eq!(gauge.condition(), Condition::Reconciling);
    drop(one);
    assert_eq!(gauge.condition(), Condition::Ready);
}
