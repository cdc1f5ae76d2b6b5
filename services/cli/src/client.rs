//! The connection to a gateway, and what every call on it has in common: the
//! deadline, the size limits, and ids that are minted here.
//!
//! Invariant: every command goes out with an id that this process knows, so
//! that its fate can be looked up even if no answer comes.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use tonic::Request;
use tonic::codegen::http::Uri;
use uuid::Uuid;

use crate::output::Format;
use crate::rejected::Rejected;

mod wire;

use wire::Wire;

/// How long to wait for the connection itself.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much longer than its deadline an answer is waited for: the gateway's own
/// answer to a deadline that passes says what became of the command.
const GRACE: Duration = Duration::from_secs(2);

/// The largest message taken: a runner's reply has the same limit.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

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

    /// True if it is on this host.
    pub(crate) fn is_loopback(&self) -> bool {
        let (host, _) = self.place();
        let address: Result<IpAddr, _> = host.parse();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The host and the port that it listens on.
    fn place(&self) -> (&str, u16) {
        let host = self.0.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        (bare, self.0.port_u16().unwrap_or_default())
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

    /// An act of an operator, which is not the same when it is done twice.
    pub(crate) fn act() -> Self {
        Self {
            command_id: None,
            mutation: true,
        }
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
    wire: Wire,
    context: Context,
}

impl Context {
    /// How long this side waits for an answer to begin.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_add(GRACE))
    }
}

impl Client {
    /// Connects. A failure proves that nothing was asked.
    pub(crate) async fn connect(context: &Context) -> Result<Self, Rejected> {
        let within = context
            .timeout
            .map_or(CONNECT_TIMEOUT, |timeout| timeout.min(CONNECT_TIMEOUT));
        let wire = Wire::connect(&context.server, within, context.patience())
            .await
            .map_err(|error| Rejected::unreachable(&context.server, &*error))?;
        Ok(Self {
            wire,
            context: context.clone(),
        })
    }

    /// What the options say.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Drives phones.
    pub(crate) fn automation(&self) -> AutomationServiceClient<Wire> {
        AutomationServiceClient::with_origin(self.wire.clone(), self.origin())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Tells of phones.
    pub(crate) fn fleet(&self) -> FleetServiceClient<Wire> {
        FleetServiceClient::with_origin(self.wire.clone(), self.origin())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Tells of commands.
    pub(crate) fn ledger(&self) -> LedgerServiceClient<Wire> {
        LedgerServiceClient::with_origin(self.wire.clone(), self.origin())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn origin(&self) -> Uri {
        self.context.server.0.clone()
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
    fn a_server_may_be_named_by_an_address_of_either_family() {
        let place = |text: &str| {
            let server: Server = text.parse().unwrap();
            let (host, port) = server.place();
            (host.to_owned(), port)
        };
        assert_eq!(place("[::1]:7701"), ("::1".to_owned(), 7701));
        assert_eq!(place("http://10.0.0.2:80"), ("10.0.0.2".to_owned(), 80));
        let here = |text: &str| text.parse::<Server>().unwrap().is_loopback();
        assert!(here("[::1]:1") && here("127.0.0.1:1") && here("localhost:1"));
        assert!(!here("10.0.0.2:1") && !here("lab:1"));
    }

    #[test]
    fn a_server_that_cannot_be_spoken_to_is_refused_at_once() {
        for text in ["https://lab:7700", "lab", "http://", ""] {
            assert!(text.parse::<Server>().is_err(), "{text}");
        }
    }
}
