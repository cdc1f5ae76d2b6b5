//! What is asked for.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::Lease;

/// A lease as a command names it.
pub fn by(lease: &Lease) -> Option<pb::LeaseRef> {
    let Lease { id, epoch, .. } = lease;
    let (id, epoch) = (id.clone(), *epoch);
    Some(pb::LeaseRef { id, epoch })
}

/// A wish for these phones.
pub fn these<S: ToString>(devices: &[S]) -> pb::CreateLeaseRequest {
    let devices = devices.iter().map(ToString::to_string).collect();
    let wants = pb::create_lease_request::Wants::DeviceList(pb::DeviceList { devices });
    pb::CreateLeaseRequest {
        wants: Some(wants),
        ..pb::CreateLeaseRequest::default()
    }
}

/// A wish for so many phones, whichever.
pub fn any(count: u32) -> pb::CreateLeaseRequest {
    matching(pb::DeviceSelector::default(), count)
}

/// A wish for so many of those that match.
pub fn matching(selector: pb::DeviceSelector, count: u32) -> pb::CreateLeaseRequest {
    let selector = Some(selector);
    let wants = pb::DeviceMatch { selector, count };
    let wants = pb::create_lease_request::Wants::DeviceMatch(wants);
    pb::CreateLeaseRequest {
        wants: Some(wants),
        ..pb::CreateLeaseRequest::default()
    }
}

/// A span of time as a request has it.
pub fn span(span: Duration) -> Option<prost_types::Duration> {
    Some(span.try_into().expect("not that long"))
}

/// So many seconds as a request has them.
pub fn seconds(seconds: u64) -> Option<prost_types::Duration> {
    span(Duration::from_secs(seconds))
}
