//! A client of usbmuxd and of a runner that knows nothing but bytes.

use std::time::Duration;

use fleetgate_simulator::{Lab, Phone, PhoneReport, Scenario};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// The app that is in front on every new phone.
pub(crate) const SETTINGS: &str = "com.example.settings";

/// 8100 in network byte order, read as a little-endian number.
pub(crate) const PORT_8100: u32 = 42015;

/// A usbmuxd packet: length, version 1, message 8, tag, then the list.
pub(crate) fn packet(tag: u32, plist: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [u32::try_from(16 + plist.len()).unwrap(), 1, 8, tag] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(plist.as_bytes());
    bytes
}

/// An XML property list with a request of this type and these further keys.
pub(crate) fn plist(message: &str, more: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\
         <plist version=\"1.0\"><dict>\
         <key>MessageType</key><string>{message}</string>\
         <key>ClientVersionString</key><string>by hand</string>\
         <key>ProgName</key><string>hand</string>\
         <key>kLibUSBMuxVersion</key><integer>3</integer>\
         {more}</dict></plist>"
    )
}

/// A Connect to a device id, with the port number as it stands on the wire.
pub(crate) fn connect(device: u32, port: u32) -> String {
    let keys = format!(
        "<key>DeviceID</key><integer>{device}</integer>\
         <key>PortNumber</key><integer>{port}</integer>"
    );
    plist("Connect", &keys)
}

/// One packet of usbmuxd's: its tag, and its list without white space.
pub(crate) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> (u32, String) {
    let mut header = [0; 16];
    stream.read_exact(&mut header).await.unwrap();
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    assert_eq!((number(4), number(8)), (1, 8), "version 1, a property list");
    let mut list = vec![0; number(0) as usize - 16];
    stream.read_exact(&mut list).await.unwrap();
    let list = String::from_utf8(list).unwrap();
    assert!(list.starts_with("<?xml"), "usbmuxd answers in XML");
    (number(12), list.split_whitespace().collect())
}

/// One request to usbmuxd and its answer.
pub(crate) async fn ask<S>(stream: &mut S, tag: u32, plist: &str) -> String
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&packet(tag, plist)).await.unwrap();
    let (answered, list) = receive(stream).await;
    assert_eq!(answered, tag, "the tag of the request");
    list
}

/// The number of a Result.
pub(crate) fn result(list: &str) -> u32 {
    assert!(
        list.contains("<key>MessageType</key><string>Result</string>"),
        "{list}"
    );
    let (_, rest) = list.split_once("<key>Number</key><integer>").unwrap();
    rest.split_once('<').unwrap().0.parse().unwrap()
}

/// Asks for a connection, and says what came of it.
pub(crate) async fn try_pipe(lab: &Lab, device: u32, port: u32) -> Result<DuplexStream, u32> {
    let mut stream = lab.connect();
    match result(&ask(&mut stream, 1, &connect(device, port)).await) {
        0 => Ok(stream),
        number => Err(number),
    }
}

/// A pipe to the runner of the phone with this device id.
pub(crate) async fn pipe(lab: &Lab, device: u32) -> DuplexStream {
    try_pipe(lab, device, PORT_8100).await.unwrap()
}

/// A request to a runner.
pub(crate) fn post(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /command HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A runner's reply, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) envelope: Value,
}

impl Reply {
    /// The code of an error envelope.
    pub(crate) fn code(&self) -> &str {
        assert_eq!(self.envelope["ok"], false, "{self:?}");
        self.envelope["error"]["code"].as_str().unwrap()
    }

    /// The data of a success envelope.
    pub(crate) fn data(&self) -> &Value {
        assert_eq!(self.envelope["ok"], true, "{self:?}");
        &self.envelope["data"]
    }
}

/// Everything that comes until the other side closes.
pub(crate) async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// A whole reply, checked against the framing that the protocol prescribes.
pub(crate) async fn read_reply(stream: &mut (impl AsyncRead + Unpin)) -> Reply {
    let bytes = read_all(stream).await;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").expect("a header block");
    let mut lines = head.lines();
    let status_line = lines.next().unwrap();
    let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
    let phrase = if status == 200 { "OK" } else { "Error" };
    assert_eq!(status_line, format!("HTTP/1.1 {status} {phrase}"));
    let mut headers: Vec<_> = lines.map(str::to_ascii_lowercase).collect();
    headers.sort();
    assert_eq!(
        headers,
        [
            "connection: close".to_owned(),
            format!("content-length: {}", body.len()),
            "content-type: application/json".to_owned(),
        ]
    );
    Reply {
        status,
        envelope: serde_json::from_str(body).unwrap(),
    }
}

