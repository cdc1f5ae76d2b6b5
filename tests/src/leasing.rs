//! Leases as their owners have them: callers with names of their own, what they
//! ask for, and how they drive what they have.
//!
//! Calls that must succeed panic if they do not; the others give the status.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::{Lease, LeaseState};
use fleetgate_runner::CommandKind;
use tokio::task::JoinSet;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::plain::{Head, send_over};
use crate::{APP, pause, soon};

pub use records::{Done, Records};
pub use stage::{BOSS, Cast, DRIVERS, GUEST, all_ready, attend, configured, known, ready, rig};
pub use watching::{Log, Told, Watching};
pub use wishes::{any, by, matching, seconds, span, these};

mod records;
pub mod referee;
mod stage;
mod watching;
mod wishes;

/// What a caller shows with every call.
#[derive(Debug, Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Bearer {
    /// The holder of this token.
    pub fn new(token: &str) -> Self {
        let shown = format!("Bearer {token}").parse();
        Self(shown.expect("a token is ASCII"))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let shown = self.0.clone();
        request.metadata_mut().insert("authorization", shown);
        Ok(request)
    }
}

/// A connection on which every call says who makes it.
pub type Link = InterceptedService<Channel, Bearer>;

/// Somebody who calls.
#[derive(Debug, Clone)]
pub struct Caller {
    name: String,
    link: Link,
}

impl Caller {
    /// Somebody with a token over a connection.
    pub fn new(name: &str, channel: Channel, bearer: Bearer) -> Self {
        Self {
            name: name.to_owned(),
            link: InterceptedService::new(channel, bearer),
        }
    }

    /// As the gateway knows the caller.
    pub fn principal(&self) -> String {
        format!("token:{}", self.name)
    }

    /// A client of `LeaseService`.
    pub fn leases(&self) -> LeaseServiceClient<Link> {
        LeaseServiceClient::new(self.link.clone())
    }

    /// A client of `AutomationService`.
    pub fn automation(&self) -> AutomationServiceClient<Link> {
        AutomationServiceClient::new(self.link.clone())
    }

    /// A client of `FleetService`.
    pub fn fleet(&self) -> FleetServiceClient<Link> {
        FleetServiceClient::new(self.link.clone())
    }

    /// A client of `LedgerService`.
    pub fn ledger(&self) -> LedgerServiceClient<Link> {
        LedgerServiceClient::new(self.link.clone())
    }

    /// What is on record, as far as the caller may see it.
    pub fn records(&self) -> Records<Link> {
        Records::by(self.ledger())
    }

    /// Asks for phones.
    pub async fn ask(&self, wish: pb::CreateLeaseRequest) -> Result<Lease, Status> {
        let mut leases = self.leases();
        let created = soon("an answer to CreateLease", leases.create_lease(wish)).await?;
        Ok(created.into_inner().lease.expect("a lease"))
    }

    /// Asks for phones and gets them at once.
    pub async fn take(&self, wish: pb::CreateLeaseRequest) -> Lease {
        let lease = self.ask(wish).await.expect("a lease");
        assert_eq!(lease.state(), LeaseState::Active, "{lease:?}");
        assert!(lease.epoch > 0, "{lease:?}");
        lease
    }

    /// Asks for phones and has to wait.
    pub async fn queue(&self, wish: pb::CreateLeaseRequest) -> Lease {
        let lease = self.ask(wish).await.expect("a lease");
        assert_eq!(lease.state(), LeaseState::Queued, "{lease:?}");
        assert_eq!((lease.epoch, lease.devices.len()), (0, 0), "{lease:?}");
        lease
    }

    /// A lease as it is now.
    pub async fn get(&self, id: &str) -> Lease {
        let lease_id = id.to_owned();
        let mut leases = self.leases();
        let found = leases.get_lease(pb::GetLeaseRequest { lease_id });
        let found = soon("an answer to GetLease", found).await;
        found.expect("GetLease").into_inner().lease.expect("it")
    }

