//! One connection to a runner: one request in, one reply out, close.
//!
//! A client that closes before its request is whole is dropped without a
//! reply, and one that sends nothing is waited for as long as it stays.
//! `status` is answered here, past the queue. What a reply fault does to the
//! bytes is done here too, after the command has had its verdict: the runner's
//! journal never learns of it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use fleetgate_runner::http::{self, FrameError, RequestDecoder};
use fleetgate_runner::{
    Command, CommandKind, DeviceCommand, Envelope, InvalidRequest, Reply, Request, RunnerError,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use super::{Outcome, Pending, Runner, Task};
use crate::fault::{Injection, Stage};
use crate::phone::core::PhoneCore;

/// How much of a reply comes through when a fault cuts it off.
const FIRST_BYTES: usize = 10;

/// Serves a connection whose first bytes may have been read already.
pub(crate) async fn serve<S>(
    phone: &Arc<PhoneCore>,
    runner: &Arc<Runner>,
    mut stream: S,
    early: Bytes,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ending = match receive(&mut stream, early).await {
        Ok(Some(body)) => answer(phone, runner, &mut stream, &body).await,
        Ok(None) => Ok(()),
        Err(Unreadable::Frame(refused)) => {
            let reply = refusal(refused.status(), refused.into_verdict());
            write(&mut stream, &reply).await
        }
        Err(Unreadable::Io(error)) => Err(error),
    };
    if let Err(error) = ending {
        debug!(%error, "the client is gone");
    }
}

enum Unreadable {
    Frame(FrameError),
    Io(io::Error),
}

/// The request's body; none if the client closed first.
async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    early: Bytes,
) -> Result<Option<Bytes>, Unreadable> {
    let mut decoder = RequestDecoder::new();
    let mut chunk = vec![0; 16 * 1024];
    let mut body = decoder.push(&early).map_err(Unreadable::Frame)?;
    while body.is_none() {
        let read = stream.read(&mut chunk).await.map_err(Unreadable::Io)?;
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        body = decoder.push(bytes).map_err(Unreadable::Frame)?;
    }
    Ok(body)
}

async fn answer(
    phone: &Arc<PhoneCore>,
    runner: &Arc<Runner>,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    body: &[u8],
) -> io::Result<()> {
    let (id, task) = match Request::decode(body) {
        Ok(Request {
            command: Command::Device(DeviceCommand::Status),
            ..
        }) => {
            phone.note_arrival(CommandKind::Status, None, runner.in_hand());
            let reply = Reply::Status(runner.status(&phone.clock));
            return answer_at_once(phone, stream, CommandKind::Status, reply).await;
        }
        Ok(Request {
            command: Command::Device(DeviceCommand::CommandStatus { of }),
            ..
        }) => {
            phone.note_arrival(
                CommandKind::CommandStatus,
                Some(of.clone()),
                runner.in_hand(),
            );
            let reply = Reply::CommandStatus(runner.book().journal.look_up(&of));
            return answer_at_once(phone, stream, CommandKind::CommandStatus, reply).await;
        }
        Ok(Request {
            command_id,
            command,
        }) => (command_id, Task::Run(command)),
        Err(invalid @ InvalidRequest::Undecodable(_)) => {
            return write(stream, &refusal(invalid.status(), invalid.into_verdict())).await;
        }
        Err(InvalidRequest::Unusable { kind, verdict, .. }) if kind.bypasses_queue() => {
            return write(stream, &refusal(500, verdict)).await;
        }
        Err(InvalidRequest::Unusable {
            command_id,
            kind,
            verdict,
        }) => (command_id, Task::Refuse(kind, verdict)),
    };
    let kind = task.kind();
    phone.note_arrival(kind, id.clone(), runner.in_hand());
    let fault = phone.take_fault(Stage::Arrival, Some(kind));
    if fault == Some(Injection::ReplyLostBeforeExecution) {
        return Ok(());
    }
    let Some(pending) = runner.submit(phone, id, task).await else {
        return Ok(());
    };
    if fault == Some(Injection::ReplyLostDuringExecution) {
        return Ok(());
    }
    reply_when_decided(phone, stream, kind, pending).await
}

