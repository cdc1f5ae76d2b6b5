//! Packets on a byte stream: a 16-byte little-endian header, then a payload.
//!
//! Owns the cutting of a stream into packets and nothing of their meaning.
//! Memory grows with the bytes that arrived, never with what a length field
//! promises; once a header is illegal the decoder answers that error for ever.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::{FrameError, Unencodable};

/// The most bytes that one packet may have, header included: some twenty times
/// the device list of 500 phones.
pub const MAX_PACKET: usize = 8 * 1024 * 1024;

/// How much room is made for one read.
const READ_SIZE: usize = 8 * 1024;

/// The fixed part of a packet. All four numbers are little-endian on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The whole packet's length in bytes, these sixteen included.
    pub length: u32,
    /// 1 where payloads are property lists; some daemons say 0 all the same.
    pub version: u32,
    /// What the payload is; [`Header::PLIST`] in all that this crate reads.
    pub message: u32,
    /// A request's number, repeated in its answer; 0 in events.
    pub tag: u32,
}

impl Header {
    /// The length of a header.
    pub const LEN: usize = 16;
    /// The version whose payloads are property lists.
    pub const VERSION: u32 = 1;
    /// The message type of a property list.
    pub const PLIST: u32 = 8;

    /// Reads a header.
    pub fn decode(bytes: [u8; Self::LEN]) -> Self {
        let mut bytes = &bytes[..];
        Self {
            length: bytes.get_u32_le(),
            version: bytes.get_u32_le(),
            message: bytes.get_u32_le(),
            tag: bytes.get_u32_le(),
        }
    }
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub payload: Bytes,
}

impl Packet {
    /// The bytes of a packet with a property list.
    pub(crate) fn encode(tag: u32, payload: &[u8]) -> Result<Bytes, Unencodable> {
        let length = Header::LEN + payload.len();
        let too_large = || Unencodable::TooLarge {
            bytes: payload.len(),
        };
        if length > MAX_PACKET {
            return Err(too_large());
        }
        let mut packet = BytesMut::with_capacity(length);
        packet.put_u32_le(u32::try_from(length).map_err(|_| too_large())?);
        packet.put_u32_le(Header::VERSION);
        packet.put_u32_le(Header::PLIST);
        packet.put_u32_le(tag);
        packet.put_slice(payload);
        Ok(packet.freeze())
    }
}

/// Cuts a byte stream into packets.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder that takes packets of up to [`MAX_PACKET`] bytes.
    pub fn new() -> Self {
        Self::with_limit(MAX_PACKET)
    }

    /// A decoder that takes packets of up to `limit` bytes, header included.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
        }
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

    /// The next whole packet, if it has arrived.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, FrameError> {
        let Some(header) = self.buffer.first_chunk().copied().map(Header::decode) else {
            return Ok(None);
        };
        let length = header.length as usize;
        if length < Header::LEN {
            return Err(FrameError::TooShort {
                length: header.length,
            });
        }
        if length > self.limit {
            return Err(FrameError::TooLong {
                length: header.length,
                limit: self.limit,
            });
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let mut payload = self.buffer.split_to(length).freeze();
        payload.advance(Header::LEN);
        Ok(Some(Packet { header, payload }))
    }

    /// True between packets: the only place where a stream may end.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The bytes after the last packet. After the answer to a `Connect` they are
    /// the first ones of the pipe.
    pub fn into_rest(self) -> Bytes {
        self.buffer.freeze()
    }
}
