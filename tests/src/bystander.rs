//! A client that does nothing wrong, while others do.

use std::time::Duration;

use fleetgate_proto::v1::GetDeviceRequest;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Phone;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::facts::clean;
use crate::scene::{Scene, send};
use crate::{connect, soon};

/// Longer than any call of a bystander takes, on a machine with other things to
/// do.
const SLOWEST: Duration = Duration::from_secs(5);

/// Taps one phone and asks for it, over a connection of its own, again and
/// again.
#[derive(Debug)]
pub struct Bystander {
    phone: Phone,
    stop: CancellationToken,
    taps: JoinSet<(usize, Duration)>,
}

impl Bystander {
    /// Begins. Nobody else may use the phone.
    pub async fn start(scene: &Scene, phone: Phone) -> Self {
        let channel = connect(&scene.server.url).await;
        let stop = CancellationToken::new();
        let mut taps = JoinSet::new();
        let (ended, tapped) = (stop.clone(), phone.clone());
        taps.spawn(async move {
            let (mut count, mut slowest) = (0, Duration::ZERO);
            while !ended.is_cancelled() {
                let begin = Instant::now();
                let id = format!("bystander-{count}");
                let receipt = send(channel.clone(), &tapped, CommandKind::Tap, &id).await;
                clean(Some(receipt.expect("a bystander's tap")), &id);
                let device = tapped.udid().to_string();
                let found = FleetServiceClient::new(channel.clone())
                    .get_device(GetDeviceRequest { device })
                    .await;
                found.expect("a bystander's question");
                slowest = slowest.max(begin.elapsed());
                count += 1;
            }
            (count, slowest)
        });
        Self { phone, stop, taps }
    }

    /// Asserts that every call went as it should, and in time.
    pub async fn assert_unharmed(mut self) {
        self.stop.cancel();
        let ended = soon("the bystander", self.taps.join_next()).await;
        let (count, slowest) = ended
            .expect("one bystander")
            .expect("a bystander without a complaint");
        assert!(count > 0, "it was served");
        assert!(slowest < SLOWEST, "one call took {slowest:?}");
        assert_eq!(self.phone.effects().len(), count, "one effect for each tap");
        println!("a bystander tapped {count} times, at the slowest in {slowest:?}");
    }
}
