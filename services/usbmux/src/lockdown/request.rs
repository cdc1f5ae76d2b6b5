//! What a client asks of lockdown.

use bytes::Bytes;
use plist::{Dictionary, Value};

use super::Message;
use crate::document::{self, Document};
use crate::error::{InvalidMessage, Unencodable};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Which service this is.
    QueryType,
    /// One value, or all of a domain.
    GetValue {
        /// The group of values; absent, the phone's own.
        domain: Option<String>,
        /// Which of them; absent, all that the phone tells this client.
        key: Option<String>,
    },
    /// Something that this crate does not know.
    Other(String),
}

impl Request {
    /// Asks for one of the phone's own values.
    pub fn value(key: &str) -> Self {
        Self::GetValue {
            domain: None,
            key: Some(key.to_owned()),
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::QueryType => "QueryType",
            Self::GetValue { .. } => "GetValue",
            Self::Other(name) => name,
        }
    }

    /// The key that its answer repeats.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::GetValue { key, .. } => key.as_deref(),
            Self::QueryType | Self::Other(_) => None,
        }
    }

    /// Writes the request; `label` names the program that asks.
    pub fn encode(&self, label: &str) -> Result<Bytes, Unencodable> {
        let mut dictionary = Dictionary::new();
        let mut put = |key: &str, text: &str| dictionary.insert(key.to_owned(), Value::from(text));
        if let Self::GetValue { domain, key } = self {
            if let Some(domain) = domain {
                put("Domain", domain);
            }
            if let Some(key) = key {
                put("Key", key);
            }
        }
        put("Label", label);
        put("Request", self.name());
        Message::encode(&document::xml(dictionary)?)
    }

    /// Reads a request as a phone does.
    pub fn decode(message: &Message) -> Result<Self, InvalidMessage> {
        let document = Document::parse(message.payload())?;
        let fields = document.fields();
        let text = |key| -> Result<Option<String>, InvalidMessage> {
            let text = fields.has(key).then(|| fields.string(key)).transpose()?;
            Ok(text.map(str::to_owned))
        };
        Ok(match fields.string("Request")? {
            "QueryType" => Self::QueryType,
            "GetValue" => Self::GetValue {
                domain: text("Domain")?,
                key: text("Key")?,
            },
            other => Self::Other(other.to_owned()),
        })
    }
}
