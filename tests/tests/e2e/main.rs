//! The end-to-end tests: gRPC clients on one side, simulated phones on the
//! other, and everything that is real between them.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod access;
mod binary;
mod budgets;
mod buttons;
mod callers;
mod cases;
mod clock;
mod concurrency;
mod conditions;
mod conflicts;
mod deadlines;
mod draining;
mod duplicates;
mod echoes;
mod fleet_health;
mod fleet_launch;
mod gestures;
mod idempotency;
mod keyboard;
mod leases;
mod ledger;
mod ledger_trouble;
mod limits;
mod masses;
mod naming;
mod operators;
mod reads;
mod receipts;
mod recovery;
mod redaction;
mod refusals;
mod replies;
mod screenshots;
mod server;
mod sizes;
mod tail;
mod unrecorded;
mod usbmux;
mod usbmux_storms;
mod validation;
mod verbs;
mod verdicts;
mod watch_fleet;
mod web;
