//! What keeps a lane shut: mutations that the runner may still be executing
//! although their fate is unknown.
//!
//! A runner executes one command at a time. A mutation that is sent while an
//! earlier one is still under way comes after it on the phone, whenever that is
//! and whatever the screen shows by then. So nobody sends one while a [`Hold`]
//! exists; it ends with the earliest of:
//!
//! - the runner's journal says that the command has ended, or does not know it,
//!   as after a restart;
//! - the command's window, measured from the first byte of its last send, has
//!   passed: a runner gives up on a command within its budget, which is shorter;
//! - of what an earlier session left, the configured patience with a runner that
//!   does not answer, if that has never said that the command is under way.
//!
//! When an earlier session last sent a command is not on record: not before the
//! intent, not after the time that it took, and not after this session's start.
//! The latest possible moment is what counts.
//!
//! Invariant: a hold that is dropped, by whatever accident, holds nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::doubt::Doubt;
use crate::gauge::Gauge;

/// While there is one, no mutation is started.
#[derive(Debug)]
pub(crate) struct Hold(Gauge);

impl Hold {
    /// From now on.
    pub(crate) fn on(gauge: &Gauge) -> Self {
        gauge.hold();
        Self(gauge.clone())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A mutation whose fate is unknown, or not on record.
#[derive(Debug)]
pub(crate) enum Raised {
    /// The runner may be executing it.
    Held(Held),
    /// It is not.
    Over(Doubt),
}

/// A mutation that keeps the lane shut.
#[derive(Debug)]
pub(crate) struct Held {
    /// Which, and what is known of it.
    pub(crate) doubt: Doubt,
    /// Until when, unless more is heard of it.
    pub(crate) until: Instant,
    /// When its window closes.
    window_closes: Instant,
    hold: Hold,
}

impl Held {
    /// One that was sent by this session and whose window is open.
    pub(crate) fn sent(doubt: Doubt, window_closes: Instant, gauge: &Gauge) -> Self {
        Self {
            doubt,
            until: window_closes,
            window_closes,
            hold: Hold::on(gauge),
        }
    }

    /// One that an earlier session left. It keeps the lane shut while its window
    /// may be open, and as long as it has no fate on record.
    pub(crate) fn left(
        doubt: Doubt,
        window: Duration,
        patience: Duration,
        gauge: &Gauge,
    ) -> Raised {
        let now = Instant::now();
        let sent_within = if doubt.has_fate {
            doubt.receipt.device_time
        } else {
            Duration::MAX
        };
        let since_the_send = doubt.sent.until(now).saturating_sub(sent_within);
        let window_closes = now + window.saturating_sub(since_the_send);
        let until = if !doubt.has_fate {
            now + patience
        } else if window_closes > now {
            window_closes.min(now + patience)
        } else {
            return Raised::Over(doubt);
        };
        Raised::Held(Self {
            doubt,
            until,
            window_closes,
            hold: Hold::on(gauge),
        })
    }

    /// The runner says that it is under way, which is believed for as long as
    /// it can be true.
    pub(crate) fn is_under_way(&mut self) {
        self.until = self.until.max(self.window_closes);
    }

    /// What is left to find out, and what still holds.
    pub(crate) fn into_parts(self) -> (Doubt, Hold) {
        (self.doubt, self.hold)
    }
}
