//! What a `Connect` leads to: a runner, a refusal, or a fault's idea of one.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use fleetgate_usbmux::{MuxDeviceId, Port, ResultCode, lockdown};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::fault::{Injection, Stage};
use crate::lab::LabCore;
use crate::lockdown::{Lockdown, serve as serve_lockdown};
use crate::mux::{Ids, Replug};
use crate::phone::core::PhoneCore;
use crate::report::Transport;
use crate::runner::{Runner, connection};
use crate::sync::until_stopped;

/// A connection that was made.
#[derive(Debug)]
pub(super) struct Pipe {
    end: End,
    unplugged: CancellationToken,
}

#[derive(Debug)]
enum End {
    Lockdown(Arc<PhoneCore>),
    Runner(Arc<PhoneCore>, Arc<Runner>),
    Closed,
    Silent,
}

/// Why there is none.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    /// The daemon says so.
    Result(ResultCode),
    /// The daemon restarts before it can say anything.
    Restart(Ids),
}

/// Makes the connection to a port of the phone under this number.
pub(super) fn find(lab: &Arc<LabCore>, device: MuxDeviceId, port: Port) -> Result<Pipe, Refusal> {
    let attachment = lab
        .mux
        .look(|table| table.attachments().get(&device).cloned());
    let attachment = attachment.ok_or(Refusal::Result(ResultCode::BadDevice))?;
    let phone = lab
        .phones
        .get(&attachment.udid)
        .ok_or(Refusal::Result(ResultCode::BadDevice))?;
    if port.get() == lockdown::PORT {
        return Ok(Pipe {
            end: lockdown(phone)?,
            unplugged: attachment.unplugged,
        });
    }
    let end = reach(lab, phone, attachment.transport, port);
    phone.change(|state| {
        match attachment.transport {
            Transport::Usb => state.connects.usb += 1,
            Transport::Network => state.connects.network += 1,
        }
        if end.is_err() {
            state.connects.refused += 1;
        }
    });
    Ok(Pipe {
        end: end?,
        unplugged: attachment.unplugged,
    })
}

/// Lockdown is there on every transport, and no fault of connections, which are
/// meant for the runner's, befalls it.
fn lockdown(phone: &Arc<PhoneCore>) -> Result<End, Refusal> {
    let how = phone.change(|state| {
        state.connects.lockdown += 1;
        state.lockdown
    });
    match how {
        Lockdown::Answers | Lockdown::Refuses | Lockdown::Silent => {
            Ok(End::Lockdown(Arc::clone(phone)))
        }
        Lockdown::Absent => Err(Refusal::Result(ResultCode::ConnectionRefused)),
    }
}

fn reach(
    lab: &Arc<LabCore>,
    phone: &Arc<PhoneCore>,
    transport: Transport,
    port: Port,
) -> Result<End, Refusal> {
    match phone.take_fault(Stage::Connect, None) {
        Some(Injection::ConnectResult { number }) => {
            return Err(Refusal::Result(ResultCode::from(i64::from(number))));
        }
        Some(Injection::DropConnection) => return Ok(End::Closed),
        Some(Injection::HalfOpen) => return Ok(End::Silent),
        Some(Injection::UsbmuxdRestart { reuse_ids }) => {
            return Err(Refusal::Restart(if reuse_ids {
                Ids::Reused
            } else {
                Ids::Fresh
            }));
        }
        Some(Injection::Replug) => {
            lab.replug(phone, Replug::default());
            return Err(Refusal::Result(ResultCode::BadDevice));
        }
        Some(_) | None => {}
    }
    // A runner listens on the phone's loopback: only the cable leads there.
    let runner = match transport {
        Transport::Usb => phone.runner_on(port.get()),
        Transport::Network => None,
    };
    let runner = runner.ok_or(Refusal::Result(ResultCode::ConnectionRefused))?;
    Ok(End::Runner(Arc::clone(phone), runner))
}

impl Pipe {
    /// Carries the pipe until an end of it closes or the phone is unplugged.
    /// `early` is what the client sent behind its `Connect`.
    pub(super) async fn run(
        self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        early: Bytes,
    ) -> io::Result<()> {
        let carry = async {
            match self.end {
                End::Lockdown(phone) => serve_lockdown(&phone, stream, early).await,
                End::Runner(phone, runner) => {
                    let serve = connection::serve(&phone, &runner, stream, early);
                    until_stopped(&runner.stop, serve).await;
                    Ok(())
                }
                End::Closed => Ok(()),
                End::Silent => connection::silence(stream).await,
            }
        };
        until_stopped(&self.unplugged, carry)
            .await
            .unwrap_or(Ok(()))
    }
}
