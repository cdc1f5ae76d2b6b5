//! What usbmuxd sends by itself on a connection that listens.

use bytes::Bytes;
use plist::{Dictionary, Value};

use crate::document::{self, Document};
use crate::error::{InvalidMessage, Unencodable};
use crate::frame::Packet;
use crate::id::MuxDeviceId;
use crate::phone::{Phone, device_id};

/// The tag of whatever answers nothing.
const UNSOLICITED: u32 = 0;

/// One event on a listening connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A phone is there, on one transport. Comes once for each that was there
    /// already when the listening began.
    Attached(Phone),
    /// The phone with this number is gone.
    Detached(MuxDeviceId),
    /// The phone with this number now trusts this host.
    Paired(MuxDeviceId),
    /// Something newer, which a client must ignore.
    Unknown {
        /// Its `MessageType`.
        message_type: String,
    },
}

impl Event {
    /// Reads an event.
    pub fn decode(packet: &Packet) -> Result<Self, InvalidMessage> {
        let document = Document::read(packet)?;
        let fields = document.fields();
        Ok(match fields.string("MessageType")? {
            "Attached" => Self::Attached(Phone::read(fields)?),
            "Detached" => Self::Detached(device_id(fields)?),
            "Paired" => Self::Paired(device_id(fields)?),
            other => Self::Unknown {
                message_type: other.to_owned(),
            },
        })
    }

    /// Writes an event as usbmuxd does.
    pub fn encode(&self) -> Result<Bytes, Unencodable> {
        let about = |message_type: &str, device: MuxDeviceId| {
            Dictionary::from_iter([
                ("DeviceID", Value::from(device.0)),
                ("MessageType", message_type.into()),
            ])
        };
        let dictionary = match self {
            Self::Attached(phone) => phone.write(),
            Self::Detached(device) => about("Detached", *device),
            Self::Paired(device) => about("Paired", *device),
            Self::Unknown { message_type } => {
                Dictionary::from_iter([("MessageType", message_type.as_str())])
            }
        };
        document::packet(UNSOLICITED, dictionary)
    }
}
