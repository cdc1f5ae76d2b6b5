//! What usbmuxd answers to a request, matched to it by the tag.

use bytes::Bytes;
use plist::{Dictionary, Value};

use crate::document::{self, Document, Fields};
use crate::error::{InvalidMessage, Unencodable};
use crate::frame::Packet;
use crate::pair_record::PairRecord;
use crate::phone::Phone;

/// The number in a `Result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultCode {
    /// 0: done.
    Ok,
    /// 1: the daemon does not understand the request.
    BadCommand,
    /// 2: no such device, or no such record.
    BadDevice,
    /// 3: nothing listens on that port of the device.
    ConnectionRefused,
    /// 4: the device did not answer in time; seen in practice.
    ConnectionTimedOut,
    /// 6: the daemon does not speak this version.
    BadVersion,
    /// Any other number.
    Other(i64),
}

impl ResultCode {
    /// The number on the wire.
    pub fn number(self) -> i64 {
        match self {
            Self::Ok => 0,
            Self::BadCommand => 1,
            Self::BadDevice => 2,
            Self::ConnectionRefused => 3,
            Self::ConnectionTimedOut => 4,
            Self::BadVersion => 6,
            Self::Other(number) => number,
        }
    }
}

impl From<i64> for ResultCode {
    fn from(number: i64) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::BadCommand,
            2 => Self::BadDevice,
            3 => Self::ConnectionRefused,
            4 => Self::ConnectionTimedOut,
            6 => Self::BadVersion,
            other => Self::Other(other),
        }
    }
}

/// The phones of a device list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceList {
    /// Every entry that could be read, in the daemon's order.
    pub phones: Vec<Phone>,
    /// How many entries could not be read.
    pub skipped: usize,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To whatever answers with a number only, and to whatever failed.
    Result(ResultCode),
    /// To `ListDevices`.
    DeviceList(DeviceList),
    /// To `ReadBUID`: the host's own id.
    Buid(String),
    /// To `ReadPairRecord`.
    PairRecord(PairRecord),
    /// To `ListListeners`: the names of the programs that listen.
    Listeners(Vec<String>),
}

impl Reply {
    /// Reads the answer to the request with this tag.
    pub fn decode(packet: &Packet, tag: u32) -> Result<Self, InvalidMessage> {
        let got = packet.header.tag;
        if got != tag {
            return Err(InvalidMessage::Tag { expected: tag, got });
        }
        let document = Document::read(packet)?;
        let fields = document.fields();
        if fields
            .string("MessageType")
            .is_ok_and(|kind| kind == "Result")
        {
            Ok(Self::Result(fields.signed("Number")?.into()))
        } else if fields.has("DeviceList") {
            Ok(Self::DeviceList(DeviceList::read(fields)?))
        } else if fields.has("BUID") {
            Ok(Self::Buid(fields.string("BUID")?.to_owned()))
        } else if fields.has("PairRecordData") {
            Ok(Self::PairRecord(PairRecord(fields.data("PairRecordData")?)))
        } else if fields.has("ListenerList") {
            let listeners = fields.array("ListenerList")?.iter().filter_map(Fields::of);
            let names = listeners.filter_map(|listener| listener.string("ProgName").ok());
            Ok(Self::Listeners(names.map(str::to_owned).collect()))
        } else {
            let message_type = fields.string("MessageType").ok().map(str::to_owned);
            Err(InvalidMessage::NotAReply { message_type })
        }
    }

    /// Writes the answer to the request with this tag, as usbmuxd does.
    pub fn encode(&self, tag: u32) -> Result<Bytes, Unencodable> {
        let dictionary = match self {
            Self::Result(code) => Dictionary::from_iter([
                ("MessageType", Value::from("Result")),
                ("Number", code.number().into()),
            ]),
            Self::DeviceList(list) => {
                let entries = list
                    .phones
                    .iter()
                    .map(|phone| Value::Dictionary(phone.write()));
                Dictionary::from_iter([("DeviceList", Value::Array(entries.collect()))])
            }
            Self::Buid(buid) => Dictionary::from_iter([("BUID", buid.as_str())]),
            Self::PairRecord(record) => {
                Dictionary::from_iter([("PairRecordData", Value::Data(record.0.to_vec()))])
            }
            Self::Listeners(names) => {
                let listeners = names.iter().map(|name| {
                    Value::Dictionary(Dictionary::from_iter([("ProgName", name.as_str())]))
                });
                Dictionary::from_iter([("ListenerList", Value::Array(listeners.collect()))])
            }
        };
        document::packet(tag, dictionary)
    }
}

impl DeviceList {
    fn read(fields: Fields<'_>) -> Result<Self, InvalidMessage> {
        let entries = fields.array("DeviceList")?;
        let phones: Vec<_> = entries
            .iter()
            .filter_map(|entry| Fields::of(entry).and_then(|entry| Phone::read(entry).ok()))
            .collect();
        Ok(Self {
            skipped: entries.len() - phones.len(),
            phones,
        })
    }
}
