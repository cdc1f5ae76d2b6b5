//! The fleet's stream, followed through lost connections.
//!
//! ```text
//!   OPEN ── lost ──► PAUSED ── pause over ──► OPENING ──► OPEN, at its cursor
//!     ▲                ▲                         │
//!     │                └──────── failed ─────────┘
//!     └── the first time, a failure is the caller's
//! ```
//!
//! It goes on behind the last message that came; if that is not possible, the
//! gateway tells of a gap and all of the fleet follows. What no repetition can
//! mend, such as a gateway that does not know the call, ends it.

use std::fmt;
use std::time::Duration;

use fleetgate_proto::v1::{FleetEventType, WatchFleetRequest, WatchFleetResponse};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::codegen::BoxFuture;
use tonic::{Status, Streaming};

use crate::client::{Asked, Client, Context};
use crate::rejected::Rejected;

/// The pause after the first loss.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const PAUSE_CAP: Duration = Duration::from_secs(5);

/// A fleet that is followed.
#[derive(Debug)]
pub(crate) struct Follow {
    context: Context,
    types: Vec<i32>,
    cursor: String,
    /// When all of it ends.
    until: Option<Instant>,
    pause: Duration,
    state: State,
}

/// What comes of following it.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The gateway said something.
    Said(Box<WatchFleetResponse>),
    /// The connection was lost, or could not be made again.
    Lost {
        /// Why.
        why: String,
        /// How long until it is tried again.
        pause: Duration,
    },
    /// There is a connection again.
    Back,
}

/// A stream, and the connection that it is on.
struct Open {
    stream: Streaming<WatchFleetResponse>,
    client: Client,
}

enum State {
    Open(Box<Open>),
    Paused(Instant),
    Opening(BoxFuture<Open, Rejected>),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Paused(_) => "Paused",
            Self::Opening(_) => "Opening",
        })
    }
}

impl Follow {
    /// Begins with all of the fleet; `types` are the events of interest, and
    /// none means all.
    pub(crate) async fn start(
        context: &Context,
        types: &[FleetEventType],
    ) -> Result<Self, Rejected> {
        let types: Vec<_> = types.iter().map(|kind| i32::from(*kind)).collect();
        let open = open(context.clone(), types.clone(), String::new()).await?;
        Ok(Self {
            until: context.patience().map(|patience| Instant::now() + patience),
            context: context.clone(),
            types,
            cursor: String::new(),
            pause: PAUSE,
            state: State::Open(Box::new(open)),
        })
    }

    /// What comes next. Nothing is lost when this is dropped.
    pub(crate) async fn next(&mut self) -> Result<Followed, Rejected> {
        let Some(until) = self.until else {
            return self.advance().await;
        };
        match timeout_at(until, self.advance()).await {
            Ok(followed) => followed,
            Err(_) => Err(Rejected::expired(Asked::nothing(), &self.context)),
        }
    }

    async fn advance(&mut self) -> Result<Followed, Rejected> {
        loop {
            match &mut self.state {
                State::Open(open) => {
                    let status = match open.stream.message().await {
                        Ok(Some(message)) => return Ok(self.said(message)),
                        Ok(None) => Status::unavailable("the gateway ended the stream"),
                        Err(status) => status,
                    };
                    let failure = open.client.rejected(&status, Asked::nothing());
                    if !failure.may_pass() {
                        return Err(failure);
                    }
                    return Ok(self.lost(&failure));
                }
                State::Paused(until) => {
                    sleep_until(*until).await;
                    let context = self.rest();
                    let opening = open(context, self.types.clone(), self.cursor.clone());
                    self.state = State::Opening(Box::pin(opening));
                }
                State::Opening(opening) => match opening.await {
                    Ok(open) => {
                        self.state = State::Open(Box::new(open));
                        return Ok(Followed::Back);
                    }
                    Err(failure) if failure.may_pass() => return Ok(self.lost(&failure)),
                    Err(failure) => return Err(failure),
                },
            }
        }
    }

    fn said(&mut self, message: WatchFleetResponse) -> Followed {
        self.pause = PAUSE;
        if !message.cursor.is_empty() {
            self.cursor.clone_from(&message.cursor);
        }
        Followed::Said(Box::new(message))
    }

    fn lost(&mut self, failure: &Rejected) -> Followed {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_CAP);
        self.state = State::Paused(Instant::now() + pause);
        Followed::Lost {
            why: failure.to_string(),
            pause,
        }
    }

    /// The options, with what is left of their deadline.
    fn rest(&self) -> Context {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        Context {
            timeout: self.until.map(left),
            ..self.context.clone()
        }
    }
}

async fn open(context: Context, types: Vec<i32>, cursor: String) -> Result<Open, Rejected> {
    let client = Client::connect(&context).await?;
    let request = WatchFleetRequest {
        resume_cursor: cursor,
        types,
    };
    let reply = client.fleet().watch_fleet(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(Open {
        stream: reply.into_inner(),
        client,
    })
}
