//! Processes that bring runners up.
//!
//! Owns one directory and, per phone, at most one process group: it is started
//! from a template, its log is followed for the port that the runner listens
//! to, and it is stopped as a group. What a gateway that died has left running
//! is found again by what was written down about it, and ended.
//!
//! Invariants: nothing is ever signalled before it is proved to be what was
//! started here, and no moment at which the gateway can die leaves a process
//! that the next one does not find.

mod ending;
mod error;
mod exit;
mod follow;
mod launcher;
mod leader;
mod lines;
mod place;
mod program;
mod proof;
mod record;
mod running;
mod spec;
mod sweep;
mod table;
mod tail;
mod text;

pub use error::LaunchError;
pub use exit::ExitStatus;
pub use launcher::Launcher;
pub use lines::LogLines;
pub use running::{RunnerEvent, Running, Stopped};
pub use spec::{InvalidSpec, LaunchSpec};
pub use sweep::{Swept, SweptAll};
