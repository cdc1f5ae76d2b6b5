//! The harness of the end-to-end tests: a simulated lab, a gateway before it
//! and a client before that, in one process.
//!
//! The gateway reaches the lab's usbmuxd in memory and is reached over a real
//! loopback socket. Both sides run on one scaled-down clock, so that the
//! budgets of the runner protocol keep their order and take a moment.
//!
//! Invariant: what a test asserts about the phone comes from the lab, never
//! from a reply.

#![expect(
    clippy::missing_panics_doc,
    reason = "a harness panics where a test fails"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetgate_gateway::{Config, Drained, Gateway};
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::{CommandRecord, Fate, GetCommandRequest};
use fleetgate_runner::Budgets;
use fleetgate_simulator::{Lab, Phone, Scenario};
use tempfile::TempDir;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use patience::ended;
use pulse::Pulse;
use reach::Reach;

pub mod bare;
pub mod binary;
pub mod bystander;
pub mod facts;
pub mod foreign;
pub mod fuzz;
pub mod history;
pub mod impatient;
pub mod invariants;
pub mod lane;
pub mod launching;
pub mod leasing;
pub mod mend;
pub mod mirror;
pub mod office;
pub mod outcome;
pub mod pair;
mod patience;
pub mod paused;
pub mod place;
pub mod plain;
pub mod process;
mod pulse;
pub mod raw;
pub mod reach;
mod refusal;
pub mod scene;
pub mod screen;
pub mod stranger;
pub mod verdict;
pub mod wall;

pub use patience::{A_CALL, PATIENCE, soon, within};
pub use refusal::{Refusal, refused};

/// The bundle id of the app that every simulated phone has in front.
pub const APP: &str = fleetgate_simulator::ui::DEMO_BUNDLE;

/// A lab, its gateway and a client.
#[derive(Debug)]
pub struct Rig {
    /// The lab.
    pub lab: Lab,
    /// What the gateway was configured with.
    pub config: Config,
    gateway: Gateway,
    channel: Channel,
    reach: Reach,
    time_scale: f64,
    pulse: Pulse,
    // Dropped last: the ledger lives here.
    dir: TempDir,
}

impl Rig {
    /// A lab of `phones` plain phones on a clock fifty times as fast.
    pub async fn plain(phones: u32) -> Self {
        Self::start(plain_lab(phones, 0.02)).await
    }

    /// The lab that `scenario` describes, on its clock.
    pub async fn start(scenario: Scenario) -> Self {
        Self::configured(scenario, |_| {}).await
    }

    /// The same, with a say in the gateway's configuration.
    pub async fn configured(scenario: Scenario, configure: impl FnOnce(&mut Config)) -> Self {
        Self::reaching(Reach::Memory, scenario, configure).await
    }

    /// The same, with the gateway reaching the lab in this way.
    pub async fn reaching(
        reach: Reach,
        scenario: Scenario,
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let time_scale = scenario.time_scale;
        Self::before(Lab::start(scenario), time_scale, reach, configure).await
    }

    /// A gateway before a lab that runs already, on a clock of that scale.
    pub async fn before(
        lab: Lab,
        time_scale: f64,
        reach: Reach,
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let pulse = Pulse::watch();
        let dir = TempDir::new().expect("a temporary directory");
        let mut config = test_config(dir.path());
        reach.open(&lab, dir.path(), &mut config).await;
        configure(&mut config);
        let (gateway, channel) = start_gateway(&lab, &config, reach, time_scale).await;
        let rig = Self {
            lab,
            config,
            gateway,
            channel,
            reach,
            time_scale,
            pulse,
            dir,
        };
        rig.attached().await;
        rig
    }

    /// Stops the gateway and starts another on the same ledger and lab.
    pub async fn restart_gateway(self) -> Self {
        self.pause().await.resume().await
    }

    /// Waits until the gateway sees every phone that hangs on the lab by cable.
    pub async fn attached(&self) {
        let wanted = self
            .lab
            .phones()
            .iter()
            .filter(|phone| {
                phone
                    .report()
                    .plugged
                    .contains(&fleetgate_simulator::Transport::Usb)
            })
            .count();
        soon("the fleet", async {
            while self.attached_count().await < wanted {
                pause().await;
            }
        })
        .await;
    }

    async fn attached_count(&self) -> usize {
        use fleetgate_proto::v1::{DeviceState, ListDevicesRequest};
        let request = ListDevicesRequest {
            page_size: 1000,
            ..Default::default()
        };
        let listed = self
            .fleet()
            .list_devices(request)
            .await
            .expect("ListDevices");
        let attached = |device: &&fleetgate_proto::v1::Device| {
            device.state() != DeviceState::Detached && !device.stale
        };
        listed.get_ref().devices.iter().filter(attached).count()
    }

