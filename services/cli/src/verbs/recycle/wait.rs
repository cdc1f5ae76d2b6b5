//! Waiting for a recycled runner.
//!
//! What is awaited is a launch other than the last one before, so that a phone
//! that is still ready is not taken for one that is ready again.

use fleetgate_proto::v1::{Device, DeviceState, LaunchFailure};

use crate::exit::Failed;
use crate::follow::{Fleet, Follow, Followed, lost};
use crate::mirror::Mirror;
use crate::output::{clean, note};
use crate::view::device::label;
use crate::words;

/// A wait.
#[derive(Debug)]
pub(super) struct Wait {
    before: Device,
    said: String,
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Ready,
    Failed(String),
    Pending,
}

impl Wait {
    /// For a phone that was like this before it was recycled.
    pub(super) fn new(before: Device) -> Self {
        Self {
            before,
            said: String::new(),
        }
    }

    /// The phone once it is ready again.
    pub(super) async fn until_ready(
        mut self,
        mut follow: Follow<Fleet>,
        mut fleet: Mirror,
    ) -> anyhow::Result<Device> {
        loop {
            if let Some(now) = fleet
                .device(&self.before.udid)
                .filter(|_| fleet.is_synced())
            {
                self.tell(now);
                match progress(&self.before, now) {
                    Progress::Ready => return Ok(now.clone()),
                    Progress::Failed(why) => return Err(Failed(why).into()),
                    Progress::Pending => {}
                }
            }
            match follow.next().await {
                Ok(Followed::Said(message)) => fleet.take(&message),
                Ok(Followed::Lost { why, pause }) => note(&lost(&why, pause)),
                Ok(Followed::Back) => note("connected again"),
                Err(rejected) => {
                    let state = fleet.device(&self.before.udid).map(state);
                    let words = format!(
                        "the recycling was begun and goes on; the phone is {}",
                        state.as_deref().unwrap_or("not known")
                    );
                    return Err(anyhow::anyhow!("{rejected}").context(words));
                }
            }
        }
    }

    /// Says how it is, unless that was said.
    fn tell(&mut self, now: &Device) {
        let words = clean(&format!("{}: {}", label(now), state(now)));
        if words != self.said {
            note(&words);
            self.said = words;
        }
    }
}

fn state(device: &Device) -> String {
    let state = words::device_state(device.state);
    let words = format!("{state} {}", device.state_reason);
    match &device.state_detail {
        Some(detail) => format!("{words}: {detail}"),
        None => words.trim_end().to_owned(),
    }
}

fn progress(before: &Device, now: &Device) -> Progress {
    let launch = |device: &Device| device.runner.as_ref().and_then(|runner| runner.launch_time);
    let failure = |device: &Device| {
        let runner = device.runner.as_ref();
        runner.and_then(|runner| runner.last_failure.clone())
    };
    let moved = now.state_time != before.state_time;
    if let Some(failed) = failure(now)
        && failure(before).map(|failed| failed.time) != Some(failed.time)
    {
        return Progress::Failed(did_not_come_up(&failed));
    }
    match now.state() {
        DeviceState::Ready if launch(now).is_some() && launch(now) != launch(before) => {
            Progress::Ready
        }
        DeviceState::Detached if moved => Progress::Failed("the phone was unplugged".to_owned()),
        DeviceState::Quarantined if moved => Progress::Failed(format!(
            "the phone is in quarantine: {}",
            now.state_detail.as_deref().unwrap_or("no reason given")
        )),
        DeviceState::Unspecified
        | DeviceState::Detached
        | DeviceState::Attached
        | DeviceState::Reconciling
        | DeviceState::Draining
        | DeviceState::Wedged
        | DeviceState::Launching
        | DeviceState::Ready
        | DeviceState::Recycling
        | DeviceState::Quarantined => Progress::Pending,
    }
}

fn did_not_come_up(failure: &LaunchFailure) -> String {
    let mut words = format!(
        "the runner did not come up: {}: {}",
        failure.reason, failure.message
    );
    if !failure.log_tail.is_empty() {
        words += "\nthe last lines of its log:";
    }
    failure
        .log_tail
        .iter()
        .fold(words, |words, line| format!("{words}\n  {}", clean(line)))
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::Runner;
    use prost_types::Timestamp;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp { seconds, nanos: 0 }
    }

    fn phone(state: DeviceState, state_time: i64, launch_time: i64) -> Device {
        Device {
            state: state.into(),
            state_time: Some(at(state_time)),
            runner: Some(Runner {
                launch_time: Some(at(launch_time)),
                ..Runner::default()
            }),
            ..Device::default()
        }
    }

    fn failing(time: i64) -> Device {
        let mut device = phone(DeviceState::Launching, 20, 20);
        if let Some(runner) = &mut device.runner {
            runner.last_failure = Some(LaunchFailure {
                reason: "EXITED".to_owned(),
                message: "exit status: 65".to_owned(),
                time: Some(at(time)),
                log_tail: vec!["Developer Mode is off".to_owned()],
            });
        }
        device
    }

    #[test]
    fn a_phone_that_is_ready_still_is_not_ready_again() {
        let before = phone(DeviceState::Ready, 10, 5);
        for pending in [
            before.clone(),
            phone(DeviceState::Recycling, 11, 5),
            phone(DeviceState::Launching, 12, 12),
        ] {
            assert_eq!(progress(&before, &pending), Progress::Pending);
        }
        let again = phone(DeviceState::Ready, 13, 12);
        assert_eq!(progress(&before, &again), Progress::Ready);
    }

    #[test]
    fn a_failure_from_before_does_not_count_and_a_new_one_comes_with_its_log() {
        let before = failing(10);
        assert_eq!(progress(&before, &failing(10)), Progress::Pending);
        let Progress::Failed(why) = progress(&before, &failing(21)) else {
            panic!("a launch failed");
        };
        assert!(
            why.contains("EXITED") && why.ends_with("\n  Developer Mode is off"),
            "{why}"
        );
    }

    #[test]
    fn a_phone_that_goes_away_or_into_quarantine_has_failed() {
        let before = phone(DeviceState::Quarantined, 10, 5);
        assert_eq!(progress(&before, &before), Progress::Pending);
        for state in [DeviceState::Quarantined, DeviceState::Detached] {
            let now = phone(state, 11, 5);
            assert!(matches!(progress(&before, &now), Progress::Failed(_)));
        }
    }
}
