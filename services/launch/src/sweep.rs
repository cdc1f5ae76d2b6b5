//! Ends what an earlier gateway has left running, by what is on record of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetgate_runner::Udid;
use tokio::task::spawn_blocking;

use crate::ending::{self, Ending, Outcome};
use crate::error::LaunchError;
use crate::proof::{Evidence, Suspect};
use crate::record::{self, OnRecord, Record};

/// How long an orphan may take to end by itself, whatever it was launched with:
/// launches wait for the sweep, and nobody has a use for the orphan any more.
const LONGEST_GRACE: Duration = Duration::from_secs(5);

/// What was found of an earlier launch for a phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swept {
    /// Nothing is on record.
    Nothing,
    /// This launcher is dealing with the phone itself: it was left alone.
    Ours,
    /// What is on record has ended.
    Gone,
    /// Processes lived on, and were ended.
    Ended {
        /// The number of their group.
        pid: u32,
        /// Whether they had to be killed.
        killed: bool,
    },
    /// The number on record is another process's by now, which was left alone.
    Foreign {
        /// The number.
        pid: u32,
    },
    /// Processes are in the group on record, and nothing proves that it is
    /// still the same group: they were left alone.
    Unproven {
        /// Their numbers.
        pids: Vec<u32>,
    },
    /// The record cannot be read, and was moved aside.
    Unreadable {
        /// Where it is now.
        kept: PathBuf,
    },
    /// Processes live in spite of SIGKILL, or may not be signalled.
    Outlived {
        /// Their numbers.
        pids: Vec<u32>,
    },
}

/// What was found of all earlier launches.
#[derive(Debug, Default)]
pub struct SweptAll {
    /// By phone.
    pub devices: BTreeMap<Udid, Swept>,
    /// Records that could be neither read nor moved aside.
    pub failed: Vec<LaunchError>,
    /// Files among the records that no launcher makes.
    pub strange: Vec<PathBuf>,
}

/// One phone, on its way to what was found.
struct Search {
    device: Udid,
    found: Result<Found, LaunchError>,
}

enum Found {
    /// No process can be left.
    Already(Swept),
    /// So many of the endings are about it.
    Endings(usize),
}

/// Sweeps for these phones, all at the same time.
pub(crate) async fn sweep(
    records: PathBuf,
    devices: Vec<Udid>,
) -> Result<Vec<(Udid, Result<Swept, LaunchError>)>, LaunchError> {
    let directory = records.clone();
    let (searches, endings) = spawn_blocking(move || search(&directory, devices)).await??;
    let mut endings = ending::end(endings).await?.into_iter();
    let swept: Vec<_> = searches
        .into_iter()
        .map(|search| {
            let swept = search.found.map(|found| match found {
                Found::Already(swept) => swept,
                Found::Endings(count) => summary(endings.by_ref().take(count)),
            });
            (search.device, swept)
        })
        .collect();
    Ok(spawn_blocking(move || {
        for (device, swept) in &swept {
            report(&records, device, swept);
        }
        swept
    })
    .await?)
}

/// Reads what is on record, and finds the groups that it is about.
fn search(records: &Path, devices: Vec<Udid>) -> Result<(Vec<Search>, Vec<Ending>), LaunchError> {
    let read: Vec<_> = devices
        .into_iter()
        .map(|device| (record::read(records, &device), device))
        .collect();
    // A launch whose process is not on record is looked for among all.
    let unknown = read.iter().filter_map(|(on_record, _)| match on_record {
        Ok(OnRecord::Launch(record)) if record.process.is_none() => Some(record),
        Ok(OnRecord::Nothing | OnRecord::Launch(_) | OnRecord::Unreadable(_)) | Err(_) => None,
    });
    let unknown: Vec<_> = unknown.collect();
    let mut suspects = if unknown.is_empty() {
        Vec::new()
    } else {
        let evidence = ending::look(Evidence::leaders).map_err(LaunchError::Processes)?;
        evidence.suspects(&unknown)
    };
    let mut endings = Vec::new();
    let searches = read.into_iter().map(|(on_record, device)| {
        let found = on_record.map(|on_record| match on_record {
            OnRecord::Nothing => Found::Already(Swept::Nothing),
            OnRecord::Unreadable(kept) => Found::Already(Swept::Unreadable { kept }),
            OnRecord::Launch(record) => {
                let grace = record.stop_grace().min(LONGEST_GRACE);
                let ours = match record.process {
                    Some(started) => vec![Suspect::new(record.launch, started)],
                    None => suspects
                        .extract_if(.., |suspect| suspect.launch == record.launch)
                        .collect(),
                };
                let before = endings.len();
                endings.extend(ours.into_iter().map(|suspect| Ending::new(suspect, grace)));
                Found::Endings(endings.len() - before)
            }
        });
        Search { device, found }
    });
    Ok((searches.collect(), endings))
}