    /// A lease once it is in this state.
    pub async fn until(&self, id: &str, state: LeaseState) -> Lease {
        soon(&format!("{} of {id}", state.as_str_name()), async {
            loop {
                let lease = self.get(id).await;
                if lease.state() == state {
                    return lease;
                }
                pause().await;
            }
        })
        .await
    }

    /// Keeps a lease.
    pub async fn renew(&self, lease: &Lease) -> Result<Lease, Status> {
        let request = pb::RenewLeaseRequest {
            lease_id: lease.id.clone(),
            epoch: lease.epoch,
        };
        let renewed = self.leases().renew_lease(request).await?;
        Ok(renewed.into_inner().lease.expect("a lease"))
    }

    /// Changes a lease.
    pub async fn update(&self, change: pb::UpdateLeaseRequest) -> Result<Lease, Status> {
        let updated = self.leases().update_lease(change).await?;
        Ok(updated.into_inner().lease.expect("a lease"))
    }

    /// Gives a lease back.
    pub async fn release(&self, id: &str) -> Result<Lease, Status> {
        let lease_id = id.to_owned();
        let request = pb::ReleaseLeaseRequest { lease_id };
        let released = self.leases().release_lease(request).await?;
        Ok(released.into_inner().lease.expect("a lease"))
    }

    /// Takes a lease away.
    pub async fn revoke(&self, id: &str, mode: pb::RevokeMode) -> Result<Lease, Status> {
        let request = pb::RevokeLeaseRequest {
            lease_id: id.to_owned(),
            reason: "the rack is moved".to_owned(),
            mode: mode.into(),
        };
        let revoked = self.leases().revoke_lease(request).await?;
        Ok(revoked.into_inner().lease.expect("a lease"))
    }

    /// Why a lease waits.
    pub async fn explain(&self, id: &str) -> pb::ExplainLeaseResponse {
        let lease_id = id.to_owned();
        let request = pb::ExplainLeaseRequest { lease_id };
        let explained = self.leases().explain_lease(request).await;
        explained.expect("ExplainLease").into_inner()
    }

    /// Follows a lease.
    pub async fn watch(&self, id: &str) -> Watching {
        let lease_id = id.to_owned();
        let request = pb::WatchLeaseRequest { lease_id };
        let stream = self.leases().watch_lease(request).await;
        Watching::follow(stream.expect("a stream").into_inner())
    }

    /// The phone as the gateway shows it.
    pub async fn device(&self, device: &str) -> pb::Device {
        let device = device.to_owned();
        let mut fleet = self.fleet();
        let found = fleet.get_device(pb::GetDeviceRequest { device });
        let found = soon("an answer to GetDevice", found).await;
        found.expect("GetDevice").into_inner().device.expect("it")
    }

    /// Sends a plain command, under a lease or none.
    pub fn send(
        &self,
        device: &str,
        kind: CommandKind,
        command_id: &str,
        lease: Option<pb::LeaseRef>,
    ) -> impl Future<Output = Result<pb::CommandReceipt, Status>> + Send + 'static {
        let head = Head {
            device: device.to_owned(),
            command_id: Some(command_id.to_owned()),
            lease,
            app_bundle_id: APP.to_owned(),
        };
        send_over(self.automation(), kind, head)
    }

    /// Taps a phone, under a lease or none.
    pub fn tap(
        &self,
        device: &str,
        command_id: &str,
        lease: Option<pb::LeaseRef>,
    ) -> impl Future<Output = Result<pb::CommandReceipt, Status>> + Send + 'static {
        self.send(device, CommandKind::Tap, command_id, lease)
    }

    /// The same while the test goes on.
    pub fn tapping(&self, device: &str, command_id: &str, lease: Option<pb::LeaseRef>) -> Tapping {
        let mut call = JoinSet::new();
        call.spawn(self.tap(device, command_id, lease));
        Tapping(call)
    }
}

/// A tap that is under way.
#[derive(Debug)]
pub struct Tapping(JoinSet<Result<pb::CommandReceipt, Status>>);

impl Tapping {
    /// What its caller was told.
    pub async fn told(mut self) -> Result<pb::CommandReceipt, Status> {
        let told = soon("an answer to a tap", self.0.join_next()).await;
        told.expect("one call").expect("no panic")
    }
}
