//! The codec against bytes written by hand, against abuse, and against itself.

mod framing;
mod golden;
mod lockdown;
mod properties;