/// Waits for the verdict and writes it. The hold on the outcome is let go when
/// the reply is flushed or given up: a runner that shuts down waits for that.
async fn reply_when_decided(
    phone: &Arc<PhoneCore>,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    kind: CommandKind,
    mut pending: Pending,
) -> io::Result<()> {
    let Ok(decided) = pending
        .wait_for(Option::is_some)
        .await
        .map(|outcome| outcome.clone())
    else {
        return Ok(());
    };
    let Some(Outcome { status, body, ran }) = decided else {
        return Ok(());
    };
    let fault = if ran {
        phone.take_fault(Stage::Reply, Some(kind))
    } else {
        None
    };
    match fault {
        None => write(stream, &http::response(status, &body)).await,
        Some(fault) => {
            drop(pending);
            spoil(stream, status, &body, &fault).await
        }
    }
}

async fn answer_at_once(
    phone: &Arc<PhoneCore>,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    kind: CommandKind,
    reply: Reply,
) -> io::Result<()> {
    let envelope = Envelope::from(Ok(reply));
    let (status, body) = (envelope.status(), envelope.encode());
    match phone.take_fault(Stage::Reply, Some(kind)) {
        None => write(stream, &http::response(status, &body)).await,
        Some(fault) => spoil(stream, status, &body, &fault).await,
    }
}

/// Writes what a fault leaves of a reply.
async fn spoil(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    status: u16,
    body: &[u8],
    fault: &Injection,
) -> io::Result<()> {
    let whole = http::response(status, body);
    let first = whole.len() - body.len() + FIRST_BYTES.min(body.len().saturating_sub(1));
    match fault {
        Injection::ReplyLostAfterExecution => Ok(()),
        Injection::GarbageReply => {
            write(stream, b"\x16\x03\x01\x02\x00 not http \xff\xfe\r\n\r\n").await
        }
        Injection::NotJson => write(stream, &http::response(200, b"<html>it works</html>")).await,
        Injection::NotAnEnvelope => write(stream, &http::response(200, br#"{"ok":"yes"}"#)).await,
        Injection::ReplyBody { body } => write(stream, &http::response(200, body.as_bytes())).await,
        Injection::TruncatedReply => write(stream, &whole[..first]).await,
        Injection::PartialReply => {
            stream.write_all(&whole[..first]).await?;
            stream.flush().await?;
            silence(stream).await
        }
        Injection::OversizeReply { bytes } => {
            let mut padded = body.to_vec();
            padded.resize((*bytes).max(body.len()), b' ');
            write(stream, &http::response(status, &padded)).await
        }
        // None of these is a fault of the reply, so none of them comes here.
        Injection::ConnectResult { .. }
        | Injection::DropConnection
        | Injection::HalfOpen
        | Injection::UsbmuxdRestart { .. }
        | Injection::Replug
        | Injection::ReplyLostBeforeExecution
        | Injection::ReplyLostDuringExecution
        | Injection::Busy
        | Injection::Slow { .. }
        | Injection::NeverEnds
        | Injection::Error { .. }
        | Injection::EchoText
        | Injection::ActivationFails
        | Injection::RecordedFailure
        | Injection::SuppressedIssue
        | Injection::LongMessage { .. }
        | Injection::SnapshotFailed
        | Injection::SnapshotFlaky
        | Injection::Killed { .. }
        | Injection::JournalEvicted => write(stream, &whole).await,
    }
}

/// Says nothing until the client gives up, so that no descriptor outlives it.
pub(crate) async fn silence(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    tokio::io::copy(stream, &mut tokio::io::sink())
        .await
        .map(drop)
}

fn refusal(status: u16, error: RunnerError) -> Vec<u8> {
    http::response(status, &Envelope::from(Err(error)).encode())
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await?;
    stream.shutdown().await
}
