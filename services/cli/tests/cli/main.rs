//! The binary from outside, against a gateway and a simulated lab in this
//! process: arguments in; stdout, stderr, exit code and the phone's own account
//! out.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod access;
mod bench;
mod credentials;
mod descriptors;
mod doctor;
mod events;
mod failures;
mod host;
mod lease_run;
mod lease_terminal;
mod leases;
mod operators;
mod pipe;
mod processes;
mod runners;
mod terminal;
mod verbs;
mod watch;
