//! Whatever may happen, in whatever order.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::support::*;
use crate::*;

/// So many phones there are at most.
const PHONES: u64 = 6;

/// Something that happens, if it can.
#[derive(Debug, Clone)]
pub(super) enum Chance {
    /// Somebody wants phones; the name of the lease and the time to begin are
    /// to be set.
    Wish(Box<NewLease>, Option<u64>),
    Renew(Index),
    Update(Index, Change),
    End(Index, EndReason),
    See(Vec<DeviceView>),
    /// One of the questions that were asked is answered.
    Idle(Index),
    /// All of them are.
    AllIdle,
    /// The phones of a lease that was granted are open to it.
    Opened(Index),
    /// Those of all are.
    AllOpened,
    /// Those of one that may not have been are said to be.
    Unopened(Index),
    /// Nobody asked.
    Unasked(u64),
    /// Time passes, and the scheduler may hear of it.
    Pass(u64, bool),
}

fn rack() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("a"), 1 => Just("b")]
}

fn wants() -> impl Strategy<Value = Wants> {
    let named = prop::collection::btree_set(1..=PHONES, 1..4);
    prop_oneof![
        2 => Just(some(1)),
        2 => (1_u32..4).prop_map(some),
        2 => (rack(), 1_u32..4).prop_map(|(rack, count)| of_rack(rack, count)),
        2 => named.prop_map(|named| these(&named.into_iter().collect::<Vec<_>>())),
    ]
}

fn millis(longest: u64) -> impl Strategy<Value = std::time::Duration> {
    (1..=longest).prop_map(std::time::Duration::from_millis)
}

fn terms() -> impl Strategy<Value = Terms> {
    let queue_timeout = prop_oneof![
        1 => Just(secs(0)),
        3 => millis(50),
        3 => Just(secs(900)),
    ];
    (millis(50), millis(150), queue_timeout).prop_map(|(ttl, max_duration, queue_timeout)| Terms {
        ttl,
        max_duration,
        queue_timeout,
    })
}

fn any_wish() -> impl Strategy<Value = NewLease> {
    let bound = prop::option::weighted(0.3, rack());
    (wants(), 0..3, terms(), bound).prop_map(|(wants, priority, terms, bound)| {
        let wish = urgent(priority, wish("unnamed", wants));
        let wish = NewLease { terms, ..wish };
        match bound {
            Some(rack) => bound_to(rack, wish),
            None => wish,
        }
    })
}

fn service() -> impl Strategy<Value = Service> {
    prop_oneof![
        6 => Just(Service::InService),
        1 => Just(Service::Detached),
        1 => Just(Service::Quarantined),
        1 => Just(Service::Cordoned),
        1 => Just(Service::NotReady),
    ]
}

pub(super) fn views() -> impl Strategy<Value = Vec<DeviceView>> {
    let view = (1..=PHONES, rack(), service())
        .prop_map(|(number, rack, service)| view(number, rack, service));
    prop::collection::vec(view, 1..4)
}

fn change() -> impl Strategy<Value = Change> {
    let label = prop::option::of(("[ab]", "[xy]"));
    prop_oneof![
        2 => (0..3).prop_map(priority),
        1 => millis(100).prop_map(ttl),
        1 => millis(100).prop_map(longest),
        1 => (label, prop::option::of("[ab]")).prop_map(|(set, remove)| Change {
            set_labels: set.into_iter().collect(),
            remove_labels: remove.into_iter().collect(),
            ..Change::default()
        }),
    ]
}

pub(super) fn chance() -> impl Strategy<Value = Chance> {
    let which = any::<Index>;
    prop_oneof![
        6 => any_wish().prop_map(|wish| Chance::Wish(wish.into(), None)),
        1 => (any_wish(), 0..40_u64).prop_map(|(wish, begin)| Chance::Wish(wish.into(), Some(begin))),
        4 => which().prop_map(Chance::Renew),
        2 => (which(), change()).prop_map(|(which, change)| Chance::Update(which, change)),
        3 => which().prop_map(|which| Chance::End(which, EndReason::Released)),
        1 => which().prop_map(|which| Chance::End(which, EndReason::Revoked)),
        3 => views().prop_map(Chance::See),
        8 => which().prop_map(Chance::Idle),
        2 => Just(Chance::AllIdle),
        4 => which().prop_map(Chance::Opened),
        2 => Just(Chance::AllOpened),
        1 => which().prop_map(Chance::Unopened),
        1 => (1..=PHONES).prop_map(Chance::Unasked),
        4 => (0..20_u64, proptest::bool::weighted(0.8))
            .prop_map(|(span, tells)| Chance::Pass(span, tells)),
    ]
}

/// A desk to which things happen, and what it was told.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) desk: Desk,
    /// The names of all leases that ever were.
    made: Vec<String>,
}

impl World {
    /// With no phones yet.
    pub(super) fn new() -> Self {
        Self {
            desk: Desk {
                opens: false,
                ..Desk::new(0)
            },
            made: Vec::new(),
        }
    }

    pub(super) fn made(&self) -> &[String] {
        &self.made
    }

    /// What the scheduler is to be told when something happens. Time may have
    /// passed.
    pub(super) fn inputs(&mut self, chance: Chance) -> Vec<Input> {
        let which = |index: Index| {
            let name = (!self.made.is_empty()).then(|| index.get(&self.made));
            name.map(|name| id(name))
        };
        let input = match chance {
            Chance::Wish(wish, begin) => {
                let name = format!("l{}", self.made.len());
                let mut wish = NewLease {
                    id: id(&name),
                    ..*wish
                };
                self.made.push(name);
                wish.begin = begin.map(|begin| Begin {
                    at: self
                        .desk
                        .now
                        .saturating_add(std::time::Duration::from_millis(begin)),
                    time: std::time::UNIX_EPOCH,
                });
                Some(Input::Create(wish))
            }
            Chance::Renew(index) => which(index).map(|id| Input::Renew { id }),
            Chance::Update(index, what) => {
                which(index).map(|id| Input::Update { id, change: what })
            }
            Chance::End(index, how) => which(index).map(|id| end(id.as_str(), how)),
            Chance::See(views) => Some(Input::Devices(views)),
            Chance::Idle(index) => {
                let asked: Vec<_> = self.desk.referee.asked().collect();
                let device = (!asked.is_empty()).then(|| index.get(&asked).clone());
                device.map(|device| Input::Idle { device })
            }
            Chance::AllIdle => {
                let asked = self.desk.referee.asked();
                return asked.map(|device| Input::Idle { device }).collect();
            }
            Chance::Opened(index) => {
                let unopened: Vec<_> = self.desk.referee.unopened().collect();
                let id = (!unopened.is_empty()).then(|| index.get(&unopened).clone());
                id.map(|id| Input::Opened { id })
            }
            Chance::AllOpened => {
                let unopened = self.desk.referee.unopened();
                return unopened.map(|id| Input::Opened { id }).collect();
            }
            Chance::Unopened(index) => which(index).map(|id| Input::Opened { id }),
            Chance::Unasked(number) => {
                let device = phone(number);
                let asked: BTreeSet<_> = self.desk.referee.asked().collect();
                (!asked.contains(&device)).then_some(Input::Idle { device })
            }
            Chance::Pass(span, tells) => {
                let span = std::time::Duration::from_millis(span);
                self.desk.now = self.desk.now.saturating_add(span);
                tells.then_some(Input::Tick)
            }
        };
        input.into_iter().collect()
    }
}
