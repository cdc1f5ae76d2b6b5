//! One directory of logs, results and records, and what is run from it.
//!
//! Invariant: at any moment at most one owner deals with a phone: a process
//! that runs, a launch, or a sweep.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fleetgate_runner::Udid;
use tokio::signal::unix::{self, SignalKind};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::error::LaunchError;
use crate::follow::{Follow, LogSize};
use crate::leader::{Leader, Program};
use crate::place::Place;
use crate::proof::Suspect;
use crate::record::{self, Record, Started};
use crate::running::Running;
use crate::spec::{LaunchSpec, Values};
use crate::sweep::{self, Swept, SweptAll};
use crate::{program, table, tail};

/// Starts runners' processes, and ends what an earlier gateway left.
///
/// The directory is locked until every clone and every [`Running`] is dropped.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: Place,
    /// The phones that somebody deals with.
    taken: Mutex<HashSet<Udid>>,
}

/// The right to deal with a phone.
#[derive(Debug)]
pub(crate) struct Slot {
    shared: Arc<Shared>,
    device: Udid,
}

impl Slot {
    pub(crate) fn device(&self) -> &Udid {
        &self.device
    }

    /// Removes what is on record, since nothing is left of it.
    pub(crate) fn forget(&self) {
        Record::forget(&self.shared.place.records(), &self.device);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let taken = self.shared.taken.lock();
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        taken.remove(&self.device);
    }
}

impl Launcher {
    /// Takes a directory: makes it if it is missing, for its owner only, and
    /// locks it against every other launcher.
    pub fn open(directory: PathBuf) -> Result<Self, LaunchError> {
        Ok(Self {
            shared: Arc::new(Shared {
                place: Place::take(directory)?,
                taken: Mutex::default(),
            }),
        })
    }

    /// Ends what an earlier gateway has left running for a phone, and waits
    /// until it is gone.
    pub async fn sweep(&self, device: &Udid) -> Result<Swept, LaunchError> {
        match self.take(device) {
            Some(slot) => slot.sweep().await,
            None => Ok(Swept::Ours),
        }
    }

    /// The same for every phone that anything is on record of, all at the same
    /// time.
    pub async fn sweep_all(&self) -> Result<SweptAll, LaunchError> {
        let records = self.shared.place.records();
        let directory = records.clone();
        let listed = spawn_blocking(move || record::list(&directory)).await??;
        let mut all = SweptAll {
            strange: listed.strange,
            ..SweptAll::default()
        };
        let mut slots = Vec::new();
        for device in listed.devices {
            match self.take(&device) {
                Some(slot) => slots.push(slot),
                None => {
                    all.devices.insert(device, Swept::Ours);
                }
            }
        }
        let devices = slots.iter().map(|slot| slot.device.clone()).collect();
        for (device, swept) in sweep::sweep(records, devices).await? {
            match swept {
                Ok(swept) => {
                    all.devices.insert(device, swept);
                }
                Err(error) => all.failed.push(error),
            }
        }
        Ok(all)
    }

    /// Starts a phone's runner, after a sweep. Its log is a new one; the last
    /// one is kept beside it.
    ///
    /// Dropping the future ends what was begun.
    pub async fn start(&self, device: &Udid, spec: &LaunchSpec) -> Result<Running, LaunchError> {
        spec.check()?;
        let already = || LaunchError::AlreadyRunning {
            device: device.clone(),
        };
        let slot = self.take(device).ok_or_else(already)?;
        match slot.sweep().await? {
            Swept::Outlived { pids } => {
                let device = device.clone();
                return Err(LaunchError::Outlived { device, pids });
            }
            Swept::Nothing
            | Swept::Ours
            | Swept::Gone
            | Swept::Ended { .. }
            | Swept::Foreign { .. }
            | Swept::Unproven { .. }
            | Swept::Unreadable { .. } => {}
        }
        let spec = spec.clone();
        let span = tracing::Span::current();
        // One piece of work, which a caller that leaves does not break off
        // half-way: what comes of it is dropped then, and so ended.
        spawn_blocking(move || span.in_scope(|| slot.launch(&spec))).await?
    }

