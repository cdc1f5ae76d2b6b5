//! The protobuf package `fleetgate.v1` and the code generated from it, nothing
//! else but how two of its messages are formatted.
//!
//! Clients in other languages generate theirs from the same files, in this
//! crate's `fleetgate/v1`. What the messages mean is said there.
//!
//! The features `client` and `server`, both on by default, each add the stubs of
//! one side.

mod redact;

/// The descriptors of the package and of all that it imports, for server
/// reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fleetgate.bin"));

/// Package `fleetgate.v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    rustdoc::all,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    reason = "generated code keeps its generator's style; which lints it meets differs by feature"
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/fleetgate.v1.rs"));
}
