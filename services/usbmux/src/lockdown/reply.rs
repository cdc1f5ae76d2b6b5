//! What lockdown answers.

use bytes::Bytes;
use plist::{Dictionary, Value as Plist};

use super::{ErrorCode, Message, Request, Value};
use crate::document::{self, Document};
use crate::error::{InvalidMessage, Unencodable};

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To `QueryType`: the name of the service.
    Type(String),
    /// To `GetValue`.
    Value(Value),
    /// To anything: no.
    Refused(ErrorCode),
}

impl Reply {
    /// Reads the answer to `request`. One that names another request or another
    /// value is refused.
    pub fn decode(message: &Message, request: &Request) -> Result<Self, InvalidMessage> {
        let document = Document::parse(message.payload())?;
        let fields = document.fields();
        if fields.string("Request")? != request.name() {
            return Err(InvalidMessage::Key("Request"));
        }
        if fields.has("Error") {
            return ErrorCode::from_wire(fields.string("Error")?).map(Self::Refused);
        }
        match request {
            Request::QueryType => Ok(Self::Type(fields.string("Type")?.to_owned())),
            Request::GetValue { .. } => {
                if fields.has("Key") && Some(fields.string("Key")?) != request.key() {
                    return Err(InvalidMessage::Key("Key"));
                }
                let value = fields.value("Value").and_then(Value::read);
                value.map(Self::Value).ok_or(InvalidMessage::Key("Value"))
            }
            // Whatever it is, only a refusal is known.
            Request::Other(_) => Err(InvalidMessage::Key("Error")),
        }
    }

    /// Writes the answer to `request` as a phone does.
    pub fn encode(&self, request: &Request) -> Result<Bytes, Unencodable> {
        let mut dictionary = Dictionary::new();
        let mut put = |key: &str, value: Plist| dictionary.insert(key.to_owned(), value);
        if let Self::Refused(code) = self {
            put("Error", code.as_str().into());
        }
        if let Some(key) = request.key() {
            put("Key", key.into());
        }
        put("Request", request.name().into());
        match self {
            Self::Type(service) => {
                put("Type", service.as_str().into());
            }
            Self::Value(value) => {
                put("Value", value.write());
            }
            Self::Refused(_) => {}
        }
        Message::encode(&document::xml(dictionary)?)
    }
}
