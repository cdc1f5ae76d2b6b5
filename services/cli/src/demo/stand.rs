//! What the demo stands on: a simulated lab and a gateway in front of it, in
//! this process, and the files of both.
//!
//! The gateway reaches the lab through a usbmuxd socket, as it would reach a
//! real one. Whatever the demo claims about a phone comes from the lab's own
//! account of it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use fleetgate_gateway::config::{Alias, DeviceConfig, Devices, Listen, RunnerPort};
use fleetgate_gateway::{Config, Gateway, Overrides};
use fleetgate_simulator::{Lab, Phone, PhoneSpec, Scenario};
use tempfile::TempDir;

use crate::serve::drain;
use crate::signals::Stop;

/// The lab, the gateway and their files.
#[derive(Debug)]
pub(super) struct Stand {
    gateway: Gateway,
    lab: Lab,
    /// The phone that the tour drives.
    phone: Phone,
    alias: String,
    phones: usize,
    files: Files,
}

/// Where the demo keeps its files.
#[derive(Debug)]
struct Files {
    /// Gone when the demo ends. The socket is always here: a socket's path
    /// must be short.
    passing: TempDir,
    /// The directory that was asked for; it stays.
    kept: Option<PathBuf>,
}

impl Stand {
    /// Starts the lab, and then the gateway on `address`.
    pub(super) async fn start(address: SocketAddr, kept: Option<PathBuf>) -> anyhow::Result<Self> {
        let files = Files::new(kept)?;
        let scenario = Scenario::demo();
        let phones = scenario.phones.len();
        let socket = files.passing.path().join("usbmuxd");
        let config = config(address, &files, &socket, &scenario.phones)?;
        let first = scenario.phones.first().context("the demo has no phones")?;
        let (udid, alias) = (first.udid.clone(), alias(&first.name));

        let lab = Lab::start(scenario);
        lab.serve_unix(&socket)
            .await
            .context("cannot serve the simulated usbmuxd")?;
        let phone = lab.phone(&udid).context("the lab lacks its first phone")?;
        let gateway = Gateway::start(config, Overrides::default()).await?;
        Ok(Self {
            gateway,
            lab,
            phone,
            alias,
            phones,
            files,
        })
    }

    /// Where clients find the gateway.
    pub(super) fn address(&self) -> SocketAddr {
        self.gateway.local_addr()
    }

    /// Where it is on record, with a token for its user.
    pub(super) fn record(&self) -> Option<&Path> {
        self.gateway.record()
    }

    /// How many phones there are.
    pub(super) fn phones(&self) -> usize {
        self.phones
    }

    /// What the phone of the tour is called.
    pub(super) fn alias(&self) -> &str {
        &self.alias
    }

    /// The ledger's file.
    pub(super) fn ledger(&self) -> PathBuf {
        self.files.ledger()
    }

    /// Whether the ledger stays when the demo ends.
    pub(super) fn is_kept(&self) -> bool {
        self.files.kept.is_some()
    }

    /// A path for a picture, which stays when the demo ends.
    pub(super) fn picture(&self) -> anyhow::Result<PathBuf> {
        self.files.picture()
    }

    /// The phone of the tour, as the lab sees it.
    pub(super) fn phone(&self) -> &Phone {
        &self.phone
    }

    /// Ends once a caller wants the end of the gateway.
    pub(super) async fn drain_requested(&self) {
        self.gateway.drain_requested().await;
    }

    /// Ends the gateway, and then the lab.
    pub(super) async fn end(self, stop: &mut Stop) -> anyhow::Result<()> {
        drain(self.gateway, stop).await?;
        self.lab.shutdown().await;
        self.files
            .passing
            .close()
            .context("cannot remove the demo's temporary directory")
    }
}

impl Files {
    fn new(kept: Option<PathBuf>) -> anyhow::Result<Self> {
        if let Some(kept) = &kept {
            fs::create_dir_all(kept).with_context(|| format!("cannot make {}", kept.display()))?;
        }
        let passing = tempfile::Builder::new().prefix("fleetgate-demo-").tempdir();
        Ok(Self {
            passing: passing.context("cannot make a temporary directory")?,
            kept,
        })
    }

    fn ledger(&self) -> PathBuf {
        self.kept
            .as_deref()
            .unwrap_or(self.passing.path())
            .join("ledger.db")
    }

    fn picture(&self) -> anyhow::Result<PathBuf> {
        if let Some(kept) = &self.kept {
            return Ok(kept.join("screen.png"));
        }
        let picture = tempfile::Builder::new()
            .prefix("fleetgate-demo-")
            .suffix(".png")
            .tempfile();
        Ok(picture
            .context("cannot make a file for the picture")?
            .into_temp_path()
            .keep()?)
    }
}

/// The gateway's configuration: the defaults, but for where things are and what
/// the phones are called.
fn config(
    address: SocketAddr,
    files: &Files,
    socket: &Path,
    phones: &[PhoneSpec],
) -> anyhow::Result<Config> {
    let device = |phone: &PhoneSpec| -> anyhow::Result<DeviceConfig> {
        Ok(DeviceConfig {
            alias: Some(Alias::try_from(alias(&phone.name))?),
            runner_port: Some(RunnerPort::try_from(phone.port)?),
            ..DeviceConfig::new(phone.udid.clone())
        })
    };
    let devices = phones
        .iter()
        .map(device)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut config = Config::default();
    config.server.listen = Listen::from(address);
    let address = socket.to_string_lossy().parse();
    config.usbmuxd.address = Some(address.map_err(|error| anyhow!("{error}"))?);
    config.ledger.path = files.ledger();
    config.auth.tokens = Some(files.passing.path().join("tokens.toml"));
    config.device = Devices::try_from(devices)?;
    Ok(config)
}

/// A phone's name as one types it.
fn alias(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demos_phones_can_be_named_without_quotes() {
        let files = Files::new(None).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let phones = Scenario::demo().phones;
        let config = config(address, &files, Path::new("/tmp/mux"), &phones).unwrap();
        let aliases: Vec<_> = config
            .device
            .iter()
            .filter_map(|device| device.alias.clone())
            .collect();
        assert_eq!(aliases.len(), 3);
        assert_eq!(aliases[0].as_str(), alias(&phones[0].name));
    }

    #[test]
    fn what_was_asked_to_be_kept_is_where_it_was_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("new/demo");
        let files = Files::new(Some(kept.clone())).unwrap();
        assert!(kept.is_dir());
        assert_eq!(files.ledger(), kept.join("ledger.db"));
        assert_eq!(files.picture().unwrap(), kept.join("screen.png"));
    }
}
