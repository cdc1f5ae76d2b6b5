//! HTTP/2 by hand, for what no client library lets one do or see.

use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Rig;

/// The type of a DATA frame.
pub const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
/// The type of a PING frame.
pub const PING: u8 = 6;
/// The type of a GOAWAY frame.
pub const GOAWAY: u8 = 7;

/// One connection, on which nothing is answered.
#[derive(Debug)]
pub struct Raw(TcpStream);

/// One frame, whatever stream it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// The stream that it belongs to; 0 is the connection itself.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Raw {
    /// Connects and says hello: the preface, and settings that set nothing.
    pub async fn connect(rig: &Rig) -> Self {
        Self::to(&rig.url()).await
    }

    /// The same to any gateway.
    pub async fn to(url: &str) -> Self {
        let address = url.replace("http://", "");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut raw = Self(stream);
        raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await;
        raw
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("an open connection");
    }

    /// The next frame; `None` once the server has closed the connection.
    pub async fn frame(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.0.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        let [_, _, _, kind, flags, stream @ ..] = header;
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }
}

/// A whole call on a stream of its own, as bytes: these headers, this message,
/// and the end.
pub fn call(stream: u32, path: &str, message: &impl Message) -> Vec<u8> {
    // POST and http, from the static table; then literals that leave the
    // dynamic one alone, by a name of the static table or a new one.
    let mut headers = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x04][..], path),
        (&[0x01], "localhost"),
        (&[0x0f, 0x10], "application/grpc"),
        (b"\0\x02te", "trailers"),
    ] {
        headers.extend_from_slice(name);
        headers.push(u8::try_from(value.len()).expect("a short value"));
        headers.extend_from_slice(value.as_bytes());
    }
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).expect("a short message");
    let body = [&[0][..], &length.to_be_bytes(), &message].concat();
    let (end_headers, end_stream) = (4, 1);
    [
        frame(HEADERS, end_headers, stream, &headers),
        frame(DATA, end_stream, stream, &body),
    ]
    .concat()
}

/// Word that nobody waits for a stream any more (CANCEL), as bytes.
pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame");
    let length = &length.to_be_bytes()[1..];
    [length, &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
