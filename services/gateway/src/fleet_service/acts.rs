//! What operators do: recorded first, then done.
//!
//! An act whose record the ledger does not take is not done. One that is
//! recorded is done even if its caller has gone, by a task that nobody's
//! patience ends.

use std::future;
use std::panic::resume_unwind;
use std::time::SystemTime;

use fleetgate_identity::Role;
use fleetgate_ledger::NewOperation;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use serde_json::{Map, Value};
use tokio_util::task::TaskTracker;
use tonic::Status;
use tracing::{Instrument, info};

use crate::access::Caller;
use crate::core::Core;
use crate::fleet::settings::{By, Change, Settings, SettingsError};
use crate::leases::{LeaseError, Refused};
use crate::status;

/// Does what operators ask for. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Acts {
    core: Core,
    under_way: TaskTracker,
}

impl Acts {
    pub(super) fn new(core: Core) -> Self {
        let under_way = TaskTracker::new();
        Self { core, under_way }
    }

    /// A phone as it is.
    pub(super) async fn look(&self, name: &str, caller: &Caller) -> Result<pb::Device, Status> {
        let device = self.resolve(name, caller, Role::Viewer).await?;
        self.device(&device).await
    }

    pub(super) async fn update(
        &self,
        name: &str,
        change: Change,
        caller: &Caller,
    ) -> Result<pb::Device, Status> {
        // Labels say who may do what.
        let device = self.resolve(name, caller, Role::Admin).await?;
        let done = self.settings().update(&device, change, caller).await;
        done.map_err(|error| self.not_set(&error, caller))?;
        self.device(&device).await
    }

    pub(super) async fn cordon(
        &self,
        name: &str,
        reason: String,
        until: Option<SystemTime>,
        caller: &Caller,
    ) -> Result<pb::Device, Status> {
        let device = self.resolve(name, caller, Role::Operator).await?;
        let done = self.settings().cordon(&device, reason, until, caller).await;
        done.map_err(|error| self.not_set(&error, caller))?;
        self.device(&device).await
    }

    pub(super) async fn uncordon(&self, name: &str, caller: &Caller) -> Result<pb::Device, Status> {
        let device = self.resolve(name, caller, Role::Operator).await?;
        let done = self.settings().uncordon(&device, caller).await;
        done.map_err(|error| self.not_set(&error, caller))?;
        self.device(&device).await
    }

    /// Has a runner ended and launched again. What happens to it from then on
    /// is told by its phone's states.
    pub(super) async fn recycle(
        &self,
        name: &str,
        force: bool,
        reason: String,
        caller: &Caller,
    ) -> Result<pb::Device, Status> {
        let device = self.resolve(name, caller, Role::Operator).await?;
        self.spares_others(caller, &device)?;
        let by = By::from(caller);
        let (core, phone) = (self.core.clone(), device.clone());
        self.own(async move {
            let refused = |why| status::not_recycled(&phone, why);
            core.fleet().may_recycle(&phone).map_err(refused)?;
            let mut detail = detail(reason.clone());
            detail.insert("force".to_owned(), force.into());
            by.note(&mut detail);
            let who = by.who;
            let operation = NewOperation {
                who: who.clone(),
                what: "recycle-runner".to_owned(),
                target: Some(phone.to_string()),
                detail,
            };
            let recorded = core.ledger().operation(operation).await;
            recorded.map_err(|error| status::unrecorded(&error))?;
            info!(device.id = %phone, who, force, "runner recycle requested");
            // It may have been unplugged meanwhile: then the record tells of an
            // attempt.
            core.fleet()
                .recycle(&phone, force, &reason)
                .map_err(refused)
        })
        .await?;
        self.device(&device).await
    }

    /// Ends the gateway. A gateway that is on its way out already stays there,
    /// and nothing is recorded.
    pub(super) async fn drain(&self, reason: String, caller: &Caller) -> Result<(), Status> {
        let (core, by) = (self.core.clone(), By::from(caller));
        if core.quit().is_cancelled() || core.fleet().is_closed() {
            return Ok(());
        }
        self.own(async move {
            let mut detail = detail(reason);
            by.note(&mut detail);
            let who = by.who;
            let operation = NewOperation {
                who: who.clone(),
                what: "drain-gateway".to_owned(),
                target: None,
                detail,
            };
            let recorded = core.ledger().operation(operation).await;
            recorded.map_err(|error| status::unrecorded(&error))?;
            info!(who, "gateway drain requested");
            core.quit().cancel();
            Ok(())
        })
        .await
    }

    /// Brings an act to its end, whether its caller stays or not.
    async fn own(
        &self,
        act: impl Future<Output = Result<(), Status>> + Send + 'static,
    ) -> Result<(), Status> {
        let act = self.under_way.spawn(act.in_current_span());
        match act.await {
            Ok(done) => done,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Nobody aborts it: the whole runtime is ending.
                Err(_cancelled) => future::pending().await,
            },
        }
    }

    /// The phone that a caller means, if it has this role on it.
    async fn resolve(&self, name: &str, caller: &Caller, role: Role) -> Result<Udid, Status> {
        let device = self.core.fleet().resolve(name).await;
        let device = device.ok_or_else(|| status::device_unknown(name, None))?;
        let access = self.core.access();
        access.check_as(caller, role, &device, name, None)?;
        Ok(device)
    }

    /// Who has leased a phone has its runner, too, until an admin takes it away.
    fn spares_others(&self, caller: &Caller, device: &Udid) -> Result<(), Status> {
        if self.core.access().role_on(caller, device) >= Some(Role::Admin) {
            return Ok(());
        }
        let gate = self.core.leases().gate();
        match gate.admit(device, caller.name(), None) {
            Err(held @ Refused::HeldByOther { .. }) => {
                self.core.denied(caller, &held, Some(device));
                Err(status::not_leased(&LeaseError::Refused(held), None))
            }
            // Its own, or nobody's.
            Ok(_)
            | Err(
                Refused::Required
                | Refused::Unnamed { .. }
                | Refused::Unknown(_)
                | Refused::NotOwner(_)
                | Refused::NotActive(..)
                | Refused::EpochStale { .. }
                | Refused::OtherDevice(_)
                | Refused::Ended { .. },
            ) => Ok(()),
        }
    }

    async fn device(&self, device: &Udid) -> Result<pb::Device, Status> {
        let found = self.core.fleet().device(device.as_str()).await;
        found.ok_or_else(|| status::device_unknown(device.as_str(), None))
    }

    fn not_set(&self, error: &SettingsError, caller: &Caller) -> Status {
        let access = self.core.access();
        status::not_set(error, |device| access.may_see(caller, device))
    }

    fn settings(&self) -> &Settings {
        self.core.fleet().settings()
    }
}

/// The reason, if there is one.
fn detail(reason: String) -> Map<String, Value> {
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    reason
        .map(|reason| ("reason".to_owned(), reason.into()))
        .into_iter()
        .collect()
}
