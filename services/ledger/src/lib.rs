//! The durable record of what was intended and what became of it.
//!
//! A mutation is recorded before its first byte is sent ([`Ledger::intend`])
//! and its fate before its reply ([`Ledger::conclude`]); a read, once, at its
//! end ([`Ledger::record`]). Each of these returns when the record is on the
//! disk.
//!
//! This crate owns all SQL and refuses to know what a command means. Typed text
//! never gets in: an entry whose parameters hold it is refused.
//!
//! What a phone goes through is recorded as it happens
//! ([`Ledger::transition`]). What holds for it, such as its alias, is written
//! together with the operation that changed it ([`Ledger::set_device`]), and so
//! are leases ([`Ledger::write_leases`]).
//!
//! What is learnt later is a further word on the command ([`Ledger::resolve`]);
//! every word stays readable ([`Ledger::history`]). All of it is one chain of
//! events, which can be followed ([`Ledger::tail`]) and which shows tampering
//! ([`verify()`]); how it is hashed stands in [`canonical`].
//!
//! Invariants: an entry is acknowledged only after its commit; one process
//! writes a file at a time; a row of the chain, or one that it binds, is never
//! changed once it is written, and removed only by retention, which leaves a
//! checkpoint.

mod batch;
mod bind;
pub mod canonical;
mod chain;
mod config;
mod entry;
mod error;
mod event;
mod handle;
mod health;
mod history;
mod leases;
mod lock;
mod open;
mod operations;
mod pages;
mod query;
mod retention;
mod row;
mod settings;
mod space;
mod stats;
mod survey;
mod tail;
mod time;
mod token;
mod transitions;
mod verify;
mod writer;

pub use canonical::{Hash, Head, InvalidHash};
pub use config::{LedgerConfig, RetentionConfig, Synchronous};
pub use entry::{
    KeptReply, MAX_KEPT_REPLY, NewFate, NewIntent, NewOperation, NewRecord, NewResolution,
    NewTransition, Outcome,
};
pub use error::{Cause, LedgerError};
pub use event::EventKind;
pub use handle::Ledger;
pub use health::LedgerHealth;
pub use leases::{LeaseClock, LeasePage, LeaseQuery, LeaseRow, LeaseStamp, NewLeaseWrite};
pub use operations::{Operation, OperationPage, OperationQuery, OperationRow};
pub use query::{CommandPage, CommandQuery};
pub use row::{CommandRow, Conclusion};
pub use settings::{Cordon, DeviceSettings, Quarantine};
pub use stats::LedgerStats;
pub use tail::{Checkpoint, Cursor, LedgerEvent, Subject, TailPage};
pub use token::PageToken;
pub use transitions::{Transition, TransitionPage};
pub use verify::{Break, Fault, VerifyReport, verify};
