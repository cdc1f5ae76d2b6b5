//! The durable record of what was intended and what became of it.
//!
//! A mutation is recorded before its first byte is sent ([`Ledger::intend`])
//! and its fate before its reply ([`Ledger::conclude`]); a read, once, at its
//! end ([`Ledger::record`]). Each of these returns when the record is on the
//! disk. Section 6 of the design.
//!
//! This crate owns all SQL and refuses to know what a command means. Typed text
//! never gets in: an entry whose parameters hold it is refused.
//!
//! Invariants: an entry is acknowledged only after its commit; one process
//! writes a file at a time; a row, once written, is never changed.

mod batch;
mod config;
mod entry;
mod error;
mod handle;
mod lock;
mod open;
mod query;
mod row;
mod stats;
mod time;
mod token;
mod writer;

pub use config::{LedgerConfig, Synchronous};
pub use entry::{NewFate, NewIntent, NewRecord, Outcome};
pub use error::{Cause, LedgerError};
pub use handle::Ledger;
pub use query::{CommandPage, CommandQuery};
pub use row::{CommandRow, Conclusion};
pub use stats::LedgerStats;
pub use token::PageToken;
