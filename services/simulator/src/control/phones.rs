//! The calls about one phone, and the list of all.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body as Stream, Bytes};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, NoContent, Response};
use axum::routing::{MethodRouter, get, post, put};
use axum::{Json, Router};
use fleetgate_runner::{BundleId, Udid};
use serde::{Deserialize, Serialize};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::{Answer, Body, Lab, Refused, if_given};
use crate::fault::Fault;
use crate::lab::LabCore;
use crate::launch::{LaunchEvent, LaunchFault, LaunchRequest};
use crate::lockdown::Lockdown;
use crate::phone::Phone;
use crate::report::{PhoneReport, RunnerReport, Transport};
use crate::ui::AppState;

/// Everything below a phone's path.
pub(super) fn one() -> Router<Arc<LabCore>> {
    let counters = put(put_counters);
    Router::new()
        .route("/", get(async |Named(phone): Named| Json(phone.report())))
        .route("/faults", post(add_fault).delete(clear_faults))
        .route(
            "/launch-faults",
            post(add_launch_fault).delete(clear_launch_faults),
        )
        .route("/attach", post(attach))
        .route("/detach", post(detach))
        .route("/replug", post(replug))
        .route("/lock", post(lock))
        .route("/unlock", on_phone(|phone| phone.set_locked(false)))
        .route("/trust", on_phone(|phone| phone.set_trusted(true)))
        .route("/untrust", on_phone(|phone| phone.set_trusted(false)))
        .route("/lockdown", put(put_lockdown))
        .route("/apps/{bundle}", put(put_app))
        .route("/runner/launch", post(launch))
        .route("/runner/restart", post(restart_runner))
        .route("/runner/kill", on_phone(Phone::kill_runner))
        .route("/runner/counters", counters)
}

/// A POST without a body that does something to a phone and cannot fail.
fn on_phone(act: fn(&Phone)) -> MethodRouter<Arc<LabCore>> {
    post(async move |Named(phone): Named| {
        act(&phone);
        NoContent
    })
}

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
            .map_err(|invalid| Refused::senseless(format!("{udid}: {invalid}")))?;
        let unknown = || Refused(StatusCode::NOT_FOUND, format!("there is no phone {name}"));
        lab.phone(&name).map(Named).ok_or_else(unknown)
    }
}

/// A phone in the list of all.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    udid: String,
    name: String,
    plugged: Vec<Transport>,
    runner: Option<RunnerReport>,
}

pub(super) async fn list(lab: Lab) -> Json<Vec<Listed>> {
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

async fn add_launch_fault(Named(phone): Named, fault: Body<LaunchFault>) -> Answer {
    let Json(fault) = fault?;
    fault.check()?;
    phone.launch_fault(fault);
    Ok(NoContent)
}

async fn clear_launch_faults(Named(phone): Named) -> NoContent {
    phone.clear_launch_faults();
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

async fn replug(Named(phone): Named, how: Bytes) -> Answer {
    phone.replug_so(if_given(&how)?);
    Ok(NoContent)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    stall: bool,
}

async fn lock(Named(phone): Named, how: Bytes) -> Answer {
    if if_given::<Lock>(&how)?.stall {
        phone.lock_and_stall();
    } else {
        phone.set_locked(true);
    }
    Ok(NoContent)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answering {
    lockdown: Lockdown,
}

async fn put_lockdown(Named(phone): Named, how: Body<Answering>) -> Answer {
    phone.set_lockdown(how?.0.lockdown);
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
        .map_err(|invalid| Refused::senseless(format!("{bundle}: {invalid}")))?;
    phone.set_app_state(&bundle, place?.0.state);
    Ok(NoContent)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listening {
    port: Option<u16>,
}

async fn restart_runner(Named(phone): Named, on: Bytes) -> Answer {
    match if_given::<Listening>(&on)?.port {
        Some(port) => phone.restart_runner(port),
        None if phone.restart_runner_silently() => {}
        None => return Err(no_runner()),
    }
    Ok(NoContent)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counters {
    suppressed_issues: Option<u64>,
    recorded_failures: Option<u64>,
}

async fn put_counters(Named(phone): Named, counters: Body<Counters>) -> Answer {
    let Json(Counters {
        suppressed_issues,
        recorded_failures,
    }) = counters?;
    if !phone.set_runner_counters(suppressed_issues, recorded_failures) {
        return Err(no_runner());
    }
    Ok(NoContent)
}

fn no_runner() -> Refused {
    let message = "no runner is up on this phone";
    Refused(StatusCode::CONFLICT, message.to_owned())
}

async fn launch(Named(phone): Named, request: Bytes) -> Result<Response, Refused> {
    let request: LaunchRequest = if_given(&request)?;
    request.check()?;
    let events = ReceiverStream::new(phone.launch(request));
    let lines = events.map(|event| Ok::<_, Infallible>(line(&event)));
    let content_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((content_type, Stream::from_stream(lines)).into_response())
}

fn line(event: &LaunchEvent) -> String {
    // An enum of strings and numbers has a JSON form.
    let json = serde_json::to_string(event).unwrap_or_default();
    json + "\n"
}
