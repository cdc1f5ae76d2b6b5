//! A gateway through its own port, without a phone.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod admin;
mod answers;
mod ending;
mod settings;
mod support;
mod telemetry;
mod wire;