    /// The `n`th phone, by UDID.
    pub fn phone(&self, n: usize) -> Phone {
        self.lab.phones().swap_remove(n)
    }

    /// The `n`th phone's UDID.
    pub fn udid(&self, n: usize) -> String {
        self.phone(n).udid().to_string()
    }

    /// A client of `AutomationService` with default limits.
    pub fn automation(&self) -> AutomationServiceClient<Channel> {
        AutomationServiceClient::new(self.channel.clone())
    }

    /// A client of `FleetService`.
    pub fn fleet(&self) -> FleetServiceClient<Channel> {
        FleetServiceClient::new(self.channel.clone())
    }

    /// A client of `LedgerService`.
    pub fn ledger(&self) -> LedgerServiceClient<Channel> {
        LedgerServiceClient::new(self.channel.clone())
    }

    /// The connection behind the clients.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Where the gateway listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.gateway.local_addr())
    }

    /// A connection of its own.
    pub async fn connect(&self) -> Channel {
        connect(&self.url()).await
    }

    /// Where the ledger and whatever else the gateway writes is.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The ledger's file.
    pub fn ledger_path(&self) -> PathBuf {
        self.config.ledger.path.clone()
    }

    /// A duration of the protocol on this rig's clock.
    pub fn scaled(&self, duration: Duration) -> Duration {
        Budgets::scaled(self.time_scale).of(duration)
    }

    /// The ledger's row, if there is one.
    pub async fn find(&self, command_id: &str) -> Option<CommandRecord> {
        let request = GetCommandRequest {
            command_id: command_id.to_owned(),
        };
        let mut ledger = self.ledger();
        match soon("an answer to GetCommand", ledger.get_command(request)).await {
            Ok(found) => found.into_inner().command,
            Err(status) if status.code() == Code::NotFound => None,
            Err(status) => panic!("GetCommand: {status:?}"),
        }
    }

    /// The ledger's row once the command has a fate.
    pub async fn concluded(&self, command_id: &str) -> CommandRecord {
        soon("a fate on record", async {
            loop {
                match self.find(command_id).await {
                    Some(record) if record.fate() != Fate::Unspecified => return record,
                    Some(_) | None => pause().await,
                }
            }
        })
        .await
    }

    /// Ends the gateway properly, then the lab.
    pub async fn stop(self) -> Drained {
        let Self {
            lab,
            config,
            gateway,
            channel,
            pulse: _pulse,
            dir: _dir,
            ..
        } = self;
        drop(channel);
        let drained = ended(gateway, &config).await;
        soon("the lab's end", lab.shutdown()).await;
        drained
    }

    /// Ends the gateway properly and leaves the lab and the ledger's directory.
    pub async fn stop_gateway(self) -> (Drained, Lab, TempDir) {
        let Self {
            lab,
            config,
            gateway,
            channel,
            pulse: _pulse,
            dir,
            ..
        } = self;
        drop(channel);
        (ended(gateway, &config).await, lab, dir)
    }
}

/// Plain phones whose pictures are small: drawing is real work, and a fast
/// clock leaves little time for it.
pub fn plain_lab(phones: u32, time_scale: f64) -> Scenario {
    let mut lab = Scenario::fleet(phones).scaled(time_scale);
    for phone in &mut lab.phones {
        phone.screen.scale = 1;
    }
    lab
}

/// A gateway's configuration that keeps everything in `dir`.
pub fn test_config(dir: &Path) -> Config {
    let text = format!(
        "server.listen = '127.0.0.1:0'\n\
         auth.anonymous = 'admin'\n\
         auth.discovery = false\n\
         limits.calls_per_second = 1000000\n\
         limits.call_burst = 1000000\n\
         limits.max_queued_commands = 1000000\n\
         ledger.path = '{}'\n\
         health.probe_interval = '0s'\n\
         health.facts = false\n\
         runner.port = {}\n",
        dir.join("ledger.db").display(),
        fleetgate_simulator::scenario::DEFAULT_PORT,
    );
    let path = dir.join("fleetgate.toml");
    std::fs::write(&path, text).expect("a configuration file");
    Config::load_with(Some(&path), []).expect("a configuration")
}

async fn start_gateway(
    lab: &Lab,
    config: &Config,
    reach: Reach,
    time_scale: f64,
) -> (Gateway, Channel) {
    let starting = Gateway::start(config.clone(), reach.overrides(lab, time_scale));
    let gateway = soon("the gateway's start", starting).await;
    let gateway = gateway.expect("a gateway");
    let channel = connect(&format!("http://{}", gateway.local_addr())).await;
    (gateway, channel)
}

/// A connection to a gateway.
pub async fn connect(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("an address");
    let connected = soon("a connection to the gateway", endpoint.connect()).await;
    connected.expect("a connection to the gateway")
}

/// The step of a bounded poll, for what nothing announces.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
