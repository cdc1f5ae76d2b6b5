//! Where a usbmuxd listens, in the spellings that `USBMUXD_SOCKET_ADDRESS` has.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a usbmuxd.
///
/// ```
/// use fleetgate_device::Address;
///
/// assert_eq!("UNIX:/run/usbmuxd".parse(), Ok(Address::Unix("/run/usbmuxd".into())));
/// assert_eq!("/run/usbmuxd".parse(), Ok(Address::Unix("/run/usbmuxd".into())));
/// assert_eq!("127.0.0.1:27015".parse(), Ok(Address::Tcp("127.0.0.1:27015".to_owned())));
/// assert!("usbmuxd".parse::<Address>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String),
}

/// Not an address of a usbmuxd.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: expected /path, UNIX:/path or host:port")]
pub struct InvalidAddress(String);

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let text = text.trim();
        let path = text.strip_prefix("UNIX:").unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Self::Unix(path.into()));
        }
        let port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
        match text.rsplit_once(':') {
            Some((host, number)) if !host.is_empty() && port(number) => {
                Ok(Self::Tcp(text.to_owned()))
            }
            Some(_) | None => Err(InvalidAddress(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "UNIX:{}", path.display()),
            Self::Tcp(address) => f.write_str(address),
        }
    }
}
