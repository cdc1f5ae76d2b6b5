//! A gateway of the real binary whose every trace is kept in one place.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::Stdio;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_simulator::{Lab, Phone};
use fleetgate_tests::facts::in_no_file;
use fleetgate_tests::place::{Place, Server, run};
use fleetgate_tests::{binary, connect, pause, plain_lab, soon};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::bytes::Bytes;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

/// A gateway that keeps everything in one place and logs all that it can.
pub(crate) struct Watched {
    pub(crate) place: Place,
    pub(crate) lab: Lab,
    pub(crate) phone: Phone,
    pub(crate) server: Server,
    /// Whose commands they are.
    pub(crate) token: String,
}

/// Gives every call a token.
#[derive(Clone)]
pub(crate) struct Bearer(String);

impl tonic::service::Interceptor for Bearer {
    fn call(&mut self, mut call: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        let bearer = format!("Bearer {}", self.0).parse().unwrap();
        call.metadata_mut().insert("authorization", bearer);
        Ok(call)
    }
}

pub(crate) type Authorized = InterceptedService<Channel, Bearer>;

impl Watched {
    pub(crate) async fn start() -> Self {
        let place = Place::new();
        let lab = Lab::start(plain_lab(1, 0.05));
        lab.serve_unix(place.usbmuxd()).await.unwrap();
        let phone = lab.phones().remove(0);
        fs::create_dir(place.path("logs")).unwrap();
        let tokens = place.tokens();
        let made = run(
            binary::command()
                .args(["token", "create", "--name", "typist", "--role", "operator"])
                .arg("--tokens")
                .arg(&tokens),
            "",
        )
        .await;
        assert_eq!(made.code, 0, "{}", made.stderr);
        let server = serve(&place).await;
        let watched = Self {
            token: made.text().trim().to_owned(),
            place,
            lab,
            phone,
            server,
        };
        watched.attached().await;
        watched
    }

    /// Waits until commands reach the phone.
    async fn attached(&self) {
        let automation = self.automation(&self.token).await;
        soon("the phone", async {
            let request = pb::GetRunnerStatusRequest {
                device: self.udid(),
            };
            while automation
                .clone()
                .get_runner_status(request.clone())
                .await
                .is_err()
            {
                pause().await;
            }
        })
        .await;
    }

    pub(crate) fn udid(&self) -> String {
        self.phone.udid().to_string()
    }

    pub(crate) async fn automation(&self, token: &str) -> AutomationServiceClient<Authorized> {
        let channel = connect(&self.server.url).await;
        AutomationServiceClient::with_interceptor(channel, Bearer(token.to_owned()))
    }

    pub(crate) async fn ledger(&self) -> LedgerServiceClient<Authorized> {
        let channel = connect(&self.server.url).await;
        LedgerServiceClient::with_interceptor(channel, Bearer(self.token.clone()))
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(log(&self.place)).unwrap()).into_owned()
    }

    /// What the admin server answers to whoever shows it a token.
    pub(crate) async fn metrics(&self) -> String {
        let log = self.log();
        let said = log
            .lines()
            .find(|line| line.contains("admin server listening"));
        let (_, address) = said.unwrap().split_once("address=").unwrap();
        let address = address.split(' ').next().unwrap();
        let request = Request::get("/metrics").header("authorization", self.bearer());
        let request = request.body(Full::default()).unwrap();
        let answer = exchange(address, request).await;
        String::from_utf8(answer.into_body().to_vec()).unwrap()
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Asserts that a text is in no log line and in no file but those that are
    /// there to keep it.
    pub(crate) fn assert_nowhere(&self, secret: &str) {
        let log = self.log().to_lowercase();
        let line = log
            .lines()
            .find(|line| line.contains(&secret.to_lowercase()));
        assert_eq!(line, None, "{secret} is in the log");
        in_no_file(&self.place.path(""), secret, "typed-0");
    }
}

pub(crate) fn log(place: &Place) -> PathBuf {
    place.path("logs").join("gateway")
}

pub(crate) async fn serve(place: &Place) -> Server {
    let ledger = place.path("ledger.db");
    let mut command = place.serve_on(
        &ledger,
        "[health]\nprobe_interval = '1s'\n\
         [auth]\ndiscovery = true\n\
         [admin]\nlisten = '127.0.0.1:0'\n",
    );
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(log(place))
        .unwrap();
    command
        .env("FLEETGATE_LOG__FILTER", "trace")
        .env("NO_COLOR", "1")
        .stderr(Stdio::from(log));
    Server::start(&mut command).await
}

/// One exchange over HTTP/1.1.
pub(crate) async fn exchange(address: &str, mut request: Request<Full<Bytes>>) -> Response<Bytes> {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let host = address.parse().unwrap();
    request.headers_mut().insert("host", host);
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

/// The token that the gateway has published for this host.
pub(crate) fn local_token(place: &Place) -> String {
    let records = fs::read_dir(place.runtime_dir()).unwrap();
    let texts = records.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
    let mut tokens = texts.filter_map(|text| {
        let record: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(record["token"].as_str()?.to_owned())
    });
    secret_of(&tokens.next().unwrap()).to_owned()
}

/// What of a token is secret: `fgt_<id>_<secret>`, in which only the secret can
/// have an underscore of its own.
pub(crate) fn secret_of(token: &str) -> &str {
    let secret = token.splitn(3, '_').nth(2).unwrap();
    assert_eq!(secret.len(), 43, "256 bits as base64url");
    secret
}
