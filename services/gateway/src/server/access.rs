//! Who calls: asked before any handler hears of a call.
//!
//! ```text
//! call ─► its row ── none ──► UNIMPLEMENTED
//!           │ open ─────────────────────────────────► handler
//!           ▼
//!         credentials ─► who ── nobody known ──► UNAUTHENTICATED
//!                         ▼
//!                       rate ── too many ──► RESOURCE_EXHAUSTED
//!                         ▼
//!                       role ── too low ──► PERMISSION_DENIED
//!                         └─► handler, with its Caller
//! ```
//!
//! Where the keys of an issuer have to be fetched, to know who calls takes up to
//! five seconds, whatever the caller's deadline: that has begun by then, and a
//! command whose deadline passes meanwhile is answered with its fate.
//!
//! Credentials end here: the header is taken out of the request, so that nothing
//! below can tell of it. What they are kept for is to ask again while a stream
//! lasts ([`lasting`](super::lasting)).
//!
//! Invariant: a handler of a method that is not open is not called without a
//! [`Caller`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fleetgate_identity::{AuthError, Authenticator, Credentials, Principal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::time::sleep;
use tonic::Status;
use tonic::body::Body;
use tonic::transport::server::TcpConnectInfo;
use tower::{Layer, Service};
use tracing::Span;

use super::lasting::until;
use super::tls::PeerCertificate;
use crate::access::{Access, Caller, Denial, Rule, find};
use crate::status;

/// What decides on calls. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Keepers>);

#[derive(Debug)]
struct Keepers {
    authenticator: Authenticator,
    access: Access,
}

/// How often the caller of a stream is asked again: within this, and what is
/// asked of the ways to be known, a stream ends whose caller is not let in any
/// more.
const AGAIN: Duration = Duration::from_secs(3);

impl Admission {
    pub(crate) fn new(authenticator: Authenticator, access: Access) -> Self {
        Self(Arc::new(Keepers {
            authenticator,
            access,
        }))
    }
}

impl Keepers {
    /// Who makes a call, if it may be made.
    async fn admit(
        &self,
        shown: &Shown,
        method: &'static str,
        rule: Rule,
    ) -> Result<Caller, Status> {
        let address = shown.address;
        let principal = self.who(shown, method).await?;
        Span::current().record("enduser.id", principal.name());
        let caller = Caller {
            principal,
            address,
            method,
        };
        self.access.take(&caller)?;
        let held = caller.principal.anywhere();
        match rule {
            Rule::Somewhere(needed) | Rule::Fleet(needed) if held < Some(needed) => {
                self.deny(&caller, status::ROLE_TOO_LOW);
                Err(status::role_too_low(needed, held, None, None))
            }
            Rule::Fleet(needed) if caller.principal.fleet_wide() < Some(needed) => {
                self.deny(&caller, status::DEVICE_OUT_OF_SCOPE);
                Err(status::fleet_out_of_scope(needed))
            }
            Rule::Open | Rule::AnyPrincipal | Rule::Somewhere(_) | Rule::Fleet(_) => Ok(caller),
        }
    }

    async fn who(&self, shown: &Shown, method: &'static str) -> Result<Principal, Status> {
        let who = self.authenticator.authenticate(shown.credentials()).await;
        who.map_err(|error| self.unknown(&error, shown, method))
    }

    /// Waits until the caller of a stream is not let in any more; says why.
    async fn refused(&self, shown: Shown, caller: Caller) -> Status {
        loop {
            sleep(AGAIN).await;
            if shown
                .certificate
                .as_ref()
                .is_some_and(PeerCertificate::is_disowned)
            {
                return self.changed(&caller);
            }
            match self.authenticator.authenticate(shown.credentials()).await {
                Ok(principal) if principal == caller.principal => {}
                Ok(_) => return self.changed(&caller),
                // It was known a moment ago.
                Err(AuthError::Unavailable) => {}
                Err(
                    error @ (AuthError::Missing
                    | AuthError::Invalid { .. }
                    | AuthError::Revoked { .. }
                    | AuthError::Expired { .. }),
                ) => return self.unknown(&error, &shown, caller.method),
            }
        }
    }

