//! Twenty callers who want, have, lose and drive ten phones as it comes.
//!
//! The seed is printed, and `FLEETGATE_LEASE_SEED` makes the same choices again;
//! what the scheduler does with them is its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Lease, LeaseState, RevokeMode};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Phone};
use fleetgate_tests::leasing::referee::Referee;
use fleetgate_tests::leasing::{self, Caller, Cast, Log, any, by, seconds, span, these};
use fleetgate_tests::{pause, plain_lab, soon};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tonic::Code;

use super::Stage;

const PHONES: u32 = 10;
const CALLERS: usize = 20;
/// What each of them does.
const ACTS: usize = 50;

/// What drives a phone here, and has one effect when it succeeds.
const KINDS: [CommandKind; 4] = [
    CommandKind::Tap,
    CommandKind::Drag,
    CommandKind::Button,
    CommandKind::Viewport,
];

/// A command, and whether it was told that it succeeded.
type Sent = (String, CommandKind, bool);

/// One caller in the storm.
struct Rager {
    who: Caller,
    boss: Caller,
    name: String,
    udids: Vec<String>,
    rng: StdRng,
    /// What it has asked for and not seen the end of.
    leases: Vec<String>,
    sent: Vec<Sent>,
}

impl Rager {
    async fn rage(mut self) -> Vec<Sent> {
        for n in 0..ACTS {
            // Few enough that phones change hands.
            if self
                .rng
                .random_bool(if self.leases.is_empty() { 0.7 } else { 0.1 })
            {
                self.want().await;
                continue;
            }
            match self.rng.random_range(0..10) {
                0 => self.give_back().await,
                1 => self.keep().await,
                2 => self.lose().await,
                _ => self.drive(n).await,
            }
        }
        self.sent
    }

    async fn want(&mut self) {
        let rng = &mut self.rng;
        let count = rng.random_range(1..=2);
        let wanted = if rng.random_bool(0.3) {
            any(count)
        } else {
            let count = usize::try_from(count).unwrap();
            let udids: Vec<_> = self.udids.sample(rng, count).collect();
            these(&udids)
        };
        let wish = pb::CreateLeaseRequest {
            ttl: seconds(rng.random_range(1..=4)),
            queue_timeout: span(Duration::from_millis(rng.random_range(0..1_500))),
            priority: rng.random_range(0..3),
            ..wanted
        };
        let lease = self.who.ask(wish).await.unwrap();
        if lease.state() == LeaseState::Queued && self.rng.random_bool(0.8) {
            let mut watch = self.who.watch(&lease.id).await;
            let waits = |log: &Log| {
                let last = log.news.last();
                last.is_none_or(|told| told.lease.state() == LeaseState::Queued)
            };
            watch.wait("its turn", |log| !waits(log)).await;
        }
        self.leases.push(lease.id);
    }

    /// One of its leases as it is by now. One that has ended is looked at once
    /// more.
    async fn look(&mut self) -> Option<Lease> {
        let id = self.leases.choose(&mut self.rng)?.clone();
        let lease = self.who.get(&id).await;
        if lease.state() > LeaseState::Active {
            self.leases.retain(|own| *own != id);
        }
        Some(lease)
    }

    async fn give_back(&mut self) {
        if let Some(lease) = self.look().await {
            self.who.release(&lease.id).await.unwrap();
        }
    }

    async fn keep(&mut self) {
        if let Some(lease) = self.look().await
            && let Err(late) = self.who.renew(&lease).await
        {
            // Ended, or granted since.
            assert_eq!(late.code(), Code::PermissionDenied, "{late:?}");
        }
    }

    async fn lose(&mut self) {
        if let Some(lease) = self.look().await {
            let mode = *[RevokeMode::Drain, RevokeMode::Now]
                .choose(&mut self.rng)
                .unwrap();
            self.boss.revoke(&lease.id, mode).await.unwrap();
        }
    }

    /// Sends something: mostly as it should, sometimes under another's epoch, to
    /// another phone, or under no lease.
    async fn drive(&mut self, n: usize) {
        let lease = self.look().await;
        let own = lease
            .as_ref()
            .and_then(|lease| lease.devices.choose(&mut self.rng));
        let any = self.udids.choose(&mut self.rng);
        let mut device = own.or(any).unwrap().clone();
        let mut named = lease.as_ref().and_then(by);
        match self.rng.random_range(0..8) {
            0 => named = None,
            1 => device = self.udids.choose(&mut self.rng).unwrap().clone(),
            2 => {
                if let Some(named) = &mut named {
                    named.epoch = named.epoch.saturating_sub(self.rng.random_range(0..3));
                }
            }
            _ => {}
        }
        let id = format!("{}-{n}", self.name);
        let kind = *KINDS.choose(&mut self.rng).unwrap();
        let told = self.who.send(&device, kind, &id, named).await;
        if let Err(refused) = &told {
            let expected = [
                Code::PermissionDenied,
                Code::FailedPrecondition,
                // The rig may be busy for longer than a window.
                Code::Unknown,
            ];
            assert!(expected.contains(&refused.code()), "{refused:?}");
        }
        self.sent.push((id, kind, told.is_ok()));
    }
}

