//! Pages in browsers: only those that come from this server's own address.
//!
//! A browser on the same host reaches this server on behalf of any page, and so
//! does one of the same network where the server listens to that. What a
//! browser says of a page cannot be forged by that page: a call is refused if
//! its `Origin` is not where it goes to, and if where it goes to is not named
//! as this server is, which is how a name of an attacker that was made to point
//! here shows.
//!
//! Programs send no `Origin`, and over HTTP/2 they may call the server what
//! they like: no browser speaks that without TLS, and with TLS it asks for a
//! certificate of the name.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{Either, Ready, ready};
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use tonic::body::Body;
use tower::{Layer, Service};

use super::tls::Tls;
use crate::config::ServerHost;

/// What this server is called: as this host calls itself, as its certificate
/// says, and as is configured. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    configured: Arc<[ServerHost]>,
    tls: Option<Tls>,
}

impl Hosts {
    pub(crate) fn new(configured: &[ServerHost], tls: Option<Tls>) -> Self {
        let configured = configured.into();
        Self { configured, tls }
    }

    /// True for what a page of another origin may have sent.
    pub(crate) fn is_foreign(&self, version: Version, uri: &Uri, headers: &HeaderMap) -> bool {
        let origin = headers.get(ORIGIN);
        if origin.is_none() && version >= Version::HTTP_2 {
            return false;
        }
        let named = uri
            .authority()
            .cloned()
            .or_else(|| headers.get(HOST)?.to_str().ok()?.parse().ok());
        let Some(named) = named.filter(|named| self.includes(named)) else {
            return true;
        };
        origin.is_some_and(|origin| {
            let origin = origin
                .to_str()
                .ok()
                .and_then(|origin| origin.parse::<Uri>().ok());
            origin.as_ref().and_then(Uri::authority) != Some(&named)
        })
    }

    fn includes(&self, authority: &Authority) -> bool {
        let host = authority.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        is_this_host(host)
            || self.configured.iter().any(|configured| configured.is(host))
            || self.tls.as_ref().is_some_and(|tls| tls.is_named(host))
    }
}

fn is_this_host(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Adds [`SameOrigin`] to a service.
#[derive(Debug, Clone)]
pub(crate) struct SameOriginLayer(pub(crate) Hosts);

impl<S> Layer<S> for SameOriginLayer {
    type Service = SameOrigin<S>;

    fn layer(&self, inner: S) -> SameOrigin<S> {
        let hosts = self.0.clone();
        SameOrigin { inner, hosts }
    }
}

/// A service that no page of another origin reaches: it gets 403.
#[derive(Debug, Clone)]
pub(crate) struct SameOrigin<S> {
    inner: S,
    hosts: Hosts,
}

impl<S, B> Service<Request<B>> for SameOrigin<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let hosts = &self.hosts;
        if hosts.is_foreign(request.version(), request.uri(), request.headers()) {
            let mut refusal = Response::new(Body::empty());
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            Either::Right(ready(Ok(refusal)))
        } else {
            Either::Left(self.inner.call(request))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(version: Version, authority: &str, origin: Option<&str>) -> bool {
        is_refused_by(&Hosts::new(&[], None), version, authority, origin)
    }

    fn is_refused_by(
        hosts: &Hosts,
        version: Version,
        authority: &str,
        origin: Option<&str>,
    ) -> bool {
        let mut request = Request::new(());
        *request.version_mut() = version;
        if version < Version::HTTP_2 {
            request
                .headers_mut()
                .insert(HOST, authority.parse().unwrap());
        } else {
            *request.uri_mut() = format!("http://{authority}/a.B/C").parse().unwrap();
        }
        if let Some(origin) = origin {
            request
                .headers_mut()
                .insert(ORIGIN, origin.parse().unwrap());
        }
        hosts.is_foreign(request.version(), request.uri(), request.headers())
    }

    #[test]
    fn a_server_may_be_called_as_is_configured() {
        let configured = ["Gateway.lab", "192.0.2.7", "2001:db8::7"];
        let configured = configured.map(|host| ServerHost::try_from(host.to_owned()).unwrap());
        let hosts = Hosts::new(&configured, None);
        for host in ["gateway.lab", "192.0.2.7", "[2001:DB8:0::7]"] {
            let (named, origin) = (format!("{host}:7700"), format!("https://{host}:7700"));
            for origin in [None, Some(origin.as_str())] {
                let refused = is_refused_by(&hosts, Version::HTTP_11, &named, origin);
                assert!(!refused, "{host} {origin:?}");
                assert!(is_refused(Version::HTTP_11, &named, origin), "{host}");
            }
        }
        for host in ["lab", "evil.gateway.lab", "192.0.2.8"] {
            assert!(
                is_refused_by(&hosts, Version::HTTP_11, host, None),
                "{host}"
            );
        }
    }

    #[test]
    fn programs_and_pages_from_this_address_are_let_in() {
        for (version, authority, origin) in [
            (Version::HTTP_2, "127.0.0.1:7700", None),
            (Version::HTTP_2, "gateway.lab", None),
            (Version::HTTP_11, "127.0.0.1:7700", None),
            (
                Version::HTTP_11,
                "localhost:7700",
                Some("http://localhost:7700"),
            ),
            (Version::HTTP_11, "[::1]:7700", Some("http://[::1]:7700")),
            (
                Version::HTTP_2,
                "localhost:7700",
                Some("https://localhost:7700"),
            ),
        ] {
            assert!(
                !is_refused(version, authority, origin),
                "{authority} {origin:?}"
            );
        }
    }

    #[test]
    fn pages_of_another_origin_and_names_that_were_made_to_point_here_are_not() {
        for (version, authority, origin) in [
            (
                Version::HTTP_11,
                "127.0.0.1:7700",
                Some("https://example.com"),
            ),
            (
                Version::HTTP_11,
                "127.0.0.1:7700",
                Some("http://127.0.0.1:8000"),
            ),
            (Version::HTTP_11, "127.0.0.1:7700", Some("null")),
            (
                Version::HTTP_11,
                "evil.example:7700",
                Some("http://evil.example:7700"),
            ),
            (Version::HTTP_11, "evil.example:7700", None),
            (Version::HTTP_11, "localhost.evil.example", None),
            (Version::HTTP_11, "", None),
            (
                Version::HTTP_2,
                "evil.example:7700",
                Some("http://evil.example:7700"),
            ),
            (
                Version::HTTP_2,
                "127.0.0.1:7700",
                Some("https://example.com"),
            ),
        ] {
            assert!(
                is_refused(version, authority, origin),
                "{authority} {origin:?}"
            );
        }
    }
}
