//! The conversation with the lab's control API: one request, and events for as
//! long as the runner lives.

use std::future::poll_fn;
use std::pin::Pin;
use std::str::FromStr;

use fleetgate_simulator::{LaunchEvent, LaunchRequest};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::http::{StatusCode, header};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What was asked for makes no sense.
pub(super) const USAGE: u8 = 64;
/// The lab cannot be reached.
const NO_LAB: u8 = 69;
/// There is no such phone.
const NO_DESTINATION: u8 = 70;

/// Where a lab's control API is: `http://127.0.0.1:9000`, or without the
/// scheme.
#[derive(Debug, Clone)]
pub(super) struct Control(String);

impl FromStr for Control {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("http://").unwrap_or(text);
        let address = address.trim_end_matches('/');
        let port = address
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u16>());
        if address.contains('/') || !matches!(port, Some(Ok(_))) {
            return Err("expected http://HOST:PORT".to_owned());
        }
        Ok(Self(address.to_owned()))
    }
}

/// Why nothing was launched, and what to exit with.
#[derive(Debug)]
pub(super) struct NoLaunch {
    pub(super) code: u8,
    pub(super) why: String,
}

/// A launch under way; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Launch {
    body: Incoming,
    unread: Vec<u8>,
    /// Moves the bytes.
    _connection: JoinSet<()>,
}

impl Launch {
    /// Asks the lab to launch.
    pub(super) async fn begin(
        Control(address): &Control,
        udid: &str,
        request: &LaunchRequest,
    ) -> Result<Self, NoLaunch> {
        let unreachable = |error: String| NoLaunch {
            code: NO_LAB,
            why: format!("cannot reach the lab at {address}: {error}"),
        };
        let senseless = |error: String| NoLaunch {
            code: USAGE,
            why: error,
        };
        if !udid
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '-')
        {
            return Err(senseless(format!("{udid:?} is no UDID")));
        }
        let body = serde_json::to_string(request).map_err(|error| senseless(error.to_string()))?;
        let request = Request::post(format!("/phones/{udid}/runner/launch"))
            .header(header::HOST, address)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| senseless(error.to_string()))?;

        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| unreachable(error.to_string()))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| unreachable(error.to_string()))?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Its end is the end of the body.
            drop(connection.await);
        });
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| unreachable(error.to_string()))?;
        let status = response.status();
        let mut launch = Self {
            body: Response::into_body(response),
            unread: Vec::new(),
            _connection: tasks,
        };
        if status == StatusCode::OK {
            return Ok(launch);
        }
        let why = launch.complaint().await;
        let code = match status {
            StatusCode::NOT_FOUND => NO_DESTINATION,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => USAGE,
            _ => NO_LAB,
        };
        Err(NoLaunch { code, why })
    }

    /// The next event; none if the lab is gone.
    pub(super) async fn next(&mut self) -> Option<LaunchEvent> {
        let mut searched = 0;
        loop {
            let new = self.unread.get(searched..).unwrap_or_default();
            if let Some(at) = new.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=searched + at).collect();
                return serde_json::from_slice(&line).ok();
            }
            searched = self.unread.len();
            let more = self.read().await?;
            self.unread.extend_from_slice(&more);
        }
    }

    /// What an error says.
    async fn complaint(&mut self) -> String {
        #[derive(Deserialize)]
        struct Complaint {
            error: String,
        }
        while let Some(more) = self.read().await {
            self.unread.extend_from_slice(&more);
        }
        match serde_json::from_slice(&self.unread) {
            Ok(Complaint { error }) => error,
            Err(_) => String::from_utf8_lossy(&self.unread).into_owned(),
        }
    }

    /// The next bytes of the body; none at its end.
    async fn read(&mut self) -> Option<Bytes> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            if let Ok(data) = frame?.ok()?.into_data() {
                return Some(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_with_and_without_its_scheme() {
        for text in [
            "http://127.0.0.1:9000",
            "127.0.0.1:9000",
            "http://127.0.0.1:9000/",
        ] {
            assert_eq!(text.parse::<Control>().unwrap().0, "127.0.0.1:9000");
        }
        for text in ["https://127.0.0.1:9000", "127.0.0.1", "http://h:1/path", ""] {
            assert!(text.parse::<Control>().is_err(), "{text}");
        }
    }
}
