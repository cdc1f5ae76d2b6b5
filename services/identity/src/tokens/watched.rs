//! The token file as a gateway sees it.
//!
//! Owns the last good content. It is looked at again when a call comes, but not
//! more than once a second, and read again when it is another than before.
//! Refuses to forget: a file that cannot be read, or that means nothing,
//! changes nothing, but for a warning. Invariant: no call is judged by a
//! content that was replaced more than a second ago.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::book::{Book, Entry};
use crate::error::{AuthError, IdentityError, Invalid};
use crate::principal::{Kind, Principal};
use crate::text::{Hash, Presented, TokenId};

const EVERY: Duration = Duration::from_secs(1);

type Tokens = HashMap<TokenId, Entry>;

/// The file's tokens, as they were at most a second ago.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    /// Held while the file is read, by threads that may wait.
    looked: Mutex<Looked>,
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
            looked: looked.into(),
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
        let tokens = self.tokens().await;
        let entry = tokens.get(&presented.id);
        let secret = entry.map_or(Hash::NONE, |entry| entry.secret);
        let is_right = bool::from(secret.is(&presented.hash));
        // Who does not know the secret learns nothing of the token.
        let Some(entry) = entry.filter(|_| is_right) else {
            return Err(Invalid::Token.into());
        };
        if entry.revoked.is_some() {
            return Err(Invalid::Revoked.into());
        }
        if entry.expires.is_some_and(|expires| expires <= now) {
            return Err(AuthError::expired(Kind::Token));
        }
        let name = format!("{}:{}", Kind::Token.as_str(), entry.name);
        Ok(Principal::new(Kind::Token, name, entry.grants.clone()))
    }

    async fn tokens(self: &Arc<Self>) -> Arc<Tokens> {
        if let Some(tokens) = self.fresh() {
            return tokens;
        }
        let me = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || me.look()).await;
        looked.unwrap_or_else(|_| self.known())
    }

    fn known(&self) -> Arc<Tokens> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known.tokens)
    }

    fn fresh(&self) -> Option<Arc<Tokens>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.at.elapsed() < EVERY).then(|| Arc::clone(&known.tokens))
    }

    /// Looks at the file, unless somebody else just did.
    fn look(&self) -> Arc<Tokens> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = self.fresh() {
            return tokens;
        }
        let at = Instant::now();
        let saw = Look::at(&self.path);
        let is_news = saw != looked.saw;
        let read = (is_news || !looked.understood).then(|| read(&self.path));
        looked.saw = saw;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.at = at;
        let path = self.path.display();
        match read {
            Some(Ok(tokens)) => {
                tracing::info!(%path, tokens = tokens.len(), "the token file was read again");
                looked.understood = true;
                known.tokens = Arc::new(tokens);
            }
            Some(Err(error)) => {
                if is_news {
                    tracing::warn!(%error, %path, "the token file cannot be used; the tokens are those from before");
                }
                looked.understood = false;
            }
            None => {}
        }
        Arc::clone(&known.tokens)
    }
}

fn read(path: &Path) -> Result<Tokens, IdentityError> {
    let book = Book::read(path)?.unwrap_or_default();
    let entries = book.into_entries().into_iter();
    Ok(entries.map(|entry| (entry.id.clone(), entry)).collect())
}
