//! Runners that somebody else sees to: found, lost, restarted, drifting, and
//! out of reach, with the phone's history as the evidence.

use std::time::Duration;

use fleetgate_device::Address;
use fleetgate_gateway::Config;
use fleetgate_gateway::config::{HostConfig, Hosts, Name};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{DeviceState, DeviceTransition};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Ids, Lab, Scenario};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, lane, pause, plain, plain_lab, refused, soon};

/// Phones whose runners have been up for a while, asked as often as this.
async fn rig(phones: u32, interval: Duration) -> Rig {
    let mut lab = plain_lab(phones, 0.02);
    for phone in &mut lab.phones {
        phone.uptime = Duration::from_secs(3600);
    }
    Rig::configured(lab, |config| ask(config, interval)).await
}

fn ask(config: &mut Config, interval: Duration) {
    config.health.probe_interval = interval;
}

const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(3600);

/// What a phone went through, the oldest first, once there is so much.
async fn history(rig: &Rig, udid: &str, length: usize) -> Vec<String> {
    let request = pb::ListDeviceTransitionsRequest {
        device: udid.to_owned(),
        ..pb::ListDeviceTransitionsRequest::default()
    };
    soon("the history", async {
        loop {
            let listed = rig.fleet().list_device_transitions(request.clone()).await;
            let mut told = listed.unwrap().into_inner().transitions;
            if told.len() >= length {
                told.reverse();
                return told.iter().map(words).collect();
            }
            pause().await;
        }
    })
    .await
}

