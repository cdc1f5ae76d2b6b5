//! The token file as a gateway sees it.
//!
//! Owns the last good content. It is looked at again when a call comes, but not
//! more than once a second, or twenty times a second by those whose token it does
//! not have, and read again when it is another than before.
//! Refuses to forget: a file that cannot be read, or that means nothing,
//! changes nothing, but for a warning. Invariant: no call is judged by a
//! content that was replaced more than a second ago, and none is refused for want
//! of a token that was there when it came.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, sleep_until};

use super::book::{Book, Entry};
use crate::error::{AuthError, IdentityError, Invalid};
use crate::principal::{Kind, Principal};
use crate::text::{Hash, Presented, TokenId};

/// How old what is known may be.
const EVERY: Duration = Duration::from_secs(1);

/// The same for a token that is not known: it may have been made just now.
const AT_ONCE: Duration = Duration::from_millis(50);

type Tokens = HashMap<TokenId, Entry>;

/// The file's tokens, as they were at most a second ago.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    /// Of whoever looks at the file; the others wait for that.
    looked: Arc<Turn<Looked>>,
    /// Held for a moment.
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    at: Instant,
    tokens: Arc<Tokens>,
}

#[derive(Debug)]
struct Looked {
    saw: Look,
    /// Whether it could be read. If not, that may pass.
    understood: bool,
}

/// What there was to see.
#[derive(Debug, PartialEq)]
enum Look {
    Absent,
    File(Stamp),
    Unseen(ErrorKind),
}

/// What changes with the content of a file, or with who may read it.
#[derive(Debug, PartialEq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Look {
    fn at(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(file) => Self::File(Stamp {
                device: file.dev(),
                inode: file.ino(),
                size: file.size(),
                modified: (file.mtime(), file.mtime_nsec()),
                changed: (file.ctime(), file.ctime_nsec()),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Absent,
            Err(error) => Self::Unseen(error.kind()),
        }
    }
}

impl Watched {
    /// Reads the file for the first time, when one that cannot be used is
    /// still a reason not to begin.
    pub(crate) fn begin(path: PathBuf) -> Result<Self, IdentityError> {
        // Before it is read: what is written meanwhile is seen as a change.
        let looked = Looked {
            saw: Look::at(&path),
            understood: true,
        };
        let tokens = read(&path)?;
        Ok(Self {
            path,
            looked: Arc::new(looked.into()),
            known: Known {
                at: Instant::now(),
                tokens: tokens.into(),
            }
            .into(),
        })
    }

    /// Whose token this is.
    pub(crate) async fn whose(
        self: &Arc<Self>,
        presented: &Presented,
        now: SystemTime,
    ) -> Result<Principal, AuthError> {
        let mut tokens = self.tokens().await;
        if !tokens.contains_key(&presented.id) {
            tokens = self.tokens_as_of(Instant::now()).await;
        }
        let entry = tokens.get(&presented.id);
        let secret = entry.map_or(Hash::NONE, |entry| entry.secret);
        let is_right = bool::from(secret.is(&presented.hash));
        // Who does not know the secret learns nothing of the token.
        let Some(entry) = entry.filter(|_| is_right) else {
            return Err(Invalid::Token.into());
        };
        let name = format!("{}:{}", Kind::Token.as_str(), entry.name);
        if entry.revoked.is_some() {
            return Err(AuthError::Revoked { who: name.into() });
        }
        if entry.expires.is_some_and(|expires| expires <= now) {
            return Err(AuthError::expired("token", &name));
        }
        Ok(Principal::new(Kind::Token, name, entry.grants.clone()))
    }

    async fn tokens(self: &Arc<Self>) -> Arc<Tokens> {
        let is_fresh = |known: &Known| known.at.elapsed() < EVERY;
        match self.known_if(is_fresh) {
            Some(tokens) => tokens,
            None => self.look_unless(is_fresh).await,
        }
    }

    /// As the file is at this moment or later.
    async fn tokens_as_of(self: &Arc<Self>, moment: Instant) -> Arc<Tokens> {
        let next = self.known().at + AT_ONCE;
        sleep_until(next).await;
        self.look_unless(|known| known.at >= moment).await
    }

    /// Looks at the file, unless somebody else has by then.
    async fn look_unless(self: &Arc<Self>, is_good: impl Fn(&Known) -> bool) -> Arc<Tokens> {
        let mut looked = Arc::clone(&self.looked).lock_owned().await;
        if let Some(tokens) = self.known_if(is_good) {
            return tokens;
        }
        let me = Arc::clone(self);
        let look = tokio::task::spawn_blocking(move || me.look(&mut looked));
        // Its panic has been reported.
        look.await
            .unwrap_or_else(|_| Arc::clone(&self.known().tokens))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_if(&self, is_good: impl Fn(&Known) -> bool) -> Option<Arc<Tokens>> {
        let known = self.known();
        is_good(&known).then(|| Arc::clone(&known.tokens))
    }

    fn look(&self, looked: &mut Looked) -> Arc<Tokens> {
        let at = Instant::now();
        let saw = Look::at(&self.path);
        let is_news = saw != looked.saw;
        let read = (is_news || !looked.understood).then(|| read(&self.path));
        looked.saw = saw;
        let path = self.path.display();
        let news = match read {
            Some(Ok(tokens)) => {
                tracing::info!(%path, tokens = tokens.len(), "the token file was read again");
                looked.understood = true;
                Some(Arc::new(tokens))
            }
            Some(Err(error)) => {
                if is_news {
                    tracing::warn!(%error, %path, "the token file cannot be used; the tokens are those from before");
                }
                looked.understood = false;
                None
            }
            None => None,
        };
        let mut known = self.known();
        known.at = at;
        if let Some(tokens) = news {
            known.tokens = tokens;
        }
        Arc::clone(&known.tokens)
    }
}

fn read(path: &Path) -> Result<Tokens, IdentityError> {
    let book = Book::read(path)?.unwrap_or_default();
    let entries = book.into_entries().into_iter();
    Ok(entries.map(|entry| (entry.id.clone(), entry)).collect())
}
