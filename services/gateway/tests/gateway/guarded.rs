//! A gateway that lets in whom it knows, over a few phones in two racks; and
//! calls by whoever a test wants.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fleetgate_gateway::{Config, Gateway, Overrides};
use fleetgate_identity::{Grant, Instances, NewToken, Role, TokenFile, TokenInfo};
use fleetgate_ledger::{Ledger, LedgerConfig, OperationQuery, OperationRow};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::Budgets;
use http::{HeaderMap, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::support::nowhere;

/// In rack a, called `left`.
pub(crate) const RACK_A: &str = "00008110-000978540290401E";
/// In rack b, called `right`.
pub(crate) const RACK_B: &str = "00008020-00060D691AD8003A";
/// In no rack.
pub(crate) const LOOSE: &str = "0123456789abcdef0123456789abcdef01234567";

/// Longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The step of a bounded poll, for what nothing announces.
pub(crate) async fn pause() {
    sleep(Duration::from_millis(10)).await;
}

/// What must come.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let came = timeout(PATIENCE, future).await;
    came.unwrap_or_else(|_late| panic!("{what} did not come"))
}

pub(crate) struct Guarded {
    pub(crate) gateway: Gateway,
    pub(crate) directory: TempDir,
    pub(crate) tokens: TokenFile,
    /// An admin's token, to see with.
    pub(crate) admin: String,
    known: HashMap<String, String>,
}

/// A role on the whole fleet.
pub(crate) fn everywhere(role: Role) -> Vec<Grant> {
    vec![Grant::fleet_wide(role)]
}

/// A role on the phones of a rack.
pub(crate) fn in_rack(role: Role, rack: &str) -> Grant {
    let labels = [("rack".to_owned(), rack.to_owned())].into();
    Grant { role, labels }
}

/// The configuration of such a gateway; `more` comes last.
pub(crate) fn config(directory: &TempDir, more: &str) -> Config {
    config_of(directory, more, false)
}

/// The same of one that may be found.
pub(crate) fn findable(directory: &TempDir, more: &str) -> Config {
    config_of(directory, more, true)
}

fn config_of(directory: &TempDir, more: &str, discovery: bool) -> Config {
    let file = directory.path().join("fleetgate.toml");
    let text = format!(
        "server.listen = \"127.0.0.1:0\"\n\
         server.drain_timeout = \"1s\"\n\
         ledger.path = \"{}\"\n\
         auth.tokens = \"{}\"\n\
         auth.discovery = {discovery}\n\
         {more}\n\
         [[device]]\nudid = \"{RACK_A}\"\nalias = \"left\"\nrunner_port = 8100\n\
         labels = {{ rack = \"a\" }}\n\
         [[device]]\nudid = \"{RACK_B}\"\nalias = \"right\"\nrunner_port = 8100\n\
         labels = {{ rack = \"b\" }}\n\
         [[device]]\nudid = \"{LOOSE}\"\nrunner_port = 8100\n",
        directory.path().join("ledger.db").display(),
        tokens(directory).path().display(),
    );
    std::fs::write(&file, text).unwrap();
    Config::load_with(Some(&file), []).unwrap()
}

pub(crate) fn tokens(directory: &TempDir) -> TokenFile {
    TokenFile::at(directory.path().join("auth").join("tokens.toml"))
}

/// A new token, as it goes into the header. A gateway that runs knows it after
/// a moment.
pub(crate) fn token(
    tokens: &TokenFile,
    name: &str,
    grants: Vec<Grant>,
    expires: Option<SystemTime>,
) -> (TokenInfo, String) {
    let new = NewToken {
        name: name.to_owned(),
        grants,
        expires,
    };
    let (info, text) = tokens.create(new).unwrap();
    (info, format!("Bearer {}", text.expose()))
}

pub(crate) fn overrides(directory: &TempDir) -> Overrides {
    Overrides {
        budgets: Budgets::scaled(0.01),
        dialer: Some(nowhere()),
        runtime_dir: Some(runtime_dir(directory)),
    }
}

pub(crate) fn runtime_dir(directory: &TempDir) -> PathBuf {
    directory.path().join("run")
}

impl Guarded {
    /// Starts one; `more` is dotted keys of its configuration.
    pub(crate) async fn start(more: &str) -> Self {
        Self::knowing([], more).await
    }

    /// Starts one that knows these by their tokens.
    pub(crate) async fn knowing<const N: usize>(
        callers: [(&str, Vec<Grant>); N],
        more: &str,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens(&directory);
        let known = callers.map(|(name, grants)| {
            let (_, text) = token(&tokens, name, grants, None);
            (name.to_owned(), text)
        });
        let guarded = Self::start_in(directory, |directory| config(directory, more)).await;
        Self {
            known: known.into(),
            ..guarded
        }
    }

    pub(crate) async fn start_in(
        directory: TempDir,
        config: impl FnOnce(&TempDir) -> Config,
    ) -> Self {
        let tokens = tokens(&directory);
        let (_, admin) = token(&tokens, "root", everywhere(Role::Admin), None);
        let gateway = Gateway::start(config(&directory), overrides(&directory));
        Self {
            gateway: gateway.await.unwrap(),
            directory,
            tokens,
            admin,
            known: HashMap::new(),
        }
    }

