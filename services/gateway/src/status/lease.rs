//! What is told about leases: to commands that are not let in, and to those who
//! ask for leases.

use fleetgate_lease::{EndReason, LeaseId};
use fleetgate_runner::{CommandId, Udid};
use tonic::{Code, Status};

use super::access::QUOTA_EXCEEDED;
use super::acts::not_recorded;
use super::refusal::{Facts, Refusal};
use super::{LATER, SOON, ledger_refusal, unrecorded, unusable};
use crate::convert::{Violation, timestamp};
use crate::leases::{LeaseError, Refused};

/// A command that is not let in.
pub(crate) fn not_admitted(device: &Udid, command_id: &CommandId, refused: &Refused) -> Status {
    let facts = Facts::not_sent(Some(device.as_str()), Some(command_id.as_str()));
    refusal(refused, facts).into()
}

/// A lease of which nothing is known.
pub(crate) fn lease_unknown(id: &LeaseId) -> Status {
    let refused = Refused::Unknown(id.clone());
    refusal(&refused, Facts::default()).into()
}

/// What was asked for of a lease and was not done.
pub(crate) fn lease_refused(refused: &Refused) -> Status {
    refusal(refused, Facts::default()).into()
}

fn refusal(refused: &Refused, facts: Facts) -> Refusal {
    let facts = facts
        .with_some("lease", refused.lease().map(LeaseId::as_str))
        .hint(refused.hint());
    let facts = match refused {
        Refused::HeldByOther { owner, until } => {
            facts.with_some("lease_owner", owner.as_deref()).with_some(
                "until",
                until.map(|until| timestamp(until).to_string()).as_deref(),
            )
        }
        Refused::Unnamed { granted, .. } | Refused::EpochStale { granted, .. } => {
            let granted = granted.map(|granted| granted.to_string());
            facts.with_some("lease_epoch", granted.as_deref())
        }
        Refused::Required
        | Refused::Unknown(_)
        | Refused::NotOwner(_)
        | Refused::NotActive(..)
        | Refused::OtherDevice(_)
        | Refused::Ended { .. } => facts,
    };
    Refusal::new(code(refused), refused.reason(), refused.to_string()).facts(facts)
}

fn code(refused: &Refused) -> Code {
    match refused {
        Refused::Unknown(_) => Code::NotFound,
        Refused::Required
        | Refused::Unnamed { .. }
        | Refused::NotActive(..)
        | Refused::Ended {
            how: EndReason::Unsatisfiable,
            ..
        } => Code::FailedPrecondition,
        Refused::HeldByOther { .. }
        | Refused::NotOwner(_)
        | Refused::EpochStale { .. }
        | Refused::OtherDevice(_)
        | Refused::Ended {
            how:
                EndReason::Released
                | EndReason::TtlExpired
                | EndReason::MaxDuration
                | EndReason::QueueTimeout
                | EndReason::Revoked
                | EndReason::Cancelled,
            ..
        } => Code::PermissionDenied,
    }
}

/// What was asked for of leases and was not done; `id` is the lease, if one was
/// named.
pub(crate) fn not_leased(error: &LeaseError, id: Option<&LeaseId>) -> Status {
    let message = error.to_string();
    match error {
        LeaseError::Refused(refused) => lease_refused(refused),
        LeaseError::NotOpen => {
            let facts = Facts::default().with_some("lease", id.map(LeaseId::as_str));
            Refusal::new(Code::NotFound, "LEASE_NOT_FOUND", message)
                .facts(facts)
                .into()
        }
        LeaseError::NotWaiting => {
            let hint = "the priority of a lease counts until it is granted";
            Refusal::new(Code::FailedPrecondition, "LEASE_NOT_WAITING", message)
                .facts(Facts::default().hint(Some(hint)))
                .into()
        }
        LeaseError::TooManyLabels => wrong("set_labels", "must not make it too many"),
        LeaseError::Unusable(why) => wrong("wants", why),
        LeaseError::Quota { limit } => {
            let facts = Facts::default()
                .with("limit", &limit.to_string())
                .hint(Some("release those that are of no use any more"));
            Refusal::new(Code::ResourceExhausted, QUOTA_EXCEEDED, message)
                .facts(facts)
                .retry(Some(LATER))
                .into()
        }
        LeaseError::Differs { fields } => {
            let violations = fields.iter().map(|field| Violation {
                field: (*field).to_owned(),
                description: "differs from the request that has this id".to_owned(),
            });
            let facts = Facts::default()
                .with("differing", &fields.join(","))
                .hint(Some("use a new request_id for another wish"));
            Refusal::new(Code::AlreadyExists, "REQUEST_ID_CONFLICT", message)
                .facts(facts)
                .violations(violations.collect())
                .into()
        }
        LeaseError::LookAgain => Refusal::new(Code::Unavailable, "LEASE_ENDING", message)
            .retry(Some(SOON))
            .into(),
        LeaseError::Ledger(error) => unrecorded(error),
        LeaseError::Unwritten { error, ended } => {
            let hint = if *ended {
                "the lease has ended all the same and nothing is let in by it: that goes on \
                 record once the ledger takes it"
            } else {
                "it may be done yet: it counts once the ledger takes it"
            };
            not_recorded(error, hint)
        }
        LeaseError::Unreadable(_) => Refusal::new(Code::Internal, "LEDGER_FAILED", message).into(),
        LeaseError::Closed => leases_draining(),
    }
}

/// Leases that could not be read.
pub(crate) fn leases_unread(error: &LeaseError) -> Status {
    match error {
        LeaseError::Ledger(error) | LeaseError::Unwritten { error, .. } => {
            ledger_refusal(error).into()
        }
        LeaseError::Refused(_)
        | LeaseError::NotOpen
        | LeaseError::NotWaiting
        | LeaseError::TooManyLabels
        | LeaseError::Unusable(_)
        | LeaseError::Quota { .. }
        | LeaseError::Differs { .. }
        | LeaseError::LookAgain
        | LeaseError::Unreadable(_)
        | LeaseError::Closed => not_leased(error, None),
    }
}

/// What was asked for when the gateway had been told to stop.
pub(crate) fn leases_draining() -> Status {
    Refusal::new(
        Code::Unavailable,
        "GATEWAY_DRAINING",
        "the gateway is draining",
    )
    .retry(Some(LATER))
    .into()
}

/// A watch that ends because the gateway does; leases go on.
pub(crate) fn watch_draining() -> Status {
    let hint = "leases outlive the gateway: watch again when it is back";
    Refusal::new(
        Code::Unavailable,
        "GATEWAY_DRAINING",
        "the gateway is draining",
    )
    .facts(Facts::default().hint(Some(hint)))
    .retry(Some(LATER))
    .into()
}

/// A phone that is named twice, be it in two spellings.
pub(crate) fn named_twice(device: &Udid) -> Status {
    wrong("device_list.devices", &format!("names {device} twice"))
}

fn wrong(field: &str, description: &str) -> Status {
    let violation = Violation {
        field: field.to_owned(),
        description: description.to_owned(),
    };
    unusable(vec![violation].into()).into()
}
