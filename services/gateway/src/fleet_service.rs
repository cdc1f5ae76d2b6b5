//! `FleetService`: what this gateway is, which phones it knows, what happens to
//! them, and what operators do about it.
//!
//! What is told of phones is told from memory, their history from the ledger;
//! of those only that the caller may look at.

mod acts;

use std::time::SystemTime;

use fleetgate_identity::Role;
use fleetgate_ledger::PageToken;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_service_server::FleetService;
use fleetgate_runner::Udid;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status};

use crate::access::Caller;
use crate::convert::{
    Violation, Violations, cordon_device, device_name, ledger_health, page_size, reason, timestamp,
    transition, update_device,
};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::status;
use crate::watch::{Wanted, WatchConfig, watch};
use acts::Acts;

/// Moves only when something that worked stops working.
const PROTOCOL_VERSION: u32 = 1;

/// What this gateway can do, by name. A name is never taken back.
const CAPABILITIES: [&str; 20] = [
    "automation",
    "command-history",
    "command-ids",
    "command-ledger",
    "command-replay",
    "command-tail",
    "cordon",
    "deadline-exceeded-with-fate",
    "device-history",
    "device-settings",
    "fleet-watch",
    "gateway-drain",
    "grpc-web",
    "leases",
    "lost-reply-recovery",
    "never-sent-proof",
    "operation-history",
    "runner-launching",
    "runner-recycling",
    "screenshot-streaming",
];

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct FleetApi {
    core: Core,
    acts: Acts,
}

impl FleetApi {
    pub(crate) fn new(core: Core) -> Self {
        let acts = Acts::new(core.clone());
        Self { core, acts }
    }

    async fn transitions(
        &self,
        request: pb::ListDeviceTransitionsRequest,
        caller: &Caller,
    ) -> Result<pb::ListDeviceTransitionsResponse, Status> {
        let mut violations = Violations::default();
        let name = device_name(&request.device, &mut violations);
        let size =
            page_size(request.page_size, &mut violations).and_then(|size| u32::try_from(size).ok());
        let token = match request.page_token.as_str() {
            "" => Some(None),
            token => violations
                .take("page_token", token.parse::<PageToken>())
                .map(Some),
        };
        let query = || Some((name?, size?, token?));
        let (name, size, token) = checked(violations.finish(query()))?;
        let device = self.core.fleet().name(&name);
        let device = device.ok_or_else(|| status::device_unknown(&name, None))?;
        let access = self.core.access();
        access.check_as(caller, Role::Viewer, &device, &name, None)?;
        let page = self
            .core
            .ledger()
            .transitions(&device, size, token)
            .await
            .map_err(|error| status::ledger(&error))?;
        Ok(pb::ListDeviceTransitionsResponse {
            transitions: page.transitions.into_iter().map(transition).collect(),
            next_page_token: page.next.map(|token| token.to_string()).unwrap_or_default(),
        })
    }
}

/// What a request comes to, or what is wrong with it.
fn checked<T>(request: Result<T, Vec<Violation>>) -> Result<T, Status> {
    request.map_err(|violations| status::invalid(violations.into()))
}

