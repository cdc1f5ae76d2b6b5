//! The state of the settings app: a list of rows, each with a detail page that
//! has a text field, a switch and a button that counts its taps.
//!
//! Invariant: focus and menu exist on a detail page only.

use std::collections::BTreeMap;

use super::DEMO_BUNDLE;
use super::model::{Gestures, ScreenSummary};

/// Names of the first rows; later ones are numbered.
const NAMES: [&str; 24] = [
    "General",
    "Accessibility",
    "Battery",
    "Camera",
    "Control Center",
    "Display",
    "Home Screen",
    "Search",
    "Siri",
    "Wallpaper",
    "Notifications",
    "Sounds",
    "Focus",
    "Screen Time",
    "Face ID",
    "Emergency SOS",
    "Privacy",
    "Game Center",
    "iCloud",
    "Wallet",
    "Calendar",
    "Contacts",
    "Mail",
    "Maps",
];

/// Which page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    List,
    /// Of this row.
    Detail(u32),
}

/// What a row's detail page holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) on: bool,
    pub(super) taps: u32,
    pub(super) text: String,
}

/// Keyboard focus: on the text field of the open page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Focus {
    /// Whether the next letter is a capital.
    pub(super) shift: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The rows from the top of the list to its end.
    pub(super) order: Vec<u32>,
    pub(super) page: Page,
    /// How far the list is scrolled, in points.
    pub(super) scroll: f64,
    pub(super) focus: Option<Focus>,
    /// Whether the counting button's menu is open.
    pub(super) menu: bool,
    items: BTreeMap<u32, Item>,
}

impl Settings {
    pub(super) fn new(rows: u32) -> Self {
        Self {
            order: (0..rows).collect(),
            page: Page::List,
            scroll: 0.0,
            focus: None,
            menu: false,
            items: BTreeMap::new(),
        }
    }

    /// What a row is called.
    pub(super) fn name(row: u32) -> String {
        let known = usize::try_from(row).ok().and_then(|row| NAMES.get(row));
        known.map_or_else(
            || format!("Row {}", row.saturating_add(1)),
            |name| (*name).to_owned(),
        )
    }

    /// A row's identifier, such as `com.example.settings.control-center`.
    pub(super) fn identifier(row: u32) -> String {
        format!(
            "{DEMO_BUNDLE}.{}",
            Self::name(row).to_lowercase().replace(' ', "-")
        )
    }

    pub(super) fn item(&self, row: u32) -> Item {
        self.items.get(&row).cloned().unwrap_or_default()
    }

    /// The item of the page that is open.
    pub(super) fn open_item(&mut self) -> Option<&mut Item> {
        match self.page {
            Page::List => None,
            Page::Detail(row) => Some(self.items.entry(row).or_default()),
        }
    }

    pub(super) fn go(&mut self, page: Page) {
        self.resign();
        self.page = page;
    }

    /// Gives up focus and menu, as an app does that leaves the front.
    pub(super) fn resign(&mut self) {
        self.focus = None;
        self.menu = false;
    }

    /// What is left of the state when the app was killed and starts anew: what
    /// it would have stored.
    pub(super) fn relaunch(&mut self) {
        self.go(Page::List);
        self.scroll = 0.0;
    }

    /// Appends to the focused field; a newline is the return key.
    pub(super) fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\n' | '\r' => self.submit(),
                '\u{8}' | '\u{7f}' => self.delete(),
                letter => self.insert(letter),
            }
        }
    }

    fn insert(&mut self, letter: char) {
        if self.focus.is_none() {
            return;
        }
        if let Some(item) = self.open_item() {
            item.text.push(letter);
        }
    }

    /// Removes the last character of the focused field.
    pub(super) fn delete(&mut self) {
        if self.focus.is_none() {
            return;
        }
        if let Some(item) = self.open_item() {
            item.text.pop();
        }
    }

    /// The return key: the field is done with, the keyboard goes.
    pub(super) fn submit(&mut self) {
        self.focus = None;
    }

    /// Takes the row at one place of the list out and puts it in at another.
    pub(super) fn move_row(&mut self, from: usize, to: usize) {
        if from < self.order.len() && to < self.order.len() {
            let row = self.order.remove(from);
            self.order.insert(to, row);
        }
    }

    /// This app's share of the summary; the phone's share is blank.
    pub(super) fn summary(&self) -> ScreenSummary {
        let by_row = || {
            self.items
                .iter()
                .map(|(row, item)| (Self::identifier(*row), item))
        };
        ScreenSummary {
            front: None,
            page: match self.page {
                Page::List => "list".to_owned(),
                Page::Detail(row) => Self::identifier(row),
            },
            scroll: self.scroll,
            gestures: Gestures::default(),
            counters: by_row().map(|(id, item)| (id, item.taps)).collect(),
            switches: by_row().map(|(id, item)| (id, item.on)).collect(),
            texts: by_row().map(|(id, item)| (id, item.text.clone())).collect(),
            first_rows: self
                .order
                .iter()
                .take(12)
                .map(|row| Self::identifier(*row))
                .collect(),
            focused: self.focus.is_some(),
            volume: 0,
            silent: false,
            last_touch: None,
        }
    }
}
