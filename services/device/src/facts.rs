//! What a phone tells of itself through lockdown, the service that every phone
//! runs on one fixed port.
//!
//! It asks for what a phone tells anybody, on a connection of its own and
//! without a session. Nothing of the answers goes to logs: a phone's name is its
//! owner's.

use std::io;
use std::time::Duration;

use fleetgate_runner::{SendError, Udid};
use fleetgate_usbmux::lockdown::{self, Decoder, ErrorCode, Message, Reply, Request};
use fleetgate_usbmux::{FrameError, InvalidMessage, Unencodable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::hosts::Hosts;
use crate::pipe::Pipe;

/// How long a phone may take for all of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How this program is named to the phone.
const LABEL: &str = "fleetgate";

/// The most characters that are taken of a value.
const MAX_CHARS: usize = 256;

/// What is known of a phone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What its owner calls it: `DeviceName`.
    pub name: Option<String>,
    /// `ProductType`, such as `iPhone14,2`.
    pub model: Option<String>,
    /// `ProductVersion`, such as `18.1`.
    pub os_version: Option<String>,
}

/// Why a phone told nothing of itself.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// No connection to it.
    #[error(transparent)]
    Connect(#[from] SendError),
    /// It did not answer in time.
    #[error("the phone did not answer in time")]
    Silent,
    /// The connection to it failed.
    #[error("the connection to the phone failed: {0}")]
    Io(#[source] io::Error),
    /// It closed the connection.
    #[error("the phone closed the connection")]
    Closed,
    /// What it sends cannot be cut into messages.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Its answer cannot be understood.
    #[error(transparent)]
    Message(#[from] InvalidMessage),
    /// The request cannot be written down.
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
    /// Something else listens on lockdown's port.
    #[error("what listens on port {} of the phone is not lockdown", lockdown::PORT)]
    NotLockdown,
    /// It refuses to tell.
    #[error("the phone refuses to tell: {0}")]
    Refused(ErrorCode),
}

/// Asks a phone.
pub(crate) async fn ask(hosts: &Hosts, device: &Udid) -> Result<Facts, FactsError> {
    let facts = async {
        let pipe = hosts.connect_confirmed(device, lockdown::PORT).await?;
        Conversation::on(pipe).facts().await
    };
    timeout(PATIENCE, facts)
        .await
        .unwrap_or(Err(FactsError::Silent))
}

/// A connection on which requests are answered in order.
struct Conversation {
    pipe: Pipe,
    decoder: Decoder,
}

impl Conversation {
    fn on(pipe: Pipe) -> Self {
        Self {
            pipe,
            decoder: Decoder::new(),
        }
    }

    async fn facts(mut self) -> Result<Facts, FactsError> {
        match self.request(&Request::QueryType).await? {
            Reply::Type(service) if service == lockdown::SERVICE => {}
            Reply::Refused(code) => return Err(FactsError::Refused(code)),
            Reply::Type(_) | Reply::Value(_) => return Err(FactsError::NotLockdown),
        }
        let mut refused = None;
        let mut facts = Facts::default();
        for (key, fact) in [
            ("DeviceName", &mut facts.name),
            ("ProductType", &mut facts.model),
            ("ProductVersion", &mut facts.os_version),
        ] {
            match self.request(&Request::value(key)).await? {
                Reply::Value(value) => *fact = value.as_text().and_then(tidy),
                Reply::Refused(code) => refused = refused.or(Some(code)),
                Reply::Type(_) => return Err(FactsError::NotLockdown),
            }
        }
        match refused {
            Some(code) if facts == Facts::default() => Err(FactsError::Refused(code)),
            Some(_) | None => Ok(facts),
        }
    }

    async fn request(&mut self, request: &Request) -> Result<Reply, FactsError> {
        let bytes = request.encode(LABEL)?;
        self.pipe.write_all(&bytes).await.map_err(FactsError::Io)?;
        self.pipe.flush().await.map_err(FactsError::Io)?;
        Ok(Reply::decode(&self.message().await?, request)?)
    }

    async fn message(&mut self) -> Result<Message, FactsError> {
        loop {
            if let Some(message) = self.decoder.next_message()? {
                return Ok(message);
            }
            let read = self.pipe.read_buf(self.decoder.input());
            if read.await.map_err(FactsError::Io)? == 0 {
                return Err(FactsError::Closed);
            }
        }
    }
}

/// A value as it can be shown to people, if there is anything in it.
fn tidy(text: &str) -> Option<String> {
    let shown = text.trim().chars().take(MAX_CHARS);
    let shown = shown.map(|c| if c.is_control() { ' ' } else { c });
    Some(shown.collect()).filter(|text: &String| !text.is_empty())
}
