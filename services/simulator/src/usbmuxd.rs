//! The simulated usbmuxd: one conversation per connection.
//!
//! ```text
//!   requests and replies, tags echoed
//!      │  Listen                        Connect, result 0
//!      ▼                                ▼
//!   events until the client leaves      a raw pipe to the phone's runner
//! ```
//!
//! It reads XML like the real one (the codec takes binary lists too), and
//! answers in XML. A request that it does not understand gets result 1, a
//! packet of another version result 6; a stream that cannot be cut into
//! packets is closed. Pair records do not exist here: reading one results in
//! 2, saving and deleting in 0.
//!
//! Invariant: a connection ends with the daemon that accepted it, before the
//! next daemon says a word, and a pipe with the attachment that it goes through.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fleetgate_usbmux::{
    Client, Decoder, DeviceList, Event, Header, MuxDeviceId, Packet, Phone, Reply, Request,
    ResultCode,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::lab::LabCore;
use crate::mux::Daemon;
use crate::oddity::{Asked, Given};
use crate::runner::connection;
use crate::sync::until_stopped;

mod pipe;

/// The host's id, as `ReadBUID` answers it.
const BUID: &str = "F1EE7000-5EED-4000-8000-51B1A7ED0000";

/// Talks to one client until either side has had enough.
pub(crate) async fn converse<S>(lab: &Arc<LabCore>, mut stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut table = lab.mux.watch();
    let Ok(accepted) = table
        .wait_for(|table| table.daemon != Daemon::Stalled)
        .await
        .map(|table| {
            let accepted = (table.gone.clone(), table.connections.token());
            (table.daemon == Daemon::Up).then(|| (accepted, table.before.clone()))
        })
    else {
        return;
    };
    // A daemon that is down has no connections.
    let Some(((gone, open), before)) = accepted else {
        return;
    };
    // A process that ends closes all that it has open before another can be in
    // its place.
    for connections in before {
        connections.wait().await;
    }
    let ending = until_stopped(&gone, requests(lab, &gone, &mut stream)).await;
    if let Some(Err(error)) = ending {
        debug!(%error, "the client is gone");
    }
    drop(stream);
    drop(open);
}

async fn requests(
    lab: &Arc<LabCore>,
    gone: &CancellationToken,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut decoder = Decoder::new();
    loop {
        let Some(packet) = next_packet(stream, &mut decoder).await? else {
            return Ok(());
        };
        let tag = packet.header.tag;
        let request = understand(&packet);
        let asked = request.as_ref().map_or(Asked::Other, Asked::by);
        let reply = match request {
            Err(result) => Reply::Result(result),
            Ok(Request::ListDevices) => Reply::DeviceList(DeviceList {
                phones: lab.mux.look(|table| table.phones().collect()),
                skipped: 0,
            }),
            Ok(Request::Listen) => {
                answer(lab, stream, asked, &Reply::Result(ResultCode::Ok), tag).await?;
                let _listening = lab.listeners.enter(client_name(&packet));
                return listen(lab, gone, stream).await;
            }
            Ok(Request::Connect { device, port }) => match pipe::find(lab, device, port) {
                Ok(pipe) => {
                    answer(lab, stream, asked, &Reply::Result(ResultCode::Ok), tag).await?;
                    return pipe.run(stream, decoder.into_rest()).await;
                }
                Err(pipe::Refusal::Result(result)) => Reply::Result(result),
                Err(pipe::Refusal::Restart(ids)) => {
                    lab.mux.start(ids);
                    return Ok(());
                }
            },
            Ok(Request::ReadBuid) => Reply::Buid(BUID.to_owned()),
            Ok(Request::ReadPairRecord { .. }) => Reply::Result(ResultCode::BadDevice),
            Ok(Request::SavePairRecord { .. } | Request::DeletePairRecord { .. }) => {
                Reply::Result(ResultCode::Ok)
            }
            Ok(Request::ListListeners) => Reply::Listeners(lab.listeners.names()),
            Ok(Request::Other(_)) => Reply::Result(ResultCode::BadCommand),
        };
        answer(lab, stream, asked, &reply, tag).await?;
    }
}

/// Writes an answer, or what an oddity makes of it. Fails where the
/// conversation cannot go on.
async fn answer(
    lab: &LabCore,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    asked: Asked,
    reply: &Reply,
    tag: u32,
) -> io::Result<()> {
    let good = reply.encode(tag).map_err(io::Error::other)?;
    let Some(odd) = lab.oddities.take(asked) else {
        return send(stream, &good).await;
    };
    match odd.make_odd(&good)? {
        Given::Whole(bytes) => send(stream, &bytes).await,
        Given::AndClosed(bytes) => {
            send(stream, &bytes).await?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        Given::Slowly(bytes, every) => {
            for byte in bytes {
                lab.clock.sleep(every).await;
                send(stream, &[byte]).await?;
            }
            Ok(())
        }
        Given::Never => {
            connection::silence(stream).await?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

/// A request, or the result that says what is wrong with it.
fn understand(packet: &Packet) -> Result<Request, ResultCode> {
    if packet.header.version != Header::VERSION {
        return Err(ResultCode::BadVersion);
    }
    Request::decode(packet).map_err(|error| {
        debug!(%error, "a request that makes no sense");
        ResultCode::BadCommand
    })
}

fn client_name(packet: &Packet) -> String {
    Client::decode(packet).map_or_else(|_| "unknown".to_owned(), |client| client.name)
}

/// Says what is attached and then what changes, for as long as the client
/// stays. What comes and goes between two looks at the table under the same
/// number is not missed: numbers are not used twice by one daemon.
async fn listen(
    lab: &Arc<LabCore>,
    gone: &CancellationToken,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut table = lab.mux.watch();
    let mut known: BTreeMap<MuxDeviceId, Phone> = BTreeMap::new();
    loop {
        let now: BTreeMap<MuxDeviceId, Phone> = {
            let table = table.borrow_and_update();
            // The table of the next daemon is not this one's to tell. A daemon
            // goes while the table is held, so this cannot be too early.
            if gone.is_cancelled() {
                return Ok(());
            }
            table.phones().map(|phone| (phone.device, phone)).collect()
        };
        let left = known.keys().filter(|device| !now.contains_key(device));
        let came = now
            .values()
            .filter(|phone| !known.contains_key(&phone.device));
        let mut events = Vec::new();
        for event in left
            .map(|device| Event::Detached(*device))
            .chain(came.map(|phone| Event::Attached(phone.clone())))
        {
            events.extend_from_slice(&event.encode().map_err(io::Error::other)?);
        }
        send(stream, &events).await?;
        known = now;
        tokio::select! {
            changed = table.changed() => if changed.is_err() { return Ok(()) },
            // A listening client has nothing more to say but that it leaves.
            end = connection::silence(stream) => return end,
        }
    }
}

async fn next_packet(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> io::Result<Option<Packet>> {
    loop {
        if let Some(packet) = decoder.next_packet().map_err(io::Error::other)? {
            return Ok(Some(packet));
        }
        if stream.read_buf(decoder.input()).await? == 0 {
            return Ok(None);
        }
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}
