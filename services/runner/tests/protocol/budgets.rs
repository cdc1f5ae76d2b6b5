//! The budget table against the one in the specification.

use std::time::Duration;

use fleetgate_runner::budget::TABLE;
use fleetgate_runner::{Budgets, CommandClass};

#[test]
fn the_table_is_the_one_in_the_specification() {
    for (class, runner, window) in [
        (CommandClass::Type, 55, 60),
        (CommandClass::Gesture, 75, 90),
        (CommandClass::Snapshot, 30, 45),
        (CommandClass::Other, 30, 45),
    ] {
        let budget = Budgets::default().budget(class);
        assert_eq!(budget.runner, Duration::from_secs(runner), "{class:?}");
        assert_eq!(budget.window, Duration::from_secs(window), "{class:?}");
    }
    assert_eq!(Budgets::default().recovery_window(), Duration::from_secs(3));
    assert_eq!(
        Budgets::default().readiness_window(),
        Duration::from_secs(2)
    );
    assert_eq!(
        Budgets::default().wedge_threshold(),
        Duration::from_secs(120)
    );
}

#[test]
fn every_window_outlasts_its_budget_under_any_clock() {
    for scale in [0.0001, 0.01, 0.5, 1.0, 3.0] {
        for (class, _) in TABLE {
            let budget = Budgets::scaled(scale).budget(class);
            assert!(budget.window > budget.runner, "{class:?} at {scale}");
        }
    }
}

#[test]
fn one_factor_scales_everything() {
    let budgets = Budgets::scaled(0.01);
    assert_eq!(
        budgets.budget(CommandClass::Type).window,
        Duration::from_millis(600)
    );
    assert_eq!(budgets.recovery_window(), Duration::from_millis(30));
    assert_eq!(budgets.wedge_threshold(), Duration::from_millis(1200));
}

#[test]
fn a_scale_that_is_no_factor_counts_as_one_and_none_overflows() {
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Budgets::scaled(scale), Budgets::default());
    }
    assert_eq!(Budgets::scaled(1e300).recovery_window(), Duration::MAX);
}
