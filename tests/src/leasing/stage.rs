//! Who calls, and gateways that know them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fleetgate_gateway::Config;
use fleetgate_identity::{Grant, NewToken, Role, TokenFile};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_simulator::Scenario;
use tonic::Code;
use tonic::transport::Channel;

use super::{Bearer, Caller};
use crate::{Rig, pause, soon};

/// Three drivers, as they are known to [`Cast`].
pub const DRIVERS: [&str; 3] = ["anna", "berta", "carla"];
/// Somebody who may do everything.
pub const BOSS: &str = "boss";
/// Somebody who may look.
pub const GUEST: &str = "guest";

/// The tokens of those who call.
#[derive(Debug, Clone)]
pub struct Cast(BTreeMap<String, Bearer>);

impl Cast {
    /// Makes a file with the tokens of [`DRIVERS`], [`BOSS`] and [`GUEST`].
    pub fn at(path: &Path) -> Self {
        let drivers = DRIVERS.map(|name| (name.to_owned(), Role::Operator));
        let others = [(BOSS, Role::Admin), (GUEST, Role::Viewer)];
        let others = others.map(|(name, role)| (name.to_owned(), role));
        Self::of(path, drivers.into_iter().chain(others))
    }

    /// The same of anybody.
    pub fn of(path: &Path, names: impl IntoIterator<Item = (String, Role)>) -> Self {
        let file = TokenFile::at(path);
        let make = |(name, role): (String, Role)| {
            let grants = vec![Grant {
                role,
                labels: BTreeMap::new(),
            }];
            let new = NewToken {
                name: name.clone(),
                grants,
                expires: None,
            };
            let (_, secret) = file.create(new).expect("a token");
            (name, Bearer::new(secret.expose()))
        };
        Self(names.into_iter().map(make).collect())
    }

    /// One of them, over this connection.
    pub fn caller(&self, name: &str, channel: Channel) -> Caller {
        let bearer = self.0.get(name).expect("a member of the cast").clone();
        Caller::new(name, channel, bearer)
    }
}

/// A rig of so many phones in real time, so that no window closes on a busy
/// machine, all of them ready to be leased, and those who may call besides the
/// rig itself, which is nobody in particular and may do everything.
pub async fn rig(phones: u32) -> (Rig, Cast) {
    configured(crate::plain_lab(phones, 1.0), |_| {}).await
}

/// The same of another lab, with a say in the gateway's configuration.
pub async fn configured(scenario: Scenario, configure: impl FnOnce(&mut Config)) -> (Rig, Cast) {
    let mut cast = None;
    let rig = Rig::configured(scenario, |config| {
        cast = Some(attend(config));
        configure(config);
    })
    .await;
    ready(&rig).await;
    (rig, cast.expect("a configuration"))
}

/// Has a gateway know the cast, and ask its phones how they are.
pub fn attend(config: &mut Config) -> Cast {
    let tokens = config.ledger.path.with_file_name("tokens.toml");
    let cast = Cast::at(&tokens);
    config.auth.tokens = Some(tokens);
    // Once, when a phone comes; a busy machine is not to fail it later.
    config.health.probe_interval = Duration::from_secs(600);
    cast
}

/// Waits until every phone is ready.
pub async fn ready(rig: &Rig) {
    all_ready(rig.channel(), rig.lab.phones().len()).await;
}

/// Waits until so many phones are there and ready.
pub async fn all_ready(channel: Channel, phones: usize) {
    let fleet = FleetServiceClient::new(channel);
    soon("every phone to be ready", async {
        let is_ready = |device: &pb::Device| device.state() == DeviceState::Ready && !device.stale;
        loop {
            let request = pb::ListDevicesRequest {
                page_size: 1000,
                ..pb::ListDevicesRequest::default()
            };
            let listed = fleet.clone().list_devices(request).await;
            let devices = listed.expect("ListDevices").into_inner().devices;
            if devices.len() == phones && devices.iter().all(is_ready) {
                return;
            }
            pause().await;
        }
    })
    .await;
}

/// Waits until a gateway that runs takes a caller's token, which was made since.
pub async fn known(caller: &Caller) {
    soon("a token to be known", async {
        let mut fleet = caller.fleet();
        while let Err(refused) = fleet.get_gateway(pb::GetGatewayRequest {}).await {
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
            pause().await;
        }
    })
    .await;
}
