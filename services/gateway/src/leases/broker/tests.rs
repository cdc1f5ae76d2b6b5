//! The broker over a real ledger and a fleet of phones that are only told of.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::time::SystemTime;

use fleetgate_lease::{EndReason, LeaseState, NewLease, Selector, Wants};
use fleetgate_ledger::LedgerConfig;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Budgets;
use fleetgate_session::SessionConfig;
use tempfile::TempDir;

use super::*;
use crate::chronicle::{Chronicle, ChronicleTask};
use crate::config::{Config, HealthSection};
use crate::convert::{LeaseWish, WishedPhones};
use crate::fleet::settings::{Settings, SettingsTask};
use crate::fleet::{FleetConfig, FleetTasks};
use crate::leases::gate::Named;
use crate::leases::samples::{phone, wish};
use crate::leases::{Asked, LeaseView, Leases, LeasesTask, Refused, Unbegun};
use crate::metrics::{Metrics, counters};
use crate::pending::Pending;
use crate::recorder::Recorder;

mod answers;
mod flow;
mod opening;
mod recovery;
mod trouble;

const CI: &str = "token:ci";
const QA: &str = "token:qa";

/// How many leases an owner may have.
const MOST: usize = 4;

/// A gateway's leases, and what is around them.
struct Bench {
    leases: Leases,
    ledger: Ledger,
    feed: Feed,
    phones: Vec<u64>,
    directory: TempDir,
    /// Unless a test drives the broker itself.
    task: Option<LeasesTask>,
    around: (FleetTasks, SettingsTask, ChronicleTask, Metrics),
}

impl Bench {
    async fn of(phones: &[u64]) -> Self {
        Self::over(tempfile::tempdir().unwrap(), phones).await
    }

    /// Over what is on record in a directory.
    async fn over(directory: TempDir, phones: &[u64]) -> Self {
        let (mut bench, unbegun, fleet) = Self::set_up(directory, phones).await;
        let meters = bench.around.3.leases();
        let broken = CancellationToken::new();
        bench.task = Some(unbegun.begin(fleet, bench.feed.clone(), meters, MOST, broken));
        bench.ready();
        bench
    }

    /// The same whose broker does nothing by itself.
    async fn by_hand(phones: &[u64]) -> (Self, Broker) {
        let directory = tempfile::tempdir().unwrap();
        let (bench, unbegun, fleet) = Self::set_up(directory, phones).await;
        let Unbegun { loaded, asks, .. } = unbegun;
        let around = Surroundings {
            ledger: bench.ledger.clone(),
            fleet,
            feed: bench.feed.clone(),
            meters: bench.around.3.leases(),
            max_open: MOST,
        };
        let broker = Broker::new(loaded, around, asks, CancellationToken::new());
        bench.ready();
        (bench, broker)
    }

    async fn set_up(directory: TempDir, phones: &[u64]) -> (Self, Unbegun, Fleet) {
        let file = directory.path().join("fleetgate.toml");
        let device = |number: &u64| format!("[[device]]\nudid = \"{}\"\n", phone(*number));
        let text: String = phones.iter().map(device).collect();
        std::fs::write(&file, text).unwrap();
        let config = Config::load_with(Some(&file), []).unwrap();
        let ledger = LedgerConfig::new(directory.path().join("ledger.db"));
        let ledger = Ledger::open(ledger).await.unwrap();
        let (feed, metrics) = (Feed::default(), Metrics::new().unwrap());
        let (chronicle, chronicle_task) = Chronicle::new(feed.clone(), ledger.clone(), counters());
        let settings = Settings::load(ledger.clone(), &config.device).await;
        let (settings, settings_task) = settings.unwrap();
        let recorder = Recorder::new(ledger.clone(), Pending::default(), chronicle.clone());
        let (leases, unbegun) = Leases::load(ledger.clone(), false).await.unwrap();
        let fleet = FleetConfig {
            hosts: Vec::new(),
            settle: Duration::ZERO,
            devices: config.device.clone(),
            launches: config.launch.clone(),
            common_port: None,
            health: HealthSection::default(),
            launcher: None,
            max_launches: 1,
            session: SessionConfig {
                budgets: Budgets::default(),
                ..SessionConfig::default()
            },
            unsettled: HashMap::new(),
            gate: leases.gate().clone(),
        };
        let (fleet, tasks) = Fleet::spawn(fleet, recorder, settings, chronicle);
        let bench = Self {
            leases,
            ledger,
            feed,
            phones: phones.to_vec(),
            directory,
            task: None,
            around: (tasks, settings_task, chronicle_task, metrics),
        };
        (bench, unbegun, fleet)
    }

