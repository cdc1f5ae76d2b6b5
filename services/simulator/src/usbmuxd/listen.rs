//! A connection that listens: what is attached, and then what changes.
//!
//! What comes and goes between two looks at the table under the same number is
//! not missed: numbers are not used twice by one daemon.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use fleetgate_usbmux::{Event, MuxDeviceId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{give, send};
use crate::lab::LabCore;
use crate::mux::Table;
use crate::oddity::Asked;
use crate::runner::connection;
use crate::stray;

/// What one listener has been told.
#[derive(Debug, Default)]
struct Told {
    /// How often each phone had come to trust this host by then.
    phones: BTreeMap<MuxDeviceId, u32>,
    /// The numbers of those strays that have one.
    strays: BTreeMap<u64, Option<i64>>,
}

/// Says what is attached and then what changes, for as long as the client
/// stays. The first of it goes out together with what was held back.
pub(super) async fn run(
    lab: &Arc<LabCore>,
    gone: &CancellationToken,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    mut bytes: Vec<u8>,
) -> io::Result<()> {
    let mut table = lab.mux.watch();
    let mut told = Told::default();
    loop {
        let news = {
            let table = table.borrow_and_update();
            // The table of the next daemon is not this one's to tell. A daemon
            // goes while the table is held, so this cannot be too early.
            if gone.is_cancelled() {
                return Ok(());
            }
            told.catch_up(&table)?
        };
        for event in news {
            match lab.oddities.take(Asked::Event) {
                None => bytes.extend_from_slice(&event),
                Some(odd) => {
                    send(stream, &bytes).await?;
                    bytes = give(lab, stream, odd.make_odd(&event)?).await?;
                }
            }
        }
        send(stream, &bytes).await?;
        bytes.clear();
        tokio::select! {
            changed = table.changed() => if changed.is_err() { return Ok(()) },
            // A listening client has nothing more to say but that it leaves.
            end = connection::silence(stream) => return end,
        }
    }
}

impl Told {
    /// The events that this listener has not been told of.
    fn catch_up(&mut self, table: &Table) -> io::Result<Vec<Vec<u8>>> {
        let now = table.attachments();
        let mut events = Vec::new();
        for early in [true, false] {
            let came = now.iter().filter(|(device, attachment)| {
                attachment.early == early && !self.phones.contains_key(device)
            });
            for (device, attachment) in came {
                events.push(Event::Attached(attachment.announce(*device)));
            }
            if early {
                let left = self
                    .phones
                    .keys()
                    .filter(|device| !now.contains_key(device));
                events.extend(left.map(|device| Event::Detached(*device)));
            }
        }
        for (device, paired) in &self.phones {
            if now.get(device).is_some_and(|now| now.paired != *paired) {
                events.push(Event::Paired(*device));
            }
        }
        let mut bytes = self.catch_up_with_strays(table)?;
        for event in events {
            bytes.push(event.encode().map_err(io::Error::other)?.to_vec());
        }
        self.phones = now
            .iter()
            .map(|(device, attachment)| (*device, attachment.paired))
            .collect();
        Ok(bytes)
    }

    /// Strays come first: whoever stumbles over them misses the rest.
    fn catch_up_with_strays(&mut self, table: &Table) -> io::Result<Vec<Vec<u8>>> {
        let mut bytes = Vec::new();
        let now: BTreeSet<u64> = table.strays.iter().map(|placed| placed.key).collect();
        for (key, number) in &self.strays {
            if !now.contains(key)
                && let Some(number) = number
            {
                bytes.push(stray::detached(*number)?);
            }
        }
        self.strays.retain(|key, _| now.contains(key));
        for placed in &table.strays {
            if let Entry::Vacant(new) = self.strays.entry(placed.key) {
                bytes.push(placed.stray.attached(placed.device)?);
                new.insert(placed.stray.number(placed.device));
            }
        }
        Ok(bytes)
    }
}
