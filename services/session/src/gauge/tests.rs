//! What is known, what it explains, and what may be started.

use fleetgate_runner::RunnerState;

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

fn status(uptime: Duration, state: RunnerState) -> RunnerStatus {
    RunnerStatus {
        uptime,
        state,
        suppressed_issues: 0,
        recorded_failures: 0,
    }
}

const A_MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_runner_that_was_not_up_when_one_was_last_seen_is_another() {
    let gauge = gauge();
    let hear = |uptime| gauge.hear_status(&status(uptime, RunnerState::Idle));
    assert_eq!(gauge.runners(), 0);
    hear(A_MINUTE);
    assert_eq!(gauge.runners(), 1);
    tokio::time::sleep(A_MINUTE).await;
    hear(2 * A_MINUTE);
    assert_eq!(gauge.runners(), 1);
    tokio::time::sleep(A_MINUTE).await;
    hear(A_MINUTE.saturating_sub(Duration::from_millis(1)));
    assert_eq!(gauge.runners(), 2);
    // Its clock stood still, as when a phone sleeps.
    tokio::time::sleep(A_MINUTE / 2).await;
    hear(A_MINUTE);
    assert_eq!(gauge.runners(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_uptime_counts_by_the_gateways_clock() {
    let gauge = Gauge::new(Budgets::scaled(0.1));
    let hear = |uptime| gauge.hear_status(&status(uptime, RunnerState::Idle));
    hear(A_MINUTE);
    tokio::time::sleep(A_MINUTE).await;
    // Ten minutes there are one here.
    hear(11 * A_MINUTE);
    assert_eq!(gauge.runners(), 1);
    tokio::time::sleep(A_MINUTE).await;
    hear(9 * A_MINUTE);
    assert_eq!(gauge.runners(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_known_of_a_runner_ends_with_it() {
    let gauge = gauge().holding_when_wedged(true);
    gauge.hear_status(&status(A_MINUTE, RunnerState::Wedged));
    assert_eq!(gauge.gate(), Gate::Shut);
    tokio::time::sleep(A_MINUTE).await;
    let odd = RunnerState::Other("odd".to_owned());
    gauge.hear_status(&status(2 * A_MINUTE, odd.clone()));
    assert_eq!(gauge.condition(), Condition::Wedged, "the same one");
    tokio::time::sleep(A_MINUTE).await;
    gauge.hear_status(&status(A_MINUTE / 2, odd));
    assert_eq!(gauge.condition(), Condition::Ready);
    assert_eq!(gauge.gate(), Gate::Open);
}

#[test]
fn a_wedge_shuts_the_gate_until_the_runner_is_well_if_that_is_asked_for() {
    for (holds, shut) in [(true, Gate::Shut), (false, Gate::Open)] {
        let gauge = gauge().holding_when_wedged(holds);
        gauge.hear(Some(Sign::Abandoned));
        assert_eq!(gauge.gate(), Gate::Open, "a drain may end");
        gauge.hear(Some(Sign::Wedged));
        assert_eq!(gauge.gate(), shut);
        gauge.hear(Some(Sign::Busy));
        assert_eq!(gauge.gate(), shut);
        let hold = Hold::on(&gauge);
        assert_eq!(gauge.gate() == Gate::Shut, holds);
        gauge.hear(Some(Sign::Idle));
        assert_eq!(gauge.gate(), Gate::Reads);
        drop(hold);
        assert_eq!(gauge.gate(), Gate::Open);
    }
}

#[test]
fn what_is_not_started_for_a_wedge_says_so_and_a_verdict_does_not() {
    let gauge = gauge().holding_when_wedged(true);
    gauge.hear(Some(Sign::Wedged));
    gauge.hear(Some(Sign::Busy));
    for failure in [Failure::LaneFull { limit: 1 }, Failure::DeadlineInQueue] {
        assert!(matches!(gauge.explain(failure), Failure::Paused { .. }));
    }
    drain(&gauge.explain(busy()));
    let closed = gauge.explain(Failure::Closed);
    assert!(matches!(closed, Failure::Closed));
}

#[test]
fn vitals_are_told_when_they_change_and_only_then() {
    let gauge = gauge();
    let mut vitals = gauge.vitals();
    let mut told = || {
        let changed = vitals.has_changed().unwrap();
        (changed, *vitals.borrow_and_update())
    };
    gauge.hear(Some(Sign::Executed));
    gauge.hear_status(&status(A_MINUTE, RunnerState::Idle));
    assert_eq!(told(), (false, Vitals::default()));
    let hold = Hold::on(&gauge);
    let reconciling = Vitals {
        condition: Condition::Reconciling,
        unreachable: 0,
    };
    assert_eq!(told(), (true, reconciling));
    let second = Hold::on(&gauge);
    assert_eq!(told(), (false, reconciling));
    gauge.hear_failure(&SendError::NotListening { port: None });
    gauge.hear_failure(&SendError::NotAttached);
    let unreachable = Vitals {
        unreachable: 1,
        ..reconciling
    };
    assert_eq!(told(), (true, unreachable));
    drop((hold, second));
    let (changed, vitals) = told();
    assert!(changed);
    assert_eq!(vitals.condition, Condition::Ready);
}
