//! The state of a phone's screen: apps, pages, switches, texts, volume.
//!
//! Owns what is true; knows no rectangles and no pixels. Invariant: at most
//! one app is in front, and only an app in front has keyboard focus.

use std::collections::{BTreeMap, BTreeSet};

use fleetgate_runner::{AppPoint, BundleId, Button, Viewport};
use serde::Serialize;

use super::config::ScreenConfig;
use super::settings::Settings;
use super::{AppState, DEMO_BUNDLE, SPRINGBOARD_BUNDLE};

/// How often the volume can be raised from silence.
pub(super) const LOUDEST: u8 = 16;

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) config: ScreenConfig,
    pub(super) settings: Settings,
    /// The app in front; the springboard if none.
    pub(super) front: Option<BundleId>,
    /// Every app that is running, in front or not.
    running: BTreeSet<BundleId>,
    /// Every app that has an icon.
    pub(super) installed: BTreeSet<BundleId>,
    pub(super) volume: u8,
    /// Whether the volume is shown, as it is until the next touch.
    pub(super) volume_shown: bool,
    /// What the Action button toggles.
    pub(super) silent: bool,
    pub(super) last_touch: Option<AppPoint>,
    pub(super) gestures: Gestures,
}

/// How many gestures a screen took, wherever they landed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Gestures {
    /// Single taps; a double tap counts 2.
    pub taps: u64,
    /// Long presses.
    pub long_presses: u64,
    /// Drags.
    pub drags: u64,
    /// Hardware buttons pressed.
    pub presses: u64,
}

/// What is true of a screen, for tests and the control interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenSummary {
    /// The app in front; none at the springboard.
    pub front: Option<BundleId>,
    /// `list`, or the identifier of the row whose detail page is open.
    pub page: String,
    /// How far the list is scrolled, in points.
    pub scroll: f64,
    /// What the gestures have been.
    #[serde(flatten)]
    pub gestures: Gestures,
    /// How often each row's button was tapped; rows never touched are absent.
    pub counters: BTreeMap<String, u32>,
    /// Each row's switch; rows never touched are absent.
    pub switches: BTreeMap<String, bool>,
    /// Each row's text; rows never touched are absent.
    pub texts: BTreeMap<String, String>,
    /// The identifiers of the first rows of the list, in their present order.
    pub first_rows: Vec<String>,
    /// Whether a text field has keyboard focus.
    pub focused: bool,
    /// 0 to 16.
    pub volume: u8,
    /// Whether the Action button silenced the phone.
    pub silent: bool,
    /// Where the last touch ended.
    pub last_touch: Option<(f64, f64)>,
}

impl Model {
    pub(super) fn new(config: ScreenConfig) -> Self {
        let config = config.within_limits();
        let front: Option<BundleId> = DEMO_BUNDLE.parse().ok();
        Self {
            settings: Settings::new(config.rows),
            running: front.iter().cloned().collect(),
            installed: front.iter().cloned().collect(),
            front,
            config,
            volume: LOUDEST / 2,
            volume_shown: false,
            silent: false,
            last_touch: None,
            gestures: Gestures::default(),
        }
    }

    pub(super) fn viewport(&self) -> Viewport {
        Viewport {
            x: 0.0,
            y: 0.0,
            width: f64::from(self.config.width),
            height: f64::from(self.config.height),
        }
    }

    pub(super) fn app_state(&self, bundle: &BundleId) -> AppState {
        if is_springboard(bundle) {
            return if self.front.is_none() {
                AppState::Foreground
            } else {
                AppState::Background
            };
        }
        if self.front.as_ref() == Some(bundle) {
            AppState::Foreground
        } else if self.running.contains(bundle) {
            AppState::Background
        } else {
            AppState::NotRunning
        }
    }

    pub(super) fn set_app_state(&mut self, bundle: &BundleId, state: AppState) {
        if is_springboard(bundle) {
            match state {
                AppState::Foreground => self.leave_front(),
                // The springboard is never killed, and is behind when an app is in front.
                AppState::Background | AppState::NotRunning => {}
            }
            return;
        }
        self.installed.insert(bundle.clone());
        if self.front.as_ref() == Some(bundle) && state != AppState::Foreground {
            self.leave_front();
        }
        match state {
            AppState::Foreground => {
                if self.front.as_ref() != Some(bundle) {
                    self.leave_front();
                }
                self.running.insert(bundle.clone());
                self.front = Some(bundle.clone());
            }
            AppState::Background => {
                self.running.insert(bundle.clone());
            }
            AppState::NotRunning => {
                self.running.remove(bundle);
                if bundle.as_str() == DEMO_BUNDLE {
                    self.settings.relaunch();
                }
            }
        }
    }

    /// Whether the app in front is the settings app.
    pub(super) fn demo_in_front(&self) -> bool {
        self.front
            .as_ref()
            .is_some_and(|front| front.as_str() == DEMO_BUNDLE)
    }

    fn leave_front(&mut self) {
        self.settings.resign();
        self.front = None;
    }

    pub(super) fn press(&mut self, button: Button) -> bool {
        match button {
            Button::Home => self.leave_front(),
            Button::VolumeUp => self.set_volume(self.volume.saturating_add(1)),
            Button::VolumeDown => self.set_volume(self.volume.saturating_sub(1)),
            Button::ActionButton if self.config.action_button => self.silent = !self.silent,
            Button::ActionButton => return false,
        }
        self.gestures.presses += 1;
        true
    }

    fn set_volume(&mut self, volume: u8) {
        self.volume = volume.min(LOUDEST);
        self.volume_shown = true;
    }

    pub(super) fn summary(&self) -> ScreenSummary {
        let mut summary = self.settings.summary();
        summary.front.clone_from(&self.front);
        summary.gestures = self.gestures;
        summary.volume = self.volume;
        summary.silent = self.silent;
        summary.last_touch = self.last_touch.map(|touch| (touch.x, touch.y));
        summary
    }
}

fn is_springboard(bundle: &BundleId) -> bool {
    bundle.as_str() == SPRINGBOARD_BUNDLE
}
