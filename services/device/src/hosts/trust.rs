//! Whether a phone trusts its host: the host then keeps a pair record of it.

use std::time::Duration;

use fleetgate_runner::Udid;
use fleetgate_usbmux::{InvalidMessage, Reply, Request, ResultCode};
use tokio::time::timeout;

use super::Hosts;
use super::view::rank;
use crate::error::MuxError;

/// How long a usbmuxd may take to say.
const PATIENCE: Duration = Duration::from_secs(5);

impl Hosts {
    /// Whether the host of a phone keeps a pair record of it. `None` if it
    /// cannot say: the phone is on no host that is being listened to, or the
    /// host does not answer that.
    ///
    /// The record holds private keys. It is dropped unread and shows nowhere.
    pub async fn paired(&self, device: &Udid) -> Option<bool> {
        let known = self.shared.hosts.iter().filter_map(|host| {
            host.usbmuxd.look(|inventory| {
                let known = inventory.get(device).filter(|known| !known.is_stale())?;
                Some((rank(known), host, known.serial.to_string()))
            })
        });
        // Usbmuxd looks for a record under the name that it gives the phone.
        let (_, host, id) = known.max_by_key(|(rank, ..)| *rank)?;
        let request = Request::ReadPairRecord { id };
        let error = match timeout(PATIENCE, host.usbmuxd.request(&request)).await {
            Ok(Ok(Reply::PairRecord(record))) => return Some(!record.0.is_empty()),
            // No such record, or an answer without one in it.
            Ok(
                Ok(Reply::Result(ResultCode::BadDevice))
                | Err(MuxError::Message(InvalidMessage::NotAReply { .. })),
            ) => return Some(false),
            Ok(Ok(Reply::Result(result))) => MuxError::Refused { result },
            Ok(Ok(Reply::DeviceList(_) | Reply::Buid(_) | Reply::Listeners(_))) => {
                MuxError::UnexpectedReply
            }
            Ok(Err(error)) => error,
            Err(_) => MuxError::Silent,
        };
        tracing::debug!(device.id = %device, host = %host.name, %error, "no word on pairing");
        None
    }
}
