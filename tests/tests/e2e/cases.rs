//! Failures that people with racks of phones have reported, each played from the
//! phone to the caller and back, with what is on record of the phone's states as
//! the evidence.
//!
//! What a command is told when one thing goes wrong is tested elsewhere; here it
//! is what the fleet makes of it: which states its phones go through and which
//! they do not, and that everybody else goes on.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_runner::{CommandId, CommandKind};
use fleetgate_simulator::{Phone, Scenario};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, history, plain};

mod aged;
mod drift;
mod framing;
mod herd;
mod killed;
mod locked;
mod odd_replies;
mod rack;
mod restarts;
mod results;
mod silence;
mod slow_reader;
mod spellings;
mod stuck;
mod twins;

/// Runners are asked when there is a reason to, and not in between.
const SELDOM: Duration = Duration::from_secs(3600);
/// Runners are asked all the time.
const OFTEN: Duration = Duration::from_millis(50);

/// What every phone whose runner is there goes through in the beginning.
const PLUGGED: &str = "DETACHED PLUGGED ATTACHED";
const READY: &str = "ATTACHED RUNNER_READY READY";
/// The same with a runner that is launched.
const LAUNCHING: &str = "ATTACHED LAUNCHING LAUNCHING";
const LAUNCHED: &str = "LAUNCHING RUNNER_READY READY";

/// Phones whose runners somebody else sees to.
async fn seldom_asked(reach: Reach, scenario: Scenario) -> Rig {
    Rig::reaching(reach, scenario, |config| {
        config.health.probe_interval = SELDOM;
    })
    .await
}

/// A watcher that has seen every phone get ready.
async fn ready(rig: &Rig) -> Mirror {
    let mut mirror = Mirror::follow(rig.channel()).await;
    all_ready(rig, &mut mirror).await;
    mirror
}

async fn all_ready(rig: &Rig, mirror: &mut Mirror) {
    let phones = rig.lab.phones().len();
    let ready = |seen: &Seen| seen.count(DeviceState::Ready) == phones;
    mirror.until("phones that are ready", ready).await;
}

/// Waits until a phone is ready after so many launches.
async fn until_launches(mirror: &mut Mirror, udid: &str, launches: u32) -> pb::Device {
    let is = |seen: &Seen| {
        seen.devices.get(udid).is_some_and(|device| {
            let runner = device.runner.as_ref();
            let count = runner.map_or(0, |runner| runner.launches);
            device.state() == DeviceState::Ready && count == launches
        })
    };
    let what = format!("{udid} ready after {launches} launches");
    let mut seen = mirror.until(&what, is).await;
    seen.devices.remove(udid).unwrap()
}

async fn listed(rig: &Rig) -> Vec<pb::Device> {
    let request = pb::ListDevicesRequest {
        page_size: 1000,
        ..pb::ListDevicesRequest::default()
    };
    let listed = rig.fleet().list_devices(request).await.unwrap();
    listed.into_inner().devices
}

async fn mux_host(rig: &Rig) -> pb::MuxHost {
    let request = pb::GetGatewayRequest {};
    let gateway = rig.fleet().get_gateway(request).await.unwrap().into_inner();
    gateway.mux_hosts.into_iter().next().unwrap()
}

/// Sends a tap that must land on this phone exactly once, at the first attempt.
async fn lands(rig: &Rig, phone: &Phone, command_id: &str) {
    let udid = phone.udid().to_string();
    let receipt = plain::send(rig, &udid, CommandKind::Tap, command_id).await;
    clean(Some(receipt.unwrap()), command_id);
    assert_eq!(effects(phone, command_id).len(), 1, "{command_id}");
}

/// How often the command with this id came to the phone as one of this kind.
fn arrivals(phone: &Phone, kind: CommandKind, command_id: &str) -> usize {
    let id: CommandId = command_id.parse().unwrap();
    let arrivals = phone.arrivals().into_iter();
    let own = arrivals.filter(|arrival| arrival.command_id.as_ref() == Some(&id));
    own.filter(|arrival| arrival.kind == kind).count()
}

/// Asserts that a phone went through this and nothing else.
async fn assert_history(rig: &Rig, udid: &str, expected: &[&str]) {
    history::assert_is(rig.channel(), udid, expected).await;
}
