//! `lab` and `serve` in processes of their own, and the phone's account over the
//! lab's control API.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::binary::{self, Running};
use crate::place::{Place, Said, Server};
use crate::{pause, soon};

/// The phone's other name.
pub const ALIAS: &str = "anna";
/// Its UDID.
pub const UDID: &str = "00008110-00F1EE7000000001";

/// A lab of two phones and a gateway before it.
#[derive(Debug)]
pub struct Pair {
    /// Their directory.
    pub place: Place,
    lab: Running,
    control: String,
    /// The gateway.
    pub server: Server,
}

impl Pair {
    /// Starts both and waits until they have found each other.
    pub async fn start() -> Self {
        let place = Place::new();
        let mut lab = binary::command();
        lab.args(["lab", "--phones", "2", "--time-scale", "0.02"])
            .args(["--control", "127.0.0.1:0", "--log", "warn", "--unix"])
            .arg(place.usbmuxd());
        let mut lab = Running::start(&mut lab);
        let control = lab.line_with("control: ").await;
        let control = control.rsplit('/').next().expect("an address").to_owned();
        lab.line_with("fleetgate serve").await;
        let device = format!("[[device]]\nudid = '{UDID}'\nalias = '{ALIAS}'\n");
        let server = Server::start(&mut place.serve_on(&place.path("ledger.db"), &device)).await;
        let pair = Self {
            place,
            lab,
            control,
            server,
        };
        soon("the phones", async {
            while pair
                .ask("devices")
                .await
                .text()
                .matches(" attached ")
                .count()
                < 2
            {
                pause().await;
            }
        })
        .await;
        pair
    }

    /// Runs a verb whose words have no spaces in them.
    pub async fn ask(&self, line: &str) -> Said {
        let args: Vec<_> = line.split(' ').collect();
        self.server.ask(&args).await
    }

    /// Runs a verb that must succeed.
    pub async fn done(&self, line: &str) -> Said {
        let said = self.ask(line).await;
        assert_eq!(said.code, 0, "{line}: {}", said.stderr);
        said
    }

    /// Runs a verb that must succeed and says so in JSON.
    pub async fn json(&self, line: &str) -> Value {
        let said = self.done(&format!("{line} --output json")).await;
        assert_eq!(said.stderr, "", "{line}");
        said.json()
    }

    /// Asks the lab's control API.
    async fn control(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.control)
            .await
            .expect("a connection to the lab");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.control,
            body.len()
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("an open connection");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .await
            .expect("an answer in text");
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    /// The phone's own account.
    pub async fn phone(&self) -> Value {
        self.control("GET", &format!("/phones/{UDID}"), "").await
    }

    /// Plants a fault in the phone.
    pub async fn plant(&self, fault: &Value) {
        let path = format!("/phones/{UDID}/faults");
        self.control("POST", &path, &fault.to_string()).await;
    }

    /// How often a command had its effect.
    pub async fn effects_of(&self, id: &Value) -> usize {
        let phone = self.phone().await;
        let effects = phone["effects"].as_array().expect("a list");
        effects
            .iter()
            .filter(|effect| effect["command_id"] == *id)
            .count()
    }

    /// Ends both as a service manager would.
    pub async fn end(mut self) {
        assert_eq!(self.server.end().await, Some(0));
        self.lab.terminate().await;
        let ended = soon("the lab's end", self.lab.child.wait()).await;
        assert_eq!(ended.expect("a status").code(), Some(0));
    }
}
