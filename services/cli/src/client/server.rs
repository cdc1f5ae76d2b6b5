//! Where a gateway is: a URL with a host, a port and nothing else of interest.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use tonic::codegen::http::Uri;

/// Where a gateway is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server(Uri);

impl Server {
    /// The one that is asked when none is named and none is found.
    pub(crate) const DEFAULT: &str = "http://127.0.0.1:7700";

    /// The one at this address of this host.
    pub(super) fn at(address: SocketAddr, tls: bool) -> Result<Self, String> {
        let scheme = if tls { "https" } else { "http" };
        format!("{scheme}://{}", reachable(address)).parse()
    }

    /// The default one.
    pub(super) fn usual() -> Result<Self, String> {
        Self::DEFAULT.parse()
    }

    /// True unless it has to be named on the command line.
    pub(crate) fn is_default(&self) -> bool {
        self.to_string() == Self::DEFAULT
    }

    /// True if TLS is spoken to it.
    pub(crate) fn is_tls(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// True if it is on this host.
    pub(crate) fn is_loopback(&self) -> bool {
        let (host, _) = self.place();
        let address: Result<IpAddr, _> = host.parse();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// True if this is where a gateway of this host listens.
    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        let (host, port) = self.place();
        if port != address.port() {
            return false;
        }
        match host.parse::<IpAddr>() {
            Ok(ip) if address.ip().is_unspecified() => ip.is_loopback(),
            Ok(ip) => ip == address.ip(),
            Err(_) => {
                let local = address.ip().is_loopback() || address.ip().is_unspecified();
                host == "localhost" && local
            }
        }
    }

    /// The host and the port that it listens on.
    pub(super) fn place(&self) -> (&str, u16) {
        let host = self.0.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        (bare, self.0.port_u16().unwrap_or_default())
    }

    /// As what its calls name it.
    pub(super) fn origin(&self) -> Uri {
        self.0.clone()
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        match uri.scheme_str() {
            Some("http" | "https") if uri.port_u16().is_some() => Ok(Self(uri)),
            Some("http" | "https") => {
                Err("the port is missing, as in http://127.0.0.1:7700".to_owned())
            }
            Some(_) | None => Err("only http:// and https:// can be spoken".to_owned()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_end_matches('/'))
    }
}

/// An address that can be connected to, for one that is listened on.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Server {
        text.parse().unwrap()
    }

    #[test]
    fn a_server_may_be_named_with_or_without_its_scheme() {
        let named = server("http://127.0.0.1:7700");
        assert_eq!("127.0.0.1:7700".parse(), Ok(named.clone()));
        assert!(named.is_default() && !named.is_tls());
        assert_eq!(named.to_string(), Server::DEFAULT);
        assert!(!server("http://lab:7701").is_default());
        assert!(server("https://lab:7701").is_tls());
    }

    #[test]
    fn a_server_may_be_named_by_an_address_of_either_family() {
        let place = |text: &str| {
            let server = server(text);
            let (host, port) = server.place();
            (host.to_owned(), port)
        };
        assert_eq!(place("[::1]:7701"), ("::1".to_owned(), 7701));
        assert_eq!(place("http://10.0.0.2:80"), ("10.0.0.2".to_owned(), 80));
        let here = |text: &str| server(text).is_loopback();
        assert!(here("[::1]:1") && here("127.0.0.1:1") && here("localhost:1"));
        assert!(!here("10.0.0.2:1") && !here("lab:1"));
    }

    #[test]
    fn a_server_that_cannot_be_spoken_to_is_refused_at_once() {
        for text in ["ftp://lab:7700", "lab", "http://", "https://lab", ""] {
            assert!(text.parse::<Server>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_gateway_of_this_host_is_known_by_each_of_its_names() {
        let is_at = |text: &str, address: &str| server(text).is_at(address.parse().unwrap());
        assert!(is_at("http://127.0.0.1:1", "127.0.0.1:1"));
        assert!(is_at("http://localhost:1", "127.0.0.1:1"));
        assert!(is_at("https://[::1]:1", "[::]:1"));
        assert!(is_at("127.0.0.1:1", "0.0.0.0:1"));
        for (text, address) in [
            ("127.0.0.1:2", "127.0.0.1:1"),
            ("127.0.0.2:1", "127.0.0.1:1"),
            ("10.0.0.2:1", "0.0.0.0:1"),
            ("lab:1", "127.0.0.1:1"),
            ("localhost:1", "10.0.0.2:1"),
        ] {
            assert!(!is_at(text, address), "{text} {address}");
        }
        let named = Server::at("0.0.0.0:7".parse().unwrap(), true).unwrap();
        assert_eq!(named.to_string(), "https://127.0.0.1:7");
    }
}
