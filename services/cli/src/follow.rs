//! A gateway's stream, followed through lost connections.
//!
//! ```text
//!   OPEN ── lost ──► PAUSED ── pause over ──► OPENING ──► OPEN, at its cursor
//!     ▲                ▲                         │
//!     │                └──────── failed ─────────┘
//!     └── the first time, a failure is the caller's
//! ```
//!
//! It goes on behind the last message that came, as far as what is followed can
//! say where that was ([`Topic`]): a fleet's stream has cursors, and a gap where
//! the gateway cannot go on from one; a lease's begins with the lease as it is.
//! What no repetition can mend, such as a gateway that does not know the call,
//! ends it.

use std::fmt;
use std::time::Duration;

use fleetgate_proto::v1::{
    FleetEventType, WatchFleetRequest, WatchFleetResponse, WatchLeaseRequest, WatchLeaseResponse,
};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::codegen::BoxFuture;
use tonic::{Response, Status, Streaming};

use crate::client::{Asked, Client, Context};
use crate::output::clean;
use crate::rejected::Rejected;

/// The pause after the first loss.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const PAUSE_CAP: Duration = Duration::from_secs(5);
/// How often in a row a gateway may not know who asks before that counts: one
/// that was started anew has a new token for its own user, and has to tell it
/// first.
const STRANGE: u8 = 4;

/// What can be followed.
pub(crate) trait Topic: Clone + fmt::Debug + Send + Sync + 'static {
    /// What the gateway says of it.
    type Message: fmt::Debug + Send + 'static;

    /// Asks for what follows after all that was heard.
    fn ask(
        &self,
        client: &Client,
    ) -> impl Future<Output = Result<Response<Streaming<Self::Message>>, Status>> + Send;

    /// Takes note of where the stream has come to.
    fn heard(&mut self, message: &Self::Message);
}

/// The fleet.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    types: Vec<i32>,
    cursor: String,
}

impl Fleet {
    /// Begins with all of the fleet; `types` are the events of interest, and
    /// none means all.
    pub(crate) fn of(types: &[FleetEventType]) -> Self {
        Self {
            types: types.iter().map(|kind| i32::from(*kind)).collect(),
            cursor: String::new(),
        }
    }
}

impl Topic for Fleet {
    type Message = WatchFleetResponse;

    async fn ask(
        &self,
        client: &Client,
    ) -> Result<Response<Streaming<WatchFleetResponse>>, Status> {
        let request = WatchFleetRequest {
            resume_cursor: self.cursor.clone(),
            types: self.types.clone(),
        };
        client.fleet().watch_fleet(client.request(request)).await
    }

    fn heard(&mut self, message: &WatchFleetResponse) {
        if !message.cursor.is_empty() {
            self.cursor.clone_from(&message.cursor);
        }
    }
}

/// One lease.
#[derive(Debug, Clone)]
pub(crate) struct OneLease {
    /// Its id.
    pub(crate) id: String,
}

impl Topic for OneLease {
    type Message = WatchLeaseResponse;

    async fn ask(
        &self,
        client: &Client,
    ) -> Result<Response<Streaming<WatchLeaseResponse>>, Status> {
        let request = WatchLeaseRequest {
            lease_id: self.id.clone(),
        };
        client.leases().watch_lease(client.request(request)).await
    }

    fn heard(&mut self, _: &WatchLeaseResponse) {}
}

/// A topic that is followed.
#[derive(Debug)]
pub(crate) struct Follow<T: Topic> {
    context: Context,
    topic: T,
    /// When all of it ends.
    until: Option<Instant>,
    pause: Duration,
    /// How often in a row the gateway did not know who asks.
    strange: u8,
    state: State<T::Message>,
}

/// What comes of following it.
#[derive(Debug)]
pub(crate) enum Followed<M> {
    /// The gateway said something.
    Said(Box<M>),
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

/// A loss in words.
pub(crate) fn lost(why: &str, pause: Duration) -> String {
    let pause = humantime::format_duration(pause);
    clean(&format!(
        "the connection was lost: {why}; trying again in {pause}"
    ))
}

/// A stream, and the connection that it is on.
struct Open<M> {
    stream: Streaming<M>,
    client: Client,
}

enum State<M> {
    Open(Box<Open<M>>),
    Paused(Instant),
    Opening(BoxFuture<Open<M>, Rejected>),
}

impl<M> fmt::Debug for State<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Paused(_) => "Paused",
            Self::Opening(_) => "Opening",
        })
    }
}

impl<T: Topic> Follow<T> {
    /// Begins.
    pub(crate) async fn start(context: &Context, topic: T) -> Result<Self, Rejected> {
        let open = open(context.clone(), topic.clone()).await?;
        Ok(Self {
            until: context.patience().map(|patience| Instant::now() + patience),
            context: context.clone(),
            topic,
            pause: PAUSE,
            strange: 0,
            state: State::Open(Box::new(open)),
        })
    }

    /// Begins, if not now then later.
    pub(crate) fn patiently(context: &Context, topic: T) -> Self {
        Self {
            until: context.patience().map(|patience| Instant::now() + patience),
            context: context.clone(),
            topic,
            pause: PAUSE,
            strange: 0,
            state: State::Paused(Instant::now()),
        }
    }

    /// What comes next. Nothing is lost when this is dropped.
    pub(crate) async fn next(&mut self) -> Result<Followed<T::Message>, Rejected> {
        let Some(until) = self.until else {
            return self.advance().await;
        };
        match timeout_at(until, self.advance()).await {
            Ok(followed) => followed,
            Err(_) => Err(Rejected::expired(Asked::nothing(), &self.context)),
        }
    }

    async fn advance(&mut self) -> Result<Followed<T::Message>, Rejected> {
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
                    let opening = open(context, self.topic.clone());
                    self.state = State::Opening(Box::pin(opening));
                }
                State::Opening(opening) => match opening.await {
                    Ok(open) => {
                        self.state = State::Open(Box::new(open));
                        return Ok(Followed::Back);
                    }
                    Err(failure) if failure.may_pass() => return Ok(self.lost(&failure)),
                    Err(failure) if failure.is_unauthenticated() && self.strange < STRANGE => {
                        self.strange += 1;
                        return Ok(self.lost(&failure));
                    }
                    Err(failure) => return Err(failure),
                },
            }
        }
    }

    fn said(&mut self, message: T::Message) -> Followed<T::Message> {
        self.pause = PAUSE;
        self.strange = 0;
        self.topic.heard(&message);
        Followed::Said(Box::new(message))
    }

    fn lost(&mut self, failure: &Rejected) -> Followed<T::Message> {
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

async fn open<T: Topic>(context: Context, topic: T) -> Result<Open<T::Message>, Rejected> {
    let client = Client::connect(&context).await?;
    let reply = topic.ask(&client).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(Open {
        stream: reply.into_inner(),
        client,
    })
}
