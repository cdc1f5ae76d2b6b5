//! Gateways that launch the runners of their phones: by the real binary's
//! `lab runner`, in the place of `xcodebuild`, as processes of their own.

use std::time::Duration;

use fleetgate_gateway::Config;
use fleetgate_gateway::config::{
    Labels, LaunchCommand, LaunchConfig, LaunchSpec, LaunchWay, Launches, Name,
};
use fleetgate_simulator::{Lab, Scenario};

use crate::reach::Reach;
use crate::{Rig, binary};

/// How the runner of every phone comes up: by these arguments.
pub fn launches<A: Into<String>>(argv: impl IntoIterator<Item = A>) -> Launches {
    let launch = LaunchConfig {
        name: Name::try_from("all".to_owned()).expect("a name"),
        labels: Some(Labels::default()),
        way: LaunchWay::Command(LaunchCommand {
            spec: LaunchSpec::new(argv),
            start_timeout: Duration::from_secs(20),
        }),
    };
    Launches::try_from(vec![launch]).expect("one launch")
}

/// A gateway that launches the runners of a lab in which none is up, on its
/// clock. Failures are made up for soon.
pub async fn rig(scenario: Scenario, configure: impl FnOnce(&mut Config)) -> Rig {
    let time_scale = scenario.time_scale;
    let lab = Lab::start(scenario.without_runners());
    let control = lab.serve_control(([127, 0, 0, 1], 0).into()).await;
    let control = format!("http://{}", control.expect("a control API"));
    Rig::before(lab, time_scale, Reach::Memory, |config| {
        let program = binary::path().display().to_string();
        let argv = [
            &program,
            "lab",
            "runner",
            "--udid",
            "{udid}",
            "--control",
            &control,
        ];
        config.launch = launches(argv);
        config.runner.port = None;
        config.health.backoff_initial = Duration::from_millis(10);
        config.health.backoff_max = Duration::from_millis(50);
        configure(config);
    })
    .await
}