    /// Puts on record that a caller is not known; gives what it is told.
    fn unknown(&self, error: &AuthError, shown: &Shown, method: &'static str) -> Status {
        let (who, why) = (error.who(), error.why());
        let denial = Denial::of_one(who, method, shown.address, status::no_caller(error));
        self.access.denials().record(denial.because(why));
        status::unauthenticated(error)
    }

    /// The same of a caller that may do other things than when it was let in.
    fn changed(&self, caller: &Caller) -> Status {
        self.deny(caller, status::CREDENTIALS_CHANGED);
        status::credentials_changed()
    }

    fn deny(&self, caller: &Caller, reason: &'static str) {
        self.access.denials().record(Denial::of(caller, reason));
    }
}

/// What a call says of who makes it.
#[derive(Debug)]
struct Shown {
    authorization: Option<HeaderValue>,
    certificate: Option<PeerCertificate>,
    address: Option<SocketAddr>,
}

impl Shown {
    fn credentials(&self) -> Credentials<'_> {
        Credentials {
            authorization: self.authorization.as_ref().map(HeaderValue::as_bytes),
            certificate: self.certificate.as_ref().map(PeerCertificate::der),
        }
    }

    /// Takes it out of a request.
    fn by<B>(request: &mut Request<B>) -> Self {
        let address = request.extensions().get::<TcpConnectInfo>();
        Self {
            address: address.and_then(TcpConnectInfo::remote_addr),
            certificate: request.extensions().get().cloned(),
            authorization: take_authorization(request.headers_mut()),
        }
    }
}

/// The header, if there is one. Two are like one that nobody knows: which of
/// them counts must not depend on who reads them.
fn take_authorization(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let is_single = headers.get_all(AUTHORIZATION).iter().nth(1).is_none();
    let mut first = headers.remove(AUTHORIZATION)?;
    first.set_sensitive(true);
    Some(if is_single {
        first
    } else {
        HeaderValue::from_static("several")
    })
}

/// Adds [`Guarded`] to a service.
#[derive(Debug, Clone)]
pub(super) struct AccessLayer(pub(super) Admission);

impl<S> Layer<S> for AccessLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        let admission = self.0.clone();
        Guarded { inner, admission }
    }
}

/// A service that is called by those only who may.
#[derive(Debug, Clone)]
pub(super) struct Guarded<S> {
    inner: S,
    admission: Admission,
}

impl<S, B> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Some(row) = find(request.uri().path()) else {
            let refused = status::method_unknown(request.uri().path());
            return async move { Ok(refused.into_http()) }.boxed();
        };
        let shown = Shown::by(&mut request);
        if row.rule == Rule::Open {
            return self.inner.call(request).boxed();
        }
        // The one that is ready; the clone takes its place.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let Admission(keepers) = self.admission.clone();
        async move {
            match keepers.admit(&shown, row.path, row.rule).await {
                Ok(caller) => {
                    request.extensions_mut().insert(caller.clone());
                    let reply = inner.call(request).await?;
                    let refused = async move { keepers.refused(shown, caller).await };
                    Ok(until(refused, reply))
                }
                Err(refused) => Ok(refused.into_http()),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_credentials_none_counts_and_none_is_left() {
        let mut headers = HeaderMap::new();
        assert_eq!(take_authorization(&mut headers), None);
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer one"));
        let mut twice = headers.clone();
        assert_eq!(take_authorization(&mut headers).unwrap(), "Bearer one");
        assert!(headers.is_empty());
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer two"));
        assert_eq!(take_authorization(&mut twice).unwrap(), "several");
        assert!(twice.is_empty());
    }
}
