//! The token file: who may call with a token.
//!
//! Owns one TOML file, which is for its owner only, and the ways to change it.
//! Each change is made under a lock, and takes the file's place at once.
//! Invariant: no secret is ever written; whoever lost a token gets a new one.
//!
//! ```text
//! version = 1
//!
//! [[token]]
//! id = "k3v9…"                 which token
//! name = "ci"                  its holder is the principal `token:ci`
//! secret = "…"                 the SHA-256 of the secret, in base64url
//! created = "2026-01-02T03:04:05Z"
//! expires = "…"                absent: never
//! revoked = "…"                absent: in force
//!
//! [[token.grant]]
//! role = "operator"
//! labels = { rack = "a" }      absent: the whole fleet
//! ```

mod book;
mod watched;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::IdentityError;
use crate::guard;
use crate::role::Grant;
use crate::secret::Secret;
use crate::text::{TokenId, mint};

use book::{Book, Entry, whole_seconds};
pub(crate) use watched::Watched;

const MAX_NAME: usize = 64;

/// The first second since the epoch that cannot be written down (RFC 3339).
const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);

/// A token that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Its holder's: 1 to 64 letters, digits and `.` `_` `-` `@`. Two tokens
    /// of one name are one principal: that is how a token is replaced by
    /// another without a gap.
    pub name: String,
    /// What its holder may do.
    pub grants: Vec<Grant>,
    /// Until when. None: until it is revoked.
    pub expires: Option<SystemTime>,
}

/// What is known of a token: all but its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInfo {
    /// Which token.
    pub id: TokenId,
    /// Its holder's name: the principal is `token:<name>`.
    pub name: String,
    /// What its holder may do.
    pub grants: Vec<Grant>,
    /// When it was made.
    pub created: SystemTime,
    /// Until when it is good.
    pub expires: Option<SystemTime>,
    /// When it was revoked.
    pub revoked: Option<SystemTime>,
}

impl TokenInfo {
    /// Whether it is taken at a time.
    pub fn is_in_force(&self, at: SystemTime) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| at < expires)
    }
}

/// The file of tokens, as those see it who make and revoke them. Every call
/// reads or writes files, and waits for others who change the same file.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// The file at a path. It need not be there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a token. What is returned besides what is known of it is its
    /// text, which nobody can ever get again.
    pub fn create(&self, new: NewToken) -> Result<(TokenInfo, Secret), IdentityError> {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "._-@".contains(letter);
        if new.name.is_empty() || new.name.len() > MAX_NAME || !new.name.chars().all(letter) {
            return Err(IdentityError::Name { name: new.name });
        }
        let expires = new.expires.map(whole_seconds);
        if expires.is_some_and(|expires| expires >= SystemTime::UNIX_EPOCH + YEAR_10000) {
            return Err(IdentityError::Expiry);
        }
        self.change(|book| {
            let id = loop {
                let id = TokenId::random();
                if id != TokenId::local() && book.find(&id).is_none() {
                    break id;
                }
            };
            let (text, secret) = mint(&id);
            let entry = Entry {
                id,
                name: new.name,
                secret,
                created: whole_seconds(SystemTime::now()),
                expires,
                revoked: None,
                grants: new.grants,
            };
            let info = entry.info();
            book.add(entry);
            Ok((info, text))
        })
    }

    /// All tokens, in the order in which they were made; none if there is no
    /// file.
    pub fn list(&self) -> Result<Vec<TokenInfo>, IdentityError> {
        let book = Book::read(&self.path)?.unwrap_or_default();
        Ok(book.entries().iter().map(Entry::info).collect())
    }

    /// Revokes a token: by its id, or by its name if it alone has that and is
    /// not revoked yet. One that is revoked stays as it is.
    pub fn revoke(&self, which: &str) -> Result<TokenInfo, IdentityError> {
        if Book::read(&self.path)?.is_none() {
            let which = which.to_owned();
            return Err(IdentityError::NoToken { which });
        }
        self.change(|book| {
            let entry = book.named(which)?;
            entry
                .revoked
                .get_or_insert_with(|| whole_seconds(SystemTime::now()));
            Ok(entry.info())
        })
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Book) -> Result<T, IdentityError>,
    ) -> Result<T, IdentityError> {
        let path = self.place()?;
        let Some(directory) = path.parent() else {
            return Err(IdentityError::WrongKind {
                path,
                wanted: "a file",
            });
        };
        guard::make_directory(directory)?;
        guard::guarded_directory(directory)?;
        let lock = lock(&path)?;
        let mut book = Book::read(&path)?.unwrap_or_default();
        let done = change(&mut book)?;
        let text = book.text().map_err(io::Error::other);
        let written = text.and_then(|text| write(directory, &path, &text));
        written.map_err(IdentityError::file("write", &path))?;
        drop(lock);
        Ok(done)
    }

    /// Where the file itself is: a link to it, as of a mounted volume, stays
    /// a link.
    fn place(&self) -> Result<PathBuf, IdentityError> {
        let place = match std::fs::canonicalize(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(&self.path),
            place => place,
        };
        place.map_err(IdentityError::file("find", &self.path))
    }
}

/// Waits until nobody else changes the file. The lock is a file of its own,
/// since the one that is locked must stay the same.
fn lock(path: &Path) -> Result<File, IdentityError> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(IdentityError::file("open", &lock))?;
    file.lock().map_err(IdentityError::file("lock", &lock))?;
    Ok(file)
}

/// Puts a text in the place of the file, or leaves the file as it is.
fn write(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    // A file for its owner only, from its first byte on.
    let mut new = tempfile::Builder::new()
        .prefix(".tokens-")
        .tempfile_in(directory)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}
