//! How a gateway reaches its lab: in memory, or through the sockets that a real
//! usbmuxd has.

use std::path::Path;

use fleetgate_device::{Address, Dialer};
use fleetgate_gateway::{Config, Overrides};
use fleetgate_runner::Budgets;
use fleetgate_simulator::Lab;

/// How a gateway reaches its lab's usbmuxd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In memory.
    Memory,
    /// By a unix socket.
    Unix,
    /// By TCP.
    Tcp,
}

impl Reach {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Unix, Self::Tcp];

    /// Opens the lab's socket, if there is to be one, and configures where it
    /// is.
    pub(crate) async fn open(self, lab: &Lab, dir: &Path, config: &mut Config) {
        config.usbmuxd.address = Some(match self {
            Self::Memory => return,
            Self::Unix => {
                let path = dir.join("usbmuxd");
                lab.serve_unix(&path).await.expect("a unix socket");
                Address::Unix(path)
            }
            Self::Tcp => {
                let any = ([127, 0, 0, 1], 0).into();
                let address = lab.serve_tcp(any).await.expect("a TCP socket");
                Address::Tcp(address.to_string())
            }
        });
    }

    /// What a gateway is started with besides its configuration.
    pub(crate) fn overrides(self, lab: &Lab, time_scale: f64) -> Overrides {
        let dial = lab.dialer();
        let in_memory = Dialer::from_fn("the lab", move || {
            let stream = dial();
            Box::pin(async move { Ok(Box::new(stream) as fleetgate_device::BoxStream) })
        });
        Overrides {
            budgets: Budgets::scaled(time_scale),
            dialer: (self == Self::Memory).then_some(in_memory),
            ..Overrides::default()
        }
    }
}
