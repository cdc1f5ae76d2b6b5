//! Defaults that are more than a literal beside their key.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use fleetgate_device::Address;

pub(super) const MAX_CONCURRENT_STREAMS: NonZeroU32 = NonZeroU32::new(256).expect("not zero");
pub(super) const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");
pub(super) const LANE_CAPACITY: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
pub(super) const MAX_LAUNCHES: NonZeroUsize = NonZeroUsize::new(8).expect("not zero");
pub(super) const PROBE_FAILURES: NonZeroU32 = NonZeroU32::new(3).expect("not zero");
pub(super) const QUARANTINE_AFTER: NonZeroU32 = NonZeroU32::new(5).expect("not zero");
pub(super) const DRIFT_FAILURES: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// Where every usbmuxd listens unless it is told otherwise.
const USBMUXD_SOCKET: &str = "/var/run/usbmuxd";

/// The variable by which all usbmux clients are told where usbmuxd is.
const USBMUXD_VARIABLE: &str = "USBMUXD_SOCKET_ADDRESS";

pub(super) fn usbmuxd_address() -> Address {
    usbmuxd_address_from(std::env::var(USBMUXD_VARIABLE).ok().as_deref())
}

/// An address that cannot be parsed counts as absent, as with every other
/// client of that variable.
fn usbmuxd_address_from(variable: Option<&str>) -> Address {
    variable
        .and_then(|address| address.parse().ok())
        .unwrap_or_else(|| Address::Unix(PathBuf::from(USBMUXD_SOCKET)))
}

pub(super) fn ledger_path() -> PathBuf {
    state_directory().join("ledger.db")
}

pub(super) fn tokens_path() -> PathBuf {
    state_directory().join("tokens.toml")
}

/// Where what lasts is kept of this user's gateways.
fn state_directory() -> PathBuf {
    state_directory_below(
        std::env::var_os("XDG_STATE_HOME").map(PathBuf::from),
        std::env::var_os("HOME").map(PathBuf::from),
    )
}

/// Relative directories are ignored, as the XDG specification demands.
fn state_directory_below(state: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    state
        .filter(|state| state.is_absolute())
        .or_else(|| {
            home.filter(|home| home.is_absolute())
                .map(|home| home.join(".local/state"))
        })
        .unwrap_or_default()
        .join("fleetgate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usbmuxd_is_where_its_own_variable_says() {
        assert_eq!(
            usbmuxd_address_from(None),
            Address::Unix("/var/run/usbmuxd".into())
        );
        assert_eq!(
            usbmuxd_address_from(Some("127.0.0.1:27015")),
            Address::Tcp("127.0.0.1:27015".to_owned())
        );
        assert_eq!(
            usbmuxd_address_from(Some("UNIX:/tmp/mux")),
            Address::Unix("/tmp/mux".into())
        );
    }

    #[test]
    fn what_lasts_is_among_the_users_state() {
        let below = |state: Option<&str>, home: Option<&str>| {
            state_directory_below(state.map(PathBuf::from), home.map(PathBuf::from))
        };
        assert_eq!(below(Some("/s"), Some("/h")), PathBuf::from("/s/fleetgate"));
        assert_eq!(
            below(Some("relative"), Some("/h")),
            PathBuf::from("/h/.local/state/fleetgate")
        );
        assert_eq!(below(None, None), PathBuf::from("fleetgate"));
        assert!(ledger_path().ends_with("fleetgate/ledger.db"));
        assert!(tokens_path().ends_with("fleetgate/tokens.toml"));
    }
}
