//! What is told where a phone is not let have what was asked for it: out of
//! service, left alone, or not launched from here.

use std::time::Duration;

use fleetgate_ledger::Cordon;
use fleetgate_runner::{CommandId, Udid};
use tonic::{Code, Status};

use super::LATER;
use super::refusal::{Facts, Refusal};
use crate::convert::timestamp;
use crate::fleet::NoRecycle;

/// When to ask again after a phone that a person has to look at.
const MUCH_LATER: Duration = Duration::from_secs(60);

fn not_sent(device: &Udid, command_id: &CommandId) -> Facts {
    Facts::not_sent(Some(device.as_str()), Some(command_id.as_str()))
}

/// A command for a phone whose runner is left alone.
pub(crate) fn quarantined(device: &Udid, command_id: &CommandId, why: Option<&str>) -> Status {
    let message = match why {
        Some(why) => format!("the device is in quarantine: {why}"),
        None => "the device is in quarantine".to_owned(),
    };
    let hint = "look at runner.last_failure of GetDevice; RecycleRunner or a replug gives the \
                device another chance";
    Refusal::new(Code::Unavailable, "DEVICE_QUARANTINED", message)
        .facts(not_sent(device, command_id).hint(Some(hint)))
        .retry(Some(MUCH_LATER))
        .into()
}

/// A command for a phone that an operator has taken out of service.
pub(crate) fn cordoned(device: &Udid, command_id: &CommandId, cordon: &Cordon) -> Status {
    let Cordon {
        reason,
        who,
        since: _,
        until,
    } = cordon;
    let until = until.map(|until| timestamp(until).to_string());
    let mut message = format!("{who} has taken the device out of service: {reason}");
    if let Some(until) = &until {
        message.push_str(" (until ");
        message.push_str(until);
        message.push(')');
    }
    let facts = not_sent(device, command_id)
        .with("cordon_reason", reason)
        .with("cordon_who", who)
        .with_some("cordon_until", until.as_deref())
        .hint(Some("UncordonDevice puts it into service again"));
    Refusal::new(Code::FailedPrecondition, "DEVICE_CORDONED", message)
        .facts(facts)
        .into()
}

/// A runner that is not recycled.
pub(crate) fn not_recycled(device: &Udid, why: NoRecycle) -> Status {
    let facts = Facts::default().with("device", device.as_str());
    match why {
        NoRecycle::NotLaunched => {
            let hint = "only a runner that a [[launch]] with an argv brings up can be launched \
                        again from here";
            Refusal::new(
                Code::FailedPrecondition,
                "RUNNER_NOT_LAUNCHED",
                "this gateway does not launch the device's runner",
            )
            .facts(facts.hint(Some(hint)))
            .into()
        }
        NoRecycle::Detached => Refusal::new(
            Code::FailedPrecondition,
            "DEVICE_UNATTACHED",
            "the device is not attached",
        )
        .facts(facts.hint(Some("its runner is launched when it is plugged in")))
        .into(),
        NoRecycle::Draining => Refusal::new(
            Code::Unavailable,
            "GATEWAY_DRAINING",
            "the gateway is draining",
        )
        .facts(facts)
        .retry(Some(LATER))
        .into(),
    }
}
