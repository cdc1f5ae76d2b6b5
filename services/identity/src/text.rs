//! The text form of a token: `fgt_<id>_<secret>`.
//!
//! Owns how it is made, read and compared. The id says which token it is and
//! is no secret; the secret is 256 random bits. Invariant: of a secret, only
//! its hash is kept, and hashes are compared in constant time.

use std::fmt;
use std::str::FromStr;

use base64_simd::URL_SAFE_NO_PAD;
use rand::{Rng, RngExt};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::secret::Secret;

const PREFIX: &str = "fgt_";
const SECRET_BYTES: usize = 32;
/// 32 bytes in base64, without padding.
const SECRET_LENGTH: usize = 43;
const ID_LENGTH: usize = 10;
const MAX_ID_LENGTH: usize = 32;
const ID_LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Which token: what lists show, and what `revoke` takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(String);

impl TokenId {
    /// A new one: 50 random bits, without letters that look like others.
    pub(crate) fn random() -> Self {
        let mut rng = rand::rng();
        let letter = |_| char::from(ID_LETTERS[rng.random_range(..ID_LETTERS.len())]);
        Self((0..ID_LENGTH).map(letter).collect())
    }

    /// The id under which the token of the discovery record goes. No token of
    /// a token file has it.
    pub(crate) fn local() -> Self {
        Self("local".to_owned())
    }

    /// Its letters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A text that is no token's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a token: 1 to 32 lower-case letters and digits are")]
pub struct InvalidTokenId;

impl FromStr for TokenId {
    type Err = InvalidTokenId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=MAX_ID_LENGTH).contains(&text.len());
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if fits && text.bytes().all(letter) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidTokenId)
        }
    }
}

impl Serialize for TokenId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What is kept of a token's secret.
#[derive(Clone, Copy)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    /// What no secret has: to compare with where there is no token, so that an
    /// unknown id costs what a known one does.
    pub(crate) const NONE: Self = Self([0; 32]);

    fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Whether two are the same, in constant time.
    pub(crate) fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[hash]")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = URL_SAFE_NO_PAD.encode_to_string(self.0);
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD.decode_to_vec(text).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("not the SHA-256 of a secret, in base64url"))
    }
}

/// A token as its holder presents it.
pub(crate) struct Presented {
    pub(crate) id: TokenId,
    pub(crate) hash: Hash,
}

impl Presented {
    /// Whether a bearer's credential says that it is a token of ours.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Reads a token; nothing if it has another form.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = id.parse().ok()?;
        if secret.len() != SECRET_LENGTH || !URL_SAFE_NO_PAD.check(secret.as_bytes()).is_ok() {
            return None;
        }
        let hash = Hash::of(secret);
        Some(Self { id, hash })
    }
}

/// Makes the token of an id: what its holder gets, and what is kept of it.
pub(crate) fn mint(id: &TokenId) -> (Secret, Hash) {
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    rand::rng().fill_bytes(bytes.as_mut());
    let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode_to_string(*bytes));
    let hash = Hash::of(&secret);
    (Secret::new(format!("{PREFIX}{id}_{}", *secret)), hash)
}
