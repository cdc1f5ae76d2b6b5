//! A wish that is waited for until it is a lease.
//!
//! ```text
//!   ask ──► waits ──► granted
//!    │        │ └───► ended otherwise: an error that says how
//!    └────────┴─────► stopped by a signal, or too late: the wish is taken back
//! ```
//!
//! Invariant: whatever ends the wait but a grant, no wish is left behind that
//! this process could take back.

use std::time::Duration;

use fleetgate_proto::v1::{CreateLeaseRequest, Lease, LeaseState};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tonic::Status;

use super::progress::Progress;
use super::{explain, release};
use crate::client::{Asked, Client, Context};
use crate::exit::NoLease;
use crate::follow::{Follow, Followed, OneLease, lost};
use crate::rejected::Rejected;
use crate::signals::Signals;
use crate::view::lease::why;
use crate::words;

/// How often it is asked what stands in the way.
const LOOK: Duration = Duration::from_secs(3);

/// How often a terminal is told how long it has been.
const TICK: Duration = Duration::from_secs(1);

/// How long an answer may take, unless that is said.
const ANSWER: Duration = Duration::from_secs(10);

/// How long is tried to take a wish or a lease back.
const FAREWELL: Duration = Duration::from_secs(5);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// Whoever waits.
#[derive(Debug)]
pub(super) struct Acquire {
    context: Context,
    progress: Progress,
    /// When the wait ends at the latest.
    until: Option<Instant>,
}

/// How it came out.
#[derive(Debug)]
pub(super) enum Acquired {
    /// The phones are there.
    Granted(Box<Lease>),
    /// A signal came, and the wish was taken back.
    Stopped(Signal),
}

impl Acquire {
    /// Nothing is asked yet.
    pub(super) fn new(context: &Context) -> Self {
        Self {
            context: answering(context),
            progress: Progress::new(),
            until: None,
        }
    }

    /// With a limit to all of the wait, which begins now.
    pub(super) fn within(self, limit: Option<Duration>) -> Self {
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        Self { until, ..self }
    }

    /// Asks, and waits.
    pub(super) async fn run(
        mut self,
        request: CreateLeaseRequest,
        signals: &mut Signals,
    ) -> anyhow::Result<Acquired> {
        let context = self.context.clone();
        let client = Client::connect(&context).await?;
        let mut asking = Box::pin(create_surely(&client, &context, request));
        let (lease, signal) = tokio::select! {
            lease = &mut asking => (lease?, None),
            // What was asked for is known only with the answer.
            signal = signals.next() => (asking.await?, Some(signal)),
        };
        let id = lease.id.clone();
        let waited = match signal {
            Some(signal) => Ok(Acquired::Stopped(signal)),
            None => self.until_granted(lease, &client, signals).await,
        };
        match &waited {
            Ok(Acquired::Granted(_)) => {}
            Ok(Acquired::Stopped(_)) => {
                self.progress.note("interrupted: the wish is taken back");
                give_back(&context, &id).await;
            }
            // What has ended is not there any more.
            Err(error) if error.is::<NoLease>() => {}
            Err(_) => give_back(&context, &id).await,
        }
        waited
    }

    async fn until_granted(
        &mut self,
        lease: Lease,
        client: &Client,
        signals: &mut Signals,
    ) -> anyhow::Result<Acquired> {
        let mut lease = lease;
        if let Some(granted) = granted(&lease)? {
            return Ok(granted);
        }
        let id = lease.id.clone();
        let begun = Instant::now();
        let unlimited = Context {
            timeout: None,
            ..self.context.clone()
        };
        let mut follow = Follow::patiently(&unlimited, OneLease { id: id.clone() });
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looking = JoinSet::new();
        let mut summary = None;
        let mut is_away = false;
        let until = self.until;
        loop {
            tokio::select! {
                followed = follow.next() => match followed? {
                    Followed::Said(message) => {
                        let Some(now) = message.lease else { continue };
                        if let Some(granted) = granted(&now)? {
                            return Ok(granted);
                        }
                        if now.queue_position != lease.queue_position {
                            looks.reset_immediately();
                        }
                        lease = now;
                    }
                    Followed::Lost { why, pause } => {
                        self.progress.note(&lost(&why, pause));
                        is_away = true;
                    }
                    Followed::Back if is_away => {
                        self.progress.note("connected again");
                        is_away = false;
                    }
                    Followed::Back => {}
                },
                _ = looks.tick(), if looking.is_empty() => {
                    let (client, id) = (client.clone(), id.clone());
                    let context = self.context.clone();
                    looking.spawn(async move { look(client, &context, &id).await });
                }
                Some(looked) = looking.join_next() => {
                    if let Ok(Some(now)) = looked {
                        summary = Some(now);
                    }
                    let words = waiting(&lease, summary.as_deref());
                    self.progress.tell(&words, &elapsed(begun));
                }
                _ = ticks.tick(), if summary.is_some() => {
                    let words = waiting(&lease, summary.as_deref());
                    self.progress.tell(&words, &elapsed(begun));
                }
                signal = signals.next() => return Ok(Acquired::Stopped(signal)),
                () = sleep_until(until.unwrap_or(begun)), if until.is_some() => {
                    return Err(too_late(client, &id).into());
                }
            }
        }
    }
}

