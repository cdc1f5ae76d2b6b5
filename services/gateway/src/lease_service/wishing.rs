//! Wishes: which phones a caller may have, on which terms.

use std::collections::BTreeSet;

use fleetgate_identity::{Grant, Role};
use fleetgate_lease::{Begin, NewLease, Priority, Reach, Terms, Wants};
use tonic::Status;

use super::LeaseApi;
use crate::access::{Caller, Denial};
use crate::convert::{LeaseWish, WishedPhones};
use crate::leases::{Asked, LeaseError, LeaseView, Order, mint, wall_now};
use crate::status;

impl LeaseApi {
    /// Makes a lease, or gives the one that the same request has made before.
    pub(super) async fn create(
        &self,
        caller: &Caller,
        wish: LeaseWish,
    ) -> Result<LeaseView, Status> {
        if self.core.fleet().is_closed() {
            return Err(status::leases_draining());
        }
        let wants = self.wants(caller, &wish).await?;
        let asked = Asked::of(&wish, wants.clone());
        let LeaseWish {
            request_id,
            phones: _,
            priority,
            ttl,
            max_duration,
            queue_timeout,
            begin,
            labels,
            context,
        } = wish;
        let highest = self.highest(caller, &wants);
        let created = wall_now();
        // One whose time has come begins at once.
        let left = begin.and_then(|time| Some((time, time.duration_since(created).ok()?)));
        let begin = left.map(|(time, left)| Begin {
            at: self.leases().clock().now().saturating_add(left),
            time,
        });
        let lease = NewLease {
            id: mint(),
            owner: caller.name().to_owned(),
            wants,
            reach: reach(caller),
            priority: Priority(priority).min(highest),
            terms: Terms {
                ttl: ttl.unwrap_or(self.limits().ttl),
                max_duration: max_duration.unwrap_or(self.limits().max_duration),
                queue_timeout: queue_timeout.unwrap_or(self.limits().queue_timeout),
            },
            begin,
            labels,
            context,
            created,
        };
        let order = Order {
            lease,
            request_id,
            asked,
            address: caller.address.map(|address| address.to_string()),
        };
        let created = self.leases().create(order).await;
        created.map_err(|error| {
            if let LeaseError::Quota { .. } = error {
                let denial = Denial::of(caller, status::QUOTA_EXCEEDED);
                self.core.access().denials().record(denial);
            }
            status::not_leased(&error, None)
        })
    }

    /// What a caller wants, if it may have what it names.
    async fn wants(&self, caller: &Caller, wish: &LeaseWish) -> Result<Wants, Status> {
        match &wish.phones {
            WishedPhones::Named(names) => {
                let mut devices = BTreeSet::new();
                for name in names {
                    let device = self.core.fleet().resolve(name).await;
                    let device = device.ok_or_else(|| status::device_unknown(name, None))?;
                    let access = self.core.access();
                    access.check_as(caller, Role::Operator, &device, name, None)?;
                    if !devices.insert(device.clone()) {
                        return Err(status::named_twice(&device));
                    }
                }
                Ok(Wants::Devices(devices))
            }
            WishedPhones::Matching { selector, count } => {
                let wants = Wants::Matching {
                    selector: selector.clone(),
                    count: *count,
                };
                let fleet = self.core.fleet();
                fleet.until_announced(&wants, &reach(caller)).await;
                Ok(wants)
            }
        }
    }

    /// The highest priority that a caller gets for phones: an admin's where it is
    /// an admin of all that it may get, an operator's otherwise.
    pub(super) fn highest(&self, caller: &Caller, wants: &Wants) -> Priority {
        let role = match wants {
            Wants::Devices(devices) => {
                let settings = self.core.fleet().settings();
                let on = |device| caller.principal.on(&settings.get(device).labels);
                devices.iter().map(on).min().flatten()
            }
            Wants::Matching { .. } => match caller.principal.fleet_wide() {
                Some(everywhere) if everywhere >= Role::Operator => Some(everywhere),
                Some(_) | None => driving(caller).map(|grant| grant.role).min(),
            },
        };
        Priority(match role {
            Some(Role::Admin) => self.limits().admin_priority,
            Some(Role::Operator | Role::Viewer) | None => self.limits().operator_priority,
        })
    }
}

/// The grants by which a caller may have phones.
fn driving(caller: &Caller) -> impl Iterator<Item = &Grant> {
    let grants = caller.principal.grants().iter();
    grants.filter(|grant| grant.role >= Role::Operator)
}

/// Where a caller may have phones: by the labels of its grants, unless one of
/// them is for the fleet.
fn reach(caller: &Caller) -> Reach {
    if caller.principal.fleet_wide() >= Some(Role::Operator) {
        return Reach::Everywhere;
    }
    let grants = driving(caller);
    Reach::Within(grants.map(|grant| grant.labels.clone()).collect())
}
