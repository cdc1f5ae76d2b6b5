//! `FleetService`: what this gateway is and which phones it knows. Answered from
//! memory.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_service_server::FleetService;
use fleetgate_runner::Udid;
use tonic::{Request, Response, Status};

use crate::convert::{Violations, device_name, page_size, timestamp};
use crate::core::Core;
use crate::status;

/// Moves only when something that worked stops working.
const PROTOCOL_VERSION: u32 = 1;

/// What this gateway can do, by name. A name is never taken back.
const CAPABILITIES: [&str; 11] = [
    "automation",
    "command-history",
    "command-ids",
    "command-ledger",
    "command-replay",
    "command-tail",
    "deadline-exceeded-with-fate",
    "grpc-web",
    "lost-reply-recovery",
    "never-sent-proof",
    "screenshot-streaming",
];

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct FleetApi {
    core: Core,
}

impl FleetApi {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }
}

#[tonic::async_trait]
impl FleetService for FleetApi {
    async fn get_gateway(
        &self,
        _request: Request<pb::GetGatewayRequest>,
    ) -> Result<Response<pb::GetGatewayResponse>, Status> {
        let fleet = self.core.fleet();
        Ok(Response::new(pb::GetGatewayResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol_version: PROTOCOL_VERSION,
            capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
            start_time: Some(timestamp(self.core.start_time())),
            draining: fleet.is_closed(),
            mux_hosts: vec![fleet.mux_host()],
            ..pb::GetGatewayResponse::default()
        }))
    }

    async fn list_devices(
        &self,
        request: Request<pb::ListDevicesRequest>,
    ) -> Result<Response<pb::ListDevicesResponse>, Status> {
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
        let (size, after) = violations
            .finish(size.zip(after))
            .map_err(|violations| status::invalid(violations.into()))?;

        let mut devices = self.core.fleet().devices(after.as_ref(), size + 1);
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
        let mut violations = Violations::default();
        let name = device_name(&request.get_ref().device, &mut violations);
        let name = violations
            .finish(name)
            .map_err(|violations| status::invalid(violations.into()))?;
        let device = self.core.fleet().device(&name).await;
        let device = device.ok_or_else(|| status::device_unknown(&name, None))?;
        Ok(Response::new(pb::GetDeviceResponse {
            device: Some(device),
        }))
    }

    type WatchFleetStream =
        futures_util::stream::BoxStream<'static, Result<pb::WatchFleetResponse, Status>>;

    async fn watch_fleet(
        &self,
        _request: Request<pb::WatchFleetRequest>,
    ) -> Result<Response<Self::WatchFleetStream>, Status> {
        Err(status::not_yet())
    }

    async fn list_device_transitions(
        &self,
        _request: Request<pb::ListDeviceTransitionsRequest>,
    ) -> Result<Response<pb::ListDeviceTransitionsResponse>, Status> {
        Err(status::not_yet())
    }

    async fn update_device(
        &self,
        _request: Request<pb::UpdateDeviceRequest>,
    ) -> Result<Response<pb::UpdateDeviceResponse>, Status> {
        Err(status::not_yet())
    }

    async fn cordon_device(
        &self,
        _request: Request<pb::CordonDeviceRequest>,
    ) -> Result<Response<pb::CordonDeviceResponse>, Status> {
        Err(status::not_yet())
    }

    async fn uncordon_device(
        &self,
        _request: Request<pb::UncordonDeviceRequest>,
    ) -> Result<Response<pb::UncordonDeviceResponse>, Status> {
        Err(status::not_yet())
    }

    async fn recycle_runner(
        &self,
        _request: Request<pb::RecycleRunnerRequest>,
    ) -> Result<Response<pb::RecycleRunnerResponse>, Status> {
        Err(status::not_yet())
    }

    async fn drain_gateway(
        &self,
        _request: Request<pb::DrainGatewayRequest>,
    ) -> Result<Response<pb::DrainGatewayResponse>, Status> {
        Err(status::not_yet())
    }
}
