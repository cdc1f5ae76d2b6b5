//! What a runner answers, by command.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::{AppPoint, UnitPoint};
use crate::journal::JournalEntry;

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

/// An app's frame in its own points. Finite, with a width and a height above
/// zero: [`Viewport::new`] sees to that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
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
    /// The frame; `None` unless its width and height are above zero and all of
    /// its edges finite.
    pub fn new(x: f64, y: f64, width: f64, height: f64) -> Option<Self> {
        let extends = |from: f64, by: f64| from.is_finite() && by > 0.0 && (from + by).is_finite();
        (extends(x, width) && extends(y, height)).then_some(Self {
            x,
            y,
            width,
            height,
        })
    }

    /// The place that fractions of this frame name; fractions outside 0 to 1
    /// are clamped.
    pub fn at(&self, unit: UnitPoint) -> AppPoint {
        AppPoint {
            x: self.x + unit.x.clamp(0.0, 1.0) * self.width,
            y: self.y + unit.y.clamp(0.0, 1.0) * self.height,
        }
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
    /// The XCUIElement type.
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
    pub x: f64,
    /// Points from the top edge.
    pub y: f64,
    /// Width in points.
    pub width: f64,
    /// Height in points.
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

/// Whether a tree is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QualityState {
    /// Whole.
    Healthy,
    /// Cut.
    Degraded,
    /// A word from a newer runner.
    #[serde(untagged)]
    Other(String),
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

/// The runner's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunnerState {
    /// Ready; an ordinary command in execution counts as idle.
    Idle,
    /// Abandoned work is draining.
    Busy,
    /// Abandoned work is stuck.
    Wedged,
    /// A word from a newer runner.
    #[serde(untagged)]
    Other(String),
}
