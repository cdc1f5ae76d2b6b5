//! Places on the screen of an app.
//!
//! Invariant: coordinates are finite, because JSON cannot carry others and no
//! gesture can use them. Only the constructors here make points.

use crate::reply::Viewport;

/// A place in an app's own points. Finite: [`AppPoint::new`] sees to that.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AppPoint {
    /// Points from the left edge.
    pub x: f64,
    /// Points from the top edge.
    pub y: f64,
}

impl AppPoint {
    /// The place; `None` unless both numbers are finite.
    pub fn new(x: f64, y: f64) -> Option<Self> {
        (x.is_finite() && y.is_finite()).then_some(Self { x, y })
    }
}

/// A place as fractions of a viewport. Finite: [`UnitPoint::new`] sees to
/// that; what lies outside 0 to 1 is clamped by [`Viewport::at`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct UnitPoint {
    /// 0 is the left edge.
    pub x: f64,
    /// 0 is the top edge.
    pub y: f64,
}

impl UnitPoint {
    /// The place; `None` unless both numbers are finite.
    pub fn new(x: f64, y: f64) -> Option<Self> {
        (x.is_finite() && y.is_finite()).then_some(Self { x, y })
    }
}

/// A place as a caller may give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Point {
    /// In the app's points.
    Absolute(AppPoint),
    /// Relative to the viewport at the moment of execution.
    Normalized(UnitPoint),
}

impl Point {
    /// The place in the app's own points; `None` if it is relative and there is
    /// no usable viewport to relate it to.
    pub fn resolve(self, viewport: Option<&Viewport>) -> Option<AppPoint> {
        match self {
            Self::Absolute(point) => Some(point),
            Self::Normalized(unit) => viewport.and_then(|viewport| viewport.at(unit)),
        }
    }
}
