//! Odd answers of usbmuxd: what daemons are known to say that clients do not
//! expect, legal and illegal.
//!
//! Like a [`Fault`](crate::Fault), an oddity is data: it waits in the lab for a
//! request that it fits, changes the bytes of the answer `times` times, and is
//! gone. What the daemon does (the pipe, the table) it does all the same, but
//! for a [`Odd::Result`], which is its refusal to do anything.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::sync::Mutex;
use std::time::Duration;

use fleetgate_usbmux::{Event, MuxDeviceId, Reply, Request};
use plist::{Dictionary, Value};
use serde::{Deserialize, Serialize};

use crate::packet::{self, HEADER, put};
use crate::sync::lock;

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
    /// Nothing: what a listener is told when something changes. Only an oddity
    /// that names it befalls an event.
    Event,
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
    /// A `Result` of this number, and nothing is done: no list, no listening,
    /// no pipe.
    Result {
        /// The number.
        number: u32,
    },
    /// A `Result` without its number.
    NoNumber,
    /// A property list of this type that answers nothing.
    Unrelated {
        /// Its `MessageType`.
        message_type: String,
    },
    /// The answer to a `Listen` in one write with all that is attached.
    Glued,
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

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// What is odd about the next answer to this, if anything is.
    pub(crate) fn take(&self, asked: Asked) -> Option<Odd> {
        self.take_as(asked, |odd| Some(odd.clone()))
    }

    /// The number that the next answer to this is nothing but, if it is.
    pub(crate) fn take_result(&self, asked: Asked) -> Option<u32> {
        self.take_as(asked, |odd| {
            if let Odd::Result { number } = odd {
                Some(*number)
            } else {
                None
            }
        })
    }

    /// Takes the first one that waits for this, if it can be read so.
    fn take_as<T>(&self, asked: Asked, read: impl Fn(&Odd) -> Option<T>) -> Option<T> {
        let mut waiting = lock(&self.0);
        let fits = |oddity: &Oddity| oddity.on.map_or(asked != Asked::Event, |on| on == asked);
        let at = waiting.iter().position(fits)?;
        let oddity = waiting.get_mut(at)?;
        let say = read(&oddity.say)?;
        oddity.times -= 1;
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
    /// These bytes together with the next.
    WithTheNext(Vec<u8>),
    /// Nothing.
    Never,
}

impl Odd {
    /// Makes a good answer odd.
    pub(crate) fn make_odd(&self, good: &[u8]) -> io::Result<Given> {
        let mut bytes = good.to_vec();
        match self {
            Self::BinaryPlist => {
                let list = read(good)?;
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
            Self::Result { number } => {
                let result = Reply::Result(i64::from(*number).into());
                bytes = result.encode(tag(good)).map_err(io::Error::other)?.to_vec();
            }
            Self::NoNumber => {
                let mut list = read(good)?;
                if let Some(fields) = list.as_dictionary_mut() {
                    fields.remove("Number");
                }
                bytes = packet::write(tag(good), &list)?;
            }
            Self::Unrelated { message_type } => {
                let fields = [("MessageType", Value::from(message_type.as_str()))];
                let list = Value::Dictionary(Dictionary::from_iter(fields));
                bytes = packet::write(tag(good), &list)?;
            }
            Self::Glued => return Ok(Given::WithTheNext(bytes)),
        }
        Ok(Given::Whole(bytes))
    }
}

/// The property list of an answer.
fn read(good: &[u8]) -> io::Result<Value> {
    let payload = good.get(HEADER..).unwrap_or_default();
    Value::from_reader_xml(Cursor::new(payload)).map_err(io::Error::other)
}

/// The tag of an answer.
fn tag(good: &[u8]) -> u32 {
    let tag = good.get(12..16).and_then(|tag| tag.try_into().ok());
    tag.map_or(0, u32::from_le_bytes)
}
