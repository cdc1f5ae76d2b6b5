//! One connection to usbmuxd as long as packets flow on it.
//!
//! Every answer is matched to its request by the tag. A connection that failed
//! once is of no further use; its owner drops it.

use bytes::Bytes;
use fleetgate_usbmux::{Client, Decoder, Packet, Reply, Request, ResultCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::dialer::BoxStream;
use crate::error::MuxError;

/// A connection in the packet stage.
pub(crate) struct Connection {
    stream: BoxStream,
    decoder: Decoder,
    tag: u32,
}

impl Connection {
    pub(crate) fn new(stream: BoxStream) -> Self {
        Self {
            stream,
            decoder: Decoder::new(),
            tag: 0,
        }
    }

    /// Asks for something that is answered with a number, and wants it to be 0.
    pub(crate) async fn ask(&mut self, client: &Client, request: &Request) -> Result<(), MuxError> {
        match self.request(client, request).await? {
            Reply::Result(ResultCode::Ok) => Ok(()),
            Reply::Result(result) => Err(MuxError::Refused { result }),
            Reply::DeviceList(_) | Reply::Buid(_) | Reply::PairRecord(_) | Reply::Listeners(_) => {
                Err(MuxError::UnexpectedReply)
            }
        }
    }

    /// Asks for something, and takes whatever the answer is.
    pub(crate) async fn request(
        &mut self,
        client: &Client,
        request: &Request,
    ) -> Result<Reply, MuxError> {
        // Never 0: that is the tag of what answers nothing.
        self.tag += 1;
        let packet = request.encode(client, self.tag)?;
        self.stream.write_all(&packet).await.map_err(MuxError::Io)?;
        self.stream.flush().await.map_err(MuxError::Io)?;
        Ok(Reply::decode(&self.packet().await?, self.tag)?)
    }

    /// The next packet. Cancel-safe: what was read stays in the decoder.
    pub(crate) async fn packet(&mut self) -> Result<Packet, MuxError> {
        loop {
            if let Some(packet) = self.arrived()? {
                return Ok(packet);
            }
            let read = self
                .stream
                .read_buf(self.decoder.input())
                .await
                .map_err(MuxError::Io)?;
            if read == 0 {
                return Err(MuxError::Closed {
                    mid_packet: !self.decoder.is_empty(),
                });
            }
        }
    }

    /// The next packet if it is here already.
    pub(crate) fn arrived(&mut self) -> Result<Option<Packet>, MuxError> {
        Ok(self.decoder.next_packet()?)
    }

    /// Ends the packet stage: what came after the last packet, and the stream.
    pub(crate) fn into_parts(self) -> (Bytes, BoxStream) {
        (self.decoder.into_rest(), self.stream)
    }
}
