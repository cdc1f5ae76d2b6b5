//! Rectangles and points of a screen, in points.
//!
//! Invariant: everything here is total, and no sum of tamed coordinates is
//! anything but a finite number.

use fleetgate_runner::reply::Rect;
use fleetgate_runner::{AppPoint, Viewport};

/// A rectangle, shorter to write.
pub(super) const fn rect(x: f64, y: f64, width: f64, height: f64) -> Rect {
    Rect {
        x,
        y,
        width,
        height,
    }
}

/// What an element without geometry has.
pub(super) const NOWHERE: Rect = rect(0.0, 0.0, 0.0, 0.0);

/// What a gesture makes of a point: far outside the screen is as good as
/// anywhere outside, and differences of such points cannot overflow.
pub(super) fn tame(point: AppPoint) -> AppPoint {
    const FAR: f64 = 100_000.0;
    AppPoint::new(point.x.clamp(-FAR, FAR), point.y.clamp(-FAR, FAR)).unwrap_or(point)
}

pub(super) fn contains(rect: Rect, point: AppPoint) -> bool {
    point.x >= rect.x
        && point.y >= rect.y
        && point.x < rect.x + rect.width
        && point.y < rect.y + rect.height
}

/// The part that two rectangles share; [`NOWHERE`] if they share none.
pub(super) fn intersection(a: Rect, b: Rect) -> Rect {
    let (x, y) = (a.x.max(b.x), a.y.max(b.y));
    let width = (a.x + a.width).min(b.x + b.width) - x;
    let height = (a.y + a.height).min(b.y + b.height) - y;
    if width > 0.0 && height > 0.0 {
        rect(x, y, width, height)
    } else {
        NOWHERE
    }
}

pub(super) fn is_empty(rect: Rect) -> bool {
    rect.width <= 0.0 || rect.height <= 0.0
}

pub(super) fn inset(outer: Rect, by_x: f64, by_y: f64) -> Rect {
    rect(
        outer.x + by_x,
        outer.y + by_y,
        outer.width - 2.0 * by_x,
        outer.height - 2.0 * by_y,
    )
}

pub(super) fn of_viewport(viewport: Viewport) -> Rect {
    rect(viewport.x, viewport.y, viewport.width, viewport.height)
}

/// The whole number below, for counting rows; negative ones are 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, and both ends are wanted"
)]
pub(super) fn whole(value: f64) -> u32 {
    value.floor() as u32
}

/// The nearest whole number, saturating.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float cast saturates, which is wanted"
)]
pub(super) fn nearest(value: f64) -> i32 {
    value.round() as i32
}
