//! What operators have said about phones: alias, labels, cordon; and that a
//! phone is in quarantine, which the gateway says. The configuration below, the
//! ledger above.
//!
//! ```text
//! callers ─► acts, in order ─► task ─► ledger: settings and operation at once
//!    ▲                          │ then
//!    └──────── answer ◄─────────┴─► table ─► changes
//!                  clock: cordons end
//! ```
//!
//! One task changes everything, so that a caller that stops waiting leaves
//! nothing half done. What holds is what is in the ledger: if that does not take
//! an act, nothing changes, and the caller is told so. A cordon that has run out
//! ends once the ledger takes that; it is judged by the wall clock, across
//! restarts.

mod act;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use fleetgate_ledger::{DeviceSettings, Ledger, LedgerError, Quarantine};
use fleetgate_runner::Udid;
use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info, info_span, warn};

use crate::config::Devices;
use act::{Act, GATEWAY, Refused};
use table::Table;

pub(crate) use act::{By, Change};

/// How many acts may wait for their turn; who comes later waits for room.
const QUEUE: usize = 64;

/// How often the wall clock is looked at while a cordon is to end: it may be
/// set, and no timer counts while the host is suspended.
const GLANCE: Duration = Duration::from_secs(5);

/// How long to wait before the ledger is told again that a cordon has ended.
const RETRY: Duration = Duration::from_secs(1);

/// What holds for each phone. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    shared: Arc<Shared>,
    asked: mpsc::Sender<Asked>,
}

#[derive(Debug)]
struct Shared {
    table: RwLock<Table>,
    changes: watch::Sender<u64>,
}

/// The task that changes settings; it ends with this.
#[derive(Debug)]
pub(crate) struct SettingsTask {
    stop: CancellationToken,
    task: JoinSet<()>,
}

/// Why settings are as they were.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum SettingsError {
    /// Another phone has the alias.
    #[error("the alias {alias} is that of {device}")]
    AliasTaken {
        /// The alias.
        alias: String,
        /// The phone that has it.
        device: Udid,
    },
    /// The phone would have more labels than it can.
    #[error("the phone would have too many labels")]
    TooManyLabels,
    /// The ledger did not take it.
    #[error(transparent)]
    Ledger(LedgerError),
}

impl From<Refused> for SettingsError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::AliasTaken { alias, device } => Self::AliasTaken { alias, device },
            Refused::TooManyLabels => Self::TooManyLabels,
        }
    }
}

type Answer = Result<DeviceSettings, SettingsError>;

/// An act that waits for its turn.
#[derive(Debug)]
struct Asked {
    device: Udid,
    act: Act,
    by: By,
    answer: oneshot::Sender<Answer>,
}

impl Settings {
    /// Those of the ledger, over those of the configuration.
    pub(crate) async fn load(
        ledger: Ledger,
        devices: &Devices,
    ) -> Result<(Self, SettingsTask), LedgerError> {
        let table = Table::new(devices, ledger.device_settings().await?);
        for (alias, device) in table.overruled() {
            warn!(alias, device.id = %device, "a configured alias is that of another phone");
        }
        let shared = Arc::new(Shared {
            table: RwLock::new(table),
            changes: watch::Sender::new(0),
        });
        let (asked, waiting) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let writer = Writer {
            ledger,
            shared: Arc::clone(&shared),
            asked: waiting,
            stop: stop.clone(),
        };
        let mut task = JoinSet::new();
        task.spawn(writer.run().instrument(info_span!("settings")));
        Ok((Self { shared, asked }, SettingsTask { stop, task }))
    }

    /// What holds for a phone; nothing does of one that is not known.
    pub(crate) fn get(&self, device: &Udid) -> DeviceSettings {
        self.shared.read(|table| table.get(device))
    }

    /// The phone of this alias.
    pub(crate) fn by_alias(&self, alias: &str) -> Option<Udid> {
        self.shared.read(|table| table.by_alias(alias).cloned())
    }

    /// The phones of which something was ever set.
    pub(crate) fn known(&self) -> Vec<Udid> {
        self.shared.read(|table| table.known().cloned().collect())
    }

    /// Counts up with every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Changes alias and labels. Nothing is recorded if all is so already, and
    /// so with the others.
    pub(crate) async fn update(&self, device: &Udid, change: Change, by: impl Into<By>) -> Answer {
        self.ask(device, Act::Update(change), by.into()).await
    }

    /// Takes a phone out of service. One that is cordoned is cordoned anew if
    /// the reason or the end is another.
    pub(crate) async fn cordon(
        &self,
        device: &Udid,
        reason: String,
        until: Option<SystemTime>,
        by: impl Into<By>,
    ) -> Answer {
        let act = Act::Cordon { reason, until };
        self.ask(device, act, by.into()).await
    }

