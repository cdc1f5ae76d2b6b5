//! How many files this process may have open.
//!
//! A phone whose runner is launched takes two descriptors and each of its
//! commands one more, while the usual limit is 1024, or 256 on a Mac. The hard
//! limit is what the host allows; the soft one only guards programs that cannot
//! count.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

/// As many as a rack can take; macOS refuses more than it has.
const ENOUGH: u64 = 65_536;

/// Raises the soft limit as far as it goes and is of use.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => debug!(from = current, to = wanted, "more files may be open"),
        Err(error) => warn!(%error, limit = current, "no more files may be open"),
    }
}