/// A lab in which one thing is tried at a time.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) phone: Phone,
}

impl Bench {
    /// One plain phone; its device id is 1.
    pub(crate) fn new() -> Self {
        Self::start(Scenario::fleet(1))
    }

    /// The first phone of a scenario.
    pub(crate) fn of(toml: &str) -> Self {
        Self::start(toml.parse().unwrap())
    }

    fn start(scenario: Scenario) -> Self {
        let first = scenario.phones[0].udid.clone();
        let lab = Lab::start(scenario);
        let phone = lab.phone(&first).unwrap();
        Self { lab, phone }
    }

    /// Sends a request and leaves the reply to come.
    pub(crate) async fn send(&self, body: &Value) -> DuplexStream {
        let mut pipe = pipe(&self.lab, 1).await;
        pipe.write_all(&post(&body.to_string())).await.unwrap();
        pipe
    }

    /// One exchange with the phone's runner.
    pub(crate) async fn exchange(&self, body: Value) -> Reply {
        read_reply(&mut self.send(&body).await).await
    }

    /// One exchange that ends without a reply.
    pub(crate) async fn exchange_lost(&self, body: Value) {
        assert_eq!(read_all(&mut self.send(&body).await).await, b"");
    }

    /// The runner's word on a command id.
    pub(crate) async fn journal(&self, id: &str) -> Value {
        let reply = self
            .exchange(json!({"command": "status", "statusCommandId": id}))
            .await;
        reply.data().clone()
    }

    /// What the runner calls its own state.
    pub(crate) async fn state(&self) -> String {
        let reply = self.exchange(json!({"command": "status"})).await;
        reply.data()["state"].as_str().unwrap().to_owned()
    }

    /// Waits until what can be seen of the phone satisfies `seen`; on a paused
    /// clock, what never happens fails at once.
    pub(crate) async fn until(&self, seen: impl FnMut(&PhoneReport) -> bool) -> PhoneReport {
        let week = Duration::from_secs(7 * 24 * 60 * 60);
        let waiting = tokio::time::timeout(week, self.phone.wait_until(seen));
        waiting.await.expect("it never happened")
    }

    /// How often the command with this id had its effect.
    pub(crate) fn effects_of(&self, id: &str) -> usize {
        self.phone.effects_of(&id.parse().unwrap())
    }

    /// A tap in the middle of the node with this identifier.
    pub(crate) async fn tap_on(&self, identifier: &str) {
        let snapshot = self
            .exchange(json!({"command": "snapshot", "appBundleId": SETTINGS}))
            .await;
        let nodes = snapshot.data()["nodes"].as_array().unwrap().clone();
        let node = nodes.iter().find(|node| node["identifier"] == identifier);
        let rect = &node.unwrap_or_else(|| panic!("{identifier} is not there"))["rect"];
        let middle =
            |at: &str, size: &str| rect[at].as_f64().unwrap() + rect[size].as_f64().unwrap() / 2.0;
        let (x, y) = (middle("x", "width"), middle("y", "height"));
        let tap = json!({"command": "tap", "appBundleId": SETTINGS, "x": x, "y": y});
        assert_eq!(self.exchange(tap).await.data()["message"], "tapped");
    }

    /// Opens a page with a text field and puts the cursor there.
    pub(crate) async fn focus(&self) {
        self.tap_on("com.example.settings.general").await;
        self.tap_on("com.example.settings.general.name").await;
    }
}

/// A tap with this id, somewhere on the settings app.
pub(crate) fn tap(id: &str) -> Value {
    json!({"command": "tap", "commandId": id, "appBundleId": SETTINGS, "x": 390, "y": 1})
}

/// On a paused clock: no reply comes within this much of the phones' time.
pub(crate) async fn assert_silent(stream: &mut DuplexStream, during: Duration) {
    let mut byte = [0];
    let read = tokio::time::timeout(during, stream.read(&mut byte)).await;
    assert!(read.is_err(), "something came: {read:?}");
}
