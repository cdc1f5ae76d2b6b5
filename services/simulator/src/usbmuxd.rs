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
//! packets is closed. A phone that trusts this host has a pair record, without
//! a key in it; saving and deleting records results in 0 and changes nothing.
//!
//! Invariant: a connection ends with the daemon that accepted it, before the
//! next daemon says a word, and a pipe with the attachment that it goes through.

use std::io;
use std::sync::Arc;

use fleetgate_runner::Udid;
use fleetgate_usbmux::{
    Client, Decoder, DeviceList, Header, Packet, PairRecord, Phone, Reply, Request, ResultCode,
};
use plist::{Dictionary, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::lab::LabCore;
use crate::mux::Daemon;
use crate::oddity::{Asked, Given};
use crate::runner::connection;
use crate::stray;
use crate::sync::until_stopped;

mod listen;
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
        if let Some(number) = lab.oddities.take_result(asked) {
            let refusal = Reply::Result(i64::from(number).into());
            send(stream, &encode(&refusal, tag)?).await?;
            continue;
        }
        let good = match request {
            Err(result) => encode(&Reply::Result(result), tag)?,
            Ok(Request::ListDevices) => device_list(lab, tag)?,
            Ok(Request::Listen) => {
                let good = encode(&Reply::Result(ResultCode::Ok), tag)?;
                let held_back = answer(lab, stream, asked, &good).await?;
                let _listening = lab.listeners.enter(client_name(&packet));
                return listen::run(lab, gone, stream, held_back).await;
            }
            Ok(Request::Connect { device, port }) => match pipe::find(lab, device, port) {
                Ok(pipe) => {
                    let good = encode(&Reply::Result(ResultCode::Ok), tag)?;
                    let held_back = answer(lab, stream, asked, &good).await?;
                    send(stream, &held_back).await?;
                    return pipe.run(stream, decoder.into_rest()).await;
                }
                Err(pipe::Refusal::Result(result)) => encode(&Reply::Result(result), tag)?,
                Err(pipe::Refusal::Restart(ids)) => {
                    lab.mux.start(ids);
                    return Ok(());
                }
            },
            Ok(Request::ReadBuid) => encode(&Reply::Buid(BUID.to_owned()), tag)?,
            Ok(Request::ReadPairRecord { id }) => {
                let record = pair_record(lab, &id).map(Reply::PairRecord);
                encode(&record.unwrap_or(Reply::Result(ResultCode::BadDevice)), tag)?
            }
            Ok(Request::SavePairRecord { .. } | Request::DeletePairRecord { .. }) => {
                encode(&Reply::Result(ResultCode::Ok), tag)?
            }
            Ok(Request::ListListeners) => encode(&Reply::Listeners(lab.listeners.names()), tag)?,
            Ok(Request::Other(_)) => encode(&Reply::Result(ResultCode::BadCommand), tag)?,
        };
        let held_back = answer(lab, stream, asked, &good).await?;
        send(stream, &held_back).await?;
    }
}

/// Writes an answer, or what an oddity makes of it. Fails where the
/// conversation cannot go on. Gives what is to be written with what comes next.
async fn answer(
    lab: &LabCore,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    asked: Asked,
    good: &[u8],
) -> io::Result<Vec<u8>> {
    match lab.oddities.take(asked) {
        None => send(stream, good).await.map(|()| Vec::new()),
        Some(odd) => give(lab, stream, odd.make_odd(good)?).await,
    }
}

/// Gives something odd.
async fn give(
    lab: &LabCore,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    given: Given,
) -> io::Result<Vec<u8>> {
    match given {
        Given::Whole(bytes) => send(stream, &bytes).await?,
        Given::AndClosed(bytes) => {
            send(stream, &bytes).await?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Given::Slowly(bytes, every) => {
            for byte in bytes {
                lab.clock.sleep(every).await;
                send(stream, &[byte]).await?;
            }
        }
        Given::WithTheNext(bytes) => return Ok(bytes),
        Given::Never => {
            connection::silence(stream).await?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    Ok(Vec::new())
}

/// The device list, strays included.
fn device_list(lab: &LabCore, tag: u32) -> io::Result<Vec<u8>> {
    let (phones, strays): (Vec<Phone>, _) = lab
        .mux
        .look(|table| (table.phones().collect(), table.strays.clone()));
    let list = DeviceList { phones, skipped: 0 };
    let list = encode(&Reply::DeviceList(list), tag)?;
    if strays.is_empty() {
        return Ok(list);
    }
    let strays = strays.iter().map(|placed| (&placed.stray, placed.device));
    stray::before_the_phones(&list, tag, strays)
}

/// The pair record of a phone that trusts this host. A real one has keys in
/// it; this one has a text that must be found nowhere else.
fn pair_record(lab: &LabCore, id: &str) -> Option<PairRecord> {
    let udid: Udid = id.parse().ok()?;
    let phone = lab.phones.get(&udid)?;
    phone.look(|state| state.trusted).then(|| {
        let fields = [
            ("HostID", Value::from(BUID)),
            ("HostPrivateKey", format!("secret of {udid}").into()),
            ("SystemBUID", BUID.into()),
        ];
        let mut xml = Vec::new();
        let record = Value::Dictionary(Dictionary::from_iter(fields));
        // Writing to memory cannot fail.
        drop(record.to_writer_xml(&mut xml));
        PairRecord(xml.into())
    })
}

fn encode(reply: &Reply, tag: u32) -> io::Result<Vec<u8>> {
    let bytes = reply.encode(tag).map_err(io::Error::other)?;
    Ok(bytes.to_vec())
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
