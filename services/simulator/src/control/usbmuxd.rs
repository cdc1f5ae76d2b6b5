//! The calls about the daemon.

use std::sync::Arc;

use axum::response::NoContent;
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::{Answer, Body, Lab};
use crate::lab::LabCore;
use crate::mux::{Ids, Mux};
use crate::oddity::Oddity;
use crate::stray::Stray;

/// Everything below the daemon's path.
pub(super) fn routes() -> Router<Arc<LabCore>> {
    Router::new()
        .route("/oddities", post(add_oddity).delete(clear_oddities))
        .route("/strays", post(add_stray).delete(clear_strays))
        .route("/start", post(start))
        .route("/restart", post(start))
        .route("/stop", on_usbmuxd(Mux::stop))
        .route("/stall", on_usbmuxd(|mux| mux.stall(true)))
        .route("/resume", on_usbmuxd(|mux| mux.stall(false)))
}

/// A POST without a body that does something to the daemon and cannot fail.
fn on_usbmuxd(act: fn(&Mux)) -> MethodRouter<Arc<LabCore>> {
    post(async move |lab: Lab| {
        act(&lab.mux);
        NoContent
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewDaemon {
    reuse_ids: bool,
}

async fn start(lab: Lab, how: Body<NewDaemon>) -> Answer {
    let Json(NewDaemon { reuse_ids }) = how?;
    lab.mux
        .start(if reuse_ids { Ids::Reused } else { Ids::Fresh });
    Ok(NoContent)
}

async fn add_oddity(lab: Lab, oddity: Body<Oddity>) -> Answer {
    lab.oddities.push(oddity?.0);
    Ok(NoContent)
}

async fn clear_oddities(lab: Lab) -> NoContent {
    lab.oddities.clear();
    NoContent
}

async fn add_stray(lab: Lab, stray: Body<Stray>) -> Answer {
    lab.mux.add_stray(stray?.0);
    Ok(NoContent)
}

async fn clear_strays(lab: Lab) -> NoContent {
    lab.mux.clear_strays();
    NoContent
}
