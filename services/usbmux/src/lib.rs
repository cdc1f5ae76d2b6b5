//! The usbmuxd protocol without I/O, both directions.
//!
//! A usbmuxd multiplexes TCP streams to phones over USB. Its clients talk to it
//! in framed property lists: [`Request`] goes in, [`Reply`] and, on a listening
//! connection, [`Event`] come out; after a `Connect` that succeeded the
//! connection is a raw byte pipe. The gateway uses this crate as the client,
//! the simulator as the server. The same goes for [`lockdown`], which a phone
//! speaks on such a pipe.
//!
//! It refuses to do I/O and to remember anything between packets but the bytes
//! of an unfinished one.
//!
//! Invariant: no input makes it panic, nothing is allocated because a length
//! field says so, and how a stream is cut into reads never changes its packets.
//!
//! ```
//! use fleetgate_usbmux::{Client, Decoder, MuxDeviceId, Port, Reply, Request, ResultCode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let request = Request::Connect { device: MuxDeviceId(3), port: Port::new(8100)? };
//! let to_the_daemon = request.encode(&Client::new("docs", "1.0"), 7)?;
//! # assert_eq!(to_the_daemon[4..12], [1, 0, 0, 0, 8, 0, 0, 0]);
//!
//! let mut from_the_daemon = Decoder::new();
//! from_the_daemon.push(&Reply::Result(ResultCode::Ok).encode(7)?);
//! from_the_daemon.push(b"the pipe");
//! let packet = from_the_daemon.next_packet()?.expect("a whole packet");
//! assert_eq!(Reply::decode(&packet, 7)?, Reply::Result(ResultCode::Ok));
//! assert_eq!(from_the_daemon.into_rest(), b"the pipe"[..]);
//! # Ok(())
//! # }
//! ```

mod document;
mod error;
mod event;
mod frame;
mod id;
pub mod lockdown;
mod pair_record;
mod phone;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use error::{FrameError, InvalidMessage, InvalidPort, Unencodable};
pub use event::Event;
pub use frame::{Decoder, Header, MAX_PACKET, Packet};
pub use id::{MuxDeviceId, Port};
pub use pair_record::PairRecord;
pub use phone::{ConnectionType, Phone};
pub use reply::{DeviceList, Reply, ResultCode};
pub use request::{Client, Request};