    /// Puts a phone into service again.
    pub(crate) async fn uncordon(&self, device: &Udid, by: impl Into<By>) -> Answer {
        self.ask(device, Act::Uncordon, by.into()).await
    }

    /// Notes that the gateway leaves a phone alone, or does so no more.
    pub(crate) async fn quarantine(&self, device: &Udid, quarantine: Option<Quarantine>) -> Answer {
        let act = Act::Quarantine(quarantine);
        self.ask(device, act, GATEWAY.into()).await
    }

    async fn ask(&self, device: &Udid, act: Act, by: By) -> Answer {
        let closed = || SettingsError::Ledger(LedgerError::Closed);
        let (answer, answered) = oneshot::channel();
        let asked = Asked {
            device: device.clone(),
            act,
            by,
            answer,
        };
        self.asked.send(asked).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

impl SettingsTask {
    /// Does what was asked for, and nothing more.
    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        // A panic of the task has been reported.
        while self.task.join_next().await.is_some() {}
    }
}

impl Shared {
    fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        // Nothing panics between two steps of a change, so that a poisoned
        // table is whole.
        look(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, settings: DeviceSettings) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.put(settings);
    }
}

/// The one that changes settings.
#[derive(Debug)]
struct Writer {
    ledger: Ledger,
    shared: Arc<Shared>,
    asked: mpsc::Receiver<Asked>,
    stop: CancellationToken,
}

impl Writer {
    async fn run(mut self) {
        let mut waiting = Vec::with_capacity(QUEUE);
        let mut soonest = Duration::ZERO;
        loop {
            let due = self.due(soonest);
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !self.asked.is_closed() => self.asked.close(),
                count = self.asked.recv_many(&mut waiting, QUEUE) => {
                    if count == 0 {
                        break;
                    }
                    self.carry_out(std::mem::take(&mut waiting).into()).await;
                }
                () = due => soonest = self.end_cordons(soonest).await,
            }
        }
    }

    /// Waits until a cordon may have ended, and for so long at least.
    fn due(&self, soonest: Duration) -> impl Future<Output = ()> + use<> {
        let end = self.shared.read(Table::next_end);
        async move {
            match end {
                Some(end) => {
                    let left = end.duration_since(SystemTime::now()).unwrap_or_default();
                    sleep(left.min(GLANCE).max(soonest)).await;
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Ends what has run out; says when to look again at the soonest, which is
    /// later than at once after a failure.
    async fn end_cordons(&self, before: Duration) -> Duration {
        let ended = self.shared.read(|table| table.ended(SystemTime::now()));
        let ends = ended
            .iter()
            .map(|device| self.write(device, Act::EndCordon, GATEWAY.into()));
        let ends = join_all(ends).await;
        match ends.into_iter().find_map(Result::err) {
            Some(error) => {
                if before.is_zero() {
                    warn!(%error, "cordons that have run out cannot be ended");
                }
                RETRY
            }
            None => Duration::ZERO,
        }
    }

    /// Carries acts out in their order; those of different phones together, so
    /// that they share a commit.
    async fn carry_out(&self, mut waiting: VecDeque<Asked>) {
        while let Some(first) = waiting.pop_front() {
            let mut together = vec![first];
            while let Some(next) = waiting.pop_front_if(|next| fits(&together, next)) {
                together.push(next);
            }
            let acts = together.into_iter().map(|asked| async {
                let Asked {
                    device,
                    act,
                    by,
                    answer,
                } = asked;
                let done = self.write(&device, act, by).await;
                // Whoever asked may have stopped waiting.
                answer.send(done).ok();
            });
            join_all(acts).await;
        }
    }

    async fn write(&self, device: &Udid, act: Act, by: By) -> Answer {
        let now = SystemTime::now();
        let plan = self
            .shared
            .read(|table| table.plan(device, act, &by.who, now))?;
        if let Some(mut plan) = plan {
            by.note(&mut plan.operation.detail);
            let what = plan.operation.what.clone();
            let written = self
                .ledger
                .set_device(plan.settings.clone(), plan.operation);
            match written.await {
                Ok(()) => self.shared.put(plan.settings),
                Err(LedgerError::AliasTaken { alias, device }) => {
                    return Err(SettingsError::AliasTaken { alias, device });
                }
                Err(error) => return Err(SettingsError::Ledger(error)),
            }
            info!(device.id = %device, who = by.who, what, "device settings changed");
            self.shared.changes.send_modify(|changes| *changes += 1);
        }
        Ok(self.shared.read(|table| table.get(device)))
    }
}

/// Whether an act can be carried out beside these: one phone's go one after the
/// other, and so do those about aliases.
fn fits(together: &[Asked], next: &Asked) -> bool {
    together
        .iter()
        .all(|other| other.device != next.device && !(other.act.names() && next.act.names()))
}
