//! Killed in the middle of lending: grants, ends and renewals in shared
//! transactions, and a death at any moment.
//!
//! The seed is printed, and `FLEETGATE_CRASH_SEED` makes the same choices again.
//! `FLEETGATE_CRASH_ROUNDS` kills more often.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Lease, LeaseState};
use fleetgate_simulator::Scenario;
use fleetgate_tests::leasing::referee::Referee;
use fleetgate_tests::leasing::{Caller, Cast, DRIVERS, Records, any, by, seconds, these};
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{refused, soon};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::leases::{lending, ready};
use crate::storm::variable;

const PHONES: u32 = 4;
/// Two of each driver.
const BORROWERS: usize = 6;
const ROUNDS: u32 = 20;

/// The newest grant of each phone that was seen: its epoch and its lease.
type Newest = BTreeMap<String, (u64, String)>;

/// Somebody who borrows, also over one gateway's death after the other.
struct Borrower {
    name: &'static str,
    id: usize,
    udids: Vec<String>,
    rng: StdRng,
    /// How much it has asked for.
    asked: usize,
    /// What it wants or has, by the id of the request.
    open: BTreeMap<String, Wish>,
    /// What it has given back last.
    over: Vec<Lease>,
    taps: usize,
}

/// What somebody asked for, and what was told of it, if anything.
#[derive(Clone)]
struct Wish {
    asked: pb::CreateLeaseRequest,
    told: Option<Lease>,
}

/// Nobody answers any more.
struct Gone;

/// What was said, unless nobody is left to say anything.
fn answer<T>(told: Result<T, Status>) -> Result<Result<T, Status>, Gone> {
    let breaks = [
        Code::Unavailable,
        Code::Unknown,
        Code::Internal,
        Code::Cancelled,
    ];
    match told {
        Err(status) if breaks.contains(&status.code()) => Err(Gone),
        told => Ok(told),
    }
}

/// How far a lease is in its life.
fn age(lease: &Lease) -> i32 {
    lease.state.min(LeaseState::Released.into())
}

/// Asserts that what is told of a lease fits what was told before: its grant
/// stays as it is, and nothing goes back in its life.
#[track_caller]
fn assert_follows(before: &Lease, now: &Lease) {
    assert_eq!((&before.id, &before.owner), (&now.id, &now.owner));
    assert!(age(before) <= age(now), "{before:?} {now:?}");
    if before.epoch > 0 {
        let grant = |lease: &Lease| (lease.epoch, lease.devices.clone());
        assert_eq!(grant(before), grant(now), "{now:?}");
    }
}

impl Borrower {
    /// Borrows until nobody answers.
    async fn borrow(mut self, who: Caller, heard: mpsc::Sender<()>) -> Self {
        while self.step(&who).await.is_ok() {
            // Nobody may be interested just now.
            heard.try_send(()).ok();
        }
        self
    }

    async fn step(&mut self, who: &Caller) -> Result<(), Gone> {
        // Few enough that phones change hands.
        if self.open.len() < 2 {
            return self.want(who).await;
        }
        match self.rng.random_range(0..3) {
            0 => self.drive(who).await,
            _ => self.give_back(who).await,
        }
    }

    async fn want(&mut self, who: &Caller) -> Result<(), Gone> {
        let request_id = format!("{}-{}", self.id, self.asked);
        self.asked += 1;
        let wanted = if self.rng.random_bool(0.5) {
            any(self.rng.random_range(1..=2))
        } else {
            these(&[self.udids.choose(&mut self.rng).unwrap()])
        };
        let asked = pb::CreateLeaseRequest {
            request_id: request_id.clone(),
            ttl: seconds(3_600),
            max_duration: seconds(3_600),
            ..wanted
        };
        let wish = Wish {
            asked: asked.clone(),
            told: None,
        };
        self.open.insert(request_id.clone(), wish);
        let lease = answer(who.ask(asked).await)?.unwrap();
        self.told(&request_id, lease);
        Ok(())
    }