/// How often each command had its effect, by the phones' own account.
fn effects(phones: &[Phone]) -> BTreeMap<String, usize> {
    let mut effects = BTreeMap::new();
    for effect in phones.iter().flat_map(Phone::effects) {
        let id = effect.command_id.unwrap().as_str().to_owned();
        *effects.entry(id).or_default() += 1;
    }
    effects
}

/// Asserts of one phone that its effects were its holders', one holder after the
/// other.
async fn assert_driven_by_its_holders(
    stage: &Stage,
    phone: &Phone,
    leases: &BTreeMap<String, Lease>,
) {
    let (mut newest, mut done) = (0, BTreeSet::new());
    let mut now = None;
    for id in super::order(phone) {
        let row = stage.rig.find(&id).await.expect("a row");
        let epoch = row.lease.as_ref().map(|lease| lease.epoch);
        if now != epoch {
            done.extend(now);
            now = epoch;
        }
        let Some(named) = row.lease else {
            continue;
        };
        assert!(!done.contains(&named.epoch), "{id}: back to {named:?}");
        assert!(named.epoch >= newest, "{id}: {named:?} after {newest}");
        newest = named.epoch;
        let lease = &leases[&named.id];
        assert_eq!(lease.epoch, named.epoch, "{id}");
        assert_eq!(row.principal, Some(lease.owner.clone()), "{id}");
        assert!(lease.devices.contains(&row.device), "{id}: {lease:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_twenty_callers_do_each_phone_is_driven_by_its_holder_of_the_moment() {
    let seed = std::env::var("FLEETGATE_LEASE_SEED").ok();
    let seed = seed.map_or_else(|| rand::rng().random(), |seed| seed.parse().unwrap());
    println!("FLEETGATE_LEASE_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let names: Vec<_> = (0..CALLERS).map(|n| format!("caller-{n}")).collect();
    let mut cast = None;
    let (rig, _) = leasing::configured(plain_lab(PHONES, 1.0), |config| {
        let tokens = config.ledger.path.with_file_name("storm.toml");
        let callers = names.iter().map(|name| (name.clone(), Role::Operator));
        let boss = (leasing::BOSS.to_owned(), Role::Admin);
        cast = Some(Cast::of(&tokens, callers.chain([boss])));
        config.auth.tokens = Some(tokens);
    })
    .await;
    let stage = Stage::of((rig, cast.unwrap()));
    let phones = stage.rig.lab.phones();
    for phone in &phones {
        for _ in 0..20 {
            let by = Duration::from_millis(rng.random_range(0..200));
            let skip = rng.random_range(0..8);
            phone.fault(Fault {
                skip,
                ..Fault::from(Injection::Slow { by })
            });
        }
    }
    let udids: Vec<_> = phones
        .iter()
        .map(|phone| phone.udid().to_string())
        .collect();
    let mut ragers = JoinSet::new();
    for name in &names {
        let rager = Rager {
            who: stage.caller(name),
            boss: stage.boss(),
            name: name.clone(),
            udids: udids.clone(),
            rng: StdRng::seed_from_u64(rng.random()),
            leases: Vec::new(),
            sent: Vec::new(),
        };
        ragers.spawn(rager.rage());
    }
    let sent: Vec<_> = ragers.join_all().await.into_iter().flatten().collect();

    // Their time ends all of them.
    let leases = soon("the end of every lease", async {
        loop {
            let request = pb::ListLeasesRequest {
                page_size: 1000,
                ..pb::ListLeasesRequest::default()
            };
            let page = stage.boss().leases().list_leases(request).await.unwrap();
            let page = page.into_inner();
            assert_eq!(page.next_page_token, "");
            let open = [LeaseState::Queued, LeaseState::Active, LeaseState::Draining];
            if !page
                .leases
                .iter()
                .any(|lease| open.contains(&lease.state()))
            {
                return page.leases;
            }
            pause().await;
        }
    })
    .await;
    let leases: BTreeMap<_, _> = leases
        .into_iter()
        .map(|lease| (lease.id.clone(), lease))
        .collect();
    let effects = effects(&phones);
    for (id, kind, succeeded) in &sent {
        let count = effects.get(id).copied().unwrap_or_default();
        let expected = usize::from(*succeeded && kind.is_mutation());
        assert!(count <= 1, "{id} {count} times");
        if *succeeded {
            assert_eq!(count, expected, "{id}, a {kind}");
        }
    }
    for phone in &phones {
        assert_driven_by_its_holders(&stage, phone, &leases).await;
        assert_eq!(stage.boss().device(phone.udid().as_str()).await.lease, None);
        assert!(phone.max_in_flight() <= 1);
    }
    let referee = Referee::read(stage.records().entries().await);
    assert_eq!(referee.violations, [""; 0]);
    assert_eq!(referee.overlaps, [""; 0]);
    let granted = leases.values().filter(|lease| lease.epoch > 0).count();
    assert_eq!(referee.grants.len(), granted);
    let Referee {
        leased, unleased, ..
    } = referee;
    println!(
        "{} leases, {granted} of them granted; sent under one {leased}, under none {unleased}",
        leases.len()
    );
    assert!(granted > 0 && leased > 0 && unleased > 0);
    stage.stop().await;
}
