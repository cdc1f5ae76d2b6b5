//! What can go wrong: with credentials, and with what they are compared to.
//!
//! Invariant: no message holds any part of a credential. What a caller is told
//! does not say whether a token is unknown, wrong or revoked; that is for the
//! log and the ledger, and stands in [`Invalid`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a caller is not who it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// It showed nothing, and that is not enough here.
    #[error("no credentials were given")]
    Missing,
    /// What it showed is worth nothing here.
    #[error("the credentials are not valid")]
    Invalid {
        /// Why: for the operator, never for the caller.
        why: Invalid,
    },
    /// What it showed was taken back. It is told the same as of what is not valid.
    #[error("the credentials are not valid")]
    Revoked {
        /// The principal whose it was: for the operator.
        who: Arc<str>,
    },
    /// What it showed was valid once.
    #[error("the {what} has expired")]
    Expired {
        /// Which credential: token, JWT or certificate.
        what: &'static str,
        /// The principal whose it was, if that is known: for the operator.
        who: Option<Arc<str>>,
    },
    /// It cannot be judged now: the keys of the token issuer cannot be had.
    #[error("the keys of the token issuer cannot be had at the moment")]
    Unavailable,
}

/// Why a credential is worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Invalid {
    /// The header is not `Bearer`, one space, and a credential.
    #[error("the authorization header is not of the form `Bearer <token>`")]
    Header,
    /// No way to authenticate that is set up knows such a thing.
    #[error("nothing that is set up takes such a credential")]
    Unsupported,
    /// No token has this id, or the secret is not the token's.
    #[error("no such token")]
    Token,
    /// The JWT is malformed, or its header asks for what is not done.
    #[error("the JWT is malformed")]
    Jwt,
    /// The JWT's algorithm is none of those that are taken, or not its key's.
    #[error("the JWT's algorithm is not taken")]
    Algorithm,
    /// The issuer has no such key, or no longer.
    #[error("the JWT's key is not among the issuer's")]
    Key,
    /// The signature is not of this key.
    #[error("the JWT's signature is wrong")]
    Signature,
    /// Another issuer's, another audience's, or not valid yet.
    #[error("the JWT's issuer, audience or times are not those wanted")]
    Claims,
    /// The claim that names the principal is missing or is no usable name.
    #[error("the JWT names nobody")]
    Nameless,
    /// No rule matches the certificate, or it cannot be read.
    #[error("no rule matches the certificate")]
    Certificate,
}

impl From<Invalid> for AuthError {
    fn from(why: Invalid) -> Self {
        Self::Invalid { why }
    }
}

impl AuthError {
    /// A JWT that has expired. What it says of its holder is not read any more.
    pub(crate) const EXPIRED_JWT: Self = Self::Expired {
        what: "JWT",
        who: None,
    };

    /// A credential of a principal that has expired.
    pub(crate) fn expired(what: &'static str, who: &str) -> Self {
        let who = Some(who.into());
        Self::Expired { what, who }
    }

    /// The principal whose the credential was, if it was right once.
    pub fn who(&self) -> Option<&Arc<str>> {
        match self {
            Self::Revoked { who } => Some(who),
            Self::Expired { who, .. } => who.as_ref(),
            Self::Missing | Self::Invalid { .. } | Self::Unavailable => None,
        }
    }

    /// What its caller is not told: for the operator.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Invalid { why } => Some(why.to_string()),
            Self::Revoked { .. } => Some("the token was revoked".to_owned()),
            Self::Missing | Self::Expired { .. } | Self::Unavailable => None,
        }
    }
}

/// What cannot be set up, read or written.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file or directory that cannot be used.
    #[error("cannot {doing} {path}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others may read or write what is for its owner only.
    #[error("{path} can be used by others (mode {mode:03o}): run `chmod {wanted:o} {path}`")]
    Exposed {
        /// Of what.
        path: PathBuf,
        /// What it is.
        mode: u32,
        /// What it must be.
        wanted: u32,
    },
    /// It belongs to somebody else.
    #[error("{path} belongs to user {owner}, not to the one who runs this")]
    NotOurs {
        /// What.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// It is a link, or no directory or file where there must be one.
    #[error("{path} is not {wanted}")]
    WrongKind {
        /// What.
        path: PathBuf,
        /// What it must be.
        wanted: &'static str,
    },
    /// The text of a file means nothing.
    #[error("{path} cannot be understood: {reason}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, without a word from it that may be secret.
        reason: String,
    },
    /// A name that no token can have.
    #[error("`{name}` cannot be a token's name: 1 to 64 letters, digits and `.` `_` `-` `@` can")]
    Name {
        /// The name.
        name: String,
    },
    /// A time that cannot be written down.
    #[error("a token cannot expire then: expected a time before the year 10000")]
    Expiry,
    /// No token has this id or name.
    #[error("there is no token `{which}`")]
    NoToken {
        /// What was asked for.
        which: String,
    },
    /// Several tokens have this name.
    #[error("several tokens are called `{name}`: say which by its id ({})", .ids.join(", "))]
    SeveralTokens {
        /// The name.
        name: String,
        /// The ids of those that are still in force.
        ids: Vec<String>,
    },
    /// A rule or setting that cannot be used.
    #[error("{what} `{value}` cannot be used: {reason}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What it says.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What a variable says is no place for all programs of this user.
    #[error("FLEETGATE_RUNTIME_DIR is `{path}`: expected an absolute path")]
    Relative {
        /// What it says.
        path: PathBuf,
    },
    /// Neither a variable nor a home says where records are to be.
    #[error(
        "there is no directory for discovery records: set FLEETGATE_RUNTIME_DIR, XDG_RUNTIME_DIR or HOME"
    )]
    NoDirectory,
}

impl IdentityError {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}
