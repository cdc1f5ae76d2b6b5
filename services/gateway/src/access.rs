//! Who calls, what it may do, and what becomes of calls that are denied.
//!
//! ```text
//! call ─► table: what the method takes ─► authenticator: who it is
//!           │                                  │
//!           └────────────► rates ─► role ─► handler ─► Access: on this phone?
//!                                    │                     │
//!                                    └──── denials ◄───────┘
//! ```
//!
//! What a role is good for on a phone is said by the phone's labels as they are
//! when it is asked. A phone that a principal may not even look at does not
//! exist for it: what is refused then looks as if there were no such phone.
//!
//! Invariant: every denial is counted and on record, as far as
//! [`flood`] has room for each.

use std::net::SocketAddr;
use std::sync::Arc;

use fleetgate_identity::{Principal, Role};
use fleetgate_runner::{CommandId, Udid};
use tonic::{Request, Status};

use crate::config::LimitsSection;
use crate::fleet::settings::{By, Settings};
use crate::metrics::Counters;
use crate::status;

mod clock;
mod denials;
mod flood;
mod rates;
mod table;

pub(crate) use denials::{Denial, Denials, DenialsTask};
pub(crate) use rates::{Place, TooMany};
pub(crate) use table::find;
pub use table::{Row, Rule, TABLE};

use rates::{Queued, Rates};

/// Who calls, what, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) method: &'static str,
}

impl Caller {
    /// Whose call a request is. A request that nobody was asked about is
    /// nobody's, and refused.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let caller = request.extensions().get::<Self>().cloned();
        caller.ok_or_else(status::credentials_missing)
    }

    /// The principal's name.
    pub(crate) fn name(&self) -> &str {
        self.principal.name()
    }
}

/// Whether nothing is hidden from a caller.
pub(crate) fn sees_everything(caller: &Caller) -> bool {
    caller.principal.fleet_wide().is_some()
}

/// Who does something that goes on record.
impl From<&Caller> for By {
    fn from(caller: &Caller) -> Self {
        Self {
            who: caller.name().to_owned(),
            address: caller.address.map(|address| address.to_string()),
        }
    }
}

/// What callers may do. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Access(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    denials: Denials,
    rates: Rates,
    queued: Queued,
    counters: Counters,
}

impl Access {
    pub(crate) fn new(
        settings: Settings,
        denials: Denials,
        limits: &LimitsSection,
        counters: Counters,
    ) -> Self {
        let queued = Queued::new(limits);
        let rates = Rates::new(limits);
        Self(Arc::new(Shared {
            settings,
            denials,
            rates,
            queued,
            counters,
        }))
    }

    /// Where denied calls are recorded.
    pub(crate) fn denials(&self) -> &Denials {
        &self.0.denials
    }

    /// Whether a caller has a role on a phone. If not, that is recorded, and the
    /// status is what it is to be told.
    pub(crate) fn check(&self, caller: &Caller, role: Role, device: &Udid) -> Result<(), Status> {
        self.check_as(caller, role, device, device.as_str(), None)
    }

    /// The same for a phone that the caller has called so, for a command if it is
    /// for one: what it is told of a phone that it may not look at says nothing
    /// that it has not said itself.
    pub(crate) fn check_as(
        &self,
        caller: &Caller,
        role: Role,
        device: &Udid,
        name: &str,
        command_id: Option<&CommandId>,
    ) -> Result<(), Status> {
        let held = self.role_on(caller, device);
        if held.is_some_and(|held| held >= role) {
            return Ok(());
        }
        let elsewhere = caller.principal.anywhere();
        let is_elsewhere = elsewhere.is_some_and(|elsewhere| elsewhere >= role);
        let (reason, status) = match held {
            None => (
                status::DEVICE_OUT_OF_SCOPE,
                status::device_unknown(name, command_id),
            ),
            Some(held) if is_elsewhere => (
                status::DEVICE_OUT_OF_SCOPE,
                status::device_out_of_scope(role, held, device, command_id),
            ),
            Some(held) => (
                status::ROLE_TOO_LOW,
                status::role_too_low(role, Some(held), Some(device), command_id),
            ),
        };
        self.denials()
            .record(Denial::of(caller, reason).device(device));
        Err(status)
    }

    /// Whether a phone exists for a caller.
    pub(crate) fn may_see(&self, caller: &Caller, device: &Udid) -> bool {
        sees_everything(caller) || self.role_on(caller, device).is_some()
    }

    /// Takes a call of a caller, or a message of one that stands for a call.
    pub(crate) fn take(&self, caller: &Caller) -> Result<(), Status> {
        self.0.rates.take(caller.name()).map_err(|wait| {
            self.0.counters.limited(status::RATE_LIMITED);
            self.deny(caller, status::RATE_LIMITED);
            status::rate_limited(wait)
        })
    }

    /// A place for a command among those of its caller, for as long as it is
    /// under way.
    pub(crate) fn enter(&self, caller: &Caller) -> Result<Place, TooMany> {
        let place = self.0.queued.enter(caller.name());
        if place.is_err() {
            self.0.counters.limited(status::QUOTA_EXCEEDED);
            self.deny(caller, status::QUOTA_EXCEEDED);
        }
        place
    }

    fn deny(&self, caller: &Caller, reason: &'static str) {
        self.denials().record(Denial::of(caller, reason));
    }

    /// The role that a caller has on a phone.
    pub(crate) fn role_on(&self, caller: &Caller, device: &Udid) -> Option<Role> {
        let settings = self.0.settings.get(device);
        caller.principal.on(&settings.labels)
    }
}
