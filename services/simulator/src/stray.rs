//! Announcements of what is no phone of the lab: entries that a client must
//! skip without harm to the rest.
//!
//! Like a plug, a stray outlives the daemon and gets another number from the
//! next one. It stands in device lists before the phones and comes to listeners
//! like an attachment.

use std::io::{self, Cursor};

use fleetgate_usbmux::MuxDeviceId;
use plist::{Dictionary, Value};
use serde::{Deserialize, Serialize};

use crate::packet;

/// One such entry. As JSON: `{"serial": "no UDID"}`,
/// `{"lacks": ["device_id"]}` or `{"connection": "Pigeon"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stray {
    /// Its `SerialNumber`.
    #[serde(default = "serial")]
    pub serial: String,
    /// Its `ConnectionType`.
    #[serde(default = "usb")]
    pub connection: String,
    /// Its `DeviceID`; absent for one that no other entry has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<i64>,
    /// What is not there at all.
    #[serde(default)]
    pub lacks: Vec<EntryKey>,
}

/// A key of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKey {
    /// `DeviceID`, in both places where it stands.
    DeviceId,
    /// `SerialNumber`.
    SerialNumber,
    /// `ConnectionType`.
    ConnectionType,
    /// `Properties`, and all that is in it.
    Properties,
}

fn serial() -> String {
    "stray".to_owned()
}

fn usb() -> String {
    "USB".to_owned()
}

impl Default for Stray {
    fn default() -> Self {
        Self {
            serial: serial(),
            connection: usb(),
            device_id: None,
            lacks: Vec::new(),
        }
    }
}

impl Stray {
    fn has(&self, key: EntryKey) -> bool {
        !self.lacks.contains(&key)
    }

    /// The number that it is announced under, if it has one.
    pub(crate) fn number(&self, device: MuxDeviceId) -> Option<i64> {
        let number = self.device_id.unwrap_or_else(|| device.0.into());
        self.has(EntryKey::DeviceId).then_some(number)
    }

    fn entry(&self, device: MuxDeviceId) -> Dictionary {
        let number = self.number(device).map(Value::from);
        let mut properties = Dictionary::new();
        if self.has(EntryKey::ConnectionType) {
            properties.insert("ConnectionType".to_owned(), self.connection.as_str().into());
        }
        if self.has(EntryKey::SerialNumber) {
            properties.insert("SerialNumber".to_owned(), self.serial.as_str().into());
        }
        let mut entry = Dictionary::from_iter([("MessageType", Value::from("Attached"))]);
        if let Some(number) = number {
            properties.insert("DeviceID".to_owned(), number.clone());
            entry.insert("DeviceID".to_owned(), number);
        }
        if self.has(EntryKey::Properties) {
            entry.insert("Properties".to_owned(), properties.into());
        }
        entry
    }

    /// The event that announces it.
    pub(crate) fn attached(&self, device: MuxDeviceId) -> io::Result<Vec<u8>> {
        packet::write(0, &Value::Dictionary(self.entry(device)))
    }
}

/// The event that takes an announcement under this number back.
pub(crate) fn detached(number: i64) -> io::Result<Vec<u8>> {
    let event = [
        ("DeviceID", Value::from(number)),
        ("MessageType", "Detached".into()),
    ];
    packet::write(0, &Value::Dictionary(Dictionary::from_iter(event)))
}

/// A device list with these before its phones.
pub(crate) fn before_the_phones<'a>(
    list: &[u8],
    tag: u32,
    strays: impl Iterator<Item = (&'a Stray, MuxDeviceId)>,
) -> io::Result<Vec<u8>> {
    let payload = list.get(packet::HEADER..).unwrap_or_default();
    let mut answer = Value::from_reader_xml(Cursor::new(payload)).map_err(io::Error::other)?;
    let entries = answer
        .as_dictionary_mut()
        .and_then(|answer| answer.get_mut("DeviceList"))
        .and_then(Value::as_array_mut);
    if let Some(entries) = entries {
        let strays = strays.map(|(stray, device)| Value::Dictionary(stray.entry(device)));
        entries.splice(0..0, strays);
    }
    packet::write(tag, &answer)
}
