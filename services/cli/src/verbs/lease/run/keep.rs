//! Keeping a lease: it is renewed at a third of its ttl, and watched, so that
//! its loss is known at once.
//!
//! A gateway that cannot be reached is no loss. A lease's time stands still while
//! its gateway is down, and only the gateway knows whether it was: it is asked
//! again until it answers. Until then nobody else is let onto the phones before
//! the lease has ended.

use std::fmt;
use std::time::Duration;

use fleetgate_proto::v1::{Lease, LeaseState};
use tokio::time::{Instant, sleep};

use super::super::renew;
use crate::client::{Client, Context};
use crate::follow::{Follow, Followed, OneLease};
use crate::output::{clean, note};
use crate::rejected::Rejected;
use crate::view::lease::why;
use crate::words;

/// The part of the ttl after which a lease is renewed.
const THIRD: u32 = 3;

/// What a ttl is taken for that the gateway does not tell.
const TTL: Duration = Duration::from_secs(60);

/// How long an answer may take, and at least.
const ANSWER: Duration = Duration::from_secs(10);
const QUICK_ANSWER: Duration = Duration::from_secs(1);

/// The pause after the first failure, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_CAP: Duration = Duration::from_secs(2);

/// Whoever keeps a lease.
#[derive(Debug)]
pub(super) struct Keeper {
    context: Context,
    id: String,
    epoch: u64,
    ttl: Duration,
}

/// How a lease was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost(String);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Keeper {
    /// For a lease that has just been granted.
    pub(super) fn new(context: &Context, lease: &Lease) -> Self {
        Self {
            context: context.clone(),
            id: lease.id.clone(),
            epoch: lease.epoch,
            ttl: ttl(lease),
        }
    }

    /// Keeps it for as long as that is possible.
    pub(super) async fn until_lost(&self) -> Lost {
        tokio::select! {
            lost = self.watch() => lost,
            lost = self.renew() => lost,
        }
    }

    async fn watch(&self) -> Lost {
        let unlimited = Context {
            timeout: None,
            ..self.context.clone()
        };
        let mut is_away = false;
        loop {
            let topic = OneLease {
                id: self.id.clone(),
            };
            let mut follow = Follow::patiently(&unlimited, topic);
            let failure = loop {
                match follow.next().await {
                    Ok(Followed::Said(message)) => {
                        if let Some(lost) = message.lease.as_ref().and_then(lost) {
                            return lost;
                        }
                    }
                    Ok(Followed::Lost { why, .. }) => {
                        if !is_away {
                            note(&clean(&format!("the gateway is away: {why}")));
                        }
                        is_away = true;
                    }
                    Ok(Followed::Back) => {
                        if is_away {
                            note("the gateway is back");
                        }
                        is_away = false;
                    }
                    Err(failure) => break failure,
                }
            };
            if failure.is_verdict() {
                return Lost(failure.to_string());
            }
            // What this is about, the next renewal finds out.
            sleep(PAUSE_CAP).await;
        }
    }

    async fn renew(&self) -> Lost {
        let mut third = self.ttl / THIRD;
        let brief = Context {
            timeout: Some(third.clamp(QUICK_ANSWER, ANSWER)),
            ..self.context.clone()
        };
        let mut client = None;
        let mut pause = PAUSE;
        let mut ends = Instant::now() + self.ttl;
        sleep(third).await;
        loop {
            match self.renew_once(&brief, &mut client).await {
                Ok(ttl) => {
                    // It may have been changed.
                    third = ttl / THIRD;
                    (pause, ends) = (PAUSE, Instant::now() + ttl);
                    sleep(third).await;
                }
                Err(failure) if is_final(&failure, Instant::now() >= ends) => {
                    return Lost(failure.to_string());
                }
                Err(_) => {
                    client = None;
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_CAP);
                }
            }
        }
    }

    /// Renews it; gives the ttl that it has.
    async fn renew_once(
        &self,
        context: &Context,
        client: &mut Option<Client>,
    ) -> Result<Duration, Rejected> {
        let connected = match client.take() {
            Some(connected) => connected,
            None => Client::connect(context).await?,
        };
        let lease = renew(&connected, &self.id, self.epoch).await?;
        *client = Some(connected);
        Ok(ttl(&lease))
    }
}

/// Whether a renewal that failed need not be tried again. `is_over`: the time of
/// the last one that succeeded has passed, if the gateway was up.
fn is_final(failure: &Rejected, is_over: bool) -> bool {
    // A gateway that does not know who asks is up, and a lease's time runs.
    failure.is_verdict() || (failure.is_unauthenticated() && is_over)
}

/// How long it lives after a renewal.
fn ttl(lease: &Lease) -> Duration {
    let ttl = lease.ttl.and_then(|ttl| Duration::try_from(ttl).ok());
    ttl.filter(|ttl| !ttl.is_zero()).unwrap_or(TTL)
}

/// How a lease was lost, if it was.
fn lost(lease: &Lease) -> Option<Lost> {
    match lease.state() {
        LeaseState::Unspecified
        | LeaseState::Scheduled
        | LeaseState::Queued
        | LeaseState::Active => None,
        LeaseState::Draining
        | LeaseState::Released
        | LeaseState::Expired
        | LeaseState::Revoked
        | LeaseState::Cancelled
        | LeaseState::Unsatisfiable => Some(Lost(
            why(lease).unwrap_or_else(|| words::lease_state(lease.state)),
        )),
    }
}
