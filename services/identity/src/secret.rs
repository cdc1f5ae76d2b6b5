//! Text that is not to be seen.
//!
//! Owns the bytes of one secret. Refuses to show them: whoever wants them asks
//! by a name that can be searched for. Invariant: no formatting of a
//! [`Secret`], nor of anything that holds one, contains it, and its memory is
//! overwritten when it goes.

use std::fmt;

use serde::{Deserialize, Deserializer};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret text, such as a token.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps a text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself: for the header of a call, and for the one line in
    /// which a new token is handed to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// In a time that depends on the lengths alone.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("canary-7f3a".to_owned());
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "[secret] Some(\n    [secret],\n)"
        );
        assert_eq!(secret.expose(), "canary-7f3a");
    }

    #[test]
    fn secrets_are_equal_when_their_texts_are() {
        let secret = |text: &str| Secret::new(text.to_owned());
        assert_eq!(secret("a"), secret("a"));
        assert_ne!(secret("a"), secret("b"));
        assert_ne!(secret("a"), secret("aa"));
    }
}
