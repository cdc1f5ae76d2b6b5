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

use fleetgate_runner::Udid;
use fleetgate_usbmux::{ConnectionType, MuxDeviceId, Phone};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::report::Transport;

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

/// One phone under one number.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    pub(crate) udid: Udid,
    pub(crate) transport: Transport,
    /// Cancelled when it is unplugged.
    pub(crate) unplugged: CancellationToken,
    serial: String,
}

/// A plug in a socket, whether or not a daemon is there to see it.
#[derive(Debug, Clone)]
struct Plug {
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
    attached: BTreeMap<MuxDeviceId, Attachment>,
    plugs: Vec<Plug>,
    next: u32,
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

    /// The phone under a number.
    pub(crate) fn attachment(&self, device: MuxDeviceId) -> Option<&Attachment> {
        self.attached.get(&device)
    }

    fn attach(&mut self, plug: Plug) {
        let device = MuxDeviceId(self.next);
        self.next += 1;
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
                serial,
            },
        );
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
    fn announce(&self, device: MuxDeviceId) -> Phone {
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
            attached: BTreeMap::new(),
            plugs: Vec::new(),
            next: 1,
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
        self.0.send_modify(|table| {
            if table
                .plugs
                .iter()
                .any(|plug| plug.udid == *udid && plug.transport == transport)
            {
                return;
            }
            let plug = Plug {
                udid: udid.clone(),
                serial: serial.to_owned(),
                transport,
            };
            table.plugs.push(plug.clone());
            if table.daemon != Daemon::Down {
                table.attach(plug);
            }
        });
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
    /// it hangs on: new numbers.
    pub(crate) fn replug(&self, udid: &Udid) {
        self.0.send_modify(|table| {
            table.detach(|attachment| attachment.udid == *udid);
            if table.daemon != Daemon::Down {
                let plugs = table
                    .plugs
                    .iter()
                    .filter(|plug| plug.udid == *udid)
                    .cloned();
                plugs
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|plug| table.attach(plug));
            }
        });
    }

    /// The transports that a phone hangs on.
    pub(crate) fn plugged(&self, udid: &Udid) -> Vec<Transport> {
        self.look(|table| {
            let plugs = table.plugs.iter().filter(|plug| plug.udid == *udid);
            plugs.map(|plug| plug.transport).collect()
        })
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
                table.attach(plug);
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
mod tests {
    use super::*;

    fn udid(n: u8) -> Udid {
        format!("00008110-00000000000000{n:02}").parse().unwrap()
    }

    fn numbers(mux: &Mux) -> Vec<(u32, Udid)> {
        mux.look(|table| {
            table
                .attached
                .iter()
                .map(|(device, one)| (device.0, one.udid.clone()))
                .collect()
        })
    }

    fn two_phones() -> Mux {
        let mux = Mux::new();
        for n in [1, 2] {
            mux.attach(&udid(n), udid(n).as_str(), Transport::Usb);
        }
        mux
    }

    #[test]
    fn a_replug_gives_a_new_number_and_cancels_the_old_attachment() {
        let mux = two_phones();
        let old = mux.look(|table| table.attachment(MuxDeviceId(1)).unwrap().unplugged.clone());
        mux.replug(&udid(1));
        assert_eq!(numbers(&mux), [(2, udid(2)), (3, udid(1))]);
        assert!(old.is_cancelled());
    }

    #[test]
    fn a_restart_can_give_an_old_number_to_another_phone() {
        let mux = two_phones();
        let old = mux.look(|table| table.gone.clone());
        mux.start(Ids::Reused);
        assert_eq!(numbers(&mux), [(1, udid(2)), (2, udid(1))]);
        assert!(old.is_cancelled());
        mux.start(Ids::Fresh);
        assert_eq!(numbers(&mux), [(3, udid(1)), (4, udid(2))]);
    }

    #[test]
    fn what_is_plugged_in_while_the_daemon_is_down_is_seen_when_it_starts() {
        let mux = two_phones();
        mux.stop();
        mux.detach(&udid(1), Transport::Usb);
        mux.attach(&udid(2), udid(2).as_str(), Transport::Network);
        assert_eq!(numbers(&mux), []);
        mux.start(Ids::Fresh);
        assert_eq!(numbers(&mux), [(3, udid(2)), (4, udid(2))]);
        assert_eq!(mux.plugged(&udid(2)), [Transport::Usb, Transport::Network]);
    }

    #[test]
    fn a_phone_hangs_on_a_transport_once() {
        let mux = two_phones();
        mux.attach(&udid(1), udid(1).as_str(), Transport::Usb);
        assert_eq!(numbers(&mux).len(), 2);
    }

    #[test]
    fn a_daemon_that_is_down_cannot_stall() {
        let mux = two_phones();
        mux.stop();
        mux.stall(true);
        assert_eq!(mux.look(|table| table.daemon), Daemon::Down);
    }
}
