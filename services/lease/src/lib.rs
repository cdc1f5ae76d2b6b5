//! Leases of phones: who may drive which, who is next, and why one waits.

mod act;
mod explanation;
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
pub use wants::{DeviceView, Selector, Service, Wants};
