//! What a client asks of usbmuxd.

use bytes::Bytes;
use plist::{Dictionary, Value};

use crate::document::{self, Document};
use crate::error::{InvalidMessage, Unencodable};
use crate::frame::Packet;
use crate::id::{MuxDeviceId, Port};
use crate::pair_record::PairRecord;
use crate::phone::device_id;

/// What every request says about who is asking, the library version besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The program.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Client {
    /// `kLibUSBMuxVersion`: events come as property lists.
    const LIBRARY_VERSION: u32 = 3;

    /// Names a client.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
        }
    }

    /// Who sent this request.
    pub fn decode(packet: &Packet) -> Result<Self, InvalidMessage> {
        let document = Document::read(packet)?;
        let fields = document.fields();
        Ok(Self::new(
            fields.string("ProgName")?,
            fields.string("ClientVersionString")?,
        ))
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Every phone that is there now.
    ListDevices,
    /// Turns the connection into one that carries events.
    Listen,
    /// Turns the connection into a pipe to a port of a phone.
    Connect {
        /// The phone.
        device: MuxDeviceId,
        /// The TCP port on it.
        port: Port,
    },
    /// The host's own id.
    ReadBuid,
    /// What the host and a phone agreed on when they were paired.
    ReadPairRecord {
        /// The phone's UDID.
        id: String,
    },
    /// Keeps such a record.
    SavePairRecord {
        /// The phone's UDID.
        id: String,
        /// The record.
        record: PairRecord,
        /// The phone's number, if it is attached.
        device: Option<MuxDeviceId>,
    },
    /// Forgets such a record.
    DeletePairRecord {
        /// The phone's UDID.
        id: String,
    },
    /// Every client that listens.
    ListListeners,
    /// Something that this crate does not know.
    Other(String),
}

impl Request {
    /// Writes the request; its answer will carry the same tag.
    pub fn encode(&self, client: &Client, tag: u32) -> Result<Bytes, Unencodable> {
        let mut dictionary = Dictionary::new();
        let mut put = |key: &str, value: Value| dictionary.insert(key.to_owned(), value);
        put("MessageType", self.message_type().into());
        put("ClientVersionString", client.version.as_str().into());
        put("ProgName", client.name.as_str().into());
        put("kLibUSBMuxVersion", Client::LIBRARY_VERSION.into());
        match self {
            Self::Connect { device, port } => {
                put("DeviceID", device.0.into());
                put("PortNumber", port.to_wire().into());
            }
            Self::ReadPairRecord { id } | Self::DeletePairRecord { id } => {
                put("PairRecordID", id.as_str().into());
            }
            Self::SavePairRecord { id, record, device } => {
                put("PairRecordID", id.as_str().into());
                put("PairRecordData", Value::Data(record.0.to_vec()));
                if let Some(device) = device {
                    put("DeviceID", device.0.into());
                }
            }
            Self::ListDevices
            | Self::Listen
            | Self::ReadBuid
            | Self::ListListeners
            | Self::Other(_) => {}
        }
        document::packet(tag, dictionary)
    }

    /// Reads a request as usbmuxd does.
    pub fn decode(packet: &Packet) -> Result<Self, InvalidMessage> {
        let document = Document::read(packet)?;
        let fields = document.fields();
        let record_id = || fields.string("PairRecordID").map(str::to_owned);
        Ok(match fields.string("MessageType")? {
            "ListDevices" => Self::ListDevices,
            "Listen" => Self::Listen,
            "Connect" => Self::Connect {
                device: device_id(fields)?,
                port: Port::from_wire(fields.unsigned("PortNumber")?)?,
            },
            "ReadBUID" => Self::ReadBuid,
            "ReadPairRecord" => Self::ReadPairRecord { id: record_id()? },
            "SavePairRecord" => Self::SavePairRecord {
                id: record_id()?,
                record: PairRecord(fields.data("PairRecordData")?),
                device: device_id(fields).ok(),
            },
            "DeletePairRecord" => Self::DeletePairRecord { id: record_id()? },
            "ListListeners" => Self::ListListeners,
            other => Self::Other(other.to_owned()),
        })
    }

    fn message_type(&self) -> &str {
        match self {
            Self::ListDevices => "ListDevices",
            Self::Listen => "Listen",
            Self::Connect { .. } => "Connect",
            Self::ReadBuid => "ReadBUID",
            Self::ReadPairRecord { .. } => "ReadPairRecord",
            Self::SavePairRecord { .. } => "SavePairRecord",
            Self::DeletePairRecord { .. } => "DeletePairRecord",
            Self::ListListeners => "ListListeners",
            Self::Other(name) => name,
        }
    }
}
