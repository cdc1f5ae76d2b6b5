//! Several hosts: a phone that is carried from one to the other, and a host that
//! dies.

use std::path::Path;

use fleetgate_device::Address;
use fleetgate_gateway::config::{HostConfig, Hosts, Name};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Ids, Lab, Phone, Scenario};
use fleetgate_tests::lane::device;
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, plain, plain_lab, refused};
use tempfile::TempDir;
use tonic::Code;

use super::{PLUGGED, READY, SELDOM, assert_history, lands};

const SCALE: f64 = 0.2;
/// What every rig's own host is called.
const LOCAL: &str = "local";
const ANNEX: &str = "annex";

/// Two hosts with a phone each, and one phone that is plugged in at the first.
struct Rack {
    rig: Rig,
    annex: Lab,
    /// The phone at the first host, at the annex, and between them.
    near: String,
    far: String,
    carried: String,
    _dir: TempDir,
}

impl Rack {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let phones = plain_lab(3, SCALE).phones;
        let [near, far, carried] = [0, 1, 2].map(|n| phones[n].udid.to_string());
        let with = |n: usize| {
            let (mut own, mut other, mut carried) =
                (phones[n].clone(), phones[1 - n].clone(), phones[2].clone());
            // Each host knows the other's phones, should they come.
            other.connection.clear();
            if n == 1 {
                carried.connection.clear();
            }
            own.serial = own.udid.to_string();
            Scenario {
                phones: vec![own, other, carried],
                ..Scenario::fleet(0).scaled(SCALE)
            }
        };
        let annex = Lab::start(with(1));
        let path = dir.path().join("annex");
        annex.serve_unix(&path).await.unwrap();
        let rig = Rig::before(Lab::start(with(0)), SCALE, Reach::Memory, |config| {
            config.host = hosts(&path);
            config.health.probe_interval = SELDOM;
        })
        .await;
        Self {
            rig,
            annex,
            near,
            far,
            carried,
            _dir: dir,
        }
    }

    /// A watcher that has seen all three get ready.
    async fn ready(&self) -> Mirror {
        let mut mirror = Mirror::follow(self.rig.channel()).await;
        let ready = |seen: &Seen| seen.count(DeviceState::Ready) == 3;
        mirror.until("three phones", ready).await;
        mirror
    }

    fn at(&self, host: &str, udid: &str) -> Phone {
        let lab = if host == ANNEX {
            &self.annex
        } else {
            &self.rig.lab
        };
        lab.phone(&udid.parse().unwrap()).unwrap()
    }

    /// Waits until a phone is ready at a host, and drives it there.
    async fn is_at(&self, mirror: &mut Mirror, udid: &str, host: &str, command_id: &str) {
        let is = |seen: &Seen| {
            seen.devices.get(udid).is_some_and(|device| {
                device.state() == DeviceState::Ready && !device.stale && device.host() == host
            })
        };
        mirror.until(&format!("{udid} at {host}"), is).await;
        lands(&self.rig, &self.at(host, udid), command_id).await;
        let elsewhere = if host == ANNEX { LOCAL } else { ANNEX };
        let id = command_id.parse().unwrap();
        assert_eq!(self.at(elsewhere, udid).effects_of(&id), 0);
    }

    async fn host(&self, name: &str) -> pb::MuxHost {
        let request = pb::GetGatewayRequest {};
        let gateway = self.rig.fleet().get_gateway(request).await.unwrap();
        let mut hosts = gateway.into_inner().mux_hosts.into_iter();
        hosts.find(|host| host.name == name).unwrap()
    }

    async fn stop(self) {
        self.rig.stop().await;
        self.annex.shutdown().await;
    }
}

