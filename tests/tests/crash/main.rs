//! The real binary, killed with SIGKILL at each step of a command, and started
//! again on the same ledger. The phones live on; what they did is held against
//! what the new gateway says.
//!
//! ```text
//!   queue ── connect ┐
//!            intent ─┴─ send ── execution ── reply ── fate ── answer
//!   ▲      ▲          ▲      ▲            ▲        ▲       ▲
//!   └──────┴──────────┴──────┴── SIGKILL ─┴────────┴───────┘
//! ```
//!
//! After every kill, the file alone must be an unbroken chain that holds all
//! that it held before.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod leases;
mod lending;
mod recovery;
mod steps;
mod storm;
mod twice;
