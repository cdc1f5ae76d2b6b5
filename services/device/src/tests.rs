//! The crate against a scripted usbmuxd on in-memory streams, under paused time.

mod connect;
mod daemon;
mod exchange;
mod listen;
mod replies;
