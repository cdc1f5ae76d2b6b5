//! Odd answers of usbmuxd: what daemons are known to say that clients do not
//! expect, legal and illegal.
//!
//! Like a [`Fault`](crate::Fault), an oddity is data: it waits in the lab for a
//! request that it fits, changes the bytes of the answer `times` times, and is
//! gone. What the daemon does (the pipe, the table) it does all the same.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::sync::Mutex;
use std::time::Duration;

use fleetgate_usbmux::{Event, MuxDeviceId, Request};
use serde::{Deserialize, Serialize};

use crate::sync::lock;

/// The length of a packet's header; the version stands at 4, the tag at 12.
const HEADER: usize = 16;

/// One odd answer. As JSON: `{"on": "list_devices", "say": "binary_plist"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oddity {
    /// The request that it waits for; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Asked>,
    /// How many answers are odd.
    #[serde(default = "once")]
    pub times: u32,
    /// What is odd about them.
    pub say: Odd,
}

fn once() -> u32 {
    1
}

/// What was asked, as far as oddities care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// `ListDevices`.
    ListDevices,
    /// `Listen`.
    Listen,
    /// `Connect`.
    Connect,
    /// Something else.
    Other,
}

/// What is odd about an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Odd {
    /// The property list is a binary one.
    BinaryPlist,
    /// The header says version 0.
    VersionZero,
    /// The header carries the tag of another request.
    WrongTag,
    /// The header claims this length.
    Length {
        /// In bytes, header included.
        length: u32,
    },
    /// The first bytes, then the end of the connection.
    Cut {
        /// How many.
        bytes: usize,
    },
    /// One byte at a time.
    Trickle {
        /// How long each takes, on the phones' clock.
        #[serde(with = "humantime_serde")]
        every: Duration,
    },
    /// Nothing at all, on a connection that stays.
    Silence,
    /// An event behind the answer, as nobody knows it.
    UnknownEvent {
        /// Its `MessageType`.
        message_type: String,
    },
    /// A `Paired` event behind the answer.
    Paired {
        /// The number of the phone.
        device: u32,
    },
}

impl From<Odd> for Oddity {
    fn from(say: Odd) -> Self {
        Self {
            on: None,
            times: 1,
            say,
        }
    }
}

impl Oddity {
    /// Only when this is asked.
    #[must_use]
    pub fn on(self, asked: Asked) -> Self {
        Self {
            on: Some(asked),
            ..self
        }
    }

    /// This many times, instead of once.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }
}

impl Asked {
    pub(crate) fn by(request: &Request) -> Self {
        match request {
            Request::ListDevices => Self::ListDevices,
            Request::Listen => Self::Listen,
            Request::Connect { .. } => Self::Connect,
            Request::ReadBuid
            | Request::ReadPairRecord { .. }
            | Request::SavePairRecord { .. }
            | Request::DeletePairRecord { .. }
            | Request::ListListeners
            | Request::Other(_) => Self::Other,
        }
    }
}

/// The oddities that wait.
#[derive(Debug, Default)]
pub(crate) struct Oddities(Mutex<VecDeque<Oddity>>);

impl Oddities {
    pub(crate) fn push(&self, oddity: Oddity) {
        if oddity.times > 0 {
            lock(&self.0).push_back(oddity);
        }
    }

    /// What is odd about the next answer to this, if anything is.
    pub(crate) fn take(&self, asked: Asked) -> Option<Odd> {
        let mut waiting = lock(&self.0);
        let fits = |oddity: &Oddity| oddity.on.is_none_or(|on| on == asked);
        let at = waiting.iter().position(fits)?;
        let oddity = waiting.get_mut(at)?;
        oddity.times -= 1;
        let say = oddity.say.clone();
        if oddity.times == 0 {
            waiting.remove(at);
        }
        Some(say)
    }
}

/// How an odd answer is given.
#[derive(Debug)]
pub(crate) enum Given {
    /// These bytes.
    Whole(Vec<u8>),
    /// These bytes, and the connection ends.
    AndClosed(Vec<u8>),
    /// These bytes, each after so long.
    Slowly(Vec<u8>, Duration),
    /// Nothing.
    Never,
}

impl Odd {
    /// Makes a good answer odd.
    pub(crate) fn make_odd(&self, good: &[u8]) -> io::Result<Given> {
        let mut bytes = good.to_vec();
        match self {
            Self::BinaryPlist => {
                let list = plist::Value::from_reader_xml(Cursor::new(&good[HEADER..]))
                    .map_err(io::Error::other)?;
                bytes.truncate(HEADER);
                list.to_writer_binary(&mut bytes)
                    .map_err(io::Error::other)?;
                let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
                put(&mut bytes, 0, length);
            }
            Self::VersionZero => put(&mut bytes, 4, 0),
            Self::WrongTag => {
                let tag = bytes[12];
                bytes[12] = tag.wrapping_add(1);
            }
            Self::Length { length } => put(&mut bytes, 0, *length),
            Self::Cut { bytes: kept } => {
                bytes.truncate(*kept);
                return Ok(Given::AndClosed(bytes));
            }
            Self::Trickle { every } => return Ok(Given::Slowly(bytes, *every)),
            Self::Silence => return Ok(Given::Never),
            Self::UnknownEvent { message_type } => {
                let event = Event::Unknown {
                    message_type: message_type.clone(),
                };
                bytes.extend_from_slice(&event.encode().map_err(io::Error::other)?);
            }
            Self::Paired { device } => {
                let event = Event::Paired(MuxDeviceId(*device));
                bytes.extend_from_slice(&event.encode().map_err(io::Error::other)?);
            }
        }
        Ok(Given::Whole(bytes))
    }
}

/// Overwrites one number of a header.
fn put(packet: &mut [u8], at: usize, number: u32) {
    packet[at..at + 4].copy_from_slice(&number.to_le_bytes());
}
