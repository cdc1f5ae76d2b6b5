//! What touches change.
//!
//! Every gesture first asks the layout what lies under it, as the picture
//! shows it, and then changes the state. Invariant: total for every point.

use std::time::Duration;

use fleetgate_runner::{AppPoint, defaults};

use super::element::{Action, Element, Touch};
use super::geometry::{contains, tame};
use super::layout::{self, list};
use super::model::Model;
use super::settings::{Focus, Page, Settings};
use super::{AppState, Change, Hit};

/// The most single taps that one gesture makes. At hundreds of milliseconds
/// each, the runner's budget ends long before.
const MAX_TAPS: u32 = 1_000;
/// From here on a press is a long one, and lifts a row to be moved.
const LONG: Duration = Duration::from_millis(500);
/// For how many seconds' worth of its speed a list rolls on after a fling.
const ROLL: f64 = 0.5;
/// Where a drag from the left edge must start to go back, in points.
const EDGE: f64 = 16.0;

impl Model {
    /// Taps. Two taps are one double tap on what lies there before the first;
    /// more are single ones, each on what the one before left there.
    pub(super) fn tap(&mut self, at: AppPoint, taps: u32) -> Hit {
        if taps == 0 {
            return Hit::NOTHING;
        }
        let at = self.touch(at);
        self.gestures.taps += u64::from(taps);
        if taps <= 2 {
            return self.strike(at, taps);
        }
        let first = self.strike(at, 1);
        let mut last = first.change;
        for _ in 1..taps.min(MAX_TAPS) {
            last = self.strike(at, 1).change;
        }
        Hit {
            label: first.label,
            change: last,
        }
    }

    /// Presses and holds: opens the counting button's menu; elsewhere it is a
    /// slow tap.
    pub(super) fn long_press(&mut self, at: AppPoint, held: Duration) -> Hit {
        let at = self.touch(at);
        self.gestures.long_presses += 1;
        let under = hit(self, at);
        let counter = under
            .as_ref()
            .is_some_and(|e| e.touch == Touch::Act(Action::Count));
        if counter && held >= LONG {
            self.settings.focus = None;
            self.settings.menu = true;
            return Hit {
                label: under.and_then(|e| e.label),
                change: Change::MenuOpened,
            };
        }
        self.strike(at, 1)
    }

    /// Drags: scrolls the list, which rolls on unless the finger rests at the
    /// end; moves a row that was held long enough first; goes back from a
    /// detail page when it starts at the left edge.
    pub(super) fn drag(
        &mut self,
        from: AppPoint,
        to: AppPoint,
        over: Duration,
        hold: Duration,
        settle: bool,
    ) -> Hit {
        let from = self.touch(from);
        let label = hit(self, from).and_then(|element| element.label);
        let to = self.touch(to);
        self.gestures.drags += 1;
        let change = if self.demo_in_front() {
            match self.settings.page {
                Page::List => self.drag_list(from, to, over, hold, settle),
                Page::Detail(_) => self.swipe_back(from, to),
            }
        } else {
            Change::Nothing
        };
        Hit { label, change }
    }

    fn drag_list(
        &mut self,
        from: AppPoint,
        to: AppPoint,
        over: Duration,
        hold: Duration,
        settle: bool,
    ) -> Change {
        if !contains(list::table(self), from) {
            return Change::Nothing;
        }
        if hold >= LONG
            && let Some(lifted) = list::index_at(self, from)
            && let Some(dropped) = list::nearest_index(self, to)
        {
            if lifted == dropped {
                return Change::Nothing;
            }
            self.settings.move_row(lifted, dropped);
            return Change::Moved {
                from: lifted,
                to: dropped,
            };
        }
        let way = from.y - to.y;
        let length = (from.x - to.x).hypot(way);
        if length <= 0.0 {
            return Change::Nothing;
        }
        let roll = if settle {
            0.0
        } else {
            let speed = defaults::drag_speed(length, over);
            speed * ROLL * way / length
        };
        let before = self.settings.scroll;
        self.settings.scroll = (before + way + roll).clamp(0.0, list::max_scroll(self));
        let by = self.settings.scroll - before;
        if by.abs() > 0.0 {
            Change::Scrolled { by }
        } else {
            Change::Nothing
        }
    }

    fn swipe_back(&mut self, from: AppPoint, to: AppPoint) -> Change {
        let far = to.x - from.x > f64::from(self.config.width) / 2.0;
        if self.settings.menu || !(0.0..EDGE).contains(&from.x) || !far {
            return Change::Nothing;
        }
        self.settings.go(Page::List);
        Change::WentBack
    }

    /// Notes where the finger is.
    fn touch(&mut self, at: AppPoint) -> AppPoint {
        let at = tame(at);
        self.last_touch = Some(at);
        self.volume_shown = false;
        at
    }

    /// One tap, or one double tap, on what lies there now.
    fn strike(&mut self, at: AppPoint, taps: u32) -> Hit {
        let Some(element) = hit(self, at) else {
            return Hit::NOTHING;
        };
        let change = match element.touch {
            Touch::Act(action) => self.act(&action, taps),
            Touch::Absorb | Touch::Through => Change::Nothing,
        };
        Hit {
            label: element.label,
            change,
        }
    }

    fn act(&mut self, action: &Action, taps: u32) -> Change {
        match action {
            Action::OpenRow(row) => {
                self.settings.go(Page::Detail(*row));
                Change::Opened {
                    row: Settings::identifier(*row),
                }
            }
            Action::Back => {
                self.settings.go(Page::List);
                Change::WentBack
            }
            Action::Focus => {
                if self.settings.focus.is_none() {
                    self.settings.focus = Some(Focus { shift: false });
                }
                Change::Focused
            }
            Action::Toggle => self.toggle(taps),
            Action::Count => self.count(taps),
            Action::ResetCounter => {
                self.settings.menu = false;
                if let Some(item) = self.settings.open_item() {
                    item.taps = 0;
                }
                Change::CounterReset
            }
            Action::CloseMenu => {
                self.settings.menu = false;
                Change::MenuClosed
            }
            Action::Letter(letter) => {
                for _ in 0..taps {
                    self.settings.type_text(letter.encode_utf8(&mut [0; 4]));
                }
                if let Some(focus) = &mut self.settings.focus {
                    focus.shift = false;
                }
                Change::Typed
            }
            Action::Shift => {
                if let Some(focus) = &mut self.settings.focus {
                    focus.shift = !focus.shift;
                }
                Change::Typed
            }
            Action::Delete => {
                for _ in 0..taps {
                    self.settings.delete();
                }
                Change::Typed
            }
            Action::Return => {
                self.settings.submit();
                Change::Typed
            }
            Action::Launch(app) => {
                self.set_app_state(app, AppState::Foreground);
                Change::Launched { app: app.clone() }
            }
        }
    }

    fn toggle(&mut self, taps: u32) -> Change {
        let Some(item) = self.settings.open_item() else {
            return Change::Nothing;
        };
        item.on ^= taps % 2 == 1;
        Change::Switched { on: item.on }
    }

    fn count(&mut self, taps: u32) -> Change {
        let Some(item) = self.settings.open_item() else {
            return Change::Nothing;
        };
        item.taps = item.taps.saturating_add(taps);
        Change::Counted { taps: item.taps }
    }
}

/// The frontmost element at a point that lets no touch through.
fn hit(model: &Model, at: AppPoint) -> Option<Element> {
    let elements = layout::lay_out(model);
    let mut front_to_back = elements.as_slice().iter().rev();
    let found = front_to_back
        .find(|element| element.touch != Touch::Through && contains(element.visible, at));
    found.cloned()
}
