//! usbmuxd's table: which phone has which number, and since when.
//!
//! Owns what is plugged in, which outlives the daemon, and the numbers, which
//! do not: every attachment gets a new one, and a daemon that restarts may
//! start from 1 again and give an old number to another phone.
//!
//! Invariant: a number names at most one attachment, an attachment that is
//! gone is cancelled with every pipe through it, and while the daemon is down
//! there are none.

use std::collections::BTreeMap;
use std::time::Duration;

use fleetgate_runner::Udid;
use fleetgate_usbmux::{ConnectionType, MuxDeviceId, Phone};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::report::Transport;
use crate::stray::Stray;

/// Whether the daemon is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Daemon {
    /// It serves.
    Up,
    /// It is there and accepts nothing.
    Stalled,
    /// It is gone, and its socket with it.
    Down,
}

/// Which numbers a daemon that starts hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Numbers that no phone has had before.
    Fresh,
    /// From 1 again, to the phones in the opposite order: an old number names
    /// another phone.
    Reused,
}

/// How a phone is unplugged and plugged in again. Either way it has new
/// numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replug {
    /// Listeners hear of the new numbers before the old ones are taken back.
    pub attached_first: bool,
    /// The time between the two, on the phones' clock: without numbers, or
    /// with those from before and those from now.
    #[serde(with = "humantime_serde")]
    pub gap: Duration,
}

/// One phone under one number.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    pub(crate) udid: Udid,
    pub(crate) transport: Transport,
    /// Cancelled when it is unplugged.
    pub(crate) unplugged: CancellationToken,
    /// How often the phone has come to trust this host.
    pub(crate) paired: u32,
    /// Whether it is announced before the attachment that it follows is taken
    /// back.
    pub(crate) early: bool,
    serial: String,
    /// Unlike a number, never used twice.
    born: u64,
}

/// An announcement of nothing, under the number that it has from this daemon.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) stray: Stray,
    pub(crate) device: MuxDeviceId,
    /// Which announcement this is; never used twice.
    pub(crate) key: u64,
}

/// The attachments that a phone had when another plug was put in.
#[derive(Debug)]
pub(crate) struct Old(Vec<u64>);

/// A plug in a socket, whether or not a daemon is there to see it.
#[derive(Debug, Clone)]
pub(crate) struct Plug {
    udid: Udid,
    serial: String,
    transport: Transport,
}

/// What the daemon knows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) daemon: Daemon,
    /// Cancelled when this daemon goes, with every connection to it.
    pub(crate) gone: CancellationToken,
    /// The connections to this daemon.
    pub(crate) connections: TaskTracker,
    /// Those to daemons before it, as far as they have yet to close.
    pub(crate) before: Vec<TaskTracker>,
    /// What is announced besides the phones.
    pub(crate) strays: Vec<Placed>,
    attached: BTreeMap<MuxDeviceId, Attachment>,
    plugs: Vec<Plug>,
    next: u32,
    born: u64,
}

/// The table, watched by everyone who listens.
#[derive(Debug)]
pub(crate) struct Mux(watch::Sender<Table>);

impl Table {
    /// The phones as the daemon announces them.
    pub(crate) fn phones(&self) -> impl Iterator<Item = Phone> {
        self.attached
            .iter()
            .map(|(device, attachment)| attachment.announce(*device))
    }

    /// Everything that is attached, by its number.
    pub(crate) fn attachments(&self) -> &BTreeMap<MuxDeviceId, Attachment> {
        &self.attached
    }

    fn number(&mut self) -> (MuxDeviceId, u64) {
        let device = MuxDeviceId(self.next);
        self.next += 1;
        self.born += 1;
        (device, self.born)
    }

    fn attach(&mut self, plug: Plug, early: bool) {
        let (device, born) = self.number();
        let Plug {
            udid,
            serial,
            transport,
        } = plug;
        let unplugged = self.gone.child_token();
        self.attached.insert(
            device,
            Attachment {
                udid,
                transport,
                unplugged,
                paired: 0,
                early,
                serial,
                born,
            },
        );
    }

    fn attach_again(&mut self, udid: &Udid, early: bool) {
        if self.daemon == Daemon::Down {
            return;
        }
        let plugs = self.plugs.iter().filter(|plug| plug.udid == *udid);
        for plug in plugs.cloned().collect::<Vec<_>>() {
            self.attach(plug, early);
        }
    }

    fn place(&mut self, stray: Stray) {
        let (device, key) = self.number();
        self.strays.push(Placed { stray, device, key });
    }

    /// The daemon goes, if one is there, and every connection and every number
    /// with it.
    fn end(&mut self) {
        self.attached.clear();
        self.gone.cancel();
        let connections = std::mem::take(&mut self.connections);
        connections.close();
        self.before.retain(|connections| !connections.is_empty());
        self.before.push(connections);
    }

    fn detach(&mut self, goes: impl Fn(&Attachment) -> bool) {
        self.attached.retain(|_, attachment| {
            let goes = goes(attachment);
            if goes {
                attachment.unplugged.cancel();
            }
            !goes
        });
    }
}

impl Attachment {
    pub(crate) fn announce(&self, device: MuxDeviceId) -> Phone {
        let usb = self.transport == Transport::Usb;
        Phone {
            device,
            connection: if usb {
                ConnectionType::Usb
            } else {
                ConnectionType::Network
            },
            serial: self.serial.clone(),
            product: usb.then_some(0x12A8),
            location: usb.then_some(u64::from(device.0) << 16),
            speed: usb.then_some(480_000_000),
        }
    }
}

