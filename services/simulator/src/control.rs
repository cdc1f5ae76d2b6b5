//! The lab's control API: what [`Phone`] and [`Lab`](crate::Lab)
//! can do, as JSON over HTTP, for people and for tests in other languages.
//!
//! | request | body | what it does |
//! |---|---|---|
//! | `GET /lab` | | commands in hand, now and at most |
//! | `GET /phones` | | every phone: UDID, name, transports, runner |
//! | `GET /phones/UDID` | | everything that can be seen of it: a [`PhoneReport`] |
//! | `POST /phones/UDID/faults` | a [`Fault`] | queues a fault |
//! | `DELETE /phones/UDID/faults` | | forgets the faults that wait |
//! | `POST /phones/UDID/attach`, `…/detach` | `{"transport": "usb"}` | plugs it in, pulls the plug |
//! | `POST /phones/UDID/replug` | | both, on every transport: new numbers |
//! | `POST /phones/UDID/lock`, `…/unlock` | | the screen |
//! | `PUT /phones/UDID/apps/BUNDLE` | `{"state": "background"}` | where an app is |
//! | `POST /phones/UDID/runner/restart` | `{"port": 8100}` | another runner |
//! | `POST /phones/UDID/runner/kill` | | none |
//! | `POST /usbmuxd/oddities` | an [`Oddity`] | queues an odd answer |
//! | `POST /usbmuxd/start`, `…/restart` | `{"reuse_ids": false}` | a new daemon |
//! | `POST /usbmuxd/stop`, `…/stall`, `…/resume` | | no daemon; one that accepts nothing |
//!
//! An action answers 204; an error is `{"error": "…"}`.
//!
//! It binds to loopback only and asks nobody who they are. So that no web page
//! can use it through a browser, it refuses a `Host` that is not loopback and
//! every request that carries an `Origin`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, NoContent, Response};
use axum::routing::{MethodRouter, get, post, put};
use axum::{Json, Router};
use fleetgate_runner::{BundleId, Udid};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tracing::{info_span, warn};

use crate::fault::{Fault, InvalidFault};
use crate::lab::LabCore;
use crate::mux::{Ids, Mux};
use crate::oddity::Oddity;
use crate::phone::Phone;
use crate::report::{PhoneReport, RunnerReport, Transport};
use crate::ui::AppState;

type Lab = State<Arc<LabCore>>;

/// Serves the API on a loopback address.
pub(crate) async fn serve(core: &Arc<LabCore>, address: SocketAddr) -> io::Result<SocketAddr> {
    if !address.ip().is_loopback() {
        let message = format!("the control API binds to loopback only, not to {address}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
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
    let phone = Router::new()
        .route("/", get(async |Named(phone): Named| Json(phone.report())))
        .route("/faults", post(add_fault).delete(clear_faults))
        .route("/attach", post(attach))
        .route("/detach", post(detach))
        .route("/replug", on_phone(Phone::replug))
        .route("/lock", on_phone(|phone| phone.set_locked(true)))
        .route("/unlock", on_phone(|phone| phone.set_locked(false)))
        .route("/apps/{bundle}", put(put_app))
        .route("/runner/restart", post(restart_runner))
        .route("/runner/kill", on_phone(Phone::kill_runner));
    let usbmuxd = Router::new()
        .route("/oddities", post(add_oddity))
        .route("/start", post(start_usbmuxd))
        .route("/restart", post(start_usbmuxd))
        .route("/stop", on_usbmuxd(Mux::stop))
        .route("/stall", on_usbmuxd(|mux| mux.stall(true)))
        .route("/resume", on_usbmuxd(|mux| mux.stall(false)));
    Router::new()
        .route(
            "/lab",
            get(async |lab: Lab| Json(*lab.load.watch().borrow())),
        )
        .route("/phones", get(list))
        .nest("/phones/{udid}", phone)
        .nest("/usbmuxd", usbmuxd)
        .layer(middleware::from_fn(refuse_strangers))
        .with_state(core)
}

/// A POST without a body that does something to a phone and cannot fail.
fn on_phone(act: fn(&Phone)) -> MethodRouter<Arc<LabCore>> {
    post(async move |Named(phone): Named| {
        act(&phone);
        NoContent
    })
}

/// The same to the daemon.
fn on_usbmuxd(act: fn(&Mux)) -> MethodRouter<Arc<LabCore>> {
    post(async move |lab: Lab| {
        act(&lab.mux);
        NoContent
    })
}

/// What the API answers instead of what it was asked for.
#[derive(Debug)]
struct Refused(StatusCode, String);

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
        Self(StatusCode::BAD_REQUEST, invalid.to_string())
    }
}

