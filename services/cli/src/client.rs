//! The connection to a gateway, and what every call on it has in common: who
//! calls, the deadline, the size limits, and ids that are minted here.
//!
//! Invariant: every command goes out with an id that this process knows, so
//! that its fate can be looked up even if no answer comes.

use std::time::Duration;

use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use tonic::Request;
use tonic::codegen::http::Uri;
use uuid::Uuid;

use crate::output::Format;
use crate::rejected::Rejected;

mod access;
mod found;
mod heard;
mod server;
mod tls;
mod wire;

pub(crate) use access::Access;
pub(crate) use found::{Found, running};
pub(crate) use heard::NotInPlain;
pub(crate) use server::Server;
use wire::{Way, Wire};

/// How long to wait for the connection itself.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much longer than its deadline an answer is waited for: the gateway's own
/// answer to a deadline that passes says what became of the command.
const GRACE: Duration = Duration::from_secs(2);

/// The largest message taken: a runner's reply has the same limit.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// What the options say about every call.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// Whom to ask.
    pub(crate) server: Server,
    /// Whether that was said, instead of found.
    pub(crate) named: bool,
    /// Who asks.
    pub(crate) access: Access,
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
    /// For a gateway that is named, or else the one that runs on this host, or
    /// else the usual place.
    pub(crate) fn new(
        named: Option<Server>,
        access: Access,
        timeout: Option<Duration>,
        format: Format,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            named: named.is_some(),
            server: found::resolve(named)?,
            access: access.with_environment()?,
            timeout,
            format,
        })
    }

    /// For a gateway that this process knows, as its user is known to it.
    pub(crate) fn known(server: Server, timeout: Option<Duration>) -> Self {
        Self {
            server,
            named: true,
            access: Access::default(),
            timeout,
            format: Format::default(),
        }
    }

    /// True if the server need not be named in order to be asked again.
    pub(crate) fn is_obvious(&self) -> bool {
        !self.named || self.server.is_default()
    }

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
        let settled = context
            .access
            .settle(&context.server)
            .map_err(|error| Rejected::unprepared(&error))?;
        let way = Way {
            server: &settled.server,
            tls: settled.tls,
            authorization: settled.authorization,
            within,
            patience: context.patience(),
        };
        let wire = Wire::connect(way)
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

    /// Gives phones to one driver at a time.
    pub(crate) fn leases(&self) -> LeaseServiceClient<Wire> {
        LeaseServiceClient::with_origin(self.wire.clone(), self.origin())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn origin(&self) -> Uri {
        self.context.server.origin()
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
