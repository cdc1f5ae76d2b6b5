//! What a watch shows on a terminal.
//!
//! Where not all phones fit, those that somebody should look at come first.

use std::collections::VecDeque;
use std::time::SystemTime;

use fleetgate_proto::v1::Device;

use super::chosen::Chosen;
use crate::output::{clean, cut};
use crate::screen::Size;
use crate::view::device::{needs_attention, table_within};
use crate::view::fleet::{FleetLine, census, host_state};

#[cfg(test)]
mod tests;

/// How many of the last events are shown.
const EVENTS: usize = 8;

/// The board, but for the phones.
#[derive(Debug)]
pub(super) struct Board {
    server: String,
    /// Whether events are shown besides.
    events: bool,
    recent: VecDeque<String>,
    /// Why this is not how the fleet is now.
    lost: Option<String>,
}

impl Board {
    pub(super) fn new(server: String, events: bool) -> Self {
        Self {
            server,
            events,
            recent: VecDeque::new(),
            lost: None,
        }
    }

    /// Notes what happened.
    pub(super) fn note(&mut self, told: &FleetLine) {
        if !self.events || !told.is_news() {
            return;
        }
        if self.recent.len() == EVENTS {
            self.recent.pop_front();
        }
        self.recent.push_back(told.brief());
    }

    /// The gateway is heard.
    pub(super) fn live(&mut self) {
        self.lost = None;
    }

    /// It is not.
    pub(super) fn lost(&mut self, why: &str) {
        self.lost = Some(why.to_owned());
    }

    /// The lines that fit.
    pub(super) fn frame(&self, chosen: &Chosen, size: Size, now: SystemTime) -> Vec<String> {
        let mut frame = vec![format!(
            "{}   {}   Ctrl-C ends",
            self.server,
            census(chosen.devices())
        )];
        frame.extend(self.lost.clone());
        frame.extend(chosen.hosts().filter(|host| !host.connected).map(|host| {
            let state = host_state(host);
            clean(&format!("host {} ({}) is {state}", host.name, host.address))
        }));
        frame.push(String::new());

        let events = if self.recent.is_empty() {
            0
        } else {
            1 + self.recent.len()
        };
        // The headers of the table, and the line that tells how many are hidden.
        let room = size.rows.saturating_sub(frame.len() + events + 2).max(1);
        let mut devices: Vec<&Device> = chosen.devices().collect();
        let hidden = devices.len().saturating_sub(room);
        if hidden > 0 {
            devices.sort_by_key(|device| !needs_attention(device));
            devices.truncate(room);
        }
        let table = table_within(&devices, now, size.columns);
        frame.extend(table.lines().map(str::to_owned));
        if hidden > 0 {
            frame.push(format!("and {hidden} more"));
        }
        if events > 0 {
            frame.push(String::new());
            frame.extend(self.recent.iter().cloned());
        }
        frame.truncate(size.rows);
        frame.iter().map(|line| cut(line, size.columns)).collect()
    }
}
