//! HTTP/2 by hand, for what no client library lets one do or see.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Rig;

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
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Raw {
    /// Connects and says hello: the preface, and settings that set nothing.
    pub async fn connect(rig: &Rig) -> Self {
        let address = rig.url().replace("http://", "");
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
        let [_, _, _, kind, flags, ..] = header;
        Some(Frame {
            kind,
            flags,
            payload,
        })
    }
}
