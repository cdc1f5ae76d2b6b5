//! Discovery records: which gateways run on this host, and how their user gets
//! in.
//!
//! Owns one directory, which is for its owner only, and in it one file per
//! gateway. Refuses to write a record where others could read or replace it,
//! and to return one that this user did not write or whose gateway no longer
//! runs. Invariant: a token of a record is only ever given to whoever asks for
//! the records of the process that wrote it, and that still lives.

mod directory;
mod process;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use uuid::Uuid;

use crate::secret::Secret;

pub use directory::{Instances, Published};
pub use process::ProcessStart;

/// One gateway of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRecord {
    /// The form of the record.
    pub version: u32,
    /// The gateway's process.
    pub pid: u32,
    /// When that began, so that another of the same number is not taken for
    /// it.
    pub process_start: ProcessStart,
    /// Which run of which gateway.
    pub instance: Uuid,
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether it talks TLS there.
    pub tls: bool,
    /// The certificates by which its own can be verified, if they are not
    /// among those of the host.
    pub ca: Option<PathBuf>,
    /// What makes a caller its admin.
    pub token: Secret,
    /// When it began.
    pub started: SystemTime,
}

impl InstanceRecord {
    /// The form that is written, and the only one that is read.
    pub const VERSION: u32 = 1;

    /// A record of this process.
    pub fn of_this_process(
        instance: Uuid,
        address: SocketAddr,
        token: Secret,
    ) -> Result<Self, crate::IdentityError> {
        Ok(Self {
            version: Self::VERSION,
            pid: std::process::id(),
            process_start: ProcessStart::of_this_process()?,
            instance,
            address,
            tls: false,
            ca: None,
            token,
            started: SystemTime::now(),
        })
    }
}
