//! The end-to-end tests: gRPC clients on one side, simulated phones on the
//! other, and everything that is real between them.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod buttons;
mod gestures;
mod keyboard;
mod reads;
mod screenshots;
