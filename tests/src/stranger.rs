//! Somebody besides the gateway who speaks to a phone's runner, as a developer
//! with a tool of their own might: bytes written by hand.

use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_usbmux::{Client, MuxDeviceId, Port, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::Rig;

/// Sends one request to the runner of the `n`th phone, whose number at usbmuxd
/// is by its place, and gives everything that comes back.
pub async fn post(rig: &Rig, n: u32, body: &str) -> String {
    let mut pipe = rig.lab.connect();
    let port = Port::new(DEFAULT_PORT.into()).expect("a port");
    let connect = Request::Connect {
        device: MuxDeviceId(n + 1),
        port,
    };
    let connect = connect
        .encode(&Client::new("stranger", "1"), 1)
        .expect("a request");
    pipe.write_all(&connect)
        .await
        .expect("a usbmuxd that listens");
    let head = format!(
        "POST /command HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    pipe.write_all(format!("{head}{body}").as_bytes())
        .await
        .expect("a runner that listens");
    let mut reply = Vec::new();
    pipe.read_to_end(&mut reply).await.expect("a reply");
    String::from_utf8_lossy(&reply).into_owned()
}