impl Mux {
    /// A daemon that is up and sees nothing.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Table {
            daemon: Daemon::Up,
            gone: CancellationToken::new(),
            connections: TaskTracker::new(),
            before: Vec::new(),
            strays: Vec::new(),
            attached: BTreeMap::new(),
            plugs: Vec::new(),
            next: 1,
            born: 0,
        }))
    }

    /// The table as it is, and every later state of it.
    pub(crate) fn watch(&self) -> watch::Receiver<Table> {
        self.0.subscribe()
    }

    /// Looks at the table as it is.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.0.borrow())
    }

    /// Plugs a phone in; nothing happens if it hangs on that transport
    /// already.
    pub(crate) fn attach(&self, udid: &Udid, serial: &str, transport: Transport) {
        self.plug(vec![Plug {
            udid: udid.clone(),
            serial: serial.to_owned(),
            transport,
        }]);
    }

    /// Puts plugs in, those that are in already excepted.
    pub(crate) fn plug(&self, plugs: Vec<Plug>) {
        self.0.send_modify(|table| {
            for plug in plugs {
                let same =
                    |other: &Plug| other.udid == plug.udid && other.transport == plug.transport;
                if table.plugs.iter().any(same) {
                    continue;
                }
                table.plugs.push(plug.clone());
                if table.daemon != Daemon::Down {
                    table.attach(plug, false);
                }
            }
        });
    }

    /// Pulls all plugs of a phone.
    pub(crate) fn unplug(&self, udid: &Udid) -> Vec<Plug> {
        let mut pulled = Vec::new();
        self.0.send_modify(|table| {
            pulled = table
                .plugs
                .extract_if(.., |plug| plug.udid == *udid)
                .collect();
            table.detach(|attachment| attachment.udid == *udid);
        });
        pulled
    }

    /// Unplugs a phone from one transport.
    pub(crate) fn detach(&self, udid: &Udid, transport: Transport) {
        self.0.send_modify(|table| {
            table
                .plugs
                .retain(|plug| plug.udid != *udid || plug.transport != transport);
            table
                .detach(|attachment| attachment.udid == *udid && attachment.transport == transport);
        });
    }

    /// Unplugs a phone and plugs it in again at once, on every transport that
    /// it hangs on: new numbers. Listeners hear of the old ones first.
    pub(crate) fn replug(&self, udid: &Udid) {
        self.0.send_modify(|table| {
            table.detach(|attachment| attachment.udid == *udid);
            table.attach_again(udid, false);
        });
    }

    /// Gives a phone new numbers beside those that it has, which are to be
    /// [retired](Mux::retire).
    pub(crate) fn double(&self, udid: &Udid) -> Old {
        let mut old = Vec::new();
        self.0.send_modify(|table| {
            let attached = table.attached.values();
            let its = attached.filter(|attachment| attachment.udid == *udid);
            old = its.map(|attachment| attachment.born).collect();
            table.attach_again(udid, true);
        });
        Old(old)
    }

    /// Takes the old numbers back, unless they have gone meanwhile.
    pub(crate) fn retire(&self, old: &Old) {
        self.0
            .send_modify(|table| table.detach(|attachment| old.0.contains(&attachment.born)));
    }

    /// A phone has come to trust this host.
    pub(crate) fn pair(&self, udid: &Udid) {
        self.0.send_modify(|table| {
            let attached = table.attached.values_mut();
            for attachment in attached.filter(|attachment| attachment.udid == *udid) {
                attachment.paired += 1;
            }
        });
    }

    /// Announces something that is no phone of this lab.
    pub(crate) fn add_stray(&self, stray: Stray) {
        self.0.send_modify(|table| table.place(stray));
    }

    /// Takes all such announcements back.
    pub(crate) fn clear_strays(&self) {
        self.0.send_modify(|table| table.strays.clear());
    }

    /// The transports that a phone hangs on.
    pub(crate) fn plugged(&self, udid: &Udid) -> Vec<Transport> {
        self.look(|table| {
            let plugs = table.plugs.iter().filter(|plug| plug.udid == *udid);
            plugs.map(|plug| plug.transport).collect()
        })
    }

    /// Whether the daemon is up and has the phone by cable.
    pub(crate) fn sees_by_cable(&self, udid: &Udid) -> bool {
        let by_cable = |one: &Attachment| one.udid == *udid && one.transport == Transport::Usb;
        self.look(|table| table.attached.values().any(by_cable))
    }

    /// The daemon goes, and every connection and every number with it.
    pub(crate) fn stop(&self) {
        self.0.send_modify(|table| {
            table.daemon = Daemon::Down;
            table.end();
        });
    }

    /// A daemon comes up, after the one that is there, if any, has gone.
    pub(crate) fn start(&self, ids: Ids) {
        self.0.send_modify(|table| {
            table.end();
            table.gone = CancellationToken::new();
            table.daemon = Daemon::Up;
            let mut plugs = table.plugs.clone();
            if ids == Ids::Reused {
                table.next = 1;
                plugs.reverse();
            }
            for plug in plugs {
                table.attach(plug, false);
            }
            for placed in std::mem::take(&mut table.strays) {
                table.place(placed.stray);
            }
        });
    }

    /// The daemon stops accepting connections, or begins again.
    pub(crate) fn stall(&self, stalled: bool) {
        self.0.send_modify(|table| match (table.daemon, stalled) {
            (Daemon::Up, true) => table.daemon = Daemon::Stalled,
            (Daemon::Stalled, false) => table.daemon = Daemon::Up,
            (Daemon::Up | Daemon::Down, false) | (Daemon::Stalled | Daemon::Down, true) => {}
        });
    }
}

#[cfg(test)]
mod tests;
