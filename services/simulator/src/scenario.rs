//! What a lab consists of: its phones, their state, their faults, its clock.
//!
//! A scenario is built in code or read from TOML:
//!
//! ```toml
//! time_scale = 0.01                     # a hundred times as fast as a phone
//!
//! [[phones]]
//! udid = "00008110-000978540290401E"    # absent: one is made up
//! serial = "00008110000978540290401e"   # how usbmuxd spells it; the UDID if absent
//! name = "iPhone 13"
//! model = "iPhone14,5"                  # what lockdown says of it
//! os_version = "18.1"
//! port = 8100                           # the runner's
//! connection = ["network", "usb"]       # in the order in which usbmuxd sees them
//! runner = true                         # whether one is up
//! uptime = "23h 59m"                    # the runner's; it ends at 24 h
//! locked = false
//! trusted = true                        # whether it has paired with this host
//! lockdown = "answers"                  # or "refuses", "silent", "absent"
//! apps = { "com.example.settings" = "foreground", "com.example.mail" = "background" }
//! screen = { rows = 24, action_button = true }
//! faults = [
//!   { on = "tap", inject = "reply_lost_after_execution" },
//!   { times = 3, inject = "busy" },
//!   { on = "snapshot", inject = { slow = { by = "2s" } } },
//! ]
//! launch_faults = [                     # for whoever launches its runner
//!   { times = 2, inject = "never_listens" },
//!   { inject = { exits = { code = 65, message = "no such test" } } },
//! ]
//!
//! [[phones]]
//! count = 50                            # fifty more like this
//! name = "rack"                         # rack 1, rack 2, ...
//!
//! [[strays]]                            # announced by usbmuxd, and no phone
//! serial = "no UDID"
//! [[strays]]
//! lacks = ["device_id"]
//! ```
//!
//! Every key but `phones` has a default. Unknown keys are errors, and every
//! error names the key and the line. Made-up UDIDs depend on nothing but the
//! position in the file.
//!
//! Invariant: no two phones of a [`Scenario`] that was read from text have the
//! same UDID.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use fleetgate_runner::{BundleId, Udid};

use crate::fault::{Fault, InvalidFault};
use crate::launch::{InvalidLaunch, LaunchFault};
use crate::lockdown::Lockdown;
use crate::report::Transport;
use crate::stray::Stray;
use crate::ui::{AppState, ScreenConfig};

mod file;

/// The port of a runner that names none.
pub const DEFAULT_PORT: u16 = 8100;

/// What a lab consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// How long a phone's second takes here, in seconds.
    pub time_scale: f64,
    /// The phones, in the order in which they are plugged in.
    pub phones: Vec<PhoneSpec>,
    /// What usbmuxd announces besides them.
    pub strays: Vec<Stray>,
}

/// One phone, before the lab starts.
#[derive(Debug, Clone, PartialEq)]
pub struct PhoneSpec {
    /// Its UDID.
    pub udid: Udid,
    /// How usbmuxd spells the UDID.
    pub serial: String,
    /// Its name.
    pub name: String,
    /// Its model, as lockdown's `ProductType` has it.
    pub model: String,
    /// Its version of iOS.
    pub os_version: String,
    /// The runner's port.
    pub port: u16,
    /// The transports that it hangs on, in the order in which usbmuxd sees
    /// them.
    pub connection: Vec<Transport>,
    /// Whether a runner is up.
    pub runner: bool,
    /// How long that runner has been up, on the phone's clock.
    pub uptime: Duration,
    /// Whether its screen is locked.
    pub locked: bool,
    /// Whether it has paired with this host.
    pub trusted: bool,
    /// How its lockdown answers.
    pub lockdown: Lockdown,
    /// The state of its apps, besides the settings app in front.
    pub apps: BTreeMap<BundleId, AppState>,
    /// Its screen.
    pub screen: ScreenConfig,
    /// The faults that wait for its commands.
    pub faults: Vec<Fault>,
    /// What waits for the launches of its runner.
    pub launch_faults: Vec<LaunchFault>,
}

