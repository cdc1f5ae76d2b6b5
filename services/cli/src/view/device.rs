//! What is known of a phone: everything, as JSON; one line, as a table
//! ([`table()`]).

use std::collections::BTreeMap;

use fleetgate_proto::v1 as pb;
use serde::Serialize;

use crate::{when, words};

mod table;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use table::{label, labels, needs_attention, remarks, table, table_within};

/// A phone as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DeviceView {
    udid: String,
    alias: Option<String>,
    state: String,
    state_reason: String,
    state_detail: Option<String>,
    state_time: Option<String>,
    stale: bool,
    runner_port: Option<u32>,
    queued_commands: u32,
    command_in_flight: Option<String>,
    host: Option<String>,
    mux_address: Option<String>,
    name: Option<String>,
    model: Option<String>,
    os_version: Option<String>,
    trusted: Option<bool>,
    labels: BTreeMap<String, String>,
    cordon: Option<CordonView>,
    lease: Option<HolderView>,
    runner: Option<RunnerView>,
    alarms: Vec<AlarmView>,
}

/// Who took it out of service.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct CordonView {
    reason: String,
    who: String,
    time: Option<String>,
    until: Option<String>,
}

/// The lease that has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct HolderView {
    lease_id: String,
    owner: String,
    epoch: u64,
    until: Option<String>,
}

/// Its runner.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct RunnerView {
    launch_kind: String,
    launches: u32,
    launch_time: Option<String>,
    pid: Option<u32>,
    log_path: Option<String>,
    probe_time: Option<String>,
    uptime_ms: Option<f64>,
    suppressed_issues: Option<u64>,
    recorded_failures: Option<u64>,
    failures: u32,
    last_failure: Option<FailureView>,
    next_launch_time: Option<String>,
}

/// How its runner did not come up.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct FailureView {
    reason: String,
    message: String,
    time: Option<String>,
    log_tail: Vec<String>,
}

/// What is wrong with it beyond its state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AlarmView {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) time: Option<String>,
}

impl From<pb::Device> for DeviceView {
    fn from(device: pb::Device) -> Self {
        Self {
            state: words::device_state(device.state),
            udid: device.udid,
            alias: device.alias,
            state_reason: device.state_reason,
            state_detail: device.state_detail,
            state_time: device.state_time.and_then(when::stamp),
            stale: device.stale,
            runner_port: device.runner_port,
            queued_commands: device.queued_commands,
            command_in_flight: device.command_in_flight,
            host: device.host,
            mux_address: device.mux_address,
            name: device.name,
            model: device.model,
            os_version: device.os_version,
            trusted: device.trusted,
            labels: device.labels.into_iter().collect(),
            cordon: device.cordon.map(CordonView::from),
            lease: device.lease.map(HolderView::from),
            runner: device.runner.map(RunnerView::from),
            alarms: device.alarms.into_iter().map(AlarmView::from).collect(),
        }
    }
}

impl From<pb::Cordon> for CordonView {
    fn from(cordon: pb::Cordon) -> Self {
        Self {
            reason: cordon.reason,
            who: cordon.who,
            time: cordon.time.and_then(when::stamp),
            until: cordon.until.and_then(when::stamp),
        }
    }
}

impl From<pb::DeviceLease> for HolderView {
    fn from(lease: pb::DeviceLease) -> Self {
        Self {
            lease_id: lease.lease_id,
            owner: lease.owner,
            epoch: lease.epoch,
            until: lease.until.and_then(when::stamp),
        }
    }
}

impl From<pb::Runner> for RunnerView {
    fn from(runner: pb::Runner) -> Self {
        Self {
            launch_kind: words::launch_kind(runner.launch_kind),
            launches: runner.launches,
            launch_time: runner.launch_time.and_then(when::stamp),
            pid: runner.pid,
            log_path: runner.log_path,
            probe_time: runner.probe_time.and_then(when::stamp),
            uptime_ms: runner.uptime.and_then(when::millis),
            suppressed_issues: runner.suppressed_issues,
            recorded_failures: runner.recorded_failures,
            failures: runner.failures,
            last_failure: runner.last_failure.map(FailureView::from),
            next_launch_time: runner.next_launch_time.and_then(when::stamp),
        }
    }
}

impl From<pb::LaunchFailure> for FailureView {
    fn from(failure: pb::LaunchFailure) -> Self {
        Self {
            reason: failure.reason,
            message: failure.message,
            time: failure.time.and_then(when::stamp),
            log_tail: failure.log_tail,
        }
    }
}

impl From<pb::Alarm> for AlarmView {
    fn from(alarm: pb::Alarm) -> Self {
        Self {
            code: alarm.code,
            message: alarm.message,
            time: alarm.time.and_then(when::stamp),
        }
    }
}
