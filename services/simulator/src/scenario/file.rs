//! The scenario file as it stands in TOML, and its way to a [`Scenario`].
//!
//! Values keep their place in the text until they have been checked, so that a
//! complaint can name the line.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use fleetgate_runner::{BundleId, Udid};
use serde::Deserialize;
use toml::Spanned;

use super::{DEFAULT_PORT, PhoneSpec, Problem, Scenario, ScenarioError, made_up_udid};
use crate::fault::Fault;
use crate::launch::LaunchFault;
use crate::lockdown::Lockdown;
use crate::report::Transport;
use crate::stray::Stray;
use crate::ui::{AppState, ScreenConfig};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    time_scale: Option<Spanned<f64>>,
    #[serde(default)]
    phones: Vec<Entry>,
    #[serde(default)]
    strays: Vec<Stray>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    udid: Option<Spanned<Udid>>,
    count: Option<NonZeroU32>,
    serial: Option<Spanned<String>>,
    name: Option<String>,
    model: Option<String>,
    os_version: Option<String>,
    port: Option<Spanned<u16>>,
    connection: Option<Spanned<Vec<Transport>>>,
    runner: Option<bool>,
    #[serde(default, with = "humantime_serde")]
    uptime: Duration,
    #[serde(default)]
    locked: bool,
    trusted: Option<bool>,
    #[serde(default)]
    lockdown: Lockdown,
    #[serde(default)]
    apps: BTreeMap<BundleId, AppState>,
    #[serde(default)]
    screen: ScreenConfig,
    #[serde(default)]
    faults: Vec<Spanned<Fault>>,
    #[serde(default)]
    launch_faults: Vec<Spanned<LaunchFault>>,
}

/// Reads a scenario from TOML.
pub(super) fn read(text: &str) -> Result<Scenario, ScenarioError> {
    let file: File = toml::from_str(text).map_err(Box::new)?;
    let at = |span: Range<usize>, key: &'static str, problem: Problem| ScenarioError::Invalid {
        line: text
            .bytes()
            .take(span.start)
            .filter(|byte| *byte == b'\n')
            .count()
            + 1,
        key,
        problem,
    };
    let time_scale = match file.time_scale {
        None => 1.0,
        Some(scale) if scale.get_ref().is_finite() && *scale.get_ref() > 0.0 => scale.into_inner(),
        Some(scale) => {
            let problem = Problem::TimeScale(*scale.get_ref());
            return Err(at(scale.span(), "time_scale", problem));
        }
    };
    let mut phones: Vec<PhoneSpec> = Vec::new();
    let mut seen = HashSet::new();
    let mut made_up = 0;
    for entry in &file.phones {
        entry.check(&at)?;
        if let Some(udid) = &entry.udid
            && !seen.insert(udid.get_ref().clone())
        {
            let problem = Problem::DuplicateUdid(udid.get_ref().clone());
            return Err(at(udid.span(), "udid", problem));
        }
        for n in 1..=entry.count.map_or(1, NonZeroU32::get) {
            let udid = entry.udid.as_ref().map(|udid| udid.get_ref().clone());
            let udid = udid.unwrap_or_else(|| {
                made_up += 1;
                made_up_udid(made_up)
            });
            phones.push(entry.phone(udid, n));
        }
    }
    // A given UDID may be one that is made up for another phone.
    if made_up > 0
        && let Some(udid) = file
            .phones
            .iter()
            .filter_map(|entry| entry.udid.as_ref())
            .find(|udid| {
                phones
                    .iter()
                    .filter(|phone| phone.udid == *udid.get_ref())
                    .count()
                    > 1
            })
    {
        return Err(at(
            udid.span(),
            "udid",
            Problem::DuplicateUdid(udid.get_ref().clone()),
        ));
    }
    Ok(Scenario {
        time_scale,
        phones,
        strays: file.strays,
    })
}

impl Entry {
    fn check(
        &self,
        at: &impl Fn(Range<usize>, &'static str, Problem) -> ScenarioError,
    ) -> Result<(), ScenarioError> {
        if self.count.is_some() {
            if let Some(udid) = &self.udid {
                return Err(at(udid.span(), "udid", Problem::CountedUdid));
            }
            if let Some(serial) = &self.serial {
                return Err(at(serial.span(), "serial", Problem::CountedSerial));
            }
        }
        if let Some(port) = self.port.as_ref().filter(|port| *port.get_ref() == 0) {
            return Err(at(port.span(), "port", Problem::NoPort));
        }
        if let Some(connection) = &self.connection
            && connection.get_ref().iter().collect::<HashSet<_>>().len()
                < connection.get_ref().len()
        {
            return Err(at(
                connection.span(),
                "connection",
                Problem::RepeatedTransport,
            ));
        }
        for fault in &self.faults {
            fault
                .get_ref()
                .check()
                .map_err(|problem| at(fault.span(), "faults", problem.into()))?;
        }
        for fault in &self.launch_faults {
            fault
                .get_ref()
                .check()
                .map_err(|problem| at(fault.span(), "launch_faults", problem.into()))?;
        }
        Ok(())
    }

    /// The `n`th of this entry's phones.
    fn phone(&self, udid: Udid, n: u32) -> PhoneSpec {
        let plain = PhoneSpec::new(udid);
        let name = self.name.clone().unwrap_or_else(|| plain.name.clone());
        let port = self
            .port
            .as_ref()
            .map_or(DEFAULT_PORT, |port| *port.get_ref());
        let connection = self
            .connection
            .as_ref()
            .map(|connection| connection.get_ref().clone());
        PhoneSpec {
            serial: self
                .serial
                .as_ref()
                .map_or(plain.serial, |serial| serial.get_ref().clone()),
            name: if self.count.is_some() {
                format!("{name} {n}")
            } else {
                name
            },
            udid: plain.udid,
            model: self.model.clone().unwrap_or(plain.model),
            os_version: self.os_version.clone().unwrap_or(plain.os_version),
            port,
            connection: connection.unwrap_or(plain.connection),
            runner: self.runner.unwrap_or(plain.runner),
            uptime: self.uptime,
            locked: self.locked,
            trusted: self.trusted.unwrap_or(plain.trusted),
            lockdown: self.lockdown,
            apps: self.apps.clone(),
            screen: self.screen.clone(),
            faults: self
                .faults
                .iter()
                .map(|fault| fault.get_ref().clone())
                .collect(),
            launch_faults: self
                .launch_faults
                .iter()
                .map(|fault| fault.get_ref().clone())
                .collect(),
        }
    }
}
