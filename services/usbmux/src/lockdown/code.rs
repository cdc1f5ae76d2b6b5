//! Why a phone answers no.

use std::fmt;

use crate::error::InvalidMessage;

/// More than any code has.
const MAX_LEN: usize = 64;

/// The `Error` of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The phone is locked and tells this to nobody until it is unlocked.
    PasswordProtected,
    /// The phone does not know the host that asks.
    InvalidHostId,
    /// The phone has no such value.
    MissingValue,
    /// The phone does not tell this value, or not without a session.
    GetProhibited,
    /// A session is needed.
    SessionInactive,
    /// The phone shows the question whether this host is to be trusted.
    PairingDialogResponsePending,
    /// Somebody said no to that question.
    UserDeniedPairing,
    /// The phone does not know the request.
    InvalidRequest,
    /// Any other code; letters, digits and underscores only.
    Other(String),
}

/// Every code that has a name here.
const NAMED: [(&str, ErrorCode); 8] = [
    ("PasswordProtected", ErrorCode::PasswordProtected),
    ("InvalidHostID", ErrorCode::InvalidHostId),
    ("MissingValue", ErrorCode::MissingValue),
    ("GetProhibited", ErrorCode::GetProhibited),
    ("SessionInactive", ErrorCode::SessionInactive),
    (
        "PairingDialogResponsePending",
        ErrorCode::PairingDialogResponsePending,
    ),
    ("UserDeniedPairing", ErrorCode::UserDeniedPairing),
    ("InvalidRequest", ErrorCode::InvalidRequest),
];

impl ErrorCode {
    /// Takes the code of an answer. What does not look like one is refused, so
    /// that a code can be shown and logged whatever a phone puts there.
    pub(crate) fn from_wire(text: &str) -> Result<Self, InvalidMessage> {
        if let Some((_, code)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(code.clone());
        }
        let fits = (1..=MAX_LEN).contains(&text.len());
        if fits
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            Ok(Self::Other(text.to_owned()))
        } else {
            Err(InvalidMessage::Key("Error"))
        }
    }

    /// The code on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(code) => code,
            Self::PasswordProtected
            | Self::InvalidHostId
            | Self::MissingValue
            | Self::GetProhibited
            | Self::SessionInactive
            | Self::PairingDialogResponsePending
            | Self::UserDeniedPairing
            | Self::InvalidRequest => NAMED
                .iter()
                .find(|(_, code)| code == self)
                .map_or("", |(name, _)| name),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
