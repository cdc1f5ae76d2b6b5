//! A device's lane: held by a command that does not end, and watched.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Phone, PhoneReport};
use tokio::task::JoinSet;
use tonic::Status;

use crate::{APP, Rig, pause, plain, soon};

/// A tap on the first phone that needs no rig while it waits.
pub fn tap(
    rig: &Rig,
    command_id: &str,
) -> impl Future<Output = Result<pb::TapResponse, Status>> + Send + 'static {
    let mut client = rig.automation();
    let request = tap_request(&rig.udid(0), command_id);
    async move { Ok(client.tap(request).await?.into_inner()) }
}

/// A plain tap.
pub fn tap_request(device: &str, command_id: &str) -> pb::TapRequest {
    pb::TapRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        point: plain::absolute(20.0, 30.0),
        number_of_taps: None,
    }
}

/// The device as the gateway sees it.
pub async fn device(rig: &Rig, udid: &str) -> pb::Device {
    let request = pb::GetDeviceRequest {
        device: udid.to_owned(),
    };
    let found = rig.fleet().get_device(request).await.expect("GetDevice");
    found.into_inner().device.expect("a device")
}

/// Waits until so many commands wait for their turn at the first phone.
pub async fn queued(rig: &Rig, count: u32) {
    let udid = rig.udid(0);
    soon(&format!("a queue of {count}"), async {
        while device(rig, &udid).await.queued_commands != count {
            pause().await;
        }
    })
    .await;
}

/// Waits until the first phone's runner has a command in hand.
pub async fn in_hand(rig: &Rig) {
    let busy = |report: &PhoneReport| report.in_flight == 1;
    soon("a command in hand", rig.phone(0).wait_until(busy)).await;
}

/// Whatever comes next takes so much longer, on the phone's clock.
pub fn slow(by: Duration) -> Fault {
    Injection::Slow { by }.into()
}

/// A tap, called `plug`, that holds the lane of the first phone: the phone is
/// done with it, and half of its reply has come. For rigs in real time, where
/// its window stays open long enough.
#[derive(Debug)]
pub struct Plug {
    call: JoinSet<Result<pb::TapResponse, Status>>,
    phone: Phone,
}

impl Plug {
    /// Takes the lane.
    pub async fn hold(rig: &Rig) -> Self {
        let phone = rig.phone(0);
        phone.fault(Fault::from(Injection::PartialReply).on(CommandKind::Tap));
        let mut call = JoinSet::new();
        call.spawn(tap(rig, "plug"));
        let held = |report: &PhoneReport| report.faults.is_empty() && report.in_flight == 0;
        soon("the plug", phone.wait_until(held)).await;
        let in_flight = device(rig, phone.udid().as_str()).await.command_in_flight;
        assert_eq!(in_flight.as_deref(), Some("plug"));
        Self { call, phone }
    }

    /// Lets the lane go by pulling the cable for a moment, and gives what the
    /// plug's caller was told.
    pub async fn release(mut self) -> pb::CommandReceipt {
        self.phone.replug();
        let told = soon("the plug's end", self.call.join_next()).await;
        let reply = told.expect("one call").expect("no panic");
        let receipt = reply.expect("a recovered reply").receipt;
        receipt.expect("every reply has a receipt")
    }
}
