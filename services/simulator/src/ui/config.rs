//! What a screen is made of, as a scenario says it.
//!
//! Owns the limits: a screen is never so small that its parts overlap, nor so
//! large that drawing it would exhaust memory.

use serde::Deserialize;

/// The size and contents of a simulated screen. Values outside the limits
/// that each field states are taken as the nearest one inside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScreenConfig {
    /// How many rows the list of the settings app has; 100 000 at most.
    pub rows: u32,
    /// Width in points, 320 to 1 100.
    pub width: u32,
    /// Height in points, 600 to 1 400.
    pub height: u32,
    /// Pixels per point, 1 to 4.
    pub scale: u32,
    /// Makes the picture grainy, as a photograph is, so that it hardly
    /// compresses: at the default size and scale 3 it is a PNG of over 6 MB.
    pub noise: bool,
    /// Lays the rows out as a grid of tiny cells, each of which is two nodes
    /// of a snapshot; 750 rows are more than a snapshot holds.
    pub dense: bool,
    /// Whether the phone has an Action button.
    pub action_button: bool,
}

impl Default for ScreenConfig {
    fn default() -> Self {
        Self {
            rows: 24,
            width: 393,
            height: 852,
            scale: 2,
            noise: false,
            dense: false,
            action_button: false,
        }
    }
}

impl ScreenConfig {
    pub(super) fn within_limits(self) -> Self {
        Self {
            rows: self.rows.min(100_000),
            width: self.width.clamp(320, 1_100),
            height: self.height.clamp(600, 1_400),
            scale: self.scale.clamp(1, 4),
            ..self
        }
    }
}
