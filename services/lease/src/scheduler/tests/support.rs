//! A desk at which leases are asked for, and the words of its answers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_runner::Udid;

use super::referee::Referee;
use crate::*;

/// A phone by its number.
pub(super) fn phone(number: u64) -> Udid {
    Udid::from_parts(0, number)
}

/// The number of a phone.
pub(super) fn number(udid: &Udid) -> u64 {
    let unit = udid.as_str().split_once('-').unwrap().1;
    u64::from_str_radix(unit, 16).unwrap()
}

/// A phone as it is seen, with a label `rack`.
pub(super) fn view(number: u64, rack: &str, service: Service) -> DeviceView {
    DeviceView {
        udid: phone(number),
        labels: BTreeMap::from([("rack".to_owned(), rack.to_owned())]),
        model: None,
        os_version: None,
        host: None,
        service,
    }
}

pub(super) fn id(name: &str) -> LeaseId {
    name.parse().unwrap()
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(super) fn at(secs: u64) -> LeaseTime {
    LeaseTime::new(Duration::from_secs(secs))
}

/// So many phones of whichever.
pub(super) fn some(count: u32) -> Wants {
    Wants::Matching {
        selector: Selector::default(),
        count: NonZeroU32::new(count).unwrap(),
    }
}

/// So many phones of a rack.
pub(super) fn of_rack(rack: &str, count: u32) -> Wants {
    let labels = BTreeMap::from([("rack".to_owned(), rack.to_owned())]);
    Wants::Matching {
        selector: Selector {
            labels,
            ..Selector::default()
        },
        count: NonZeroU32::new(count).unwrap(),
    }
}

/// Phones of a rack only, whatever the wish is.
pub(super) fn bound_to(rack: &str, wish: NewLease) -> NewLease {
    let place = BTreeMap::from([("rack".to_owned(), rack.to_owned())]);
    NewLease {
        reach: Reach::Within(vec![place]),
        ..wish
    }
}

/// These phones.
pub(super) fn these(numbers: &[u64]) -> Wants {
    Wants::Devices(numbers.iter().map(|number| phone(*number)).collect())
}

/// A wish with a ttl of 60 s, that lives for 600 s at most and waits for 300 s.
pub(super) fn wish(name: &str, wants: Wants) -> NewLease {
    NewLease {
        id: id(name),
        owner: "token:ci".into(),
        wants,
        reach: Reach::Everywhere,
        priority: Priority(0),
        terms: Terms {
            ttl: secs(60),
            max_duration: secs(600),
            queue_timeout: secs(300),
        },
        begin: None,
        labels: BTreeMap::new(),
        context: BTreeMap::new(),
        created: UNIX_EPOCH,
    }
}

/// An act in words, in which a phone is its number.
pub(super) fn word(act: &Act) -> String {
    match act {
        Act::Close(udid, lease) => format!("close {} {lease}", number(udid)),
        Act::Changed(lease, what) => format!("{} {what:?}", lease.id()),
        Act::Open(udid, lease) => format!("open {} {lease}", number(udid)),
        Act::Free(udid) => format!("free {}", number(udid)),
    }
}

/// Acts in words.
pub(super) fn words(acts: &[Act]) -> String {
    let words: Vec<_> = acts.iter().map(word).collect();
    words.join(", ")
}

/// A scheduler with a referee that looks at all its acts.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) scheduler: Scheduler,
    pub(super) referee: Referee,
    pub(super) now: LeaseTime,
    /// Whether phones are open to a lease as soon as it is granted.
    pub(super) opens: bool,
}

impl Desk {
    /// With so many phones, from 1, in service and in rack `a`.
    pub(super) fn new(phones: u64) -> Self {
        let (scheduler, acts) = Scheduler::resume(Vec::new(), 1, LeaseTime::ZERO);
        assert!(acts.is_empty());
        let mut desk = Self {
            scheduler,
            referee: Referee::default(),
            now: LeaseTime::ZERO,
            opens: true,
        };
        let views = (1..=phones).map(|number| view(number, "a", Service::InService));
        desk.told(Input::Devices(views.collect()));
        desk
    }

    /// After a restart of what is left of this one: as it was written down, and
    /// without any phone yet.
    pub(super) fn restarted(&self) -> (Self, String) {
        let open: Vec<_> = self.scheduler.open().cloned().collect();
        let written = serde_json::to_string(&open).unwrap();
        let open: Vec<Lease> = serde_json::from_str(&written).unwrap();
        let (scheduler, acts) = Scheduler::resume(open, self.referee.last_epoch() + 1, self.now);
        let referee = self.referee.restarted(&acts);
        let now = self.now;
        let desk = Self {
            scheduler,
            referee,
            now,
            opens: self.opens,
        };
        (desk, words(&acts))
    }

