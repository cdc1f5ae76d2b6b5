//! The lab's control API: what [`Phone`](crate::Phone) and [`Lab`](crate::Lab)
//! can do, as JSON over HTTP, for people and for tests in other languages.
//!
//! | request | body | what it does |
//! |---|---|---|
//! | `GET /lab` | | commands in hand, now and at most |
//! | `GET /phones` | | every phone: UDID, name, transports, runner |
//! | `GET /phones/UDID` | | everything that can be seen of it: a [`PhoneReport`](crate::PhoneReport) |
//! | `POST /phones/UDID/faults` | a [`Fault`](crate::Fault) | queues a fault |
//! | `DELETE /phones/UDID/faults` | | forgets the faults that wait |
//! | `POST /phones/UDID/launch-faults` | a [`LaunchFault`](crate::LaunchFault) | queues what goes wrong with a launch |
//! | `DELETE /phones/UDID/launch-faults` | | forgets those that wait |
//! | `POST /phones/UDID/attach`, `…/detach` | `{"transport": "usb"}` | plugs it in, pulls the plug |
//! | `POST /phones/UDID/replug` | nothing or a [`Replug`](crate::Replug) | both, on every transport: new numbers |
//! | `POST /phones/UDID/lock` | nothing or `{"stall": true}` | the screen; app commands run out of time |
//! | `POST /phones/UDID/unlock` | | the screen |
//! | `POST /phones/UDID/trust`, `…/untrust` | | whether it has paired with this host |
//! | `PUT /phones/UDID/lockdown` | `{"lockdown": "silent"}` | how its [`Lockdown`](crate::Lockdown) answers |
//! | `PUT /phones/UDID/apps/BUNDLE` | `{"state": "background"}` | where an app is |
//! | `POST /phones/UDID/runner/launch` | nothing or a [`LaunchRequest`](crate::LaunchRequest) | launches one: see below |
//! | `POST /phones/UDID/runner/restart` | nothing or `{"port": 8100}` | another runner, on the same port or this |
//! | `POST /phones/UDID/runner/kill` | | none |
//! | `PUT /phones/UDID/runner/counters` | `{"recorded_failures": 3}` | what it has counted; `suppressed_issues` too |
//! | `POST /usbmuxd/oddities` | an [`Oddity`](crate::Oddity) | queues an odd answer |
//! | `DELETE /usbmuxd/oddities` | | forgets those that wait |
//! | `POST /usbmuxd/strays` | a [`Stray`](crate::Stray) | announces what is no phone |
//! | `DELETE /usbmuxd/strays` | | takes all of that back |
//! | `POST /usbmuxd/start`, `…/restart` | `{"reuse_ids": false}` | a new daemon |
//! | `POST /usbmuxd/stop`, `…/stall`, `…/resume` | | no daemon; one that accepts nothing |
//!
//! An action answers 204; an error is `{"error": "…"}`. A launch answers with a
//! stream of [`LaunchEvent`](crate::LaunchEvent)s, one JSON document a line. It
//! ends with an `exit`; when the client closes the connection, the runner ends.
//!
//! It binds to loopback only and asks nobody who they are. So that no web page
//! can use it through a browser, it refuses a `Host` that is not loopback and
//! every request that carries an `Origin`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, NoContent, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;
use tracing::{info_span, warn};

use crate::fault::InvalidFault;
use crate::lab::LabCore;
use crate::launch::InvalidLaunch;

mod phones;
mod usbmuxd;

type Lab = State<Arc<LabCore>>;

/// Serves the API on a loopback address.
pub(crate) async fn serve(core: &Arc<LabCore>, address: SocketAddr) -> io::Result<SocketAddr> {
    if !address.ip().is_loopback() {
        let message = format!("the control API binds to loopback only, not to {address}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    // The lines of a launch are short, and each is awaited.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            warn!(%error, "small packets will be held back");
        }
    });
    let (routes, stop) = (router(Arc::clone(core)), core.stop.clone());
    core.spawn(info_span!("control", %address), async move {
        let served = axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned());
        if let Err(error) = served.await {
            warn!(%error, "the control API ended");
        }
    });
    Ok(address)
}

fn router(core: Arc<LabCore>) -> Router {
    let load = get(async |lab: Lab| Json(*lab.load.watch().borrow()));
    Router::new()
        .route("/lab", load)
        .route("/phones", get(phones::list))
        .nest("/phones/{udid}", phones::one())
        .nest("/usbmuxd", usbmuxd::routes())
        .layer(middleware::from_fn(refuse_strangers))
        .with_state(core)
}

/// What the API answers instead of what it was asked for.
#[derive(Debug)]
struct Refused(StatusCode, String);

impl Refused {
    /// What was asked for makes no sense.
    fn senseless(why: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Self(rejection.status(), rejection.body_text())
    }
}

impl From<InvalidFault> for Refused {
    fn from(invalid: InvalidFault) -> Self {
        Self::senseless(invalid.to_string())
    }
}

impl From<InvalidLaunch> for Refused {
    fn from(invalid: InvalidLaunch) -> Self {
        Self::senseless(invalid.to_string())
    }
}

/// The answer to an action.
type Answer = Result<NoContent, Refused>;

/// A body, or what is wrong with it.
type Body<T> = Result<Json<T>, JsonRejection>;

/// A body that may be left out.
fn if_given<T: Default + DeserializeOwned>(body: &Bytes) -> Result<T, Refused> {
    if body.is_empty() {
        return Ok(T::default());
    }
    let Json(given) = Json::from_bytes(body)?;
    Ok(given)
}

/// Lets only programs on this host through, no web page in a browser of theirs.
async fn refuse_strangers(request: Request, next: Next) -> Result<Response, Refused> {
    let headers = request.headers();
    if !names_loopback(headers) {
        let message = "the Host of a request must be a loopback address or localhost";
        return Err(Refused(StatusCode::FORBIDDEN, message.to_owned()));
    }
    if headers.contains_key(header::ORIGIN) {
        let message = "web pages may not use this API";
        return Err(Refused(StatusCode::FORBIDDEN, message.to_owned()));
    }
    Ok(next.run(request).await)
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
    else {
        return false;
    };
    let named = ["localhost", "127.0.0.1", "[::1]"];
    named.iter().any(|name| {
        host.strip_prefix(name).is_some_and(|port| {
            port.is_empty()
                || port
                    .strip_prefix(':')
                    .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
        })
    })
}