/// One answer for all groups of a phone, of which there is one as a rule: the
/// worst.
fn summary(endings: impl Iterator<Item = Ending>) -> Swept {
    let mut all = Swept::Gone;
    for ending in endings {
        let pid = ending.suspect.group;
        let swept = match ending.outcome {
            Some(Outcome::Gone) | None => Swept::Gone,
            Some(Outcome::Ended { killed }) => Swept::Ended { pid, killed },
            Some(Outcome::Foreign) => Swept::Foreign { pid },
            Some(Outcome::Unproven(pids)) => Swept::Unproven { pids },
            Some(Outcome::Outlived(pids)) => Swept::Outlived { pids },
        };
        if rank(&swept) > rank(&all) {
            all = swept;
        }
    }
    all
}

fn rank(swept: &Swept) -> u8 {
    match swept {
        Swept::Nothing | Swept::Ours | Swept::Unreadable { .. } | Swept::Gone => 0,
        Swept::Foreign { .. } => 1,
        Swept::Ended { .. } => 2,
        Swept::Unproven { .. } => 3,
        Swept::Outlived { .. } => 4,
    }
}

/// Removes the record of what is gone, and says what may need somebody's hand.
fn report(records: &Path, device: &Udid, swept: &Result<Swept, LaunchError>) {
    let gone = match swept {
        Ok(Swept::Gone) => true,
        Ok(Swept::Ended { pid, killed }) => {
            tracing::warn!(device.id = %device, pid, killed, "ended a runner that nobody owned any more");
            true
        }
        Ok(Swept::Foreign { pid }) => {
            tracing::info!(device.id = %device, pid, "the number of an earlier runner is another process's: left alone");
            true
        }
        Ok(Swept::Unproven { pids }) => {
            tracing::warn!(
                device.id = %device, ?pids,
                "these processes may be of an earlier runner, which cannot be proved: left alone"
            );
            false
        }
        Ok(Swept::Outlived { pids }) => {
            tracing::error!(device.id = %device, ?pids, "an earlier runner cannot be ended");
            false
        }
        Ok(Swept::Nothing | Swept::Ours | Swept::Unreadable { .. }) => false,
        Err(error) => {
            tracing::warn!(device.id = %device, %error, "what is on record of an earlier runner cannot be dealt with");
            false
        }
    };
    if gone {
        Record::forget(records, device);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::record::Started;

    #[test]
    fn an_orphan_has_its_own_grace_but_no_more_than_launches_may_wait_for() {
        for (grace, expected) in [(300, 300), (5_000, 5_000), (20_000, 5_000)] {
            let directory = tempfile::tempdir().unwrap();
            let device = Udid::from_parts(1, 2);
            let grace = Duration::from_millis(grace);
            let mut record = Record::new(Uuid::now_v7(), device.clone(), "sh".to_owned(), grace);
            record.process = Some(Started {
                pid: 7,
                epoch: "e".to_owned(),
                start: "s".to_owned(),
            });
            record.write(directory.path()).unwrap();
            let (_, endings) = search(directory.path(), vec![device]).unwrap();
            let graces: Vec<_> = endings.iter().map(|ending| ending.grace).collect();
            assert_eq!(graces, [Duration::from_millis(expected)]);
        }
    }
}