    /// Where a phone's runner writes its log.
    ///
    /// A log that grows past 16 MiB is cut: its last MiB is beside it then,
    /// with `.0` to its name, as the log of the last launch is with `.1`.
    pub fn log_path(&self, device: &Udid) -> PathBuf {
        self.shared.place.log(device)
    }

    /// The last lines of a phone's log: at most 20, and at most 4 KiB, without
    /// control characters.
    pub fn log_tail(&self, device: &Udid) -> Vec<String> {
        let place = &self.shared.place;
        tail::read(&place.log(device), &place.cut_log(device))
    }

    /// The right to deal with a phone, if nobody else has it.
    fn take(&self, device: &Udid) -> Option<Slot> {
        let mut taken = self
            .shared
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken.insert(device.clone()).then(|| Slot {
            shared: Arc::clone(&self.shared),
            device: device.clone(),
        })
    }
}

impl Slot {
    async fn sweep(&self) -> Result<Swept, LaunchError> {
        let records = self.shared.place.records();
        let swept = sweep::sweep(records, vec![self.device.clone()]).await?;
        let one = swept.into_iter().map(|(_, swept)| swept).next();
        one.unwrap_or(Ok(Swept::Nothing))
    }

    /// Starts a process. See `record` for why in this order.
    fn launch(self, spec: &LaunchSpec) -> Result<Running, LaunchError> {
        let place = &self.shared.place;
        let (log, bundle) = (place.log(&self.device), place.result_bundle(&self.device));
        let filled = spec.fill(&Values {
            udid: OsStr::new(self.device.as_str()),
            log: log.as_os_str(),
            result_bundle: bundle.as_os_str(),
        })?;
        let directory = program::working_directory(spec.directory.as_deref())?;
        let own_path = std::env::var_os("PATH");
        let path = filled.env.get("PATH").or(own_path.as_ref());
        let mut argv = filled.argv.into_iter();
        let name = argv.next().unwrap_or_default();
        let program = Program {
            launch: Uuid::now_v7(),
            path: program::find(&name, &directory, path.map(|path| &**path))?,
            arguments: argv.collect(),
            env: filled.env,
            directory,
        };
        let name = name.to_string_lossy().into_owned();
        let failed = |source| LaunchError::Spawn {
            program: name.clone(),
            source,
        };
        let output = place.make_room(&self.device)?;
        let follow = Follow::open(&log, place.cut_log(&self.device), LogSize::default())
            .map_err(LaunchError::file("open", &log))?;

        let children = unix::signal(SignalKind::child()).map_err(failed)?;
        let records = place.records();
        let mut record = Record::new(
            program.launch,
            self.device.clone(),
            name.clone(),
            spec.stop_grace,
        );
        record.write(&records)?;
        let (leader, gate) = Leader::spawn(&program, output).map_err(|source| {
            self.forget();
            failed(source)
        })?;
        let pid = leader.pid();
        let start = started(pid).map_err(LaunchError::Processes)?;
        record.process = Some(start.clone());
        record.write(&records)?;
        let suspect = Suspect::new(record.launch, start);
        let running = Running::new(leader, suspect, spec.stop_grace, follow, children, self);
        if let Err(error) = gate.open() {
            // It has ended already, and its status says how.
            tracing::warn!(pid, %error, "a process ended before it ran its program");
        }
        tracing::info!(device.id = %running.device(), pid, program = name.as_str(), "runner process started");
        Ok(running)
    }
}

/// What is to be on record of a process that is not reaped.
fn started(pid: u32) -> std::io::Result<Started> {
    let process = table::look(pid)?.ok_or(std::io::ErrorKind::NotFound)?;
    Ok(Started {
        pid,
        epoch: table::epoch()?,
        start: process.start,
    })
}
