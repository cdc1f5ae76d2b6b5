//! What a step costs in a crowd: `cargo run --release -p fleetgate-lease
//! --example crowd`.
//!
//! A thousand phones in ten racks, each with a label of its own, and five hundred
//! leases that wait for one, two or three of a rack, half of them for a phone of
//! their own besides. Everybody is served, time and again; what is printed is how
//! long steps of a kind take, the longest of them and on average.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use fleetgate_lease::{
    Act, Change, DeviceView, EndReason, Input, LeaseId, LeaseState, LeaseTime, NewLease, Priority,
    Reach, Scheduler, Selector, Service, Terms, Wants,
};
use fleetgate_runner::Udid;

const PHONES: u64 = 1000;
const WAITERS: u64 = 500;

fn view(number: u64, service: Service) -> DeviceView {
    let labels = [
        ("rack".to_owned(), (number % 10).to_string()),
        ("number".to_owned(), number.to_string()),
    ];
    DeviceView {
        udid: Udid::from_parts(0x8110, number),
        labels: labels.into(),
        model: Some("iPhone14,5".to_owned()),
        os_version: Some(format!("18.{}", number % 4)),
        host: Some("local".to_owned()),
        service,
    }
}

fn wish(number: u64) -> Result<NewLease, Box<dyn Error>> {
    let wants = if number.is_multiple_of(2) {
        let labels = [("rack".to_owned(), (number % 10).to_string())];
        Wants::Matching {
            selector: Selector {
                labels: labels.into(),
                os_version: Some("18".to_owned()),
                ..Selector::default()
            },
            count: NonZeroU32::MIN.saturating_add(u32::try_from(number % 3)?),
        }
    } else {
        let numbers = [number % PHONES, (number + 1) % PHONES];
        let phones = numbers.map(|number| Udid::from_parts(0x8110, number));
        Wants::Devices(BTreeSet::from(phones))
    };
    Ok(NewLease {
        id: format!("01931f2c-0000-7000-8000-{number:012}").parse()?,
        owner: "token:ci".to_owned(),
        wants,
        reach: Reach::Everywhere,
        priority: Priority(0),
        terms: Terms {
            ttl: Duration::from_secs(60),
            max_duration: Duration::from_secs(1800),
            queue_timeout: Duration::from_secs(900),
        },
        begin: None,
        labels: BTreeMap::new(),
        context: BTreeMap::new(),
        created: SystemTime::UNIX_EPOCH,
    })
}

#[expect(
    clippy::disallowed_types,
    reason = "there is no test clock here, and what is wanted is how long it takes"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = std::time::Instant::now();
    let done = work();
    (done, begin.elapsed())
}

#[derive(Debug, Default)]
struct Cost {
    steps: u32,
    all: Duration,
    longest: Duration,
}

struct Crowd {
    scheduler: Scheduler,
    costs: BTreeMap<&'static str, Cost>,
    asked: VecDeque<Udid>,
    opened: VecDeque<LeaseId>,
}

impl Crowd {
    fn step(&mut self, kind: &'static str, input: Input) -> Result<(), Box<dyn Error>> {
        let (now, wall) = (LeaseTime::ZERO, SystemTime::UNIX_EPOCH);
        let (acts, took) = timed(|| self.scheduler.step(input, now, wall));
        self.note(kind, took);
        for act in acts? {
            match act {
                Act::Close(udid, _) => self.asked.push_back(udid),
                Act::Open(_, id) => self.opened.push_back(id),
                Act::Changed(..) | Act::Free(_) => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, kind: &'static str, took: Duration) {
        let cost = self.costs.entry(kind).or_default();
        cost.steps += 1;
        cost.all += took;
        cost.longest = cost.longest.max(took);
    }

    fn see(&mut self, kind: &'static str, service: Service) -> Result<(), Box<dyn Error>> {
        let views = (0..PHONES).map(|number| view(number, service));
        self.step(kind, Input::Devices(views.collect()))
    }

    fn answer(&mut self) -> Result<(), Box<dyn Error>> {
        while let Some(device) = self.asked.pop_front() {
            self.step("a phone is idle", Input::Idle { device })?;
        }
        while let Some(id) = self.opened.pop_front() {
            self.step("phones are open", Input::Opened { id })?;
        }
        Ok(())
    }

    fn active(&self) -> Option<LeaseId> {
        let mut open = self.scheduler.open();
        let active = open.find(|lease| lease.state() == LeaseState::Active);
        active.map(|lease| lease.id().clone())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (scheduler, _) = Scheduler::resume(Vec::new(), 1, LeaseTime::ZERO);
    let mut crowd = Crowd {
        scheduler,
        costs: BTreeMap::new(),
        asked: VecDeque::new(),
        opened: VecDeque::new(),
    };
    crowd.see("1,000 phones are new", Service::Detached)?;
    for number in 0..WAITERS {
        crowd.step("a lease is created", Input::Create(wish(number)?))?;
    }
    let relabelled = (0..PHONES).map(|number| DeviceView {
        os_version: Some("18.9".to_owned()),
        ..view(number, Service::Detached)
    });
    crowd.step(
        "1,000 phones are others",
        Input::Devices(relabelled.collect()),
    )?;
    crowd.see("1,000 phones are there", Service::InService)?;
    crowd.answer()?;
    for number in WAITERS..10 * WAITERS {
        crowd.step("a lease is created", Input::Create(wish(number)?))?;
        crowd.answer()?;
        let waits = crowd.scheduler.waiting().last();
        let waits = waits.map(|lease| lease.id().clone());
        if let Some(id) = waits.clone() {
            let (_, took) = timed(|| crowd.scheduler.explain(&id, LeaseTime::ZERO));
            crowd.note("the last one is explained", took);
            let change = Change {
                priority: Some(Priority(i32::try_from(number % 5)?)),
                ..Change::default()
            };
            crowd.step("a priority changes", Input::Update { id, change })?;
        }
        let phone = view(number % PHONES, Service::NotReady);
        crowd.step("a phone goes", Input::Devices(vec![phone]))?;
        let phone = view(number % PHONES, Service::InService);
        crowd.step("a phone comes", Input::Devices(vec![phone]))?;
        crowd.answer()?;
        while crowd.scheduler.waiting().count() > usize::try_from(WAITERS)? {
            let Some(id) = crowd.active() else { break };
            crowd.step("a lease is renewed", Input::Renew { id: id.clone() })?;
            let end = Input::End {
                id,
                how: EndReason::Released,
                by: None,
                detail: None,
            };
            crowd.step("a lease is released", end)?;
            crowd.answer()?;
        }
    }
    println!("{:<28} {:>7} {:>12} {:>12}", "", "steps", "mean", "longest");
    for (kind, cost) in &crowd.costs {
        let mean = cost.all / cost.steps.max(1);
        let (steps, longest) = (cost.steps, cost.longest);
        println!("{kind:<28} {steps:>7} {mean:>12.1?} {longest:>12.1?}");
    }
    Ok(())
}
