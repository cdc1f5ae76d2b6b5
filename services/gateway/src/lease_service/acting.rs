//! What is done to leases, and what is told of them, for those who may.

use fleetgate_identity::Role;
use fleetgate_lease::{Change, Epoch, Lease, LeaseId, Wants};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use tonic::Status;

use super::LeaseApi;
use crate::access::{Caller, Denial};
use crate::convert::explanation;
use crate::leases::{Explained, LeaseError, LeaseView, Refused, ended};
use crate::status;

impl LeaseApi {
    /// What is told of what was not done to a lease; that somebody may not do it
    /// goes on record. Of one that is hidden nothing is told, whatever the matter
    /// is.
    async fn refused(&self, caller: &Caller, id: &LeaseId, error: LeaseError) -> Status {
        let may_be_hidden = matches!(
            error,
            LeaseError::NotOpen | LeaseError::Refused(Refused::NotOwner(_))
        );
        let error = if may_be_hidden {
            let view = match self.find(caller, id).await {
                Ok(view) => view,
                Err(unknown) => return unknown,
            };
            if view.lease.owner() == caller.name() {
                ended(&view.lease).map_or(LeaseError::NotOpen, LeaseError::Refused)
            } else {
                LeaseError::Refused(Refused::NotOwner(id.clone()))
            }
        } else {
            error
        };
        if let LeaseError::Refused(refused) = &error {
            self.core.denied(caller, refused, None);
        }
        status::not_leased(&error, Some(id))
    }

    pub(super) async fn renew(
        &self,
        caller: &Caller,
        id: LeaseId,
        epoch: Option<Epoch>,
    ) -> Result<LeaseView, Status> {
        let owner = caller.name().to_owned();
        match self.leases().renew(id.clone(), owner, epoch).await {
            Ok(view) => Ok(view),
            Err(error) => Err(self.refused(caller, &id, error).await),
        }
    }

    pub(super) async fn update(
        &self,
        caller: &Caller,
        id: LeaseId,
        mut change: Change,
    ) -> Result<LeaseView, Status> {
        if let Some(asked) = change.priority {
            let view = self.find(caller, &id).await?;
            let highest = self.highest(caller, view.lease.wants());
            change.priority = Some(asked.min(highest));
        }
        let owner = caller.name().to_owned();
        match self.leases().update(id.clone(), owner, change).await {
            Ok(view) => Ok(view),
            Err(error) => Err(self.refused(caller, &id, error).await),
        }
    }

    /// Ends a caller's own lease; one that has ended is told as it is.
    pub(super) async fn release(&self, caller: &Caller, id: LeaseId) -> Result<LeaseView, Status> {
        let owner = caller.name().to_owned();
        match self.leases().release(id.clone(), owner).await {
            Ok(view) => Ok(view),
            Err(LeaseError::NotOpen) => {
                let view = self.find(caller, &id).await?;
                if view.lease.owner() == caller.name() {
                    return Ok(view);
                }
                let error = LeaseError::Refused(Refused::NotOwner(id.clone()));
                Err(self.refused(caller, &id, error).await)
            }
            Err(error) => Err(self.refused(caller, &id, error).await),
        }
    }

    /// Whether a caller is an admin of all phones that a lease has or names; of
    /// one that has none yet, and takes whatever matches, of the whole fleet.
    fn may_revoke(&self, caller: &Caller, lease: &Lease) -> Result<(), Status> {
        let mut devices = affected(lease).peekable();
        let fleet_wide = caller.principal.fleet_wide();
        if devices.peek().is_none() && fleet_wide < Some(Role::Admin) {
            let denial = Denial::of(caller, status::ROLE_TOO_LOW);
            let denial = denial.lease(lease.id().as_str());
            self.core.access().denials().record(denial);
            return Err(status::role_too_low(Role::Admin, fleet_wide, None, None));
        }
        devices.try_for_each(|device| self.core.access().check(caller, Role::Admin, device))
    }

    pub(super) async fn revoke(
        &self,
        caller: &Caller,
        id: LeaseId,
        reason: String,
        now: bool,
    ) -> Result<LeaseView, Status> {
        let view = self.find(caller, &id).await?;
        self.may_revoke(caller, &view.lease)?;
        if !view.lease.state().is_open() {
            return Ok(view);
        }
        let by = caller.name().to_owned();
        match self.leases().revoke(id.clone(), by, reason, now).await {
            Ok(view) => Ok(view),
            // It has ended meanwhile.
            Err(LeaseError::NotOpen) => self.find(caller, &id).await,
            Err(error) => Err(self.refused(caller, &id, error).await),
        }
    }

    pub(super) async fn explain(
        &self,
        caller: &Caller,
        id: LeaseId,
    ) -> Result<pb::ExplainLeaseResponse, Status> {
        let view = self.find(caller, &id).await?;
        let explained = self.leases().explain(id).await;
        let explained = explained.map_err(|error| status::not_leased(&error, None))?;
        let Some(explained) = explained else {
            let lease = &view.lease;
            return Ok(pb::ExplainLeaseResponse {
                lease: Some(self.told(&view)),
                summary: format!("it does not wait: it is {}", lease.state()),
                wanted: u32::try_from(lease.wants().count()).unwrap_or(u32::MAX),
                ..pb::ExplainLeaseResponse::default()
            });
        };
        Ok(self.explained_to(caller, explained))
    }

    /// Why a lease waits, as far as it is of phones and leases that a caller may
    /// hear of.
    fn explained_to(&self, caller: &Caller, mut explained: Explained) -> pb::ExplainLeaseResponse {
        let access = self.core.access();
        let may_hear = |id: &LeaseId| {
            let view = self.leases().board().get(id);
            view.is_some_and(|view| self.may_see(caller, &view.lease))
        };
        let why = &mut explained.why;
        why.devices
            .retain(|device| access.may_see(caller, &device.udid));
        why.ahead.retain(may_hear);
        let mut told = explanation(&explained, self.leases().clock());
        for device in &mut told.devices {
            let id = device.lease_id.take();
            device.lease_id = id.filter(|id| id.parse().is_ok_and(|id| may_hear(&id)));
        }
        told
    }
}

/// The phones that somebody would be deprived of.
fn affected(lease: &Lease) -> impl Iterator<Item = &Udid> {
    let named = match lease.wants() {
        Wants::Devices(devices) if lease.devices().is_empty() => Some(devices),
        Wants::Devices(_) | Wants::Matching { .. } => None,
    };
    lease.devices().iter().chain(named.into_iter().flatten())
}
