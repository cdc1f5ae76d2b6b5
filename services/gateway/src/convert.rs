//! Protobuf on one side, the domain on the other, and nothing in between.
//!
//! A request becomes a `Command<Point>` here or is refused here: every field
//! that is wrong is reported, not only the first, and what comes out needs no
//! further check. Nothing here does I/O, knows a device or builds a status.

mod content;
mod device;
mod enums;
mod fields;
mod lease;
mod operators;
mod record;
mod reply;
mod request;
#[cfg(test)]
mod tests;
mod time;
mod violations;

pub(crate) use content::{Content, asked, types_other_text};
pub(crate) use device::{command_fate, cordon, ledger_health, state_name, transition};
pub(crate) use lease::{
    LeaseFilter, LeaseWish, WishedPhones, create_lease, device_lease, explanation, fits_a_lease,
    lease, list_leases, only_lease_id, revoke_lease, update_lease,
};
pub(crate) use operators::{cordon_device, reason, update_device};
pub(crate) use record::{
    command_query, event, fate_change, operation_query, operation_record, pending_record, record,
};
pub(crate) use reply::CommandResponse;
pub(crate) use request::{Asked, CommandRequest, ask};
pub(crate) use time::timestamp;
pub(crate) use violations::{Invalid, Violation, Violations};
pub(crate) use {fields::device_name, fields::page_size, reply::receipt};
