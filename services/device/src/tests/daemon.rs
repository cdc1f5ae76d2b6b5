//! A usbmuxd that does what a test says, one connection at a time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fleetgate_runner::Udid;
use fleetgate_usbmux::{
    Client, ConnectionType, Decoder, Event, MuxDeviceId, Packet, Phone, Reply, Request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;

use crate::inventory::{Inventory, Known};
use crate::{BoxStream, Dialer, HostConfig, Hosts, HostsTask, HostsView, UsbmuxdConfig};

/// How much either side can write before the other reads.
const PIPE_SIZE: usize = 64 * 1024;

pub(super) const ALICE: &str = "00008110-000978540290401E";
pub(super) const BOB: &str = "00008020-00060D691AD8003A";

pub(super) fn udid(text: &str) -> Udid {
    text.parse().unwrap()
}

pub(super) fn phone(number: u32, connection: ConnectionType, serial: &str) -> Phone {
    Phone {
        device: MuxDeviceId(number),
        connection,
        serial: serial.to_owned(),
        product: None,
        location: None,
        speed: None,
    }
}

pub(super) fn usb(number: u32, serial: &str) -> Event {
    Event::Attached(phone(number, ConnectionType::Usb, serial))
}

pub(super) fn network(number: u32, serial: &str) -> Event {
    Event::Attached(phone(number, ConnectionType::Network, serial))
}

pub(super) fn detached(number: u32) -> Event {
    Event::Detached(MuxDeviceId(number))
}

/// The daemon's end of everything that is dialled.
pub(super) struct Daemon {
    connections: mpsc::Receiver<DuplexStream>,
    refusing: Arc<AtomicBool>,
    dials: Arc<AtomicUsize>,
}

impl Daemon {
    pub(super) fn new() -> (Dialer, Self) {
        let (queue, connections) = mpsc::channel(512);
        let refusing = Arc::new(AtomicBool::new(false));
        let dials = Arc::new(AtomicUsize::new(0));
        let daemon = Self {
            connections,
            refusing: Arc::clone(&refusing),
            dials: Arc::clone(&dials),
        };
        let dialer = Dialer::from_fn("scripted", move || {
            dials.fetch_add(1, Ordering::Relaxed);
            let refused = refusing.load(Ordering::Relaxed);
            let queue = queue.clone();
            Box::pin(async move {
                let (ours, theirs) = duplex(PIPE_SIZE);
                if refused || queue.try_send(theirs).is_err() {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                Ok(Box::new(ours) as BoxStream)
            })
        });
        (dialer, daemon)
    }

    /// Whether dials fail from now on.
    pub(super) fn refuse(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::Relaxed);
    }

    pub(super) fn dials(&self) -> usize {
        self.dials.load(Ordering::Relaxed)
    }

    /// The next connection that was dialled.
    pub(super) async fn accept(&mut self) -> Peer {
        let stream = self.connections.recv().await.unwrap();
        Peer {
            stream,
            decoder: Decoder::new(),
            tag: 0,
            client: None,
        }
    }

    /// Accepts a listening connection and announces these.
    pub(super) async fn listening(&mut self, events: &[Event]) -> Peer {
        let mut peer = self.accept().await;
        assert_eq!(peer.request().await, Request::Listen);
        let mut burst = Reply::Result(0.into()).encode(peer.tag).unwrap().to_vec();
        burst.extend(encoded(events));
        peer.raw(&burst).await;
        peer
    }

    /// Accepts a connection that asks for this number, and leaves the answer to
    /// the test.
    pub(super) async fn connecting(&mut self, number: u32, port: u16) -> Peer {
        let mut peer = self.accept().await;
        let Request::Connect {
            device,
            port: asked,
        } = peer.request().await
        else {
            panic!("not a Connect");
        };
        assert_eq!((device, asked.get()), (MuxDeviceId(number), port));
        peer
    }
}

pub(super) fn encoded(events: &[Event]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| event.encode().unwrap())
        .collect()
}

