//! The end-to-end tests: gRPC clients on one side, simulated phones on the
//! other, and everything that is real between them.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod budgets;
mod buttons;
mod concurrency;
mod conditions;
mod deadlines;
mod echoes;
mod gestures;
mod keyboard;
mod limits;
mod naming;
mod reads;
mod receipts;
mod recovery;
mod refusals;
mod replies;
mod screenshots;
mod sizes;
mod validation;
mod verdicts;