/// The answer to an action.
type Answer = Result<NoContent, Refused>;

/// A body, or what is wrong with it.
type Body<T> = Result<Json<T>, JsonRejection>;

/// The phone that the path names, in any spelling of its UDID.
#[derive(Debug)]
struct Named(Phone);

#[derive(Debug, Deserialize)]
struct PhonePath {
    udid: String,
}

impl FromRequestParts<Arc<LabCore>> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, lab: &Arc<LabCore>) -> Result<Self, Refused> {
        let Path(PhonePath { udid }) = Path::from_request_parts(parts, lab)
            .await
            .map_err(|rejection| Refused(rejection.status(), rejection.body_text()))?;
        let name: Udid = udid
            .parse()
            .map_err(|invalid| Refused(StatusCode::BAD_REQUEST, format!("{udid}: {invalid}")))?;
        let unknown = || Refused(StatusCode::NOT_FOUND, format!("there is no phone {name}"));
        lab.phone(&name).map(Named).ok_or_else(unknown)
    }
}

/// A phone in the list of all.
#[derive(Debug, Serialize)]
struct Listed {
    udid: String,
    name: String,
    plugged: Vec<Transport>,
    runner: Option<RunnerReport>,
}

async fn list(lab: Lab) -> Json<Vec<Listed>> {
    let phones = lab.phones.keys().filter_map(|udid| lab.phone(udid));
    let listed = phones.map(|phone| {
        let PhoneReport {
            udid,
            name,
            plugged,
            runner,
            ..
        } = phone.report();
        Listed {
            udid,
            name,
            plugged,
            runner,
        }
    });
    Json(listed.collect())
}

async fn add_fault(Named(phone): Named, fault: Body<Fault>) -> Answer {
    let Json(fault) = fault?;
    fault.check()?;
    phone.fault(fault);
    Ok(NoContent)
}

async fn clear_faults(Named(phone): Named) -> NoContent {
    phone.clear_faults();
    NoContent
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plug {
    transport: Transport,
}

async fn attach(Named(phone): Named, plug: Body<Plug>) -> Answer {
    phone.attach_over(plug?.0.transport);
    Ok(NoContent)
}

async fn detach(Named(phone): Named, plug: Body<Plug>) -> Answer {
    phone.detach_from(plug?.0.transport);
    Ok(NoContent)
}

#[derive(Debug, Deserialize)]
struct AppPath {
    bundle: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppPlace {
    state: AppState,
}

async fn put_app(
    Named(phone): Named,
    Path(AppPath { bundle }): Path<AppPath>,
    place: Body<AppPlace>,
) -> Answer {
    let bundle: BundleId = bundle
        .parse()
        .map_err(|invalid| Refused(StatusCode::BAD_REQUEST, format!("{bundle}: {invalid}")))?;
    phone.set_app_state(&bundle, place?.0.state);
    Ok(NoContent)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listening {
    port: u16,
}

async fn restart_runner(Named(phone): Named, on: Body<Listening>) -> Answer {
    phone.restart_runner(on?.0.port);
    Ok(NoContent)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewDaemon {
    reuse_ids: bool,
}

async fn start_usbmuxd(lab: Lab, how: Body<NewDaemon>) -> Answer {
    let ids = if how?.0.reuse_ids {
        Ids::Reused
    } else {
        Ids::Fresh
    };
    lab.mux.start(ids);
    Ok(NoContent)
}

async fn add_oddity(lab: Lab, oddity: Body<Oddity>) -> Answer {
    lab.oddities.push(oddity?.0);
    Ok(NoContent)
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
