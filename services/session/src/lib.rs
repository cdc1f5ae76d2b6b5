//! One device's session: every command to a phone goes through here, one at a
//! time, and none leaves without a fate.
//!
//! A [`Session`] is a `tower::Service<Job>`. Behind it one task owns the
//! device's lane and drives a stack of layers, a file each:
//!
//! ```text
//!   Session     admit: the lane's queue, or past it for status    session, lane, queue
//!   Aim         a relative point: read the viewport first         aim
//!   OnRecord    a last look at the leave, intent before the       leave, on_record, recorder
//!               first byte, fate before reply, no typed text      settle
//!   Contain     a panic or a shutdown is an outcome too           contain
//!   BusyRetry   RUNNER_BUSY, and nothing else, is sent again      retry
//!   RecoverLost a lost reply is asked for, never sent for again   recover
//!   Resend      a read whose transport failed is sent again       resend
//!   Window      one deadline over one whole attempt               window
//!   (exchange)  Service<Exchange>, given by the caller
//! ```
//!
//! Beside it a second task settles what the stack could not, and asks nothing
//! but `status`:
//!
//! ```text
//!   Aftermath   owns what follows                                 aftermath
//!   Resolver    an unknown fate is looked into, long after        resolver, doubt, docket
//!   reconcile   what may be under way, before other mutations     reconcile, hold
//!   vigil       a runner that executes nothing is watched         vigil, gauge, condition
//! ```
//!
//! Whoever keeps the runner running watches the session's [`Vitals`], asks by a
//! [`Probe`] of its own, tells the session what it hears, and pauses it while
//! there is no runner ([`Pause`]).
//!
//! It refuses to know any transport, database or RPC: the exchange with the
//! phone and the recorder of fates are `tower` services that it is given.
//!
//! Invariant: a mutation is sent at most once per leave to send it, and its
//! fate is known or called unknown; nothing of it depends on a caller that is
//! still there.

mod aftermath;
mod aim;
mod attach;
mod backoff;
mod condition;
mod config;
mod contain;
mod dispatch;
mod docket;
mod doubt;
mod failure;
mod gauge;
mod hold;
mod inquiry;
mod job;
mod lane;
mod leave;
mod on_record;
mod origin;
mod probe;
mod queue;
mod reconcile;
mod record;
mod recorder;
mod recover;
mod resend;
mod resolver;
mod retry;
mod session;
mod settle;
mod tally;
mod testimony;
#[cfg(test)]
mod testing;
mod traffic;
mod turn;
mod vigil;
mod window;

pub use condition::{Condition, Drain};
pub use config::SessionConfig;
pub use failure::{Failed, Failure};
pub use gauge::Vitals;
pub use job::{Job, Receipt, Success};
pub use leave::{Leave, Withdrawn};
pub use origin::{LeaseStamp, Origin};
pub use probe::{Probe, ProbeWindow};
pub use record::{
    Conclusion, Intent, Record, RecordError, RecordErrorKind, Resolution, Subject, Unsettled,
};
pub use session::{Session, SessionTask};
pub use traffic::{Load, Pause};
