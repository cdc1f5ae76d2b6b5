//! The connection to a gateway, and what every call on it has in common: the
//! deadline, the size limits, and ids that are minted here.
//!
//! Invariant: every command goes out with an id that this process knows, so
//! that its fate can be looked up even if no answer comes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use tonic::Request;
use tonic::transport::{Channel, Endpoint, Uri};
use uuid::Uuid;

use crate::output::Format;
use crate::rejected::Rejected;

/// How long to wait for the connection itself.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A gateway that does not answer a ping for this long after
/// [`PING_INTERVAL`] is gone.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a gateway is pinged during a call.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// The largest message taken: a runner's reply has the same limit.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that may be under way before they are asked for; the default of
/// 64 KiB halves the throughput of screenshots.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Where a gateway is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server(Uri);

impl Server {
    /// The one that is asked when none is named.
    pub(crate) const DEFAULT: &str = "http://127.0.0.1:7700";

    /// True unless it has to be named on the command line.
    pub(crate) fn is_default(&self) -> bool {
        self.to_string() == Self::DEFAULT
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        match uri.scheme_str() {
            Some("http") if uri.port_u16().is_some() => Ok(Self(uri)),
            Some("http") => Err("the port is missing, as in http://127.0.0.1:7700".to_owned()),
            Some(_) | None => Err("only http:// can be spoken".to_owned()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_end_matches('/'))
    }
}

/// What the options say about every call.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// Whom to ask.
    pub(crate) server: Server,
    /// How long an answer may take.
    pub(crate) timeout: Option<Duration>,
    /// How to print it.
    pub(crate) format: Format,
}

/// What one call was about, as far as its failure has to tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The id of the command that was to be executed.
    pub(crate) command_id: Option<String>,
    /// Whether it changes the device, so that asking twice is not the same as
    /// asking once.
    pub(crate) mutation: bool,
}

impl Asked {
    /// A question about the gateway or its ledger.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// A command that reads from the device.
    pub(crate) fn read(command_id: &str) -> Self {
        Self {
            command_id: Some(command_id.to_owned()),
            mutation: false,
        }
    }

    /// A command that changes the device.
    pub(crate) fn mutation(command_id: &str) -> Self {
        Self {
            command_id: Some(command_id.to_owned()),
            mutation: true,
        }
    }
}

/// A connected gateway.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    channel: Channel,
    context: Context,
}

impl Client {
    /// Connects. A failure proves that nothing was asked.
    pub(crate) async fn connect(context: &Context) -> Result<Self, Rejected> {
        let patience = context
            .timeout
            .map_or(CONNECT_TIMEOUT, |timeout| timeout.min(CONNECT_TIMEOUT));
        let channel = Endpoint::from(context.server.0.clone())
            .connect_timeout(patience)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .connect()
            .await
            .map_err(|error| Rejected::unreachable(&context.server, &error))?;
        Ok(Self {
            channel,
            context: context.clone(),
        })
    }

    /// What the options say.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Drives phones.
    pub(crate) fn automation(&self) -> AutomationServiceClient<Channel> {
        AutomationServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Tells of phones.
    pub(crate) fn fleet(&self) -> FleetServiceClient<Channel> {
        FleetServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Tells of commands.
    pub(crate) fn ledger(&self) -> LedgerServiceClient<Channel> {
        LedgerServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// A message under the deadline of the options.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(timeout) = self.context.timeout {
            request.set_timeout(timeout);
        }
        request
    }
}

/// An id for a new command: ordered by time, as the ledger likes it.
pub(crate) fn mint() -> String {
    Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_named_with_or_without_its_scheme() {
        let named: Server = "http://127.0.0.1:7700".parse().unwrap();
        assert_eq!("127.0.0.1:7700".parse(), Ok(named.clone()));
        assert!(named.is_default());
        assert_eq!(named.to_string(), Server::DEFAULT);
        assert!(!"http://lab:7701".parse::<Server>().unwrap().is_default());
    }

    #[test]
    fn a_server_that_cannot_be_spoken_to_is_refused_at_once() {
        for text in ["https://lab:7700", "lab", "http://", ""] {
            assert!(text.parse::<Server>().is_err(), "{text}");
        }
    }
}
