//! The binary from outside, against a gateway and a simulated lab in this
//! process: arguments in; stdout, stderr, exit code and the phone's own account
//! out.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod bench;
mod events;
mod failures;
mod processes;
mod verbs;
