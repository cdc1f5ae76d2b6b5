//! `LeaseService`: phones for one driver at a time.
//!
//! A lease is told of to its owner, and to those who may look at all of its
//! phones; for others there is none. What is done to one goes through the broker
//! and is answered when it is on record, whether its caller stays or not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use fleetgate_identity::Role;
use fleetgate_lease::{Begin, Lease, LeaseId, NewLease, Priority, Selector, Terms, Wants};
use fleetgate_ledger::LeaseQuery;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::lease_service_server::LeaseService;
use fleetgate_runner::Udid;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use crate::access::{Caller, Denial, sees_everything};
use crate::config::LeasesSection;
use crate::convert::{
    self, LeaseFilter, LeaseWish, Violation, WishedPhones, create_lease, explanation, list_leases,
    only_lease_id, revoke_lease, update_lease,
};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::leases::{
    Asked, LeaseError, LeaseView, Leases, Order, Refused, WatchConfig, ended, mint,
    wall_now, watch,
};
use crate::status;

mod keep_alive;

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

    fn told(&self, view: &LeaseView) -> Option<pb::Lease> {
        Some(convert::lease(view, self.leases().clock()))
    }

    async fn create(&self, caller: &Caller, wish: LeaseWish) -> Result<LeaseView, Status> {
        if self.core.fleet().is_closed() {
            return Err(status::leases_draining());
        }
        let (wants, asked) = self.wants(caller, &wish).await?;
        let asked = Asked::of(&wish, asked);
        let LeaseWish {
            request_id,
            phones: _,
            priority,
            ttl,
            max_duration,
            queue_timeout,
            begin,
            labels,
            context,
        } = wish;
        let created = wall_now();
        // One whose time has come begins at once.
        let left = begin.and_then(|time| Some((time, time.duration_since(created).ok()?)));
        let begin = left.map(|(time, left)| Begin {
            at: self.leases().clock().now().saturating_add(left),
            time,
        });
        let lease = NewLease {
            id: mint(),
            owner: caller.name().to_owned(),
            wants,
            priority: Priority(priority.min(self.highest(caller))),
            terms: Terms {
                ttl: ttl.unwrap_or(self.limits().ttl),
                max_duration: max_duration.unwrap_or(self.limits().max_duration),
                queue_timeout: queue_timeout.unwrap_or(self.limits().queue_timeout),
            },
            begin,
            labels,
            context,
            created,
        };
        let order = Order {
            lease,
            request_id,
            asked,
        };
        let created = self.leases().create(order).await;
        created.map_err(|error| status::not_leased(&error, None))
    }

    /// What a caller wants, as far as it may have it, and the same as it was
    /// asked for.
    async fn wants(&self, caller: &Caller, wish: &LeaseWish) -> Result<(Wants, Wants), Status> {
        match &wish.phones {
            WishedPhones::Named(names) => {
                let mut devices = BTreeSet::new();
                for name in names {
                    let device = self.core.fleet().resolve(name).await;
                    let device = device.ok_or_else(|| status::device_unknown(name, None))?;
                    let access = self.core.access();
                    access.check_as(caller, Role::Operator, &device, name, None)?;
                    if !devices.insert(device.clone()) {
                        return Err(status::named_twice(&device));
                    }
                }
                let wants = Wants::Devices(devices);
                Ok((wants.clone(), wants))
            }
            WishedPhones::Matching { selector, count } => {
                let wants = |selector| Wants::Matching {
                    selector,
                    count: *count,
                };
                let asked = wants(selector.clone());
                let within = self.within(caller);
                let bounded = wants(Selector {
                    within,
                    ..selector.clone()
                });
                self.core.fleet().until_announced(&bounded).await;
                Ok((bounded, asked))
            }
        }
    }

    /// Where a caller may have phones: the labels of its grants; none for
    /// anywhere.
    fn within(&self, caller: &Caller) -> Vec<BTreeMap<String, String>> {
        let everywhere = caller.principal.fleet_wide();
        if everywhere.is_some_and(|role| role >= Role::Operator) {
            return Vec::new();
        }
        let grants = caller.principal.grants().iter();
        let grants = grants.filter(|grant| grant.role >= Role::Operator);
        grants.map(|grant| grant.labels.clone()).collect()
    }

    /// The highest priority that a caller gets.
    fn highest(&self, caller: &Caller) -> i32 {
        match caller.principal.anywhere() {
            Some(Role::Admin) => self.limits().admin_priority,
            Some(Role::Operator | Role::Viewer) | None => self.limits().operator_priority,
        }
    }

    /// A lease that a caller may hear of.
    async fn find(&self, caller: &Caller, id: &LeaseId) -> Result<LeaseView, Status> {
        let found = self.leases().find(id).await;
        let found = found.map_err(|error| status::leases_unread(&error))?;
        let found = found.filter(|view| self.may_see(caller, &view.lease));
        found.ok_or_else(|| status::lease_unknown(id))
    }

    fn may_see(&self, caller: &Caller, lease: &Lease) -> bool {
        if lease.owner() == caller.name() || sees_everything(caller) {
            return true;
        }
        let named = match lease.wants() {
            Wants::Devices(devices) => Some(devices),
            Wants::Matching { .. } => None,
        };
        let mut devices = named.into_iter().flatten().chain(lease.devices());
        devices.all(|device| self.core.access().may_see(caller, device))
    }

    /// What is told of what was not done to a lease; that somebody may not do it
    /// goes on record.
    async fn refused(&self, caller: &Caller, id: &LeaseId, error: LeaseError) -> Status {
        let refused = match error {
            LeaseError::NotOpen => match self.leases().find(id).await {
                Ok(Some(view)) if self.may_see(caller, &view.lease) => {
                    let not_open = || LeaseError::NotOpen;
                    ended(&view.lease).map_or_else(not_open, LeaseError::Refused)
                }
                Ok(_) => LeaseError::Refused(Refused::Unknown(id.clone())),
                Err(error) => return status::leases_unread(&error),
            },
            error => error,
        };
        if let LeaseError::Refused(refused) = &refused {
            self.core.denied(caller, refused, None);
        }
        status::not_leased(&refused, Some(id))
    }

    async fn renew(&self, caller: &Caller, id: LeaseId, epoch: u64) -> Result<LeaseView, Status> {
        let owner = caller.name().to_owned();
        match self.leases().renew(id.clone(), owner, epoch).await {
            Ok(view) => Ok(view),
            Err(error) => Err(self.refused(caller, &id, error).await),
        }
    }

    async fn update(
        &self,
        caller: &Caller,
        id: LeaseId,
        mut change: fleetgate_lease::Change,
    ) -> Result<LeaseView, Status> {
        let highest = Priority(self.highest(caller));
        change.priority = change.priority.map(|asked| asked.min(highest));
        let owner = caller.name().to_owned();
        match self.leases().update(id.clone(), owner, change).await {
            Ok(view) => Ok(view),
            Err(error) => Err(self.refused(caller, &id, error).await),
        }
    }

    /// Ends a caller's own lease; one that has ended is told as it is.
    async fn release(&self, caller: &Caller, id: LeaseId) -> Result<LeaseView, Status> {
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
            let denial = denial.lease(lease.id().to_string());
            self.core.access().denials().record(denial);
            return Err(status::role_too_low(Role::Admin, fleet_wide, None, None));
        }
        devices.try_for_each(|device| self.core.access().check(caller, Role::Admin, device))
    }

    async fn revoke(
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

    async fn explain(
        &self,
        caller: &Caller,
        id: LeaseId,
    ) -> Result<pb::ExplainLeaseResponse, Status> {
        let view = self.find(caller, &id).await?;
        let explained = self.leases().explain(id).await;
        let explained = explained.map_err(|error| status::not_leased(&error, None))?;
        let clock = self.leases().clock();
        let Some(explained) = explained else {
            let lease = &view.lease;
            return Ok(pb::ExplainLeaseResponse {
                lease: self.told(&view),
                summary: format!("it does not wait: it is {}", lease.state()),
                wanted: u32::try_from(lease.wants().count()).unwrap_or(u32::MAX),
                ..pb::ExplainLeaseResponse::default()
            });
        };
        let mut told = explanation(&explained, clock);
        let access = self.core.access();
        told.devices.retain(|device| {
            let device = device.device.parse::<Udid>();
            device.is_ok_and(|device| access.may_see(caller, &device))
        });
        Ok(told)
    }

    async fn list(
        &self,
        caller: &Caller,
        filter: LeaseFilter,
    ) -> Result<pb::ListLeasesResponse, Status> {
        let LeaseFilter {
            states,
            owner,
            device,
            page_size,
            page_token,
        } = filter;
        let device = match device {
            Some(name) => {
                let device = self.core.fleet().name(&name);
                let device = device.filter(|device| self.core.access().may_see(caller, device));
                Some(device.ok_or_else(|| status::device_unknown(&name, None))?)
            }
            None => None,
        };
        let query = LeaseQuery {
            states: states.into_iter().map(|state| state.to_string()).collect(),
            owner,
            device,
            page_size: u32::try_from(page_size).unwrap_or(u32::MAX),
            page_token,
        };
        let page = self.leases().page(query).await;
        let (views, next) = page.map_err(|error| status::leases_unread(&error))?;
        let seen = views.iter();
        let seen = seen.filter(|view| self.may_see(caller, &view.lease));
        let reply = pb::ListLeasesResponse {
            leases: seen.filter_map(|view| self.told(view)).collect(),
            next_page_token: next.map(|token| token.to_string()).unwrap_or_default(),
        };
        let (bytes, limit) = (reply.encoded_len(), self.core.max_reply_bytes());
        if bytes > limit {
            return Err(status::page_too_large(bytes, limit));
        }
        Ok(reply)
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
        let lease = self.told(&view);
        Ok(Response::new(pb::CreateLeaseResponse { lease }))
    }

    async fn get_lease(
        &self,
        request: Request<pb::GetLeaseRequest>,
    ) -> Result<Response<pb::GetLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let id = checked(only_lease_id(&request.get_ref().lease_id))?;
        let view = deadline.bound(self.find(&caller, &id)).await?;
        let lease = self.told(&view);
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
        Ok(Response::new(watch(followed, config).boxed()))
    }

    async fn renew_lease(
        &self,
        request: Request<pb::RenewLeaseRequest>,
    ) -> Result<Response<pb::RenewLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let pb::RenewLeaseRequest { lease_id, epoch } = request.into_inner();
        let id = checked(only_lease_id(&lease_id))?;
        let view = deadline.bound(self.renew(&caller, id, epoch)).await?;
        let lease = self.told(&view);
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
        let lease = self.told(&view);
        Ok(Response::new(pb::UpdateLeaseResponse { lease }))
    }

    async fn release_lease(
        &self,
        request: Request<pb::ReleaseLeaseRequest>,
    ) -> Result<Response<pb::ReleaseLeaseResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let id = checked(only_lease_id(&request.get_ref().lease_id))?;
        let view = deadline.bound(self.release(&caller, id)).await?;
        let lease = self.told(&view);
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
        let lease = self.told(&view);
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