/// Why a scenario could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, or a value of the wrong type.
    #[error(transparent)]
    Syntax(#[from] Box<toml::de::Error>),
    /// A value that makes no sense.
    #[error("line {line}: `{key}`: {problem}")]
    Invalid {
        /// Where it stands, counted from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        #[source]
        problem: Problem,
    },
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The clock would stand still or run backwards.
    #[error("expected a positive number, got {0}")]
    TimeScale(f64),
    /// Two phones with one key.
    #[error("another phone has the UDID {0}")]
    DuplicateUdid(Udid),
    /// Several phones cannot have one UDID.
    #[error("`count` and `udid` exclude each other")]
    CountedUdid,
    /// Several phones cannot have one serial.
    #[error("`count` and `serial` exclude each other")]
    CountedSerial,
    /// Nothing can listen there.
    #[error("0 is not a port")]
    NoPort,
    /// A transport stands twice.
    #[error("a phone hangs on each transport at most once")]
    RepeatedTransport,
    /// A fault that could never apply.
    #[error(transparent)]
    Fault(#[from] InvalidFault),
    /// The same of a launch.
    #[error(transparent)]
    LaunchFault(#[from] InvalidLaunch),
}

impl PhoneSpec {
    /// A phone by cable with a runner on [`DEFAULT_PORT`] and the settings app
    /// in front.
    pub fn new(udid: Udid) -> Self {
        Self {
            serial: udid.to_string(),
            name: "simulated iPhone".to_owned(),
            model: "iPhone14,5".to_owned(),
            os_version: "18.1".to_owned(),
            udid,
            port: DEFAULT_PORT,
            connection: vec![Transport::Usb],
            runner: true,
            uptime: Duration::ZERO,
            locked: false,
            trusted: true,
            lockdown: Lockdown::Answers,
            apps: BTreeMap::new(),
            screen: ScreenConfig::default(),
            faults: Vec::new(),
            launch_faults: Vec::new(),
        }
    }
}

impl Scenario {
    /// As many plain phones, in the phones' own time.
    pub fn fleet(count: u32) -> Self {
        Self::fleet_from(1, count)
    }

    /// The same, numbered from `first`: phones that another fleet does not
    /// have.
    pub fn fleet_from(first: u32, count: u32) -> Self {
        let phone = |n: u32| {
            let name = format!("simulated iPhone {n}");
            PhoneSpec {
                name,
                ..PhoneSpec::new(made_up_udid(n))
            }
        };
        Self {
            time_scale: 1.0,
            phones: (first..).take(count as usize).map(phone).collect(),
            strays: Vec::new(),
        }
    }

    /// The demo's lab: three phones, one of them with an Action button.
    pub fn demo() -> Self {
        let mut demo = Self::fleet(3);
        let kinds = [
            ("iPhone 15 Pro", "iPhone16,1"),
            ("iPhone 13", "iPhone14,5"),
            ("iPhone SE", "iPhone14,6"),
        ];
        for (phone, (name, model)) in demo.phones.iter_mut().zip(kinds) {
            name.clone_into(&mut phone.name);
            model.clone_into(&mut phone.model);
        }
        if let Some(pro) = demo.phones.first_mut() {
            pro.screen.action_button = true;
        }
        if let Some(small) = demo.phones.last_mut() {
            small.screen.width = 375;
            small.screen.height = 667;
        }
        demo
    }

    /// The same lab without a runner on any of its phones, for whoever launches
    /// them.
    #[must_use]
    pub fn without_runners(mut self) -> Self {
        for phone in &mut self.phones {
            phone.runner = false;
        }
        self
    }

    /// The same lab with a phone's second taking `scale` seconds.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self {
            time_scale: scale,
            ..self
        }
    }

    /// Reads a scenario file.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.to_owned(),
            source,
        })?;
        text.parse()
    }
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        file::read(text)
    }
}

/// The UDID of the `n`th phone that was given none: a real chip's, and a unit
/// that no real phone has.
fn made_up_udid(n: u32) -> Udid {
    Udid::from_parts(0x8110, 0x00F1_EE70_0000_0000 + u64::from(n))
}

#[cfg(test)]
mod tests;
