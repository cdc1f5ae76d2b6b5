//! The crate against a scripted usbmuxd on in-memory streams, under paused time.

mod connect;
mod daemon;
mod dials;
mod exchange;
mod facts;
mod listen;
mod port;
mod rack;
mod replies;
mod trust;
