//! What the doctor knows before it thinks.

use std::path::PathBuf;
use std::time::SystemTime;

use fleetgate_proto::v1::{Device, GetGatewayResponse};

use super::credentials::Credentials;

/// Everything.
#[derive(Debug)]
pub(super) struct Evidence {
    /// Where the gateway should be.
    pub(super) server: String,
    /// When it was gathered, by this host's clock.
    pub(super) now: SystemTime,
    /// What it says.
    pub(super) gateway: Result<Answers, NoGateway>,
    /// The file system of its ledger, if that is on this host.
    pub(super) space: Option<Space>,
    /// Who may call and who is trusted, by the configuration of this host;
    /// looked at unless the gateway is elsewhere.
    pub(super) credentials: Option<Credentials>,
    /// What was found on this host; looked for only if there is no gateway.
    pub(super) local: Option<Local>,
}

/// What a gateway says.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// About itself.
    pub(super) gateway: GetGatewayResponse,
    /// About its phones.
    pub(super) devices: Vec<Device>,
}

/// Why it says nothing.
#[derive(Debug)]
pub(super) enum NoGateway {
    /// No connection was made.
    Unreachable {
        /// Why.
        why: String,
        /// What there is to do about it.
        advice: String,
    },
    /// Something listens there, and does not answer as a gateway does.
    Odd(String),
    /// It does not let this caller in.
    Closed {
        /// Why.
        why: String,
        /// What there is to do about it.
        advice: String,
    },
}

/// How much room a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    /// What this user may still take, in bytes.
    pub(super) free: u64,
    /// All of it.
    pub(super) total: u64,
}

/// What a gateway would need on this host.
#[derive(Debug)]
pub(super) struct Local {
    /// The configuration's file, if one was named.
    pub(super) config: Option<PathBuf>,
    /// What it gives, or why it cannot be used.
    pub(super) parts: Result<Parts, String>,
}

/// What the configuration names.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) hosts: Vec<Host>,
    pub(super) ledger: LedgerFile,
}

/// One usbmuxd.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) mux: Mux,
}

/// What it answers to `ListDevices`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mux {
    /// Phones.
    Phones {
        /// By cable.
        cabled: usize,
        /// Over the network, which nothing is driven by.
        networked: usize,
    },
    /// There is no such socket, or no such host.
    Missing,
    /// Nothing listens there.
    Refused,
    /// This user may not connect.
    Forbidden,
    /// Nothing, in time.
    Silent,
    /// Something else.
    Odd(String),
}

/// The ledger's file.
#[derive(Debug)]
pub(super) struct LedgerFile {
    pub(super) path: PathBuf,
    /// Why nothing can be written where it is, or would be.
    pub(super) unwritable: Option<String>,
    /// The room there.
    pub(super) space: Option<Space>,
}