    /// What a caller that is known says of itself.
    pub(crate) fn says(&self, name: &str) -> &str {
        &self.known[name]
    }

    pub(crate) fn instances(&self) -> Instances {
        Instances::at(runtime_dir(&self.directory))
    }

    pub(crate) async fn channel(&self) -> Channel {
        let address = format!("http://{}", self.gateway.local_addr());
        let endpoint = Endpoint::from_shared(address).unwrap();
        endpoint.connect().await.unwrap()
    }

    /// The clients of a caller.
    pub(crate) async fn by(&self, authorization: &str) -> Clients {
        Clients::over(&self.channel().await, authorization)
    }

    /// Denied calls as they come on record, until there are so many.
    pub(crate) async fn denials(&self, count: usize) -> Vec<pb::Operation> {
        let mut admin = self.by(&self.admin).await;
        let tail = admin
            .ledger
            .tail_commands(pb::TailCommandsRequest::default());
        let mut events = tail.await.unwrap().into_inner();
        let mut denials = Vec::new();
        while denials.len() < count {
            let message = soon("a denial", events.message()).await.unwrap().unwrap();
            if let Some(Item::Event(event)) = message.item
                && let Some(Entry::Operation(operation)) = event.entry
                && operation.what == "deny-call"
            {
                denials.push(operation);
            }
        }
        denials
    }

    /// Ends it, and gives all denied calls that are on record, oldest first.
    pub(crate) async fn end(self) -> Vec<OperationRow> {
        self.gateway.shutdown().await;
        let config = LedgerConfig::new(self.directory.path().join("ledger.db"));
        let ledger = Ledger::open(config).await.unwrap();
        let query = OperationQuery {
            what: Some("deny-call".to_owned()),
            page_size: 1000,
            ..OperationQuery::default()
        };
        let page = ledger.operations(query).await.unwrap();
        assert!(page.next.is_none());
        ledger.close().await;
        let mut denials = page.operations;
        denials.reverse();
        denials
    }
}

/// How many calls an entry stands for.
pub(crate) fn calls(entry: &OperationRow) -> u64 {
    let repeated = entry.operation.detail.get("repeated");
    1 + repeated.map_or(0, |repeated| repeated.as_u64().unwrap())
}

/// A detail of a denial.
pub(crate) fn detail(operation: &pb::Operation, name: &str) -> Option<String> {
    use prost_types::value::Kind;
    let detail = operation.detail.as_ref()?;
    let Kind::StringValue(text) = detail.fields.get(name)?.kind.as_ref()? else {
        return None;
    };
    Some(text.clone())
}

/// Puts a caller's credentials with each of its calls.
#[derive(Clone)]
pub(crate) struct Says(String);

impl Interceptor for Says {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        if !self.0.is_empty() {
            let said: MetadataValue<_> = self.0.parse().unwrap();
            request.metadata_mut().insert("authorization", said);
        }
        Ok(request)
    }
}

type Wire = InterceptedService<Channel, Says>;

pub(crate) struct Clients {
    pub(crate) fleet: FleetServiceClient<Wire>,
    pub(crate) automation: AutomationServiceClient<Wire>,
    pub(crate) ledger: LedgerServiceClient<Wire>,
}

impl Clients {
    pub(crate) fn over(channel: &Channel, authorization: &str) -> Self {
        let says = Says(authorization.to_owned());
        let with = || InterceptedService::new(channel.clone(), says.clone());
        Self {
            fleet: FleetServiceClient::new(with()),
            automation: AutomationServiceClient::new(with()),
            ledger: LedgerServiceClient::new(with()),
        }
    }
}

/// A connection below gRPC.
pub(crate) struct Raw {
    sender: http2::SendRequest<Full<Bytes>>,
    connection: JoinSet<hyper::Result<()>>,
}

impl Raw {
    pub(crate) async fn to(gateway: &Gateway) -> Self {
        let stream = TcpStream::connect(gateway.local_addr()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = TokioIo::new(stream);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        Self {
            sender,
            connection: connections,
        }
    }

    /// Waits until the connection has ended.
    pub(crate) async fn closed(&mut self) {
        self.connection.join_next().await;
    }

    /// Calls a method with an empty message; what its status is if it has ended
    /// before it said anything.
    pub(crate) async fn call(&mut self, path: &str, headers: HeaderMap) -> Option<Status> {
        let mut request = Request::post(format!("http://gateway.lab{path}"))
            .version(Version::HTTP_2)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(Bytes::from_static(&[0; 5])))
            .unwrap();
        request.headers_mut().extend(headers);
        let response = self.sender.send_request(request);
        let response = soon("an answer", response).await.unwrap();
        let status = Status::from_header_map(response.headers());
        if status.is_some() {
            let body = soon("the end", response.into_body().collect()).await;
            assert!(body.unwrap().to_bytes().is_empty(), "{path}");
        }
        status
    }

    /// The same by a caller that says this.
    pub(crate) async fn by(&mut self, path: &str, authorization: &str) -> Option<Status> {
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            headers.insert("authorization", authorization.parse().unwrap());
        }
        self.call(path, headers).await
    }
}

/// The code of what was answered.
pub(crate) fn code(status: Option<&Status>) -> Code {
    status.map_or(Code::Ok, Status::code)
}