    /// What an input leads to.
    pub(super) fn try_step(&mut self, input: Input) -> Result<Vec<Act>, Refused> {
        let wall = UNIX_EPOCH + self.now.as_duration();
        let idle = match &input {
            Input::Idle { device } => Some(device.clone()),
            Input::Create(_)
            | Input::Renew { .. }
            | Input::Update { .. }
            | Input::End { .. }
            | Input::Devices(_)
            | Input::Opened { .. }
            | Input::Tick => None,
        };
        let acts = self.scheduler.step(input, self.now, wall)?;
        if let Some(device) = idle {
            self.referee.answered(&device);
        }
        self.referee.look_at(&acts, &self.scheduler);
        if self.opens {
            for id in self.referee.unopened().collect::<Vec<_>>() {
                let input = Input::Opened { id };
                let opened = self.scheduler.step(input, self.now, wall)?;
                self.referee.look_at(&opened, &self.scheduler);
            }
        }
        Ok(acts)
    }

    /// The same in words.
    pub(super) fn told(&mut self, input: Input) -> String {
        words(&self.try_step(input).unwrap())
    }

    pub(super) fn refused(&mut self, input: Input) -> Refused {
        let before = format!("{:?}", self.scheduler);
        let refused = self.try_step(input).unwrap_err();
        assert_eq!(format!("{:?}", self.scheduler), before);
        refused
    }

    pub(super) fn ask(&mut self, wish: NewLease) -> String {
        self.told(Input::Create(wish))
    }

    pub(super) fn idle(&mut self, number: u64) -> String {
        let device = phone(number);
        self.told(Input::Idle { device })
    }

    /// Answers all questions, until there are none.
    pub(super) fn all_idle(&mut self) -> String {
        let mut said = Vec::new();
        loop {
            let Some(device) = self.referee.asked().next() else {
                break;
            };
            said.push(self.told(Input::Idle { device }));
        }
        said.join(", ")
    }

    /// Asks for a lease that is to be granted at once.
    pub(super) fn hold(&mut self, wish: NewLease) {
        let lease = wish.id.clone();
        self.ask(wish);
        let devices = self.referee.asked().collect::<Vec<_>>();
        for device in devices {
            self.told(Input::Idle { device });
        }
        assert_eq!(self.state(lease.as_str()), LeaseState::Active);
    }

    /// Time passes, and the scheduler hears of it.
    pub(super) fn pass(&mut self, span: Duration) -> String {
        self.now = self.now.saturating_add(span);
        self.told(Input::Tick)
    }

    pub(super) fn see(&mut self, number: u64, service: Service) -> String {
        self.told(Input::Devices(vec![view(number, "a", service)]))
    }

    pub(super) fn release(&mut self, name: &str) -> String {
        self.told(end(name, EndReason::Released))
    }

    pub(super) fn renew(&mut self, name: &str) -> String {
        self.told(Input::Renew { id: id(name) })
    }

    pub(super) fn update(&mut self, name: &str, change: Change) -> String {
        let id = id(name);
        self.told(Input::Update { id, change })
    }

    pub(super) fn lease(&self, name: &str) -> &Lease {
        self.scheduler.lease(&id(name)).unwrap()
    }

    pub(super) fn state(&self, name: &str) -> LeaseState {
        self.lease(name).state()
    }

    pub(super) fn reason(&self, name: &str) -> EndReason {
        self.lease(name).end().unwrap().reason
    }

    /// The phones that a lease was granted, by their numbers.
    pub(super) fn devices(&self, name: &str) -> Vec<u64> {
        self.lease(name).devices().iter().map(number).collect()
    }

    /// Those that wait, in order.
    pub(super) fn queue(&self) -> String {
        let waiting = self.scheduler.waiting();
        let ids: Vec<_> = waiting.map(|lease| lease.id().to_string()).collect();
        for (index, name) in ids.iter().enumerate() {
            assert_eq!(self.scheduler.position(&id(name)), Some(index + 1));
        }
        ids.join(" ")
    }

    pub(super) fn explain(&self, name: &str) -> Explanation {
        self.scheduler.explain(&id(name), self.now).unwrap()
    }
}

pub(super) fn end(name: &str, how: EndReason) -> Input {
    Input::End {
        id: id(name),
        how,
        by: Some("somebody".into()),
        detail: Some("because".into()),
    }
}

pub(super) fn ttl(span: Duration) -> Change {
    Change {
        ttl: Some(span),
        ..Change::default()
    }
}

pub(super) fn longest(span: Duration) -> Change {
    Change {
        max_duration: Some(span),
        ..Change::default()
    }
}

pub(super) fn priority(priority: i32) -> Change {
    Change {
        priority: Some(Priority(priority)),
        ..Change::default()
    }
}

/// A wish that begins when the lease clock has run for so many seconds.
pub(super) fn later(begin: u64, wish: NewLease) -> NewLease {
    let begin = Begin {
        at: at(begin),
        time: SystemTime::UNIX_EPOCH + secs(begin),
    };
    NewLease {
        begin: Some(begin),
        ..wish
    }
}

/// A wish of a priority.
pub(super) fn urgent(priority: i32, wish: NewLease) -> NewLease {
    NewLease {
        priority: Priority(priority),
        ..wish
    }
}

/// A wish that waits for so long.
pub(super) fn patient(queue_timeout: Duration, mut wish: NewLease) -> NewLease {
    wish.terms.queue_timeout = queue_timeout;
    wish
}
