//! What befalls a rack, at random.

use std::time::Duration;

use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::{CordonDeviceRequest, RecycleRunnerRequest, UncordonDeviceRequest};
use fleetgate_simulator::ui::AppState;
use fleetgate_simulator::{Fault, Ids, Injection, LaunchFault, Mishap, Phone};
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{mend, screen};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::runners::Runners;

/// Makes trouble for so long.
pub(crate) async fn make(scene: &Scene, runners: &Runners, rng: &mut StdRng, lasting: Duration) {
    let until = Instant::now() + lasting;
    let phones = scene.lab.phones();
    while Instant::now() < until {
        let phone = phones.choose(rng).expect("phones");
        let launched = runners.launched.contains(phone.udid());
        match rng.random_range(0..100) {
            0..20 => phone.detach(),
            20..45 => phone.attach(),
            45..55 => phone.replug(),
            55..62 if launched => phone.kill_runner(),
            55..62 => mend::heal(phone),
            62..68 => drop(phone.restart_runner_silently()),
            68..72 => kill_a_process(runners, rng).await,
            72..84 => phone.fault(fault(rng)),
            84..90 => phone.launch_fault(LaunchFault::from(mishap(rng))),
            90..94 => recycle(scene, phone, rng.random()).await,
            94..96 => cordon_for_a_moment(scene, phone).await,
            _ => restart_usbmuxd(scene, rng).await,
        }
        sleep(Duration::from_millis(rng.random_range(20..300))).await;
    }
}

/// Ends all trouble: what is left to be done is the gateway's.
pub(crate) fn end(scene: &Scene, runners: &Runners) {
    scene.lab.stall_usbmuxd(false);
    for phone in scene.lab.phones() {
        phone.clear_launch_faults();
        if runners.launched.contains(phone.udid()) {
            phone.clear_faults();
            phone.attach();
            phone.set_app_state(&screen::app(), AppState::Foreground);
        } else {
            mend::heal(&phone);
        }
    }
}

fn fault(rng: &mut StdRng) -> Fault {
    let injections = [
        Injection::ReplyLostAfterExecution,
        Injection::ReplyLostBeforeExecution,
        Injection::DropConnection,
        Injection::Busy,
        Injection::GarbageReply,
        Injection::TruncatedReply,
    ];
    Fault::from(injections.choose(rng).expect("injections").clone())
}

fn mishap(rng: &mut StdRng) -> Mishap {
    let soon = Duration::from_millis(rng.random_range(50..2000));
    let mishaps = [
        Mishap::Exits {
            code: 65,
            message: "no".to_owned(),
        },
        Mishap::NeverListens,
        Mishap::ListensLate { by: soon },
        Mishap::ListenerFailed {
            error: "in use".to_owned(),
        },
        Mishap::PortZero,
        Mishap::SplitLine { pause: soon / 10 },
        Mishap::Dies { after: soon },
        Mishap::ListensAgain {
            after: soon,
            port: None,
        },
        Mishap::IgnoresSigterm,
        Mishap::LeavesChild,
        Mishap::StaysWhenUnplugged,
    ];
    mishaps.choose(rng).expect("mishaps").clone()
}

/// As a person would who has mistaken it for something else.
async fn kill_a_process(runners: &Runners, rng: &mut StdRng) {
    let pids: Vec<u32> = runners.processes().into_values().flatten().collect();
    if let Some(pid) = pids.choose(rng) {
        let pid = pid.to_string();
        let kill = Command::new("kill").args(["-KILL", &pid]).status().await;
        // It may have ended since.
        drop(kill);
    }
}

async fn recycle(scene: &Scene, phone: &Phone, force: bool) {
    let request = RecycleRunnerRequest {
        device: phone.udid().to_string(),
        reason: "soak".to_owned(),
        force,
    };
    // One that is not launched here, or is not there, is refused.
    drop(
        FleetServiceClient::new(scene.channel())
            .recycle_runner(request)
            .await,
    );
}

async fn cordon_for_a_moment(scene: &Scene, phone: &Phone) {
    let mut fleet = FleetServiceClient::new(scene.channel());
    let device = phone.udid().to_string();
    let cordon = CordonDeviceRequest {
        device: device.clone(),
        reason: "soak".to_owned(),
        until: None,
    };
    fleet.cordon_device(cordon).await.expect("a cordon");
    sleep(Duration::from_millis(100)).await;
    let uncordon = UncordonDeviceRequest { device };
    fleet.uncordon_device(uncordon).await.expect("its end");
}

async fn restart_usbmuxd(scene: &Scene, rng: &mut StdRng) {
    if rng.random() {
        scene.lab.stall_usbmuxd(true);
        sleep(Duration::from_millis(rng.random_range(100..1500))).await;
        scene.lab.stall_usbmuxd(false);
        return;
    }
    scene.lab.stop_usbmuxd();
    sleep(Duration::from_millis(rng.random_range(0..1500))).await;
    let ids = if rng.random() {
        Ids::Reused
    } else {
        Ids::Fresh
    };
    scene.lab.start_usbmuxd(ids);
}
