//! How many denied calls are recorded one by one.
//!
//! Whoever may do nothing here may still be denied a thousand times a second,
//! and the ledger keeps denials next to the fates of commands. So each caller has
//! a bucket of entries, and all of them together have another: what finds one
//! empty is left out, and told of by number with that caller's next entry, or in
//! an entry of its own after [`LATEST`].
//!
//! ```text
//! denied    x  x  x  x  x  x  x              x
//! recorded  x  x  └─ left out ─ x repeated: 4    (LATEST)
//! ```
//!
//! Invariants: no denial is neither recorded nor counted by an entry; in any
//! time T there are at most `ALL_BURST + T * ALL_PER_SECOND` entries and one for
//! each caller every [`LATEST`]; and memory is bounded by [`CALLERS`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fleetgate_ledger::NewOperation;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::Denial;
use super::clock::RuntimeClock;
use super::rates::Keyed;

/// So many denials of one caller are recorded at any pace.
const BURST: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
/// And so many more in each second.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(1).expect("not zero");
/// The same for all callers together.
const ALL_BURST: NonZeroU32 = NonZeroU32::new(200).expect("not zero");
const ALL_PER_SECOND: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

/// How long what was left out is waited with at the longest.
const LATEST: Duration = Duration::from_secs(30);

/// How many callers are told apart. Those beyond share what there is.
const CALLERS: usize = 1024;

/// One caller: who it says that it is, and the address without the port, which
/// is another for each connection.
type Key = Option<(Arc<str>, Option<IpAddr>)>;

/// What all those are that are not told apart.
const OTHERS: &str = "others";

/// What was left out of the record.
#[derive(Debug)]
struct LeftOut {
    count: u64,
    /// The newest.
    last: Denial,
    since: Instant,
}

/// The limits of all callers.
#[derive(Debug)]
pub(super) struct Flood {
    each: Keyed<Key>,
    all: RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<Nanos>>,
    left_out: HashMap<Key, LeftOut>,
}

impl Default for Flood {
    fn default() -> Self {
        let clock = RuntimeClock::default();
        let each = Quota::per_second(PER_SECOND).allow_burst(BURST);
        let all = Quota::per_second(ALL_PER_SECOND).allow_burst(ALL_BURST);
        Self {
            each: RateLimiter::hashmap_with_clock(each, clock),
            all: RateLimiter::direct_with_clock(all, clock),
            left_out: HashMap::new(),
        }
    }
}

impl Flood {
    /// Takes a denial, and gives what is to be recorded of it now.
    fn offer(&mut self, denial: Denial) -> Option<NewOperation> {
        let key = self.key(&denial);
        if self.each.check_key(&key).is_ok() && self.all.check().is_ok() {
            let before = self.left_out.remove(&key);
            return Some(entry(&key, denial, before.map_or(0, |before| before.count)));
        }
        self.leave_out(key, denial);
        None
    }

    /// Takes denials, and gives what is to be recorded now: some of these, and what
    /// has been waited with for long enough, however many come.
    pub(super) fn take(&mut self, denials: impl IntoIterator<Item = Denial>) -> Vec<NewOperation> {
        let mut entries = self.release(false);
        entries.extend(denials.into_iter().filter_map(|denial| self.offer(denial)));
        entries
    }

    /// Notes denials of which nothing is known but their number.
    pub(super) fn lost(&mut self, count: u64, like: Denial) {
        let left_out = self.left_out.entry(None).or_insert_with(|| LeftOut {
            count: 0,
            last: like,
            since: Instant::now(),
        });
        left_out.count = left_out.count.saturating_add(count);
    }

    /// When [`Flood::release`] has something.
    pub(super) fn due(&self) -> Option<Instant> {
        let left_out = self.left_out.values();
        left_out.map(|left_out| left_out.since + LATEST).min()
    }

    /// What has been waited with for long enough, or everything.
    pub(super) fn release(&mut self, everything: bool) -> Vec<NewOperation> {
        let now = Instant::now();
        let due = |_: &Key, left_out: &mut LeftOut| everything || left_out.since + LATEST <= now;
        self.left_out
            .extract_if(due)
            .map(|(key, LeftOut { count, last, .. })| entry(&key, last, count.saturating_sub(1)))
            .collect()
    }

    /// As whom a denial counts.
    fn key(&mut self, denial: &Denial) -> Key {
        if self.each.len() >= CALLERS {
            self.each.retain_recent();
        }
        let address = denial.address.map(|address| address.ip().to_canonical());
        let key = Some((Arc::clone(&denial.who), address));
        let is_known = self.left_out.contains_key(&key);
        if is_known || (self.each.len() < CALLERS && self.left_out.len() < CALLERS) {
            key
        } else {
            None
        }
    }