fn words(told: &DeviceTransition) -> String {
    let name = |state: DeviceState| {
        let name = state.as_str_name();
        name.strip_prefix("DEVICE_STATE_").unwrap().to_owned()
    };
    format!("{} {} {}", name(told.from()), told.reason, name(told.to()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_answers_is_ready_and_a_command_that_misses_it_has_it_looked_for() {
    let rig = rig(2, SELDOM).await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    let ready = mirror.until_state(&udid, DeviceState::Ready).await;
    assert_eq!(ready.state_reason, "RUNNER_READY");
    let runner = ready.runner.unwrap();
    assert_eq!(runner.launch_kind(), pb::LaunchKind::Static);
    assert_eq!((runner.launches, runner.pid), (0, None));
    assert!(runner.uptime.unwrap().seconds >= 3600 && runner.probe_time.is_some());
    assert_eq!(phone.report().arrivals_of(CommandKind::Status), 1);

    phone.kill_runner();
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "missed").await);
    assert_eq!(refusal.reason, "RUNNER_NOT_LISTENING");
    let lost = mirror.until_state(&udid, DeviceState::Attached).await;
    assert_eq!(lost.state_reason, "RUNNER_UNREACHABLE");
    assert!(lost.state_detail.is_some());

    phone.restart_runner(8100);
    mirror.until_state(&udid, DeviceState::Ready).await;
    plain::send(&rig, &udid, CommandKind::Tap, "found")
        .await
        .unwrap();
    assert_eq!(
        history(&rig, &udid, 4).await,
        [
            "DETACHED PLUGGED ATTACHED",
            "ATTACHED RUNNER_READY READY",
            "READY RUNNER_UNREACHABLE ATTACHED",
            "ATTACHED RUNNER_READY READY",
        ]
    );
    let other = lane::device(&rig, &rig.udid(1)).await;
    assert_eq!(other.state(), DeviceState::Ready);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_nobody_needs_is_missed_all_the_same() {
    let rig = rig(1, OFTEN).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    mirror.until_state(&udid, DeviceState::Ready).await;
    rig.phone(0).kill_runner();
    let lost = mirror.until_state(&udid, DeviceState::Attached).await;
    assert_eq!(lost.state_reason, "RUNNER_UNREACHABLE");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_restarts_in_silence_is_noticed() {
    let rig = rig(1, OFTEN).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    mirror.until_state(&udid, DeviceState::Ready).await;
    assert!(rig.phone(0).restart_runner_silently());
    let seen = mirror
        .until("the restart", |seen| {
            seen.reasons(&udid).contains(&"RUNNER_RESTARTED")
        })
        .await;
    let told = seen.transitions.last().unwrap();
    assert_eq!(words(told), "READY RUNNER_RESTARTED READY");
    assert!(
        told.detail.as_ref().unwrap().contains("after 36"),
        "{told:?}"
    );
    assert_eq!(seen.devices[&udid].state_reason, "RUNNER_READY");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_whose_failures_are_none_that_it_knows_raises_an_alarm() {
    let rig = rig(1, OFTEN).await;
    let (udid, phone) = (rig.udid(0), rig.phone(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    mirror.until_state(&udid, DeviceState::Ready).await;
    assert!(phone.set_runner_counters(Some(0), Some(2)));
    let counted = |seen: &fleetgate_tests::mirror::Seen| {
        let runner = seen.devices[&udid].runner.as_ref();
        runner.unwrap().recorded_failures == Some(2)
    };
    let seen = mirror.until("the counters", counted).await;
    assert_eq!(seen.alarms, []);

    assert!(phone.set_runner_counters(Some(0), Some(3)));
    let alarmed = mirror
        .until("the alarm", |seen| !seen.alarms.is_empty())
        .await;
    let alarm = &alarmed.devices[&udid].alarms[0];
    assert_eq!(alarm.code, "RUNNER_DRIFT");
    assert_eq!(alarmed.alarms[0].alarm.as_ref(), Some(alarm));
    assert_eq!(alarmed.state(&udid), Some(DeviceState::Ready));
    // It is asked again and again, and the alarm is one.
    let asked = phone.report().arrivals_of(CommandKind::Status);
    phone
        .wait_until(|phone| phone.arrivals_of(CommandKind::Status) > asked + 2)
        .await;

    assert!(phone.set_runner_counters(Some(1), Some(4)));
    let ended = mirror
        .until("the end of the alarm", |seen| seen.alarms.len() == 2)
        .await;
    assert!(ended.alarms[1].ended && !ended.alarms[0].ended);
    assert_eq!(ended.devices[&udid].alarms, []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn phones_of_a_lost_host_stay_what_they_were_and_are_asked_when_it_is_back() {
    let rig = rig(3, SELDOM).await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    let ready = |seen: &fleetgate_tests::mirror::Seen| seen.count(DeviceState::Ready) == 3;
    mirror.until("all of them", ready).await;
    rig.lab.stop_usbmuxd();
    let lost = mirror
        .until("the loss", |seen| {
            seen.devices.values().all(|device| device.stale)
        })
        .await;
    let states = lost.devices.values().map(pb::Device::state);
    assert!(states.into_iter().all(|state| state == DeviceState::Ready));
    assert!(!lost.hosts["local"].connected);
    let asked = rig.phone(0).report().arrivals_of(CommandKind::Status);

    rig.lab.start_usbmuxd(Ids::Reused);
    mirror.until("all of them again", ready).await;
    rig.phone(0)
        .wait_until(|phone| phone.arrivals_of(CommandKind::Status) > asked)
        .await;
    let told = history(&rig, &rig.udid(0), 4).await;
    assert_eq!(
        told[2..],
        ["READY HOST_LOST READY", "READY HOST_BACK READY"]
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_tells_what_it_is_called_and_whether_it_is_trusted() {
    let mut lab = Scenario::fleet(2).scaled(0.02);
    lab.phones[0].name = "Anna's iPhone".to_owned();
    lab.phones[1].trusted = false;
    let spec = lab.phones[0].clone();
    let rig = Rig::configured(lab, |config| config.health.facts = true).await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    let (known, strange) = (rig.udid(0), rig.udid(1));
    let seen = mirror
        .until("what they say", |seen| {
            let named = seen.devices.get(&known).map(|device| &device.name);
            let trusted = seen.devices.get(&strange).map(|device| device.trusted);
            named.is_some_and(Option::is_some) && trusted.is_some_and(|known| known.is_some())
        })
        .await;
    let device = &seen.devices[&known];
    assert_eq!(device.name.as_deref(), Some("Anna's iPhone"));
    assert_eq!(device.model.as_ref(), Some(&spec.model));
    assert_eq!(device.os_version.as_ref(), Some(&spec.os_version));
    assert_eq!(device.trusted, Some(true));
    assert_eq!(seen.devices[&strange].trusted, Some(false));

    rig.phone(1).set_trusted(true);
    mirror
        .until("trust", |seen| seen.devices[&strange].trusted == Some(true))
        .await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn phones_of_several_hosts_are_one_fleet() {
    let mut far = plain_lab(1, 0.02);
    far.phones[0].udid = "00008110-000978540290401E".parse().unwrap();
    far.phones[0].serial = far.phones[0].udid.to_string();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("mux");
    let far = Lab::start(far);
    far.serve_unix(&socket).await.unwrap();
    let rig = Rig::configured(plain_lab(1, 0.02), |config| {
        ask(config, SELDOM);
        let rack = HostConfig {
            name: Name::try_from("rack".to_owned()).unwrap(),
            address: Address::Unix(socket.clone()),
        };
        config.host = Hosts::try_from(vec![rack]).unwrap();
    })
    .await;
    let far_udid = far.phones()[0].udid().to_string();
    let mut mirror = Mirror::follow(rig.channel()).await;
    let seen = mirror
        .until("both", |seen| seen.count(DeviceState::Ready) == 2)
        .await;
    let host = |udid: &str| seen.devices[udid].host.clone().unwrap();
    assert_eq!(host(&rig.udid(0)), "local");
    assert_eq!(host(&far_udid), "rack");
    let address = seen.devices[&far_udid].mux_address.clone().unwrap();
    assert!(address.ends_with("/mux"), "{address}");
    let names: Vec<_> = seen.hosts.keys().collect();
    assert_eq!(names, ["local", "rack"]);
    plain::send(&rig, &far_udid, CommandKind::Tap, "far")
        .await
        .unwrap();
    assert_eq!(far.phones()[0].report().effects_total, 1);

    // Of one host that is lost, the other knows nothing.
    far.stop_usbmuxd();
    let lost = mirror
        .until("the loss", |seen| seen.devices[&far_udid].stale)
        .await;
    assert!(!lost.devices[&rig.udid(0)].stale);
    assert!(lost.hosts["local"].connected && !lost.hosts["rack"].connected);
    plain::send(&rig, &rig.udid(0), CommandKind::Tap, "near")
        .await
        .unwrap();
    rig.stop().await;
    far.shutdown().await;
}
