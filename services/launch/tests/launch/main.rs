//! The launcher with real processes, each of which a test started itself.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod crash;
mod full;
mod life;
mod refusals;
mod stopping;
mod support;
mod sweeping;