    /// Takes down what was told of a lease.
    fn told(&mut self, request_id: &str, lease: Lease) {
        let mut wish = self.open.remove(request_id).expect("a wish");
        if let Some(before) = &wish.told {
            assert_follows(before, &lease);
        }
        if lease.state() > LeaseState::Active {
            self.over.push(lease);
        } else {
            wish.told = Some(lease);
            self.open.insert(request_id.to_owned(), wish);
        }
    }

    /// One of the leases that it wants or has.
    fn one(&mut self) -> Option<(String, Lease)> {
        let known = self.open.iter();
        let known = known.filter_map(|(request, wish)| Some((request, wish.told.as_ref()?)));
        let known: Vec<_> = known.collect();
        let (request, lease) = known.choose(&mut self.rng)?;
        Some(((*request).clone(), (*lease).clone()))
    }

    async fn drive(&mut self, who: &Caller) -> Result<(), Gone> {
        let Some((request, lease)) = self.one() else {
            return Ok(());
        };
        let lease_id = lease.id;
        let mut leases = who.leases();
        let found = leases.get_lease(pb::GetLeaseRequest { lease_id }).await;
        let now = answer(found)?.unwrap().into_inner().lease.unwrap();
        self.told(&request, now.clone());
        if now.state() == LeaseState::Active {
            let id = self.next_tap();
            answer(who.tap(&now.devices[0], &id, by(&now)).await)?.unwrap();
        }
        Ok(())
    }

    async fn give_back(&mut self, who: &Caller) -> Result<(), Gone> {
        if let Some((request, lease)) = self.one() {
            let released = answer(who.release(&lease.id).await)?.unwrap();
            assert!(released.state() > LeaseState::Active, "{released:?}");
            self.told(&request, released);
        }
        Ok(())
    }

    fn next_tap(&mut self) -> String {
        self.taps += 1;
        format!("{}-tap-{}", self.id, self.taps)
    }

    /// Asserts, before the next gateway, that all that was told is so, and is
    /// told what was not.
    async fn check(&mut self, who: &Caller) {
        for (request, wish) in self.open.clone() {
            let now = match &wish.told {
                Some(before) => who.get(&before.id).await,
                None => who.ask(wish.asked).await.unwrap(),
            };
            self.told(&request, now);
        }
        for before in &self.over {
            assert_follows(before, &who.get(&before.id).await);
        }
        // What is over is of no use, nor is the number of an earlier grant.
        let old = self.over.iter().map(|lease| (lease.clone(), 0));
        let held = self.open.values().filter_map(|wish| wish.told.clone());
        let held = held.map(|lease| (lease, 1));
        for (lease, back) in old.chain(held).collect::<Vec<_>>() {
            let Some(device) = lease.devices.first() else {
                continue;
            };
            let named = Some(pb::LeaseRef {
                id: lease.id.clone(),
                epoch: lease.epoch - back,
            });
            let id = self.next_tap();
            let refusal = refused(who.tap(device, &id, named).await);
            let expected = ["LEASE_RELEASED", "LEASE_EPOCH_STALE"];
            let expected = expected[usize::from(back == 1)];
            assert_eq!(refusal.reason, expected, "{refusal:?} {lease:?}");
        }
        let forgotten = self.over.len().saturating_sub(4);
        self.over.drain(..forgotten);
    }
}

