//! Keeps the issuer's keys as they are now.
//!
//! ```text
//!   begin ──► fetch ──► wait until it is time ──┐
//!               ▲                               │
//!               │    ten minutes (a file: ten seconds) after a success,
//!               │    ten seconds after a failure,
//!               └──  or a JWT names a key that is not there, and the last
//!                    attempt is ten seconds ago
//! ```
//!
//! Owns one task that fetches, one thing at a time, whatever the number of
//! callers. Keys that were fetched stay until others are: an issuer that cannot
//! be reached locks nobody out. Invariant: a key that its issuer has withdrawn
//! is gone with the next success.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};
use tracing::Instrument;

use super::fetch::{Fetch, FetchError};
use super::keys::Keys;
use crate::error::IdentityError;
use crate::jwks::JwksSource;

/// The shortest time between two attempts.
const REST: Duration = Duration::from_secs(10);
/// How old keys of a URL get before they are fetched again.
const URL_AGE: Duration = Duration::from_secs(600);
/// Of a file, which costs little to read.
const FILE_AGE: Duration = REST;
/// So many callers may wait for a fetch; more are answered at once.
const MAX_WAITING: usize = 256;

type Known = Option<Arc<Keys>>;
type Wish = oneshot::Sender<()>;

/// The keys, and whoever fetches them.
#[derive(Debug)]
pub(super) struct Keeper {
    keys: watch::Receiver<Known>,
    wanted: mpsc::Sender<Wish>,
    /// Ends when this is dropped.
    _task: JoinSet<()>,
}

enum Source {
    File(PathBuf),
    Url(Fetch),
}

impl Source {
    fn age(&self) -> Duration {
        match self {
            Self::File(_) => FILE_AGE,
            Self::Url(_) => URL_AGE,
        }
    }

    async fn get(&self) -> Result<Keys, FetchError> {
        let text = match self {
            Self::File(path) => read(path).await?,
            Self::Url(fetch) => fetch.get().await?.into(),
        };
        Ok(Keys::parse(&text)?)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, FetchError> {
    let mut text = Vec::new();
    let file = tokio::fs::File::open(path).await?;
    let mode = file.metadata().await?.mode();
    if mode & 0o002 != 0 {
        return Err(FetchError::Anybodys);
    }
    let limit = super::fetch::MAX_SIZE as u64;
    file.take(limit + 1).read_to_end(&mut text).await?;
    if text.len() as u64 > limit {
        return Err(FetchError::TooLarge);
    }
    Ok(text)
}

impl Keeper {
    pub(super) fn begin(source: &JwksSource) -> Result<Self, IdentityError> {
        let place = source.to_string();
        let source = match source {
            JwksSource::File(path) => Source::File(path.clone()),
            JwksSource::Url(url) => Source::Url(Fetch::new(url.clone())?),
        };
        Ok(Self::with(source, &place))
    }

    fn with(source: Source, place: &str) -> Self {
        let (publish, keys) = watch::channel(None);
        let (wanted, wishes) = mpsc::channel(MAX_WAITING);
        let mut task = JoinSet::new();
        let keep = keep(source, publish, wishes);
        task.spawn(keep.instrument(tracing::info_span!("issuer keys", from = place)));
        Self {
            keys,
            wanted,
            _task: task,
        }
    }

    /// The keys as they were fetched last; none if they never were.
    pub(super) fn keys(&self) -> Known {
        self.keys.borrow().clone()
    }

    /// Sees to it that the keys are as new as they can be: waits for a fetch,
    /// unless there just was one.
    pub(super) async fn refresh(&self) {
        let (done, when_done) = oneshot::channel();
        if self.wanted.try_send(done).is_ok() {
            // Without an answer, there is nobody who fetches.
            when_done.await.ok();
        }
    }
}

async fn keep(source: Source, keys: watch::Sender<Known>, mut wishes: mpsc::Receiver<Wish>) {
    let mut waiting: Option<Wish> = None;
    loop {
        let pause = match source.get().await {
            Ok(new) => {
                tracing::debug!(keys = new.len(), "the issuer's keys were fetched");
                keys.send_replace(Some(Arc::new(new)));
                source.age()
            }
            Err(error) => {
                tracing::warn!(%error, "the issuer's keys cannot be had; those from before stay");
                REST
            }
        };
        if let Some(wish) = waiting {
            wish.send(()).ok();
        }
        let last = Instant::now();
        match rest(&mut wishes, last, last + pause).await {
            Woken::Due => waiting = None,
            Woken::Wanted(wish) => waiting = Some(wish),
            Woken::Alone => return,
        }
    }
}

enum Woken {
    Due,
    Wanted(Wish),
    /// Nobody can want anything any more.
    Alone,
}

/// Waits until it is time, or until somebody wants it sooner and may. Whoever
/// wants it too soon is told that nothing new is there: also those who came
/// while keys were fetched.
async fn rest(wishes: &mut mpsc::Receiver<Wish>, last: Instant, due: Instant) -> Woken {
    loop {
        match time::timeout_at(due, wishes.recv()).await {
            Err(_) => return Woken::Due,
            Ok(None) => return Woken::Alone,
            Ok(Some(wish)) if last.elapsed() >= REST => return Woken::Wanted(wish),
            Ok(Some(wish)) => {
                wish.send(()).ok();
            }
        }
    }
}
