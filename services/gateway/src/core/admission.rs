//! Whether a command is let in: by the fleet, by whoever has the phone, and by how
//! much its caller has under way.
//!
//! What is refused here was not sent, and that somebody may not have a phone goes
//! on record.

use fleetgate_identity::Role;
use fleetgate_runner::{Command, CommandKind, Point, Udid};
use fleetgate_session::{LeaseStamp, Leave, Session};
use tonic::Status;

use super::Core;
use crate::access::{Caller, Denial, Place};
use crate::convert::Asked;
use crate::fleet::NoSession;
use crate::leases::{Named, Refused};
use crate::pending::Admitted;
use crate::status;

/// What a command is handed in with.
pub(super) struct Admission {
    pub(super) session: Session,
    pub(super) leave: Leave,
    /// Absent for a caller that joins a command, which has one.
    pub(super) place: Option<Place>,
}

impl Core {
    /// Lets a command in, or a caller to the same command that was let in before
    /// for somebody else. `None` if that is not to be found.
    ///
    /// A mutation that is asked for again is never let in for itself: whoever
    /// asked first may have ended it by now, and then it is on record.
    pub(super) async fn admission(
        &self,
        caller: &Caller,
        device: &Udid,
        asked: &Asked,
        admitted: &Admitted,
    ) -> Result<Option<Admission>, Status> {
        if !admitted.is_first() && asked.command.is_mutation() {
            let session = self.fleet().session_to_join(device);
            return Ok(session.map(|session| Admission {
                session,
                leave: Leave::to_join(),
                place: None,
            }));
        }
        let session = self.session(device, asked)?;
        let leave = self.leave(caller, device, asked).await?;
        let place = self.access().enter(caller);
        let place =
            place.map_err(|full| status::too_many_commands(full, device, &asked.command_id))?;
        Ok(Some(Admission {
            session,
            leave,
            place: Some(place),
        }))
    }

    /// The session for a command that is to be run.
    fn session(&self, device: &Udid, asked: &Asked) -> Result<Session, Status> {
        let id = &asked.command_id;
        let session = self
            .fleet()
            .session(device)
            .map_err(|reason| match reason {
                NoSession::PortUnknown => status::runner_port_unknown(device, id),
                NoSession::Quarantined { reason } => {
                    status::quarantined(device, id, reason.as_deref())
                }
                NoSession::Draining => status::draining(device, id),
            })?;
        // Whoever has the phone keeps it.
        if moves_the_screen(&asked.command)
            && asked.lease.is_none()
            && let Some(cordon) = self.fleet().cordon(device)
        {
            return Err(status::cordoned(device, id, &cordon));
        }
        Ok(session)
    }

    /// Leave to carry a command out, if it is its caller's turn on the phone.
    async fn leave(&self, caller: &Caller, device: &Udid, asked: &Asked) -> Result<Leave, Status> {
        let (gate, named) = (self.leases().gate(), asked.lease.as_ref());
        let admission = if moves_the_screen(&asked.command) {
            gate.admit(device, caller.name(), named)
        } else {
            // What is on record of a read's lease is to be true as well.
            let check = |named| gate.check(device, caller.name(), named);
            let checked = named.map_or(Ok(()), check);
            checked.map(|()| Leave::unconditional())
        };
        let refused = match admission {
            Ok(leave) => return Ok(leave),
            Err(refused) => self.leases().as_known(refused, caller.name()).await,
        };
        self.denied(caller, &refused, Some(device));
        Err(status::not_admitted(device, &asked.command_id, &refused))
    }

    /// Puts on record that somebody was not let have a phone or a lease.
    pub(crate) fn denied(&self, caller: &Caller, refused: &Refused, device: Option<&Udid>) {
        let mut denial = Denial::of(caller, refused.reason());
        if let Some(device) = device {
            denial = denial.device(device);
        }
        if let Some(lease) = refused.lease() {
            denial = denial.lease(lease.as_str());
        }
        self.access().denials().record(denial);
    }
}

/// Whether a command is for those only whom the phone serves: a look at the
/// viewport may bring another app to the front.
fn moves_the_screen(command: &Command<Point>) -> bool {
    command.is_mutation() || command.kind() == CommandKind::Viewport
}

/// A lease as it goes on record with a command.
pub(super) fn stamp(named: &Named) -> LeaseStamp {
    LeaseStamp {
        id: named.id.to_string(),
        epoch: named.epoch.map_or(0, fleetgate_lease::Epoch::get),
    }
}

/// The role that a command takes on its phone.
pub(super) fn role(command: &Command<Point>) -> Role {
    if moves_the_screen(command) {
        Role::Operator
    } else {
        Role::Viewer
    }
}
