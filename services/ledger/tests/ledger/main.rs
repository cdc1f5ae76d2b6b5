//! The ledger on real files, seen through its public interface and, beside it,
//! through plain connections to the same file.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod access;
mod batches;
mod chain;
mod durability;
mod health;
mod lease_model;
mod lease_pages;
mod lease_retention;
mod lease_rules;
mod leases;
mod locking;
mod opening;
mod operations;
mod paging;
mod pressure;
mod retention;
mod revisions;
mod secrets;
mod settings;
mod support;
mod tail;
mod transitions;
mod unsettled;
mod upgrade;
mod upgrade_access;
