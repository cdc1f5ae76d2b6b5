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
        if secret.len() != SECRET_LENGTH || URL_SAFE_NO_PAD.check(secret.as_bytes()).is_err() {
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
    let parts = [PREFIX, id.as_str(), "_", &secret];
    // One that grows would leave copies of itself behind.
    let mut text = String::with_capacity(parts.iter().map(|part| part.len()).sum());
    text.extend(parts);
    (Secret::new(text), hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_made() {
        let id = TokenId::random();
        let (text, hash) = mint(&id);
        assert!(Presented::is_meant(text.expose()));
        let presented = Presented::read(text.expose()).unwrap();
        assert_eq!(presented.id, id);
        assert!(bool::from(presented.hash.is(&hash)));
    }

    #[test]
    fn two_tokens_of_one_id_are_different() {
        let id = TokenId::local();
        let ((one, one_hash), (other, other_hash)) = (mint(&id), mint(&id));
        assert_ne!(one, other);
        assert!(!bool::from(one_hash.is(&other_hash)));
    }

    #[test]
    fn what_has_another_form_is_no_token() {
        let secret = "A".repeat(SECRET_LENGTH);
        assert!(Presented::read(&format!("fgt_abc_{secret}")).is_some());
        for text in [
            format!("fgt_abc_{secret}A"),
            format!("fgt_abc_{}", &secret[1..]),
            format!("fgt_abc_{}+", &secret[1..]),
            format!("fgt_ABC_{secret}"),
            format!("fgt__{secret}"),
            format!("fgt_{secret}"),
            format!("FGT_abc_{secret}"),
            format!("fgt_{}_{secret}", "a".repeat(33)),
            String::new(),
        ] {
            assert!(Presented::read(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_hash_is_read_as_it_is_written_and_is_not_shown() {
        let (_, hash) = mint(&TokenId::local());
        let text = serde_json::to_string(&hash).unwrap();
        let read: Hash = serde_json::from_str(&text).unwrap();
        assert!(bool::from(read.is(&hash)));
        assert_eq!(format!("{hash:?}"), "[hash]");
        for text in ["\"\"", "\"AAAA\"", "\"!\"", "7"] {
            assert!(serde_json::from_str::<Hash>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", id in "[a-z0-9_-]{0,40}", secret in "[A-Za-z0-9_=-]{40,46}") {
            Presented::read(&text);
            Presented::read(&format!("{PREFIX}{text}"));
            let read = Presented::read(&format!("{PREFIX}{id}_{secret}"));
            if let Some(read) = read {
                prop_assert_eq!(read.id.as_str().parse::<TokenId>(), Ok(read.id));
            }
        }
    }
}
