//! Property lists as this protocol uses them: one dictionary per message, read
//! in XML and in binary form, written in XML because usbmuxd reads nothing else.
//!
//! A document is refused while it is read as soon as it nests deeper or unfolds
//! to more than any real message does. A binary property list of a kilobyte can
//! refer to its own parts so often that it unfolds to petabytes, and a deep one
//! overflows the stack when it is dropped.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use plist::stream::{BinaryReader, OwnedEvent, XmlReader};
use plist::{Dictionary, Value};

use crate::error::{InvalidMessage, Unencodable};
use crate::frame::{Header, MAX_PACKET, Packet};

/// How a binary property list starts.
const BINARY_MAGIC: &[u8] = b"bplist00";

/// Deeper than any real message, whose deepest part is a phone's properties in
/// a device list.
const MAX_DEPTH: usize = 16;

/// What each value costs besides its bytes; about its size in memory.
const VALUE_COST: usize = 32;

/// The most that a document may unfold to.
const MAX_COST: usize = 2 * MAX_PACKET;

/// What a packet's property list holds.
#[derive(Debug)]
pub(crate) struct Document(Dictionary);

impl Document {
    /// Reads a packet's property list. The header's version is not looked at:
    /// daemons that put 0 there send property lists like the others.
    pub(crate) fn read(packet: &Packet) -> Result<Self, InvalidMessage> {
        if packet.header.message != Header::PLIST {
            return Err(InvalidMessage::NotPlist(packet.header));
        }
        Self::parse(&packet.payload)
    }

    /// Reads a property list.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, InvalidMessage> {
        let value = if payload.starts_with(BINARY_MAGIC) {
            build(BinaryReader::new(Cursor::new(payload)))
        } else {
            build(XmlReader::new(payload))
        }?;
        value
            .into_dictionary()
            .map(Self)
            .ok_or(InvalidMessage::NotDictionary)
    }

    /// The whole dictionary.
    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields(&self.0)
    }
}

/// Read access to a dictionary, typed by what the caller asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(&'a Dictionary);

impl<'a> Fields<'a> {
    /// Reads a value as a dictionary.
    pub(crate) fn of(value: &'a Value) -> Option<Self> {
        value.as_dictionary().map(Self)
    }

    pub(crate) fn has(self, key: &'static str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn string(self, key: &'static str) -> Result<&'a str, InvalidMessage> {
        self.read(key, Value::as_string)
    }

    pub(crate) fn signed(self, key: &'static str) -> Result<i64, InvalidMessage> {
        self.read(key, Value::as_signed_integer)
    }

    pub(crate) fn unsigned(self, key: &'static str) -> Result<u64, InvalidMessage> {
        self.read(key, Value::as_unsigned_integer)
    }

    pub(crate) fn data(self, key: &'static str) -> Result<Bytes, InvalidMessage> {
        self.read(key, Value::as_data).map(Bytes::copy_from_slice)
    }

    pub(crate) fn array(self, key: &'static str) -> Result<&'a [Value], InvalidMessage> {
        self.read(key, Value::as_array).map(Vec::as_slice)
    }

    pub(crate) fn dictionary(self, key: &'static str) -> Result<Self, InvalidMessage> {
        self.read(key, Self::of)
    }

    /// A value of whatever type.
    pub(crate) fn value(self, key: &'static str) -> Option<&'a Value> {
        self.0.get(key)
    }

    fn read<T>(
        self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, InvalidMessage> {
        self.value(key)
            .and_then(read)
            .ok_or(InvalidMessage::Key(key))
    }
}

/// The bytes of a packet that holds this dictionary as XML.
pub(crate) fn packet(tag: u32, dictionary: Dictionary) -> Result<Bytes, Unencodable> {
    Packet::encode(tag, &xml(dictionary)?)
}

/// This dictionary as XML.
pub(crate) fn xml(dictionary: Dictionary) -> Result<Vec<u8>, Unencodable> {
    let mut xml = Vec::with_capacity(1024);
    Value::Dictionary(dictionary)
        .to_writer_xml(&mut xml)
        .map_err(|error| Unencodable::Plist(Arc::new(error)))?;
    xml.push(b'\n');
    Ok(xml)
}

/// Builds the value that a stream of reader's events describes.
fn build(
    events: impl Iterator<Item = Result<OwnedEvent, plist::Error>>,
) -> Result<Value, InvalidMessage> {
    let mut gauge = Gauge { depth: 0, cost: 0 };
    let mut excessive = false;
    let within_bounds = events.take_while(|event| {
        excessive = event.as_ref().is_ok_and(|event| !gauge.admits(event));
        !excessive
    });
    let value = Value::from_events(within_bounds);
    if excessive {
        return Err(InvalidMessage::Excessive);
    }
    value.map_err(|error| InvalidMessage::Unreadable(Arc::new(error)))
}

/// How deep and how large a document has become so far.
#[derive(Debug)]
struct Gauge {
    depth: usize,
    cost: usize,
}

impl Gauge {
    fn admits(&mut self, event: &OwnedEvent) -> bool {
        let bytes = if let OwnedEvent::StartArray(len) | OwnedEvent::StartDictionary(len) = event {
            self.depth += 1;
            // A builder makes room for this many elements at once.
            let len = usize::try_from(len.unwrap_or_default()).unwrap_or(usize::MAX);
            len.saturating_mul(VALUE_COST)
        } else if let OwnedEvent::EndCollection = event {
            self.depth = self.depth.saturating_sub(1);
            0
        } else if let OwnedEvent::String(text) = event {
            text.len()
        } else if let OwnedEvent::Data(data) = event {
            data.len()
        } else {
            0
        };
        self.cost = self.cost.saturating_add(VALUE_COST).saturating_add(bytes);
        self.depth <= MAX_DEPTH && self.cost <= MAX_COST
    }
}