/// The daemon's end of one connection.
pub(super) struct Peer {
    pub(super) stream: DuplexStream,
    decoder: Decoder,
    /// Who sent the last request.
    pub(super) client: Option<Client>,
    /// Its tag.
    pub(super) tag: u32,
}

impl Peer {
    pub(super) async fn request(&mut self) -> Request {
        let packet = self.packet().await;
        self.tag = packet.header.tag;
        self.client = Some(Client::decode(&packet).unwrap());
        Request::decode(&packet).unwrap()
    }

    async fn packet(&mut self) -> Packet {
        loop {
            if let Some(packet) = self.decoder.next_packet().unwrap() {
                return packet;
            }
            assert_ne!(
                self.stream.read_buf(self.decoder.input()).await.unwrap(),
                0,
                "hung up"
            );
        }
    }

    pub(super) async fn result(&mut self, number: i64) {
        let reply = Reply::Result(number.into()).encode(self.tag).unwrap();
        self.raw(&reply).await;
    }

    pub(super) async fn events(&mut self, events: &[Event]) {
        self.raw(&encoded(events)).await;
    }

    pub(super) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads an HTTP request: its head as text, and its body.
    pub(super) async fn http(&mut self) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            assert_ne!(
                self.stream.read_buf(&mut bytes).await.unwrap(),
                0,
                "hung up: {bytes:?}"
            );
        };
        let mut body = bytes.split_off(head);
        let head = String::from_utf8(bytes).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.unwrap().parse().unwrap();
        while body.len() < length {
            assert_ne!(self.stream.read_buf(&mut body).await.unwrap(), 0, "hung up");
        }
        assert_eq!(body.len(), length);
        (head, body)
    }

    /// Answers an HTTP request and closes, as a runner does.
    pub(super) async fn answer(mut self, status: u16, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat()).await;
    }

    /// Closes this end.
    pub(super) async fn hang_up(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Waits until the other side hung up; what it sent before that.
    pub(super) async fn hung_up(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
        rest
    }
}

/// A host of that name behind a dialer.
pub(super) fn host(name: &str, dialer: Dialer) -> HostConfig {
    HostConfig {
        name: name.into(),
        dialer,
        usbmuxd: UsbmuxdConfig::default(),
    }
}

/// One listened-to daemon.
pub(super) struct Lab {
    pub(super) hosts: Hosts,
    pub(super) task: HostsTask,
    pub(super) daemon: Daemon,
    pub(super) listener: Peer,
}

impl Lab {
    /// Listens, and waits until all of these are known.
    pub(super) async fn with(events: &[Event]) -> Self {
        let (dialer, mut daemon) = Daemon::new();
        let (hosts, task) = Hosts::spawn(vec![host("local", dialer)]);
        let listener = daemon.listening(events).await;
        let lab = Self {
            hosts,
            task,
            daemon,
            listener,
        };
        until(&lab.hosts, |view| view.hosts[0].connected).await;
        lab
    }

    /// The table itself, to which the view comes a moment later.
    pub(super) fn look<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T {
        self.hosts.usbmuxd(0).look(read)
    }

    /// What is known of a phone.
    pub(super) fn known(&self, serial: &str) -> Option<Known> {
        self.look(|inventory| inventory.get(&udid(serial)).cloned())
    }
}

/// Waits until the view looks like this.
pub(super) async fn until(hosts: &Hosts, looks: impl Fn(&HostsView) -> bool) -> Arc<HostsView> {
    let mut view = hosts.view();
    let view = view.wait_for(|view| looks(view)).await.unwrap();
    Arc::clone(&view)
}

/// Until no phone of that serial is known.
pub(super) async fn until_gone(hosts: &Hosts, serial: &str) -> Arc<HostsView> {
    let device = udid(serial);
    until(hosts, |view| !view.devices.contains_key(&device)).await
}
