//! Leases of phones: who may drive which, who is next, and why one waits.
//!
//! A [`Lease`] is a wish for phones that is granted as a whole, lives for as long
//! as its owner keeps it alive, and ends:
//!
//! ```text
//!   Create ── begins later ──► SCHEDULED ── gives back ───► CANCELLED
//!     │                            │      └─ revoked ──────► REVOKED
//!     │ begins at once             │ its time comes
//!     │                            ▼
//!     └─────────────────────────► QUEUED ─── gives back ───► CANCELLED
//!                                  │      ├─ revoked ──────► REVOKED
//!                                  │      ├─ queue_timeout ► EXPIRED
//!                                  │      └─ too few match ► UNSATISFIABLE
//!                                  │         when it begins to wait
//!                                  │
//!                                  │ all its phones are kept for it and idle:
//!                                  │ a new epoch
//!                                  ▼
//!                               ACTIVE ◄──┐
//!                                  │  └───┘ renewed, updated
//!                                  │
//!                                  │ gives back, revoked, ttl, max_duration
//!                                  ▼
//!                              DRAINING: nobody is let in, what is in flight
//!                                  │     goes on
//!                                  │
//!                                  │ all its phones are idle
//!                                  └───────► RELEASED, REVOKED or EXPIRED
//! ```
//!
//! A phone is in one slot, whatever else becomes of it:
//!
//! ```text
//!           out of service, or its lease ended: Free
//!       ┌───────────────────────────────────────┐
//!       ▼                                       │
//!     FREE ── a lease is given it: Close ──► RESERVED
//!       ▲                                       │
//!       │                                       │ Idle, for all of its phones:
//!       │                                       │ Changed(Granted), Open
//!       │                                       ▼
//!    DRAINING ◄── the lease ended: Close ──── HELD
//!       │   ▲
//!       │   └ Idle, but another phone of the lease is not
//!       │
//!       └ Idle, for all of its phones: Changed(Ended), then Free,
//!         or Close for the next lease
//! ```
//!
//! While a phone is free, whoever drives this crate may let commands without a
//! lease in: from RESERVED on, they have to end before the lease is granted. A
//! phone that is held or drains stays so when it is unplugged or cordoned; one
//! that is only reserved is not, and its lease is looked at again.
//!
//! Which lease is next is the order rule's to say: by priority, then by age, and
//! one that wants many phones at once is not passed over for ever by those that
//! want few. [`Scheduler::explain`] says by the same rule why one waits.
//!
//! The time of a lease that was granted runs from when its phones are open to it
//! ([`Input::Opened`]), however long it took to put the grant on record.
//!
//! Deadlines are times of the lease clock ([`LeaseTime`]), which has nothing to do
//! with the wall clock and stands still while the gateway is down. At its
//! deadline, and not after it, a lease has ended. A lease with a queue timeout of
//! zero is gone after the step that it was created in, unless its phones are kept
//! for it: then it waits until they are idle, and is gone if one of them is lost
//! and no other is free.
//!
//! This crate refuses to do anything: it has no tasks, no clock and no storage,
//! and knows no credentials. The [`Scheduler`] is told what happens ([`Input`])
//! and says what is to be done ([`Act`]); one task drives it.
//!
//! Invariants: no phone is in the hands of two leases; of two grants the later
//! has the higher [`Epoch`]; and nobody is let in before the grant is on record.
//!
//! ```
//! # use std::collections::BTreeMap;
//! # use std::num::NonZeroU32;
//! # use std::time::{Duration, SystemTime};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use fleetgate_lease::{
//!     Act, DeviceView, Input, LeaseTime, NewLease, Priority, Reach, Scheduler, Selector, Service,
//!     Terms, Wants, What,
//! };
//!
//! let (now, wall) = (LeaseTime::ZERO, SystemTime::UNIX_EPOCH);
//! let (mut scheduler, acts) = Scheduler::resume(Vec::new(), 1, now);
//! assert!(acts.is_empty());
//!
//! // There is a phone …
//! let phone = DeviceView {
//!     udid: "00008110-000978540290401E".parse()?,
//!     labels: BTreeMap::new(),
//!     model: None,
//!     os_version: Some("18.1".into()),
//!     host: None,
//!     service: Service::InService,
//! };
//! scheduler.step(Input::Devices(vec![phone.clone()]), now, wall)?;
//!
//! // … that somebody wants …
//! let wish = NewLease {
//!     id: "lease-1".parse()?,
//!     owner: "token:ci".into(),
//!     wants: Wants::Matching {
//!         selector: Selector { os_version: Some("18".into()), ..Selector::default() },
//!         count: NonZeroU32::MIN,
//!     },
//!     reach: Reach::Everywhere,
//!     priority: Priority(0),
//!     terms: Terms {
//!         ttl: Duration::from_secs(60),
//!         max_duration: Duration::from_secs(1800),
//!         queue_timeout: Duration::from_secs(900),
//!     },
//!     begin: None,
//!     labels: BTreeMap::new(),
//!     context: BTreeMap::new(),
//!     created: wall,
//! };
//! let acts = scheduler.step(Input::Create(wish.clone()), now, wall)?;
//! assert!(matches!(&acts[0], Act::Changed(_, What::Created)));
//! assert_eq!(acts[1], Act::Close(phone.udid.clone(), wish.id.clone()));
//!
//! // … and gets once nothing is in flight there.
//! let acts = scheduler.step(Input::Idle { device: phone.udid.clone() }, now, wall)?;
//! let Act::Changed(lease, What::Granted) = &acts[0] else { panic!() };
//! assert!(lease.epoch().is_some_and(|epoch| epoch.get() == 1));
//! assert_eq!(acts[1], Act::Open(phone.udid.clone(), wish.id.clone()));
//! # Ok(())
//! # }
//! ```

mod act;
mod explanation;
mod fleet;
mod id;
mod lease;
mod scheduler;
mod state;
mod time;
mod wants;

pub use act::{Act, Change, Input, Refused, What};
pub use explanation::{DeviceExplanation, Explanation, Obstacle};
pub use id::{Epoch, InvalidEpoch, InvalidLeaseId, LeaseId, Priority};
pub use lease::{Begin, End, Lease, NewLease, Terms};
pub use scheduler::Scheduler;
pub use state::{EndReason, LeaseState};
pub use time::LeaseTime;
pub use wants::{DeviceView, Reach, Selector, Service, Wants};
