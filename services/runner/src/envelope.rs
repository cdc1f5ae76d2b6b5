//! The envelope that every reply comes in, both directions.
//!
//! The envelope is authoritative, not the HTTP status. All that makes a body an
//! envelope is a boolean `ok`: it proves that the runner gave its verdict. What
//! else is wrong with a reply can spoil its data, never that proof, so the two
//! are told apart in [`InvalidReply`].

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::code::{RunnerCode, RunnerError};
use crate::json;
use crate::kind::CommandKind;
use crate::reply::Reply;

mod data;

/// One reply of a runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The runner brought a backgrounded app to the front before executing.
    pub reactivated: bool,
    /// On a mutation's success: the gesture may have missed.
    pub warning: Option<String>,
    /// The verdict.
    pub result: Result<Reply, RunnerError>,
}

/// Why a reply could not be read. Nothing of it is quoted: it may repeat what was
/// typed, and this is logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReply {
    /// Not JSON, or without a boolean `ok`: it proves nothing.
    #[error("the reply is not an envelope: {detail}")]
    NotAnEnvelope {
        /// What is wrong with it.
        detail: String,
    },
    /// A success whose data cannot be read: the command did run.
    #[error("the reply to {kind} has unusable data: {detail}")]
    Data {
        /// The command that was answered.
        kind: CommandKind,
        /// What is wrong with the data.
        detail: String,
    },
}

impl From<Result<Reply, RunnerError>> for Envelope {
    fn from(result: Result<Reply, RunnerError>) -> Self {
        Self {
            reactivated: false,
            warning: None,
            result,
        }
    }
}

impl Envelope {
    /// Reads the reply to a command of this kind, be it the body of an HTTP
    /// reply or a journal entry's `responseJson`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fleetgate_runner::{CommandKind, Envelope, Reply};
    ///
    /// let body = br#"{"ok":true,"data":{"message":"tapped"},"reactivated":true}"#;
    /// let envelope = Envelope::decode(CommandKind::Tap, body)?;
    /// assert_eq!(envelope.result, Ok(Reply::Done("tapped".to_owned())));
    /// assert!(envelope.reactivated);
    /// # Ok(())
    /// # }
    /// ```
    pub fn decode(kind: CommandKind, body: &[u8]) -> Result<Self, InvalidReply> {
        let outer: Outer<'_> =
            serde_json::from_slice(body).map_err(|error| InvalidReply::NotAnEnvelope {
                detail: json::complaint(&error),
            })?;
        let result = if outer.ok {
            let data = data::decode(kind, outer.data)
                .map_err(|detail| InvalidReply::Data { kind, detail })?;
            Ok(data)
        } else {
            Err(verdict(outer.error))
        };
        Ok(Self {
            reactivated: lenient::<bool>(outer.reactivated).unwrap_or(false),
            warning: lenient(outer.warning),
            result,
        })
    }

    /// The reply as the body of its HTTP response.
    pub fn encode(&self) -> Vec<u8> {
        let (data, error) = match &self.result {
            Ok(reply) => (Some(data::Encoded::from(reply)), None),
            Err(error) => (None, Some(error)),
        };
        json::to_vec(&Written {
            ok: self.result.is_ok(),
            data,
            error,
            reactivated: self.reactivated,
            warning: self.warning.as_deref(),
        })
    }

    /// The HTTP status that goes with it.
    pub fn status(&self) -> u16 {
        match self.result {
            Ok(_) => 200,
            Err(_) => 500,
        }
    }
}

/// An envelope as it is read: its parts are left as they are until it is known
/// which of them matter.
#[derive(Deserialize)]
struct Outer<'a> {
    ok: bool,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    reactivated: Option<&'a RawValue>,
    #[serde(borrow)]
    warning: Option<&'a RawValue>,
}

/// An envelope as it is written.
#[derive(Serialize)]
struct Written<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<data::Encoded<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RunnerError>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reactivated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

/// A part whose absence is harmless: of the wrong type, it counts as absent.
fn lenient<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>) -> Option<T> {
    part.and_then(|part| serde_json::from_str(part.get()).ok())
}

/// The reasons of an error envelope.
#[derive(Default, Deserialize)]
struct Reasons<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    hint: Option<&'a RawValue>,
}

/// A verdict against the command stands even where its reasons cannot be read:
/// without a code it is the generic one.
fn verdict(error: Option<&RawValue>) -> RunnerError {
    let Reasons {
        code,
        message,
        hint,
    } = lenient(error).unwrap_or_default();
    RunnerError {
        code: lenient(code).unwrap_or(RunnerCode::CommandFailed),
        message: lenient(message).unwrap_or_default(),
        hint: lenient(hint),
    }
}
