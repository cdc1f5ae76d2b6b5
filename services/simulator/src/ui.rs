//! The screen of a simulated phone: a small UI that can be read, drawn and
//! touched.
//!
//! ```text
//!   gestures --> model --> layout --+--> snapshot   (accessibility nodes)
//!      ^                            +--> draw       (a PNG)
//!      +----------------------------+    (what lies under the finger)
//! ```
//!
//! All three readers share one layout, so that the picture shows what the
//! snapshot lists and a tap hits what both show. It refuses to know commands,
//! budgets and faults, and it keeps no time: a gesture has its whole effect at
//! once, and the caller decides how long it took.
//!
//! Invariant: total. No point, text or order of calls makes it panic.

use std::time::Duration;

use fleetgate_runner::reply::Snapshot;
use fleetgate_runner::{AppPoint, BundleId, Button, Viewport};
use serde::{Deserialize, Serialize};

mod config;
mod draw;
mod element;
mod geometry;
mod gesture;
mod layout;
mod model;
mod settings;
mod snapshot;

pub use config::ScreenConfig;
pub use model::{Gestures, ScreenSummary};

use element::{Element, Kind};
use model::Model;

/// The app that the screen shows at first and knows best.
pub const DEMO_BUNDLE: &str = "com.example.settings";

/// The home screen, which is in front when no app is.
pub const SPRINGBOARD_BUNDLE: &str = "com.apple.springboard";

/// Where an app is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppState {
    /// On the screen.
    Foreground,
    /// Running, behind another app or the springboard.
    Background,
    /// Not running.
    NotRunning,
}

/// What a gesture hit and changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The label of the element under the (first) touch.
    pub label: Option<String>,
    /// What it did; for several taps, what the last one did.
    pub change: Change,
}

impl Hit {
    const NOTHING: Self = Self {
        label: None,
        change: Change::Nothing,
    };
}

/// What a gesture changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Change {
    /// Nothing.
    Nothing,
    /// A row's detail page opened.
    Opened {
        /// The row's identifier.
        row: String,
    },
    /// Back to the list.
    WentBack,
    /// The text field has focus, the keyboard is up.
    Focused,
    /// A key of the keyboard was struck; which is not said.
    Typed,
    /// A switch was set.
    Switched {
        /// To what.
        on: bool,
    },
    /// The counting button counted.
    Counted {
        /// Its taps so far.
        taps: u32,
    },
    /// The counting button's menu opened.
    MenuOpened,
    /// The menu closed, nothing chosen.
    MenuClosed,
    /// The menu set the counter to 0.
    CounterReset,
    /// The list scrolled.
    Scrolled {
        /// How far in points; positive towards its end.
        by: f64,
    },
    /// A row was carried to another place of the list.
    Moved {
        /// From this place, counted from 0.
        from: usize,
        /// To this one.
        to: usize,
    },
    /// The springboard brought an app to front.
    Launched {
        /// Which.
        app: BundleId,
    },
}

/// A phone's screen and what lies behind it.
#[derive(Debug, Clone)]
pub struct Screen(Model);

impl Screen {
    /// A screen that shows the settings app's list.
    pub fn new(config: ScreenConfig) -> Self {
        Self(Model::new(config))
    }

    /// Where an app is. One that was never mentioned is not running.
    pub fn app_state(&self, bundle: &BundleId) -> AppState {
        self.0.app_state(bundle)
    }

    /// Puts an app somewhere. Bringing one to front sends the one that was
    /// there to the background; without one in front, the springboard shows.
    pub fn set_app_state(&mut self, bundle: &BundleId, state: AppState) {
        self.0.set_app_state(bundle, state);
    }

    /// The frame of the app in front, in points; the keyboard does not change
    /// it.
    pub fn viewport(&self) -> Viewport {
        self.0.viewport()
    }

    /// The nodes of an app. One that is not in front has a root without
    /// geometry and nothing else.
    pub fn snapshot(&self, bundle: &BundleId) -> Snapshot {
        match self.0.app_state(bundle) {
            AppState::Foreground => snapshot::take(layout::lay_out(&self.0).as_slice()),
            AppState::Background | AppState::NotRunning => {
                snapshot::take(&[Element::new(Kind::Application, geometry::NOWHERE)])
            }
        }
    }

    /// Taps at a point, in points of the app in front. Two taps are one double
    /// tap; more are that many single ones.
    pub fn tap(&mut self, at: AppPoint, taps: u32) -> Hit {
        self.0.tap(at, taps)
    }

    /// Presses and holds; from half a second on it is a long press.
    pub fn long_press(&mut self, at: AppPoint, held: Duration) -> Hit {
        self.0.long_press(at, held)
    }

    /// Presses for `hold`, moves for `over`, lifts: at once, so that a list
    /// rolls on, or after a rest if `settle`. Held for half a second first, a
    /// row of the list is lifted and carried along.
    pub fn drag(
        &mut self,
        from: AppPoint,
        to: AppPoint,
        over: Duration,
        hold: Duration,
        settle: bool,
    ) -> Hit {
        self.0.drag(from, to, over, hold, settle)
    }

    /// Whether a text field has keyboard focus.
    pub fn has_focus(&self) -> bool {
        self.0.settings.focus.is_some()
    }

    /// Types into the focused field; nothing without one. A newline is the
    /// return key.
    pub fn type_text(&mut self, text: &str) {
        self.0.settings.type_text(text);
    }

    /// The return key: ends the editing, and the keyboard goes.
    pub fn keyboard_return(&mut self) {
        self.0.settings.submit();
    }

    /// The delete key: removes the last character of the focused field.
    pub fn keyboard_delete(&mut self) {
        self.0.settings.delete();
    }

    /// Presses a hardware button; false if the phone has no such button.
    pub fn press(&mut self, button: Button) -> bool {
        self.0.press(button)
    }

    /// A PNG of the screen: RGB, 8 bits each, the viewport times the scale.
    pub fn screenshot(&self) -> Vec<u8> {
        draw::png(&self.0)
    }

    /// What is true of the screen now.
    pub fn summary(&self) -> ScreenSummary {
        self.0.summary()
    }
}

#[cfg(test)]
mod tests;