    /// Tells that every phone is ready. Whatever the fleet tells by itself is of
    /// phones that are not there.
    fn ready(&self) {
        for number in &self.phones {
            let device = pb::Device {
                udid: phone(*number).to_string(),
                state: pb::DeviceState::Ready.into(),
                labels: [("rack".to_owned(), "a".to_owned())].into(),
                ..pb::Device::default()
            };
            self.feed.publish(|| {
                Event::DeviceChanged(pb::DeviceChanged {
                    device: Some(device),
                    transition: None,
                })
            });
        }
    }

    async fn create(&self, lease: NewLease) -> Reply {
        self.ready();
        self.leases.create(order(lease, None)).await
    }

    async fn requested(&self, lease: NewLease, request_id: &str) -> Reply {
        self.ready();
        self.leases.create(order(lease, Some(request_id))).await
    }

    /// Waits until a lease is in a state.
    async fn until(&self, id: &LeaseId, state: LeaseState) -> LeaseView {
        let wait = async {
            loop {
                let follow = self.leases.board().follow(id);
                let view = self.leases.find(id).await.unwrap().unwrap();
                if view.lease.state() == state {
                    return view;
                }
                self.ready();
                // Ended since it was looked for, if nobody tells.
                if let Some(mut follow) = follow {
                    follow.changed().await.ok();
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait)
            .await
            .unwrap_or_else(|_| panic!("{id} is not {state}"))
    }

    /// The operations on record about a lease, the first one first.
    async fn operations(&self, id: &LeaseId) -> Vec<String> {
        let mut operations = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.ledger.tail(cursor, 500).await.unwrap();
            let Some(last) = page.events.last() else {
                return operations;
            };
            cursor = Some(last.cursor);
            for event in page.events {
                if let fleetgate_ledger::Subject::Operation(operation) = event.subject
                    && operation.target.as_deref() == Some(id.as_str())
                {
                    operations.push(format!("{} by {}", operation.what, operation.who));
                }
            }
        }
    }

    /// The end of the gateway, in order; what is on record stays.
    async fn stop(self) -> TempDir {
        if let Some(task) = self.task {
            task.shutdown().await;
        }
        self.ledger.close().await;
        self.directory
    }

    fn admit(&self, number: u64, who: &str, lease: &LeaseView) -> Result<(), &'static str> {
        let named = Named {
            id: lease.lease.id().clone(),
            epoch: lease.lease.epoch(),
        };
        let admitted = self.leases.gate().admit(&phone(number), who, Some(&named));
        admitted.map(drop).map_err(|refused| refused.reason())
    }
}

fn order(lease: NewLease, request_id: Option<&str>) -> Order {
    let asked = LeaseWish {
        request_id: None,
        phones: WishedPhones::Named(Vec::new()),
        priority: lease.priority.0,
        ttl: Some(lease.terms.ttl),
        max_duration: None,
        queue_timeout: None,
        begin: None,
        labels: BTreeMap::new(),
        context: BTreeMap::new(),
    };
    let asked = Asked::of(&asked, lease.wants.clone());
    let request_id = request_id.map(str::to_owned);
    Order {
        lease,
        request_id,
        asked,
        address: Some("192.0.2.1:7".to_owned()),
    }
}

/// A wish for so many phones of the rack.
fn any(owner: &str, count: u32) -> NewLease {
    NewLease {
        wants: Wants::Matching {
            selector: Selector {
                labels: BTreeMap::from([("rack".to_owned(), "a".to_owned())]),
                ..Selector::default()
            },
            count: NonZeroU32::new(count).unwrap(),
        },
        ..wish(owner, &[])
    }
}
