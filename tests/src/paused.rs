//! A rig between two gateways: the lab goes on, and the ledger belongs to
//! nobody.

use fleetgate_gateway::{Config, Drained};
use fleetgate_simulator::Lab;
use tempfile::TempDir;

use crate::patience::ended;
use crate::pulse::Pulse;
use crate::reach::Reach;
use crate::{Rig, start_gateway};

/// A rig whose gateway has ended.
#[derive(Debug)]
pub struct Paused {
    /// The lab, which goes on.
    pub lab: Lab,
    /// What the next gateway will be configured with.
    pub config: Config,
    /// How the last one ended.
    pub drained: Drained,
    reach: Reach,
    time_scale: f64,
    pulse: Pulse,
    dir: TempDir,
}

impl Rig {
    /// Ends the gateway properly, and only that.
    pub async fn pause(self) -> Paused {
        let Self {
            lab,
            config,
            gateway,
            channel,
            reach,
            time_scale,
            pulse,
            dir,
        } = self;
        drop(channel);
        Paused {
            drained: ended(gateway, &config).await,
            lab,
            config,
            reach,
            time_scale,
            pulse,
            dir,
        }
    }
}

impl Paused {
    /// Starts another gateway on the same ledger and lab.
    pub async fn resume(self) -> Rig {
        let Self {
            lab,
            config,
            drained: _,
            reach,
            time_scale,
            pulse,
            dir,
        } = self;
        let (gateway, channel) = start_gateway(&lab, &config, reach, time_scale).await;
        let rig = Rig {
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
}
