//! Lockdown, the service of a phone on port 62078 that tells what the phone is.
//!
//! It answers what a phone tells any host, paired or not: its name, its model,
//! its version. Sessions, and what needs one, are not simulated: such a request
//! is refused as one that the phone does not know.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use fleetgate_usbmux::lockdown::{Decoder, ErrorCode, Message, Reply, Request, SERVICE, Value};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use crate::phone::core::PhoneCore;
use crate::runner::connection::silence;

/// How a phone's lockdown answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lockdown {
    /// As it should.
    #[default]
    Answers,
    /// Every value is refused, as on a phone that was not unlocked since it
    /// started.
    Refuses,
    /// The connection is made, and nothing is answered on it.
    Silent,
    /// Nothing listens on its port.
    Absent,
}

/// Answers requests until the client has had enough. `early` is what it sent
/// already.
pub(crate) async fn serve(
    phone: &PhoneCore,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    early: Bytes,
) -> io::Result<()> {
    let refuses = match phone.look(|state| state.lockdown) {
        Lockdown::Answers => false,
        Lockdown::Refuses => true,
        Lockdown::Silent | Lockdown::Absent => return silence(stream).await,
    };
    let mut decoder = Decoder::new();
    decoder.push(&early);
    loop {
        while let Some(message) = decoder.next_message().map_err(io::Error::other)? {
            let Some(answer) = answer(phone, refuses, &message)? else {
                return Ok(());
            };
            stream.write_all(&answer).await?;
            stream.flush().await?;
        }
        if stream.read_buf(decoder.input()).await? == 0 {
            return Ok(());
        }
    }
}

/// The answer to one request; none to what is no request, at which a phone
/// closes the connection.
fn answer(phone: &PhoneCore, refuses: bool, message: &Message) -> io::Result<Option<Bytes>> {
    let request = match Request::decode(message) {
        Ok(request) => request,
        Err(error) => {
            debug!(%error, "a request to lockdown that makes no sense");
            return Ok(None);
        }
    };
    let reply = match &request {
        Request::QueryType => Reply::Type(SERVICE.to_owned()),
        Request::GetValue { .. } if refuses => Reply::Refused(ErrorCode::PasswordProtected),
        Request::GetValue { domain, key } => {
            let found = domain.is_none().then(|| value(phone, key.as_deref()));
            let missing = Reply::Refused(ErrorCode::MissingValue);
            found.flatten().map_or(missing, Reply::Value)
        }
        Request::Other(_) => Reply::Refused(ErrorCode::InvalidRequest),
    };
    let bytes = reply.encode(&request).map_err(io::Error::other)?;
    Ok(Some(bytes))
}

/// One value, or all of them.
fn value(phone: &PhoneCore, key: Option<&str>) -> Option<Value> {
    let all = [
        ("DeviceClass", "iPhone"),
        ("DeviceName", phone.name.as_str()),
        ("ProductType", phone.model.as_str()),
        ("ProductVersion", phone.os_version.as_str()),
        ("UniqueDeviceID", phone.udid.as_str()),
    ];
    let all = all.map(|(key, text)| (key.to_owned(), Value::from(text)));
    match key {
        None => Some(Value::Table(BTreeMap::from(all))),
        Some(key) => {
            let mut all = all.into_iter();
            all.find(|(name, _)| name == key).map(|(_, value)| value)
        }
    }
}
