//! Lockdown, the service that every phone runs on one fixed port and that tells
//! what the phone is: the two requests that need no pairing, both directions.
//!
//! A message is a length of four bytes in network order and a property list of
//! that many bytes. Requests are answered in order, one at a time; an answer
//! repeats the name of its request, which is all that ties the two together.
//!
//! It refuses to start sessions, which would need the keys of the pair record,
//! and to show what a phone says: formatting a message or a value gives its
//! size or its type only.
//!
//! ```
//! use fleetgate_usbmux::lockdown::{Decoder, Reply, Request, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let request = Request::value("DeviceName");
//! let to_the_phone = request.encode("docs")?;
//! # assert_eq!(to_the_phone[..4], u32::try_from(to_the_phone.len() - 4)?.to_be_bytes());
//!
//! let mut from_the_phone = Decoder::new();
//! let name = Value::from("Alice's phone");
//! from_the_phone.push(&Reply::Value(name.clone()).encode(&request)?);
//! let message = from_the_phone.next_message()?.expect("a whole message");
//! assert_eq!(Reply::decode(&message, &request)?, Reply::Value(name));
//! # Ok(())
//! # }
//! ```

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::{FrameError, Unencodable};

mod code;
mod reply;
mod request;
mod value;

pub use code::ErrorCode;
pub use reply::Reply;
pub use request::Request;
pub use value::Value;

/// The port of a phone that lockdown listens on.
pub const PORT: u16 = 62078;

/// What the service calls itself.
pub const SERVICE: &str = "com.apple.mobile.lockdown";

/// The most bytes that a message may have, its length field not counted: some
/// ten times all that a phone tells of itself in one answer.
pub const MAX_MESSAGE: usize = 256 * 1024;

/// The length field.
const LENGTH: usize = 4;

/// How much room is made for one read.
const READ_SIZE: usize = 4 * 1024;

/// The property list of one message.
#[derive(Clone, PartialEq, Eq)]
pub struct Message(Bytes);

impl Message {
    /// The property list as it came.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of a message with this property list.
    fn encode(payload: &[u8]) -> Result<Bytes, Unencodable> {
        let too_large = || Unencodable::TooLarge {
            bytes: payload.len(),
        };
        if payload.len() > MAX_MESSAGE {
            return Err(too_large());
        }
        let mut message = BytesMut::with_capacity(LENGTH + payload.len());
        message.put_u32(u32::try_from(payload.len()).map_err(|_| too_large())?);
        message.put_slice(payload);
        Ok(message.freeze())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} bytes)", self.0.len())
    }
}

/// Cuts a byte stream into messages. Memory grows with the bytes that arrived,
/// never with what a length field promises.
#[derive(Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoder({} bytes)", self.buffer.len())
    }
}

impl Decoder {
    /// A decoder that takes messages of up to [`MAX_MESSAGE`] bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Where the next bytes of the stream can be read into, instead of
    /// [`Decoder::push`]. It always has room.
    pub fn input(&mut self) -> &mut (impl BufMut + use<>) {
        if self.buffer.capacity() - self.buffer.len() < READ_SIZE / 2 {
            self.buffer.reserve(READ_SIZE);
        }
        &mut self.buffer
    }

    /// The next whole message, if it has arrived. Once a length is illegal,
    /// this says so for ever.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        let Some(length) = self.buffer.first_chunk::<LENGTH>().copied() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(length);
        let bytes = length as usize;
        if bytes > MAX_MESSAGE {
            return Err(FrameError::TooLong {
                length,
                limit: MAX_MESSAGE,
            });
        }
        if self.buffer.len() < LENGTH + bytes {
            return Ok(None);
        }
        let mut message = self.buffer.split_to(LENGTH + bytes);
        let payload = message.split_off(LENGTH);
        Ok(Some(Message(payload.freeze())))
    }

    /// True between messages: the only place where a stream may end.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}