fn hosts(path: &Path) -> Hosts {
    let host = HostConfig {
        name: Name::try_from(ANNEX.to_owned()).unwrap(),
        address: Address::Unix(path.to_owned()),
    };
    Hosts::try_from(vec![host]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_carried_to_another_host_is_driven_there_and_has_one_history() {
    let rack = Rack::new().await;
    let mut mirror = rack.ready().await;
    rack.is_at(&mut mirror, &rack.carried, LOCAL, "here").await;
    assert_eq!(
        device(&rack.rig, &rack.far).await.host.as_deref(),
        Some(ANNEX)
    );
    assert_eq!(rack.host(LOCAL).await.device_count, 2);
    assert_eq!(rack.host(ANNEX).await.device_count, 1);

    // Unplugged, carried, plugged in.
    rack.at(LOCAL, &rack.carried).detach();
    let gone = mirror.until_state(&rack.carried, DeviceState::Detached);
    assert_eq!(gone.await.host(), LOCAL, "where it was last");
    rack.at(ANNEX, &rack.carried).attach();
    rack.is_at(&mut mirror, &rack.carried, ANNEX, "there").await;

    // Plugged in at the other before it is seen to be gone here.
    rack.at(LOCAL, &rack.carried).attach();
    rack.is_at(&mut mirror, &rack.carried, LOCAL, "back").await;
    rack.at(ANNEX, &rack.carried).detach();
    rack.is_at(&mut mirror, &rack.carried, LOCAL, "still").await;
    assert_history(
        &rack.rig,
        &rack.carried,
        &[
            PLUGGED,
            READY,
            "READY UNPLUGGED DETACHED",
            PLUGGED,
            READY,
            "READY REPLUGGED READY",
        ],
    )
    .await;
    for udid in [&rack.near, &rack.far] {
        assert_history(&rack.rig, udid, &[PLUGGED, READY]).await;
    }
    drop(mirror);
    rack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_dies_takes_its_own_phones_out_of_sight_and_no_others() {
    let rack = Rack::new().await;
    let mut mirror = rack.ready().await;
    rack.is_at(&mut mirror, &rack.far, ANNEX, "before").await;
    rack.annex.stop_usbmuxd();
    let stale = |seen: &Seen| seen.devices[&rack.far].stale;
    let seen = mirror.until("the loss", stale).await;
    assert_eq!(seen.state(&rack.far), Some(DeviceState::Ready));
    assert!(!seen.devices[&rack.near].stale && !seen.devices[&rack.carried].stale);
    let lost = |seen: &Seen| !seen.hosts[ANNEX].connected;
    mirror.until("word of the host", lost).await;
    assert!(mirror.look(|seen| seen.hosts[LOCAL].connected));
    let dead = rack.host(ANNEX).await;
    assert!(
        dead.last_error.is_some() && dead.device_count == 1,
        "{dead:?}"
    );

    let tap = plain::send(&rack.rig, &rack.far, CommandKind::Tap, "dead").await;
    let refusal = refused(tap);
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::Unavailable, "MUX_UNAVAILABLE")
    );
    assert!(refusal.message.contains(ANNEX), "{refusal:?}");
    assert_eq!(refusal.meta("fate"), "NOT_SENT");
    for (udid, id) in [(&rack.near, "near"), (&rack.carried, "carried")] {
        lands(&rack.rig, &rack.at(LOCAL, udid), id).await;
    }

    // Somebody carries its phone over; when it is back, it has none.
    rack.at(ANNEX, &rack.far).detach();
    rack.at(LOCAL, &rack.far).attach();
    rack.is_at(&mut mirror, &rack.far, LOCAL, "saved").await;
    rack.annex.start_usbmuxd(Ids::Reused);
    let back = |seen: &Seen| seen.hosts[ANNEX].connected;
    mirror.until("the host", back).await;
    rack.is_at(&mut mirror, &rack.far, LOCAL, "stays").await;
    assert_history(
        &rack.rig,
        &rack.far,
        &[
            PLUGGED,
            READY,
            "READY HOST_LOST READY",
            "READY HOST_BACK READY",
        ],
    )
    .await;
    for udid in [&rack.near, &rack.carried] {
        assert_history(&rack.rig, udid, &[PLUGGED, READY]).await;
    }
    drop(mirror);
    rack.stop().await;
}
