//! What is served: fleetgate.v1, health and reflection in both versions.

use fleetgate_proto::FILE_DESCRIPTOR_SET;
use fleetgate_proto::v1::automation_service_server::{self as automation, AutomationServiceServer};
use fleetgate_proto::v1::fleet_service_server::{self as fleet, FleetServiceServer};
use fleetgate_proto::v1::lease_service_server::{self as lease, LeaseServiceServer};
use fleetgate_proto::v1::ledger_service_server::{self as ledger, LedgerServiceServer};
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};
use tonic_reflection::server::{Builder, Error};

use crate::automation_service::Automation;
use crate::core::Core;
use crate::fleet_service::FleetApi;
use crate::lease_service::LeaseApi;
use crate::ledger_service::LedgerApi;

/// The names that health knows: the whole server and each service.
const NAMES: [&str; 5] = [
    "",
    automation::SERVICE_NAME,
    fleet::SERVICE_NAME,
    lease::SERVICE_NAME,
    ledger::SERVICE_NAME,
];

/// What the health service says.
#[derive(Debug, Clone)]
pub(crate) struct Health(HealthReporter);

impl Health {
    /// Every name is served.
    pub(crate) async fn serving(&self) {
        self.set(ServingStatus::Serving).await;
    }

    /// No name is served any more: who asks is told so, who watches too.
    pub(crate) async fn not_serving(&self) {
        self.set(ServingStatus::NotServing).await;
    }

    /// Ends the streams of those who watch.
    pub(crate) async fn end(&mut self) {
        for name in NAMES {
            self.0.clear_service_status(name).await;
        }
    }

    async fn set(&self, status: ServingStatus) {
        for name in NAMES {
            self.0.set_service_status(name, status).await;
        }
    }
}

/// All services over one core, and the handle of their health.
pub(crate) fn routes(core: &Core) -> Result<(Routes, Health), Error> {
    let (reporter, health) = health_reporter();
    let reflection = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (request, reply) = (core.max_request_bytes(), core.max_reply_bytes());
    let routes = Routes::new(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .add_service(
            FleetServiceServer::new(FleetApi::new(core.clone()))
                .max_decoding_message_size(request)
                .max_encoding_message_size(reply),
        )
        .add_service(
            AutomationServiceServer::new(Automation::new(core.clone()))
                .max_decoding_message_size(request)
                .max_encoding_message_size(reply),
        )
        .add_service(
            LeaseServiceServer::new(LeaseApi::new(core.clone()))
                .max_decoding_message_size(request)
                .max_encoding_message_size(reply),
        )
        .add_service(
            LedgerServiceServer::new(LedgerApi::new(core.clone()))
                .max_decoding_message_size(request)
                .max_encoding_message_size(reply),
        )
        .prepare();
    Ok((routes, Health(reporter)))
}
