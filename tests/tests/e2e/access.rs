//! The real binary before callers whom it does not know: where it listens, whom
//! it lets in, and how its own user finds it.

use std::net::IpAddr;
use std::path::PathBuf;

use fleetgate_gateway::Config;
use fleetgate_identity::{InstanceRecord, Instances};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use fleetgate_tests::binary;
use fleetgate_tests::leasing::{Bearer, Caller};
use fleetgate_tests::place::{Place, Said, Server, run};
use fleetgate_tests::process::Process;
use fleetgate_tests::{connect, refused};
use tonic::Code;
use tonic::transport::Channel;

mod finding;
mod pages;
mod tokens;

/// A gateway as it is by default, but for its port and where it keeps its
/// things.
struct Guarded {
    place: Place,
    server: Server,
    channel: Channel,
}

impl Guarded {
    async fn start() -> Self {
        Self::configured("").await
    }

    /// The same with these lines besides.
    async fn configured(more: &str) -> Self {
        let place = Place::new();
        let server = Server::start(&mut serve(&place, more)).await;
        let channel = connect(&server.url).await;
        Self {
            place,
            server,
            channel,
        }
    }

    fn pid(&self) -> u32 {
        self.server.running.child.id().expect("a process that runs")
    }

    /// What is published by gateways of this place that live.
    fn records(&self) -> Vec<InstanceRecord> {
        Instances::at(self.place.runtime_dir()).list().unwrap()
    }

    /// Its own user, by what it has published.
    fn user(&self) -> Caller {
        let records = self.records();
        let [record] = &records[..] else {
            panic!("one record, not {records:?}")
        };
        let bearer = Bearer::new(record.token.expose());
        Caller::new("local", self.channel.clone(), bearer)
    }

    /// Somebody with this token.
    fn holder(&self, token: &str) -> Caller {
        Caller::new("ci", self.channel.clone(), Bearer::new(token))
    }

    /// Asks for something that everybody may ask who is known.
    async fn ask(&self, who: &Caller) -> Result<(), tonic::Status> {
        let asked = who.fleet().get_gateway(pb::GetGatewayRequest {}).await;
        asked.map(drop)
    }

    /// Makes or revokes tokens, as an operator does beside a gateway that runs.
    async fn token(&self, args: &[&str]) -> Said {
        let mut command = binary::command();
        command.arg("token").args(args);
        command.arg("--tokens").arg(self.place.tokens());
        run(&mut command, "").await
    }

    async fn end(self) {
        drop(self.channel);
        assert_eq!(self.server.end().await, Some(0));
    }
}

/// `serve` in a place, with these lines besides.
fn serve(place: &Place, more: &str) -> tokio::process::Command {
    // An empty [auth] is the default: without it, tests let everybody in.
    let text = format!(
        "{more}\n\
         [ledger]\npath = '{}'\n\
         [usbmuxd]\naddress = '{}'\n\
         [log]\nfilter = 'error'\n",
        place.path("ledger.db").display(),
        place.usbmuxd().display(),
    );
    place.serve_with(&text)
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_every_socket_of_a_gateway_is_on_loopback() {
    let default = Config::default().server.listen.address();
    assert!(default.ip().is_loopback(), "{default}");
    assert_eq!(Config::default().admin.listen, None);
    let guarded = Guarded::start().await;
    guarded.ask(&guarded.user()).await.unwrap();
    let sockets = Process::new(guarded.pid()).internet_sockets();
    let port = guarded.server.url.rsplit(':').next().unwrap();
    let listening: Vec<_> = sockets.iter().filter(|socket| socket.listens).collect();
    assert_eq!(listening.len(), 1, "{sockets:?}");
    assert_eq!(listening[0].local.port().to_string(), port);
    assert!(
        sockets.len() > 1,
        "the test's own connection, too: {sockets:?}"
    );
    for socket in &sockets {
        let near = socket.local.ip().to_canonical();
        assert!(near.is_loopback(), "{socket:?}");
        assert_eq!(near, IpAddr::from([127, 0, 0, 1]));
    }
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_can_reach_takes_tls_and_callers_that_are_known() {
    const TLS: &str = "set certificate and key of [tls]";
    const CALLERS: &str = "make a token with `fleetgate token create`";
    const NOBODY: &str = "take anonymous out of [auth]";
    let place = Place::new();
    let files = "[tls]\ncertificate = 'x.pem'\nkey = 'y.pem'\n";
    let anonymous = "[auth]\nanonymous = 'viewer'\n";
    for (listen, more, missing, there) in [
        ("0.0.0.0:0", "", vec![TLS, CALLERS], vec![NOBODY]),
        ("[::]:0", "", vec![TLS, CALLERS], vec![NOBODY]),
        ("0.0.0.0:0", files, vec![CALLERS], vec![TLS]),
        ("0.0.0.0:0", anonymous, vec![TLS, CALLERS, NOBODY], vec![]),
    ] {
        let mut serve = serve(&place, more);
        serve.env("FLEETGATE_SERVER__LISTEN", listen);
        let said = run(&mut serve, "").await;
        assert_ne!(said.code, 0, "{listen} {more}");
        assert_eq!(said.text(), "", "it never listened");
        for words in missing.iter().chain([&listen, &"listen on 127.0.0.1"]) {
            assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
        }
        for words in there {
            assert!(!said.stderr.contains(words), "{words}: {}", said.stderr);
        }
    }
    assert!(!place.path("ledger.db").exists(), "nothing was begun");
    assert!(!place.runtime_dir().exists(), "nor published");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_who_it_is_is_refused_on_loopback_too_and_that_is_on_record() {
    let guarded = Guarded::start().await;
    let mut fleet = FleetServiceClient::new(guarded.channel.clone());
    let refusal = refused(fleet.get_gateway(pb::GetGatewayRequest {}).await);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (Code::Unauthenticated, "CREDENTIALS_MISSING"));
    assert!(!refusal.meta("hint").is_empty(), "{refusal:?}");
    let mut leases = LeaseServiceClient::new(guarded.channel.clone());
    let wish = fleetgate_tests::leasing::any(1);
    let refusal = refused(leases.create_lease(wish).await);
    assert_eq!(refusal.reason, "CREDENTIALS_MISSING");
    let stranger = guarded.holder("fgt_000000000000_nobody-has-ever-made-this");
    let refusal = refused(guarded.ask(&stranger).await);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (Code::Unauthenticated, "CREDENTIALS_INVALID"));

    let user = guarded.user();
    let mut denied = Vec::new();
    for (reason, count) in [("CREDENTIALS_MISSING", 2), ("CREDENTIALS_INVALID", 1)] {
        denied.extend(user.records().denials(reason, count).await);
    }
    let told: Vec<_> = denied
        .iter()
        .map(|denied| (denied.who.as_str(), denied.target.as_str()))
        .collect();
    let gateway = "/fleetgate.v1.FleetService/GetGateway";
    let lease = "/fleetgate.v1.LeaseService/CreateLease";
    let expected = [gateway, lease, gateway].map(|path| ("unknown", path));
    assert_eq!(told, expected);
    for denied in &denied {
        let address: std::net::SocketAddr = denied.detail("address").parse().unwrap();
        assert!(address.ip().is_loopback(), "{denied:?}");
    }
    guarded.end().await;
}

/// The files of discovery records in a place.
fn files(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.runtime_dir()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let records = paths.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    records.collect()
}