/// Asks for phones.
pub(super) async fn create(
    client: &Client,
    request: CreateLeaseRequest,
) -> Result<Lease, Rejected> {
    let reply = client.leases().create_lease(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner().lease.unwrap_or_default())
}

/// Asks for phones, and asks again for a while if the answer is lost: there may be
/// a lease by then that only its request finds.
async fn create_surely(
    client: &Client,
    context: &Context,
    request: CreateLeaseRequest,
) -> Result<Lease, Rejected> {
    let mut created = create(client, request.clone()).await;
    let until = Instant::now() + FAREWELL;
    while created.as_ref().is_err_and(Rejected::is_unanswered) && Instant::now() < until {
        sleep(PAUSE).await;
        created = match Client::connect(context).await {
            Ok(client) => create(&client, request.clone()).await,
            Err(away) => Err(away),
        };
    }
    created
}

/// Gives a lease back, and tries again for a while.
pub(super) async fn give_back(context: &Context, id: &str) {
    let trying = async {
        loop {
            match once(context, id).await {
                Ok(()) => return None,
                Err(rejected) if rejected.is_verdict() => return Some(rejected),
                Err(_) => sleep(PAUSE).await,
            }
        }
    };
    let why = match timeout(FAREWELL, trying).await {
        Ok(None) => return,
        Ok(Some(rejected)) => rejected.to_string(),
        Err(_) => "the gateway does not answer".to_owned(),
    };
    Progress::new().note(&format!(
        "note: the lease {id} could not be given back ({why}); it ends by itself"
    ));
}

async fn once(context: &Context, id: &str) -> Result<(), Rejected> {
    let client = Client::connect(context).await?;
    release(&client, id).await.map(|_ended| ())
}

/// The options, with a limit to how long an answer takes.
pub(super) fn answering(context: &Context) -> Context {
    Context {
        timeout: context.timeout.or(Some(ANSWER)),
        ..context.clone()
    }
}

/// Whether a lease is past all that can become of it.
pub(super) fn has_ended(state: LeaseState) -> bool {
    match state {
        LeaseState::Unspecified
        | LeaseState::Scheduled
        | LeaseState::Queued
        | LeaseState::Active
        | LeaseState::Draining => false,
        LeaseState::Released
        | LeaseState::Expired
        | LeaseState::Revoked
        | LeaseState::Cancelled
        | LeaseState::Unsatisfiable => true,
    }
}

/// `None` while it waits.
pub(super) fn granted(lease: &Lease) -> Result<Option<Acquired>, NoLease> {
    let state = lease.state();
    match state {
        LeaseState::Unspecified | LeaseState::Scheduled | LeaseState::Queued => Ok(None),
        LeaseState::Active => Ok(Some(Acquired::Granted(Box::new(lease.clone())))),
        LeaseState::Draining
        | LeaseState::Released
        | LeaseState::Expired
        | LeaseState::Revoked
        | LeaseState::Cancelled
        | LeaseState::Unsatisfiable => {
            let why = why(lease).unwrap_or_else(|| words::lease_state(lease.state));
            Err(NoLease(format!(
                "the lease {} was not granted: {why}",
                lease.id
            )))
        }
    }
}

fn too_late(client: &Client, id: &str) -> Rejected {
    let words = format!("the lease {id} was not granted in time");
    client.rejected(&Status::deadline_exceeded(words), Asked::nothing())
}

/// What stands in the way; `None` if that is not known now.
async fn look(client: Client, context: &Context, id: &str) -> Option<String> {
    let explained = match explain(&client, id).await {
        Ok(explained) => explained,
        Err(_) => explain(&Client::connect(context).await.ok()?, id)
            .await
            .ok()?,
    };
    Some(explained.summary)
}

fn waiting(lease: &Lease, summary: Option<&str>) -> String {
    let place = lease
        .queue_position
        .map(|place| format!(", place {place} in line"));
    let summary = summary
        .filter(|summary| !summary.is_empty())
        .map(|summary| format!(": {summary}"));
    format!(
        "waiting for the lease {}{}{}",
        lease.id,
        place.unwrap_or_default(),
        summary.unwrap_or_default()
    )
}

fn elapsed(begun: Instant) -> String {
    let seconds = Duration::from_secs(begun.elapsed().as_secs());
    format!(" ({})", humantime::format_duration(seconds))
}

#[cfg(test)]
mod tests;