#[tonic::async_trait]
impl FleetService for FleetApi {
    async fn get_gateway(
        &self,
        request: Request<pb::GetGatewayRequest>,
    ) -> Result<Response<pb::GetGatewayResponse>, Status> {
        let health = async { Ok(self.core.ledger().health().await) };
        let health = Deadline::of(&request).bound(health).await?;
        let fleet = self.core.fleet();
        Ok(Response::new(pb::GetGatewayResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol_version: PROTOCOL_VERSION,
            capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
            start_time: Some(timestamp(self.core.start_time())),
            draining: fleet.is_closed(),
            mux_hosts: fleet.mux_hosts(),
            ledger: Some(ledger_health(health)),
        }))
    }

    async fn list_devices(
        &self,
        request: Request<pb::ListDevicesRequest>,
    ) -> Result<Response<pb::ListDevicesResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::ListDevicesRequest {
            page_size: size,
            page_token,
        } = request.into_inner();
        let mut violations = Violations::default();
        let size = page_size(size, &mut violations);
        // A token is the UDID that the page before ended with.
        let after = match page_token.as_str() {
            "" => Some(None),
            token => violations
                .take(
                    "page_token",
                    token
                        .parse::<Udid>()
                        .map_err(|_| "is not a token of this call"),
                )
                .map(Some),
        };
        let (size, after) = checked(violations.finish(size.zip(after)))?;

        let access = self.core.access();
        let visible = |device: &Udid| access.may_see(&caller, device);
        let fleet = self.core.fleet();
        let mut devices = fleet.devices_that(visible, after.as_ref(), size + 1);
        let next_page_token = if devices.len() > size {
            devices.truncate(size);
            devices
                .last()
                .map(|device| device.udid.clone())
                .unwrap_or_default()
        } else {
            String::new()
        };
        Ok(Response::new(pb::ListDevicesResponse {
            devices,
            next_page_token,
        }))
    }

    async fn get_device(
        &self,
        request: Request<pb::GetDeviceRequest>,
    ) -> Result<Response<pb::GetDeviceResponse>, Status> {
        let caller = Caller::of(&request)?;
        let mut violations = Violations::default();
        let name = device_name(&request.get_ref().device, &mut violations);
        let name = checked(violations.finish(name))?;
        let device = Some(self.acts.look(&name, &caller).await?);
        Ok(Response::new(pb::GetDeviceResponse { device }))
    }

    type WatchFleetStream = BoxStream<'static, Result<pb::WatchFleetResponse, Status>>;

    async fn watch_fleet(
        &self,
        request: Request<pb::WatchFleetRequest>,
    ) -> Result<Response<Self::WatchFleetStream>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let pb::WatchFleetRequest {
            resume_cursor,
            types,
        } = request.into_inner();
        let mut violations = Violations::default();
        let after = match resume_cursor.as_str() {
            "" => Some(None),
            cursor => violations.take("resume_cursor", cursor.parse()).map(Some),
        };
        let wanted =
            Wanted::of(types).or_else(|| violations.refuse("types", "must be values of this API"));
        let (after, wanted) = checked(violations.finish(after.zip(wanted)))?;
        let config = WatchConfig {
            after,
            wanted,
            caller,
            deadline,
        };
        Ok(Response::new(watch(self.core.clone(), config).boxed()))
    }

    async fn list_device_transitions(
        &self,
        request: Request<pb::ListDeviceTransitionsRequest>,
    ) -> Result<Response<pb::ListDeviceTransitionsResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let page = self.transitions(request.into_inner(), &caller);
        Ok(Response::new(deadline.bound(page).await?))
    }

    async fn update_device(
        &self,
        request: Request<pb::UpdateDeviceRequest>,
    ) -> Result<Response<pb::UpdateDeviceResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let (name, change) = checked(update_device(request.into_inner()))?;
        let done = self.acts.update(&name, change, &caller);
        let device = Some(deadline.bound(done).await?);
        Ok(Response::new(pb::UpdateDeviceResponse { device }))
    }

    async fn cordon_device(
        &self,
        request: Request<pb::CordonDeviceRequest>,
    ) -> Result<Response<pb::CordonDeviceResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let cordon = cordon_device(request.get_ref(), SystemTime::now());
        let (name, reason, until) = checked(cordon)?;
        let done = self.acts.cordon(&name, reason, until, &caller);
        let device = Some(deadline.bound(done).await?);
        Ok(Response::new(pb::CordonDeviceResponse { device }))
    }

    async fn uncordon_device(
        &self,
        request: Request<pb::UncordonDeviceRequest>,
    ) -> Result<Response<pb::UncordonDeviceResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let mut violations = Violations::default();
        let name = device_name(&request.get_ref().device, &mut violations);
        let name = checked(violations.finish(name))?;
        let done = self.acts.uncordon(&name, &caller);
        let device = Some(deadline.bound(done).await?);
        Ok(Response::new(pb::UncordonDeviceResponse { device }))
    }

    async fn recycle_runner(
        &self,
        request: Request<pb::RecycleRunnerRequest>,
    ) -> Result<Response<pb::RecycleRunnerResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let pb::RecycleRunnerRequest {
            device,
            reason: why,
            force,
        } = request.into_inner();
        let mut violations = Violations::default();
        let name = device_name(&device, &mut violations);
        let why = reason(&why, &mut violations);
        let (name, why) = checked(violations.finish(name.zip(why)))?;
        let done = self.acts.recycle(&name, force, why, &caller);
        let device = Some(deadline.bound(done).await?);
        Ok(Response::new(pb::RecycleRunnerResponse { device }))
    }

    async fn drain_gateway(
        &self,
        request: Request<pb::DrainGatewayRequest>,
    ) -> Result<Response<pb::DrainGatewayResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let mut violations = Violations::default();
        let why = reason(&request.get_ref().reason, &mut violations);
        let why = checked(violations.finish(why))?;
        deadline.bound(self.acts.drain(why, &caller)).await?;
        Ok(Response::new(pb::DrainGatewayResponse {}))
    }
}
