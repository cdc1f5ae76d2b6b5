//! A gateway through its own port, without a phone.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod access;
mod admin;
mod answers;
mod ending;
mod guarded;
mod leases;
mod limits;
mod operations;
mod settings;
mod support;
mod telemetry;
mod tls;
mod wire;