    fn leave_out(&mut self, key: Key, denial: Denial) {
        let count = self.left_out.get(&key).map_or(0, |left_out| left_out.count);
        let since = self.left_out.get(&key).map(|left_out| left_out.since);
        let left_out = LeftOut {
            count: count.saturating_add(1),
            last: denial,
            since: since.unwrap_or_else(Instant::now),
        };
        self.left_out.insert(key, left_out);
    }
}

/// The record of a denial, and of so many more.
fn entry(key: &Key, denial: Denial, repeated: u64) -> NewOperation {
    let Denial {
        who,
        method,
        address,
        reason,
        why,
        device,
        lease,
    } = denial;
    let mut detail = Map::new();
    let mut tell = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            detail.insert(name.to_owned(), value);
        }
    };
    tell("reason", Some(json!(reason)));
    tell("why", why.map(Value::from));
    tell("address", address.map(|address| json!(address.to_string())));
    tell("device", device.map(|device| json!(device.as_str())));
    tell("lease", lease.map(Value::from));
    tell("repeated", (repeated > 0).then(|| json!(repeated)));
    // The number is that of many, although the rest is about one.
    let of_many = key.is_none() && repeated > 0;
    tell("callers", of_many.then(|| json!(OTHERS)));
    NewOperation {
        who: who.to_string(),
        what: "deny-call".to_owned(),
        target: Some(method.to_owned()),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn denial(who: &str, port: u16) -> Denial {
        Denial {
            who: who.into(),
            method: "/fleetgate.v1.FleetService/GetDevice",
            address: Some(([192, 0, 2, 1], port).into()),
            reason: "CREDENTIALS_INVALID",
            why: None,
            device: None,
            lease: None,
        }
    }

    fn repeated(entry: &NewOperation) -> u64 {
        entry
            .detail
            .get("repeated")
            .map_or(0, |repeated| repeated.as_u64().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_from_many_ports_is_a_burst_of_entries_and_a_number() {
        let mut flood = Flood::default();
        let recorded = (0..1000).filter_map(|port| flood.offer(denial("anonymous", port)));
        assert_eq!(recorded.count(), 20);
        let other = flood.offer(denial("token:ci", 1)).unwrap();
        assert_eq!(repeated(&other), 0);
        advance(Duration::from_secs(1)).await;
        let next = flood.offer(denial("anonymous", 7)).unwrap();
        assert_eq!(repeated(&next), 980);
        assert_eq!(next.detail["address"], "192.0.2.1:7");
        assert_eq!(flood.due(), None, "all is told");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nothing_follows_is_told_after_a_while() {
        let mut flood = Flood::default();
        let recorded = (0..25).filter_map(|port| flood.offer(denial("anonymous", port)));
        assert_eq!(recorded.count(), 20);
        assert_eq!(flood.due(), Some(Instant::now() + LATEST));
        assert_eq!(flood.release(false), vec![]);
        advance(LATEST).await;
        let entries = flood.release(false);
        assert_eq!(entries.len(), 1);
        assert_eq!(repeated(&entries[0]), 4, "four besides the one it tells of");
        assert_eq!(entries[0].detail["address"], "192.0.2.1:24");
        assert_eq!(flood.release(true), vec![]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_does_not_keep_back_the_number_of_another() {
        let mut flood = Flood::default();
        let left_out = flood.take((0..25).map(|port| denial("token:ci", port)));
        assert_eq!(left_out.len(), 20);
        advance(LATEST).await;
        let entries = flood.take([denial("token:loud", 1)]);
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.who.as_str(), repeated(entry)))
            .collect();
        assert_eq!(told, [("token:ci", 4), ("token:loud", 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_without_end_cost_bounded_memory_and_are_all_counted() {
        const DENIED: u64 = 100_000;
        let mut flood = Flood::default();
        let mut recorded = Vec::new();
        for n in 0..DENIED {
            recorded.extend(flood.offer(denial(&n.to_string(), 1)));
        }
        assert_eq!(recorded.len(), 200, "what all together may");
        assert!(flood.left_out.len() <= CALLERS + 1);
        assert!(flood.each.len() <= CALLERS + 1);
        recorded.extend(flood.release(true));
        let told: u64 = recorded.iter().map(|entry| 1 + repeated(entry)).sum();
        assert_eq!(told, DENIED);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_lost_on_the_way_is_counted() {
        let mut flood = Flood::default();
        flood.lost(7, denial("anonymous", 1));
        let entries = flood.release(true);
        assert_eq!(
            entries.iter().map(|entry| 1 + repeated(entry)).sum::<u64>(),
            7
        );
        assert_eq!(entries[0].detail["callers"], "others");
    }
}
