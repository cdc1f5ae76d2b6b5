//! Where an issuer's keys are.
//!
//! Owns the form of the place. Refuses places from which keys could be
//! replaced on their way: HTTP without TLS, but for this host's own.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;

use crate::error::IdentityError;

/// Where an issuer's keys are: a JWK set (RFC 7517) in a file, or at a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksSource {
    /// A file.
    File(PathBuf),
    /// An address.
    Url(JwksUrl),
}

/// An `https` URL, or an `http` one of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwksUrl(Uri);

impl JwksUrl {
    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }

    /// The host, without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> &str {
        let host = self.0.host().unwrap_or_default();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        bare.unwrap_or(host)
    }

    pub(crate) fn port(&self) -> u16 {
        let usual = if self.is_tls() { 443 } else { 80 };
        self.0.port_u16().unwrap_or(usual)
    }

    fn is_of_this_host(&self) -> bool {
        let address = self.host().parse::<IpAddr>();
        self.host() == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Why it cannot be used, if it cannot.
    fn fault(&self) -> Option<&'static str> {
        let authority = self
            .0
            .authority()
            .map_or("", |authority| authority.as_str());
        if self.host().is_empty() {
            Some("it names no host")
        } else if authority.contains('@') {
            Some("a URL with a user in it is not taken")
        } else if !self.is_tls() && !self.is_of_this_host() {
            Some("keys that come without TLS could be anybody's: use https")
        } else {
            None
        }
    }
}

impl fmt::Display for JwksSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Url(url) => url.0.fmt(formatter),
        }
    }
}

/// What begins with `http://` or `https://` is a URL, all else the path of a
/// file.
impl FromStr for JwksSource {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |reason: String| IdentityError::Setting {
            what: "the place of the keys",
            value: text.to_owned(),
            reason,
        };
        if text.is_empty() {
            return Err(refused("it is empty".to_owned()));
        }
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Ok(Self::File(PathBuf::from(text)));
        }
        let uri = text.parse::<Uri>();
        let url = JwksUrl(uri.map_err(|error| refused(error.to_string()))?);
        match url.fault() {
            Some(fault) => Err(refused(fault.to_owned())),
            None => Ok(Self::Url(url)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Result<JwksSource, String> {
        text.parse()
            .map_err(|error: IdentityError| error.to_string())
    }

    fn url(text: &str) -> JwksUrl {
        match source(text).unwrap() {
            JwksSource::Url(url) => url,
            JwksSource::File(path) => panic!("{} is no URL", path.display()),
        }
    }

    #[test]
    fn what_is_no_url_is_a_file() {
        for path in ["/etc/keys.json", "keys.json", "ftp://a/b"] {
            assert_eq!(source(path), Ok(JwksSource::File(path.into())));
        }
        assert!(source("").is_err());
    }

    #[test]
    fn a_url_says_where_to_connect() {
        let there = url("https://id.example/keys?v=1");
        assert_eq!(
            (there.host(), there.port(), there.is_tls()),
            ("id.example", 443, true)
        );
        let here = url("http://[::1]:8080/keys");
        assert_eq!(
            (here.host(), here.port(), here.is_tls()),
            ("::1", 8080, false)
        );
        assert_eq!(url("http://127.0.0.9/keys").port(), 80);
        assert_eq!(url("http://localhost/keys").host(), "localhost");
    }

    #[test]
    fn keys_of_another_host_need_tls() {
        for text in [
            "http://id.example/keys",
            "http://10.0.0.1/keys",
            "http://127.0.0.1.example/",
        ] {
            let refusal = source(text).unwrap_err();
            assert!(refusal.contains("use https"), "{refusal}");
        }
    }

    #[test]
    fn a_url_with_a_user_or_without_a_host_is_refused() {
        for text in [
            "https://a:b@id.example/keys",
            "https:///keys",
            "https://",
            "https://a b/",
        ] {
            assert!(source(text).is_err(), "{text}");
        }
    }
}
