//! A phone as usbmuxd announces it, in a device list or in an event: once per
//! transport, under one id each.

use plist::{Dictionary, Value};

use crate::document::Fields;
use crate::error::InvalidMessage;
use crate::id::MuxDeviceId;

/// How a phone is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionType {
    /// By cable.
    Usb,
    /// Over Wi-Fi.
    Network,
    /// Some other way.
    Other(String),
}

impl ConnectionType {
    fn from_wire(text: &str) -> Self {
        match text {
            "USB" => Self::Usb,
            "Network" => Self::Network,
            other => Self::Other(other.to_owned()),
        }
    }

    fn as_wire(&self) -> &str {
        match self {
            Self::Usb => "USB",
            Self::Network => "Network",
            Self::Other(other) => other,
        }
    }
}

/// One phone on one transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phone {
    /// The number to connect to.
    pub device: MuxDeviceId,
    /// How it is reached under this number.
    pub connection: ConnectionType,
    /// The UDID in whatever spelling this daemon uses.
    pub serial: String,
    /// The USB product id.
    pub product: Option<u64>,
    /// The USB location.
    pub location: Option<u64>,
    /// The USB speed in bits per second.
    pub speed: Option<u64>,
}

impl Phone {
    /// Reads an `Attached` dictionary. What a `Connect` needs must be there; the
    /// rest is taken if it is.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, InvalidMessage> {
        let properties = fields.dictionary("Properties")?;
        Ok(Self {
            device: device_id(fields).or_else(|_| device_id(properties))?,
            connection: ConnectionType::from_wire(properties.string("ConnectionType")?),
            serial: properties.string("SerialNumber")?.to_owned(),
            product: properties.unsigned("ProductID").ok(),
            location: properties.unsigned("LocationID").ok(),
            speed: properties.unsigned("ConnectionSpeed").ok(),
        })
    }

    /// Writes an `Attached` dictionary.
    pub(crate) fn write(&self) -> Dictionary {
        let mut properties = Dictionary::new();
        let mut put = |key: &str, value: Value| properties.insert(key.to_owned(), value);
        if let Some(speed) = self.speed {
            put("ConnectionSpeed", speed.into());
        }
        put("ConnectionType", self.connection.as_wire().into());
        put("DeviceID", self.device.0.into());
        if let Some(location) = self.location {
            put("LocationID", location.into());
        }
        if let Some(product) = self.product {
            put("ProductID", product.into());
        }
        put("SerialNumber", self.serial.as_str().into());
        Dictionary::from_iter([
            ("DeviceID", Value::from(self.device.0)),
            ("MessageType", "Attached".into()),
            ("Properties", properties.into()),
        ])
    }
}

/// Reads a `DeviceID` key.
pub(crate) fn device_id(fields: Fields<'_>) -> Result<MuxDeviceId, InvalidMessage> {
    let number = fields.unsigned("DeviceID")?;
    u32::try_from(number)
        .map(MuxDeviceId)
        .map_err(|_| InvalidMessage::Key("DeviceID"))
}
