//! `LeaseService`: phones for one driver at a time.
//!
//! A lease is told of to its owner, and to those who may look at all of its
//! phones; for others there is none. One that has no phones yet and takes those
//! that match is its owner's and theirs who may look at everything. What is done
//! to one goes through the broker and is answered when it is on record, whether
//! its caller stays or not.

use std::time::SystemTime;

use fleetgate_lease::{Lease, LeaseId, Wants};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::lease_service_server::LeaseService;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::access::{Access, Caller, Denial, sees_everything};
use crate::config::LeasesSection;
use crate::convert::{
    self, Violation, create_lease, list_leases, only_lease_id, revoke_lease, update_lease,
};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::leases::{LeaseView, Leases, WatchConfig, watch};
use crate::status;

mod acting;
mod keep_alive;
mod listing;
mod wishing;

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct LeaseApi {
    core: Core,
}

impl LeaseApi {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }

    fn limits(&self) -> &LeasesSection {
        self.core.lease_limits()
    }

    fn leases(&self) -> &Leases {
        self.core.leases()
    }

    fn told(&self, view: &LeaseView) -> pb::Lease {
        convert::lease(view, self.leases().clock())
    }

    /// A lease that a caller may hear of. One that is hidden is for it as one
    /// that never was; that it asked for it is on record.
    async fn find(&self, caller: &Caller, id: &LeaseId) -> Result<LeaseView, Status> {
        let found = self.leases().find(id).await;
        let found = found.map_err(|error| status::leases_unread(&error))?;
        let view = found.ok_or_else(|| status::lease_unknown(id))?;
        if !self.may_see(caller, &view.lease) {
            let denial = Denial::of(caller, status::DEVICE_OUT_OF_SCOPE);
            let denials = self.core.access().denials();
            denials.record(denial.lease(id.as_str()));
            return Err(status::lease_unknown(id));
        }
        Ok(view)
    }

    fn may_see(&self, caller: &Caller, lease: &Lease) -> bool {
        may_see(self.core.access(), caller, lease)
    }
}

fn may_see(access: &Access, caller: &Caller, lease: &Lease) -> bool {
    if lease.owner() == caller.name() || sees_everything(caller) {
        return true;
    }
    let named = match lease.wants() {
        Wants::Devices(devices) => Some(devices),
        Wants::Matching { .. } => None,
    };
    let devices = named.into_iter().flatten().chain(lease.devices());
    let mut devices = devices.peekable();
    devices.peek().is_some() && devices.all(|device| access.may_see(caller, device))
}

/// What a request comes to, or what is wrong with it.
fn checked<T>(request: Result<T, Vec<Violation>>) -> Result<T, Status> {
    request.map_err(|violations| status::invalid(violations.into()))
}

#[tonic::async_trait]
impl LeaseService for LeaseApi {
    async fn create_lease(
        &self,
        request: Request<pb::CreateLeaseRequest>,
    ) -> Result<Response<pb::CreateLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let now = SystemTime::now();
        let wish = checked(create_lease(request.into_inner(), self.limits(), now))?;
        let view = deadline.bound(self.create(&caller, wish)).await?;
        let lease = Some(self.told(&view));
        Ok(Response::new(pb::CreateLeaseResponse { lease }))
    }

    async fn get_lease(
        &self,
        request: Request<pb::GetLeaseRequest>,
    ) -> Result<Response<pb::GetLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let id = checked(only_lease_id(&request.get_ref().lease_id))?;
        let view = deadline.bound(self.find(&caller, &id)).await?;
        let lease = Some(self.told(&view));
        Ok(Response::new(pb::GetLeaseResponse { lease }))
    }

    async fn list_leases(
        &self,
        request: Request<pb::ListLeasesRequest>,
    ) -> Result<Response<pb::ListLeasesResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let filter = checked(list_leases(request.into_inner()))?;
        let page = deadline.bound(self.list(&caller, filter)).await?;
        Ok(Response::new(page))
    }

    type WatchLeaseStream = BoxStream<'static, Result<pb::WatchLeaseResponse, Status>>;

    async fn watch_lease(
        &self,
        request: Request<pb::WatchLeaseRequest>,
    ) -> Result<Response<Self::WatchLeaseStream>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let id = checked(only_lease_id(&request.get_ref().lease_id))?;
        let followed = async {
            // In this order: whoever may hear of it may follow it to its end.
            self.find(&caller, &id).await?;
            let followed = self.leases().follow(&id).await;
            let followed = followed.map_err(|error| status::leases_unread(&error))?;
            followed.ok_or_else(|| status::lease_unknown(&id))
        };
        let followed = deadline.bound(followed).await?;
        let config = WatchConfig {
            clock: self.leases().clock(),
            heartbeat: self.core.heartbeat_interval(),
            deadline,
            stop: self.core.stop().clone(),
        };
        let access = self.core.access().clone();
        let may_hear = move |lease: &Lease| may_see(&access, &caller, lease);
        Ok(Response::new(watch(followed, config, may_hear).boxed()))
    }

    async fn renew_lease(
        &self,
        request: Request<pb::RenewLeaseRequest>,
    ) -> Result<Response<pb::RenewLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let pb::RenewLeaseRequest { lease_id, epoch } = request.into_inner();
        let id = checked(only_lease_id(&lease_id))?;
        let epoch = epoch.try_into().ok();
        let view = deadline.bound(self.renew(&caller, id, epoch)).await?;
        let lease = Some(self.told(&view));
        Ok(Response::new(pb::RenewLeaseResponse { lease }))
    }

    type KeepAliveStream = BoxStream<'static, Result<pb::KeepAliveResponse, Status>>;

    async fn keep_alive(
        &self,
        request: Request<Streaming<pb::KeepAliveRequest>>,
    ) -> Result<Response<Self::KeepAliveStream>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let kept = self.clone().keep(caller, request.into_inner(), deadline);
        Ok(Response::new(kept.boxed()))
    }

    async fn update_lease(
        &self,
        request: Request<pb::UpdateLeaseRequest>,
    ) -> Result<Response<pb::UpdateLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let (id, change) = checked(update_lease(request.into_inner(), self.limits()))?;
        let view = deadline.bound(self.update(&caller, id, change)).await?;
        let lease = Some(self.told(&view));
        Ok(Response::new(pb::UpdateLeaseResponse { lease }))
    }

    async fn release_lease(
        &self,
        request: Request<pb::ReleaseLeaseRequest>,
    ) -> Result<Response<pb::ReleaseLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let id = checked(only_lease_id(&request.get_ref().lease_id))?;
        let view = deadline.bound(self.release(&caller, id)).await?;
        let lease = Some(self.told(&view));
        Ok(Response::new(pb::ReleaseLeaseResponse { lease }))
    }

    async fn revoke_lease(
        &self,
        request: Request<pb::RevokeLeaseRequest>,
    ) -> Result<Response<pb::RevokeLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let (id, reason, now) = checked(revoke_lease(&request.into_inner()))?;
        let view = deadline
            .bound(self.revoke(&caller, id, reason, now))
            .await?;
        let lease = Some(self.told(&view));
        Ok(Response::new(pb::RevokeLeaseResponse { lease }))
    }

    async fn explain_lease(
        &self,
        request: Request<pb::ExplainLeaseRequest>,
    ) -> Result<Response<pb::ExplainLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let id = checked(only_lease_id(&request.get_ref().lease_id))?;
        let explained = deadline.bound(self.explain(&caller, id)).await?;
        Ok(Response::new(explained))
    }
}
