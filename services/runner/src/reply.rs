//! What a runner answers, by command.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::journal::JournalEntry;
use crate::json;
use crate::point::{AppPoint, UnitPoint};
use crate::words::open_words;

/// The data of a success envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// To `viewport`.
    Viewport(Viewport),
    /// To every mutation: the runner's message, empty if it gave none.
    Done(String),
    /// To `snapshot`.
    Snapshot(Snapshot),
    /// To `screenshot`.
    Screenshot(Screenshot),
    /// To `status` without an id.
    Status(RunnerStatus),
    /// To `status` with an id.
    CommandStatus(JournalEntry),
}

/// An app's frame in its own points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Viewport {
    /// Points from the left edge.
    pub x: f64,
    /// Points from the top edge.
    pub y: f64,
    /// Width in points.
    pub width: f64,
    /// Height in points.
    pub height: f64,
}

impl Viewport {
    /// True if places can be named relative to it: its width and height are
    /// above zero and all of its edges finite. A reply with another is refused.
    pub fn is_usable(&self) -> bool {
        let extends = |from: f64, by: f64| from.is_finite() && by > 0.0 && (from + by).is_finite();
        extends(self.x, self.width) && extends(self.y, self.height)
    }

    /// The place that fractions of this frame name; fractions outside 0 to 1
    /// are clamped. `None` if the frame is not usable.
    pub fn at(&self, unit: UnitPoint) -> Option<AppPoint> {
        if !self.is_usable() {
            return None;
        }
        AppPoint::new(
            self.x + unit.x.clamp(0.0, 1.0) * self.width,
            self.y + unit.y.clamp(0.0, 1.0) * self.height,
        )
    }
}

/// An accessibility tree as a flat list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The nodes in emission order.
    pub nodes: Vec<Node>,
    /// How far the tree can be trusted.
    pub quality: Quality,
}

/// One element of the screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Position in the list.
    pub index: u32,
    /// The `XCUIElement` type: Button, Cell and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The developer's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where it is, in viewport points.
    pub rect: Rect,
    /// Whether it can be acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it has keyboard focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focused: Option<bool>,
    /// Whether it is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<bool>,
    /// Distance from the root.
    pub depth: u32,
    /// The parent's index; absent at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_index: Option<u32>,
}

/// A rectangle in points; all zero for an element without geometry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rect {
    /// Points from the left edge.
    #[serde(serialize_with = "json::coordinate")]
    pub x: f64,
    /// Points from the top edge.
    #[serde(serialize_with = "json::coordinate")]
    pub y: f64,
    /// Width in points.
    #[serde(serialize_with = "json::coordinate")]
    pub width: f64,
    /// Height in points.
    #[serde(serialize_with = "json::coordinate")]
    pub height: f64,
}

/// How far a tree can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quality {
    /// `healthy` or `degraded`.
    pub state: QualityState,
    /// What captured it.
    #[serde(default)]
    pub backend: String,
    /// Why it is degraded, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it is degraded, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
}

open_words! {
    /// Whether a tree is whole.
    pub enum QualityState {
        /// Whole.
        Healthy = "healthy",
        /// Cut.
        Degraded = "degraded",
    }
}

/// A picture of the screen: image bytes, so that formatting it shows their
/// number only.
#[derive(Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// The PNG.
    pub png: Bytes,
}

impl fmt::Debug for Screenshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Screenshot({} bytes)", self.png.len())
    }
}

/// The runner's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerStatus {
    /// Time since the runner started.
    pub uptime: Duration,
    /// Its state.
    pub state: RunnerState,
    /// Issues muted as accessibility noise since launch.
    pub suppressed_issues: u64,
    /// Failures recorded since launch.
    pub recorded_failures: u64,
}

open_words! {
    /// The runner's state.
    pub enum RunnerState {
        /// Ready; an ordinary command in execution counts as idle.
        Idle = "idle",
        /// Abandoned work is draining.
        Busy = "busy",
        /// Abandoned work is stuck.
        Wedged = "wedged",
    }
}
