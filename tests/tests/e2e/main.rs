//! The end-to-end tests: gRPC clients on one side, simulated phones on the
//! other, and everything that is real between them.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod buttons;
mod conditions;
mod echoes;
mod gestures;
mod keyboard;
mod limits;
mod naming;
mod reads;
mod receipts;
mod refusals;
mod screenshots;
mod validation;
mod verdicts;
