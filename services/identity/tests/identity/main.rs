//! Callers before an authenticator: what each is known by, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod canary;
mod certificates;
mod instances;
mod issuer;
mod jwts;
mod keys;
mod rotation;
mod server;
mod support;
mod token_file;
mod ways;