/// Looks again and again at who has what, until nobody answers: no phone is ever
/// seen in two hands, nor in those of an older grant than before.
async fn observe(who: Caller, mut newest: Newest) -> Newest {
    loop {
        let states = [LeaseState::Active, LeaseState::Draining];
        let request = pb::ListLeasesRequest {
            states: states.map(i32::from).to_vec(),
            page_size: 1000,
            ..pb::ListLeasesRequest::default()
        };
        let Ok(listed) = answer(who.leases().list_leases(request).await) else {
            return newest;
        };
        let mut seen = BTreeSet::new();
        for lease in listed.unwrap().into_inner().leases {
            for device in &lease.devices {
                assert!(
                    seen.insert(device.clone()),
                    "{device} is in two hands: {lease:?}"
                );
                let now = (lease.epoch, lease.id.clone());
                let before = newest.insert(device.clone(), now.clone());
                let is_newer = |before: (u64, String)| before == now || before.0 < now.0;
                assert!(
                    before.clone().is_none_or(is_newer),
                    "{lease:?} after {before:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_of_lending_no_phone_is_lent_twice_and_nothing_told_is_untrue() {
    let seed = variable("FLEETGATE_CRASH_SEED").unwrap_or_else(|| rand::rng().random());
    let rounds = variable("FLEETGATE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("FLEETGATE_CRASH_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut scene, cast) = lending(Scenario::fleet(PHONES).scaled(0.02)).await;
    let udids: Vec<_> = scene
        .lab
        .phones()
        .iter()
        .map(|phone| phone.udid().to_string())
        .collect();
    let mut borrowers: Vec<_> = (0..BORROWERS)
        .map(|id| Borrower {
            name: DRIVERS[id % DRIVERS.len()],
            id,
            udids: udids.clone(),
            rng: StdRng::seed_from_u64(rng.random()),
            asked: 0,
            open: BTreeMap::new(),
            over: Vec::new(),
            taps: 0,
        })
        .collect();
    let mut newest = BTreeMap::new();
    for _ in 0..rounds {
        (scene, borrowers, newest) = round(scene, &cast, borrowers, newest, &mut rng).await;
    }
    let wishes: usize = borrowers.iter().map(|borrower| borrower.asked).sum();
    let records = Records::by(scene.ledger());
    let referee = Referee::read(records.entries().await);
    assert_eq!(referee.violations, [""; 0]);
    println!(
        "{rounds} kills, {wishes} leases, {} grants, {} commands",
        referee.grants.len(),
        referee.leased
    );
    assert_eq!(referee.unleased, 0);
    // Each wish has made one lease, however often it was said.
    assert_eq!(made(&cast.caller("anna", scene.channel())).await, wishes);
    scene.end().await;
}

/// How many leases there are on record.
async fn made(who: &Caller) -> usize {
    let (mut count, mut page_token) = (0, String::new());
    loop {
        let request = pb::ListLeasesRequest {
            page_token,
            page_size: 1000,
            ..pb::ListLeasesRequest::default()
        };
        let page = who
            .leases()
            .list_leases(request)
            .await
            .unwrap()
            .into_inner();
        count += page.leases.len();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return count;
        }
    }
}

/// Lets them borrow, kills the gateway under them, and checks all that they were
/// told against the next.
async fn round(
    scene: Scene,
    cast: &Cast,
    borrowers: Vec<Borrower>,
    newest: Newest,
    rng: &mut StdRng,
) -> (Scene, Vec<Borrower>, Newest) {
    let (heard, mut news) = mpsc::channel(1);
    let mut borrowing = JoinSet::new();
    for borrower in borrowers {
        let who = cast.caller(borrower.name, scene.channel());
        borrowing.spawn(borrower.borrow(who, heard.clone()));
    }
    let mut observing = JoinSet::new();
    observing.spawn(observe(cast.caller("boss", scene.channel()), newest));
    for _ in 0..rng.random_range(1..120) {
        soon("something to be told", news.recv()).await;
    }
    // Not to wait for anything: to be anywhere in what follows.
    tokio::time::sleep(Duration::from_micros(rng.random_range(0..5_000))).await;
    let killed = scene.kill().await;
    drop(news);
    let mut borrowers = borrowing.join_all().await;
    let newest = observing.join_all().await.pop().unwrap();
    let scene = killed.restart().await;
    for borrower in &mut borrowers {
        let who = cast.caller(borrower.name, scene.channel());
        borrower.check(&who).await;
    }
    ready(&scene).await;
    (scene, borrowers, newest)
}
