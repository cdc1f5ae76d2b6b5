//! What a runner makes of what a gesture leaves open, and the bounds that it
//! keeps whatever it is told.
//!
//! Clients send what they were given: these numbers are the runner's. Durations
//! stand here as they are on a phone; [`Budgets::of`](crate::Budgets::of) puts
//! them under a faster clock.

use std::time::Duration;

/// How long a long press lasts that does not say.
pub const LONG_PRESS: Duration = Duration::from_millis(800);

/// The shortest press: of a long press, and of a drag before it moves.
pub const SHORTEST_PRESS: Duration = Duration::from_millis(50);

/// How long a drag rests before it moves, if it does not say.
pub const DRAG_HOLD: Duration = Duration::from_millis(50);

/// How long a drag rests before it lifts if it settles.
pub const DRAG_SETTLE: Duration = Duration::from_millis(300);

/// How long a drag rests before it lifts if it does not settle.
pub const DRAG_LIFT: Duration = Duration::from_millis(50);

/// The slowest that a drag moves, in points per second.
pub const SLOWEST_DRAG: f64 = 60.0;

/// The fastest that a drag moves, in points per second.
pub const FASTEST_DRAG: f64 = 5000.0;

/// How long a long press lasts.
///
/// ```
/// use std::time::Duration;
/// use fleetgate_runner::defaults;
///
/// assert_eq!(defaults::long_press(None), Duration::from_millis(800));
/// assert_eq!(defaults::long_press(Some(Duration::from_millis(1))), Duration::from_millis(50));
/// ```
pub fn long_press(asked: Option<Duration>) -> Duration {
    asked.unwrap_or(LONG_PRESS).max(SHORTEST_PRESS)
}

/// How long a drag rests before it moves.
pub fn drag_hold(asked: Option<Duration>) -> Duration {
    asked.unwrap_or(DRAG_HOLD).max(SHORTEST_PRESS)
}

/// How long a drag rests before it lifts.
pub fn drag_rest(settle: bool) -> Duration {
    if settle { DRAG_SETTLE } else { DRAG_LIFT }
}

/// How fast a drag over this many points in this time moves, in points per
/// second.
pub fn drag_speed(distance: f64, duration: Duration) -> f64 {
    let speed = distance / duration.as_secs_f64();
    // A drag over no distance in no time has no speed of its own.
    if speed.is_nan() {
        SLOWEST_DRAG
    } else {
        speed.clamp(SLOWEST_DRAG, FASTEST_DRAG)
    }
}
