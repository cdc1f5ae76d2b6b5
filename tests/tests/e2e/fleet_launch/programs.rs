//! Programs other than the lab's own: missing, unwilling to end, left behind by
//! a gateway that was killed, and chosen by a label.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use fleetgate_gateway::config::{Labels, Launches};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_tests::lane::device;
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{launching, pause, plain, plain_lab, refused, soon};
use tokio::time::Instant;

use super::{lives, pid_of, until_launches};

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_killed_leaves_no_process_to_its_successor() {
    let says = format!("echo ARGENT_RUNNER_LISTENING port={DEFAULT_PORT}; sleep 1000 & wait");
    let launch =
        format!("[[launch]]\nname = 'all'\nlabels = {{}}\nargv = ['sh', '-c', '{says}']\n");
    let scene = Scene::configured(plain_lab(1, 0.02), &launch).await;
    let ready = async |scene: &Scene| {
        let mut mirror = Mirror::follow(scene.channel()).await;
        let udid = scene.phone(0).udid().to_string();
        pid_of(&mirror.until_state(&udid, DeviceState::Ready).await)
    };
    let orphan = ready(&scene).await;
    let wreck = scene.kill().await;
    assert!(lives(orphan), "there is something to be swept");

    let scene = wreck.restart().await;
    let child = ready(&scene).await;
    assert_ne!(child, orphan);
    soon("the end of the orphan", async {
        while lives(orphan) {
            pause().await;
        }
    })
    .await;
    scene.end().await;
    assert!(!lives(child), "{child} lives on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_named_and_not_tried_for_ever() {
    let rig = launching::rig(plain_lab(1, 0.02), |config| {
        config.launch = launching::launches(["/nowhere/xcodebuild", "{udid}"]);
        config.health.quarantine_after = NonZeroU32::new(2).unwrap();
    })
    .await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let left = mirror.until_state(&udid, DeviceState::Quarantined).await;
    let runner = left.runner.unwrap();
    let failure = runner.last_failure.unwrap();
    assert_eq!(failure.reason, "NOT_STARTED");
    assert!(
        failure.message.contains("/nowhere/xcodebuild"),
        "{failure:?}"
    );
    assert_eq!((runner.launches, runner.failures, runner.pid), (0, 2, None));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_choose_how_a_runner_comes_up() {
    let rig = launching::rig(plain_lab(1, 0.02), |config| {
        let mut launches: Vec<_> = config.launch.iter().cloned().collect();
        let odd = [("odd".to_owned(), "yes".to_owned())];
        let odd = BTreeMap::from(odd);
        launches[0].labels = Some(Labels::try_from(odd).unwrap());
        config.launch = Launches::try_from(launches).unwrap();
    })
    .await;
    let udid = rig.udid(0);
    let idle = device(&rig, &udid).await;
    assert_eq!(
        (idle.state(), &*idle.state_reason),
        (DeviceState::Attached, "RUNNER_UNKNOWN")
    );
    assert_eq!(idle.runner, None);
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "early").await);
    assert_eq!(refusal.reason, "RUNNER_PORT_UNKNOWN");

    let labelled = |set: &[(&str, &str)], remove: &[&str]| pb::UpdateDeviceRequest {
        device: udid.clone(),
        alias: None,
        set_labels: set
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        remove_labels: remove.iter().map(ToString::to_string).collect(),
    };
    let mut mirror = Mirror::follow(rig.channel()).await;
    let request = labelled(&[("odd", "yes")], &[]);
    rig.fleet().update_device(request).await.unwrap();
    let ready = until_launches(&mut mirror, &udid, 1).await;
    plain::send(&rig, &udid, CommandKind::Tap, "now")
        .await
        .unwrap();

    rig.fleet()
        .update_device(labelled(&[], &["odd"]))
        .await
        .unwrap();
    let left = mirror.until_state(&udid, DeviceState::Attached).await;
    assert_eq!(left.runner, None);
    soon("the end of the process", async {
        while lives(pid_of(&ready)) {
            pause().await;
        }
    })
    .await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_does_not_want_to_end_keeps_no_gateway_from_its_end() {
    let rig = launching::rig(plain_lab(1, 0.02), |config| {
        let says = format!(
            "trap '' TERM; echo ARGENT_RUNNER_LISTENING port={DEFAULT_PORT}; while :; do sleep 1; done"
        );
        config.launch = launching::launches(["sh", "-c", &says]);
        config.server.drain_timeout = Duration::from_millis(200);
    })
    .await;
    let udid = rig.udid(0);
    rig.phone(0).restart_runner(DEFAULT_PORT);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let pid = pid_of(&mirror.until_state(&udid, DeviceState::Ready).await);
    drop(mirror);
    let begun = Instant::now();
    rig.stop().await;
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    soon("the end of the process", async {
        while lives(pid) {
            pause().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_line_has_commands_sent_to_another_service_of_the_phone() {
    for port in [22, 62078] {
        let rig = launching::rig(plain_lab(1, 0.02), |config| {
            let says = format!("echo ARGENT_RUNNER_LISTENING port={port}; sleep 1000");
            config.launch = launching::launches(["sh", "-c", &says]);
            config.health.quarantine_after = NonZeroU32::MIN;
        })
        .await;
        let udid = rig.udid(0);
        let mut mirror = Mirror::follow(rig.channel()).await;
        let left = mirror.until_state(&udid, DeviceState::Quarantined).await;
        let failure = left.runner.unwrap().last_failure.unwrap();
        assert_eq!(failure.reason, "LISTENER_FAILED");
        assert!(failure.message.contains(&port.to_string()), "{failure:?}");
        assert_eq!(left.runner_port, None);
        let connects = rig.phone(0).report().connects;
        assert_eq!((connects.usb, connects.lockdown), (0, 0), "{connects:?}");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runners_leave_is_where_the_configuration_says() {
    let elsewhere = tempfile::tempdir().unwrap();
    let directory = elsewhere.path().join("here");
    let rig = launching::rig(plain_lab(1, 0.02), |config| {
        config.runner.directory = Some(directory.clone());
    })
    .await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let ready = mirror.until_state(&udid, DeviceState::Ready).await;
    let log = directory.join("logs").join(format!("{udid}.log"));
    let told = ready.runner.unwrap().log_path.unwrap();
    assert_eq!(std::path::Path::new(&told), log);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("ARGENT_RUNNER_LISTENING"), "{log}");
    rig.stop().await;
}
