//! What is told to callers that are not known, may not do what they ask for, or
//! ask for too much.
//!
//! Nothing of a credential is ever told, and nothing of a phone that a caller
//! may not look at.

use std::time::Duration;

use fleetgate_identity::{AuthError, Role};
use fleetgate_runner::{CommandId, Udid};
use tonic::{Code, Status};

use super::SOON;
use super::refusal::{Facts, Refusal};
use crate::access::TooMany;

/// A call without a word on who makes it.
const CREDENTIALS_MISSING: &str = "CREDENTIALS_MISSING";
/// A caller that is another than when it was let in.
pub(crate) const CREDENTIALS_CHANGED: &str = "CREDENTIALS_CHANGED";
/// A role that the caller has nowhere.
pub(crate) const ROLE_TOO_LOW: &str = "ROLE_TOO_LOW";
/// A role that the caller has, but not here.
pub(crate) const DEVICE_OUT_OF_SCOPE: &str = "DEVICE_OUT_OF_SCOPE";
/// More calls than one may make.
pub(crate) const RATE_LIMITED: &str = "RATE_LIMITED";
/// More of something than one may have.
pub(crate) const QUOTA_EXCEEDED: &str = "QUOTA_EXCEEDED";

/// A method that this server does not have.
pub(crate) fn method_unknown(path: &str) -> Status {
    let message = format!("this gateway has no method {path}");
    Refusal::new(Code::Unimplemented, "METHOD_UNKNOWN", message).into()
}

/// A call without a word on who makes it.
pub(crate) fn credentials_missing() -> Status {
    let hint = "send a token as `authorization: Bearer TOKEN`; on the gateway's own host the \
                command line finds one by itself";
    Refusal::new(
        Code::Unauthenticated,
        CREDENTIALS_MISSING,
        "the call does not say who makes it",
    )
    .facts(Facts::default().hint(Some(hint)))
    .into()
}

/// A stream whose caller may do other things than when it was let in.
pub(crate) fn credentials_changed() -> Status {
    let hint = "what the caller may do has changed since: call again";
    Refusal::new(
        Code::Unauthenticated,
        CREDENTIALS_CHANGED,
        "the caller is not the one that it was when it was let in",
    )
    .facts(Facts::default().hint(Some(hint)))
    .into()
}

/// A caller that is not known.
pub(crate) fn unauthenticated(error: &AuthError) -> Status {
    let refused = |code, hint: &str| {
        Refusal::new(code, no_caller(error), error.to_string())
            .facts(Facts::default().hint(Some(hint)))
    };
    match error {
        AuthError::Missing => credentials_missing(),
        AuthError::Invalid { .. } | AuthError::Revoked { .. } => {
            let hint = "the gateway knows no such caller; `fleetgate token create` makes a token";
            refused(Code::Unauthenticated, hint).into()
        }
        AuthError::Expired { .. } => refused(Code::Unauthenticated, "get a new one").into(),
        AuthError::Unavailable => {
            let hint = "whoever vouches for the caller cannot be asked at present";
            refused(Code::Unavailable, hint).retry(Some(SOON)).into()
        }
    }
}

/// Why a caller is not known, as it is told and recorded.
pub(crate) fn no_caller(error: &AuthError) -> &'static str {
    match error {
        AuthError::Missing => CREDENTIALS_MISSING,
        AuthError::Invalid { .. } | AuthError::Revoked { .. } => "CREDENTIALS_INVALID",
        AuthError::Expired { .. } => "CREDENTIALS_EXPIRED",
        AuthError::Unavailable => "CREDENTIALS_UNVERIFIABLE",
    }
}

/// A caller that has too low a role, on this phone or on all.
pub(crate) fn role_too_low(
    needed: Role,
    held: Option<Role>,
    device: Option<&Udid>,
    command_id: Option<&CommandId>,
) -> Status {
    let held = held.map(|held| held.to_string());
    let held = held.as_deref().unwrap_or("none");
    let message = format!("this takes the role {needed}, and the caller's is {held}");
    Refusal::new(Code::PermissionDenied, ROLE_TOO_LOW, message)
        .facts(about(needed, held, device, command_id))
        .into()
}

/// A caller that may look at this phone, and could do it on another.
pub(crate) fn device_out_of_scope(
    needed: Role,
    held: Role,
    device: &Udid,
    command_id: Option<&CommandId>,
) -> Status {
    let message =
        format!("this takes the role {needed} on the device, where the caller's is {held}");
    Refusal::new(Code::PermissionDenied, DEVICE_OUT_OF_SCOPE, message)
        .facts(about(needed, &held.to_string(), Some(device), command_id))
        .into()
}

/// A caller that could do it on some phones, where it is about all.
pub(crate) fn fleet_out_of_scope(needed: Role) -> Status {
    let message = format!("this takes the role {needed} on the whole fleet");
    Refusal::new(Code::PermissionDenied, DEVICE_OUT_OF_SCOPE, message)
        .facts(Facts::default().with("needed", &needed.to_string()))
        .into()
}

fn about(needed: Role, held: &str, device: Option<&Udid>, command_id: Option<&CommandId>) -> Facts {
    let device = device.map(Udid::as_str);
    let facts = match command_id {
        Some(command_id) => Facts::not_sent(device, Some(command_id.as_str())),
        None => Facts::default().with_some("device", device),
    };
    facts.with("needed", &needed.to_string()).with("role", held)
}

/// A caller that calls too often.
pub(crate) fn rate_limited(wait: Duration) -> Status {
    Refusal::new(
        Code::ResourceExhausted,
        RATE_LIMITED,
        "the caller makes more calls than one may",
    )
    .facts(Facts::default().hint(Some(
        "calls_per_second and call_burst of [limits] say how many",
    )))
    .retry(Some(wait))
    .into()
}

/// A caller with as many commands under way as it may have.
pub(crate) fn too_many_commands(
    TooMany(most): TooMany,
    device: &Udid,
    command_id: &CommandId,
) -> Status {
    let message = format!("the caller has {most} commands under way, which is as many as one may");
    let facts = Facts::not_sent(Some(device.as_str()), Some(command_id.as_str()))
        .hint(Some("max_queued_commands of [limits] says how many"));
    Refusal::new(Code::ResourceExhausted, QUOTA_EXCEEDED, message)
        .facts(facts)
        .retry(Some(SOON))
        .into()
}
