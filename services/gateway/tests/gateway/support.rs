//! A gateway whose usbmuxd is not there, and its requests.

use std::future::pending;
use std::io;

use fleetgate_device::Dialer;
use fleetgate_gateway::{Config, Gateway, Overrides};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Budgets;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Known as `left`, with a runner port.
pub(crate) const DEVICE: &str = "00008110-000978540290401E";
/// Without a runner port.
pub(crate) const PORTLESS: &str = "00008020-00060D691AD8003A";

pub(crate) struct Running {
    pub(crate) gateway: Gateway,
    pub(crate) channel: Channel,
    pub(crate) directory: TempDir,
}

/// A usbmuxd that refuses every connection.
pub(crate) fn nowhere() -> Dialer {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    Dialer::from_fn("nowhere", move || Box::pin(async move { Err(refused()) }))
}

/// A usbmuxd that never answers.
pub(crate) fn stuck() -> Dialer {
    Dialer::from_fn("stuck", || Box::pin(pending()))
}

/// A gateway on a fast clock without a usbmuxd; `more` goes into `[server]`.
pub(crate) async fn start(more: &str) -> Running {
    start_with(more, nowhere(), 0.01).await
}

pub(crate) async fn start_with(more: &str, dialer: Dialer, scale: f64) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fleetgate.toml");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_timeout = \"1s\"\n{more}\n\
         [auth]\nanonymous = \"admin\"\ndiscovery = false\n\
         [ledger]\npath = \"{}\"\n\
         [[device]]\nudid = \"{DEVICE}\"\nalias = \"left\"\nrunner_port = 8100\n\
         [[device]]\nudid = \"{PORTLESS}\"\n",
        directory.path().join("ledger.db").display(),
    );
    std::fs::write(&file, text).unwrap();
    let config = Config::load_with(Some(&file), []).unwrap();
    let overrides = Overrides {
        budgets: Budgets::scaled(scale),
        dialer: Some(dialer),
        ..Overrides::default()
    };
    let gateway = Gateway::start(config, overrides).await.unwrap();
    let address = format!("http://{}", gateway.local_addr());
    let channel = Endpoint::from_shared(address)
        .unwrap()
        .connect()
        .await
        .unwrap();
    Running {
        gateway,
        channel,
        directory,
    }
}

pub(crate) fn tap(device: &str, command_id: &str) -> pb::TapRequest {
    let place = pb::point::Place::Absolute(pb::AbsolutePoint { x: 1.0, y: 2.0 });
    pb::TapRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        app_bundle_id: "com.example.app".to_owned(),
        point: Some(pb::Point { place: Some(place) }),
        ..pb::TapRequest::default()
    }
}

/// The code and the `ErrorInfo` reason.
pub(crate) fn reason(status: &Status) -> (Code, String) {
    let details = status.get_error_details();
    (
        status.code(),
        details
            .error_info()
            .map(|info| info.reason.clone())
            .unwrap_or_default(),
    )
}
