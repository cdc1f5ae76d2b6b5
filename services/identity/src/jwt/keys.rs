//! The keys of an issuer (RFC 7517).
//!
//! Owns which of them can be used, and for what. Refuses keys that are for
//! something else than signatures, that are too weak, or with which who
//! verifies could sign. Invariant: a key is only ever used with algorithms of
//! its kind and, if it names one, with that one.

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

/// More keys than any issuer has.
const MAX_KEYS: usize = 100;

/// The keys that an issuer publishes, those that can be used.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    verifies: DecodingKey,
}

/// What there is for a JWT.
#[derive(Debug)]
pub(super) enum Found {
    /// Its key.
    Key(DecodingKey),
    /// A key of the name, but for other algorithms.
    OtherAlgorithm,
    /// No such key.
    Unknown,
}

/// Whether who can verify cannot sign.
pub(super) fn is_asymmetric(algorithm: Algorithm) -> bool {
    [RSA, P256, P384, ED25519].concat().contains(&algorithm)
}

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];
const P256: &[Algorithm] = &[Algorithm::ES256];
const P384: &[Algorithm] = &[Algorithm::ES384];
const ED25519: &[Algorithm] = &[Algorithm::EdDSA];

impl Keys {
    /// Reads a set of keys. Those that cannot be used are passed over: an
    /// issuer may have others for other ends.
    pub(super) fn parse(text: &[u8]) -> Result<Self, NotKeys> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<serde_json::Value>,
        }
        let set: Set = serde_json::from_slice(text).map_err(|_| NotKeys::Form)?;
        if set.keys.len() > MAX_KEYS {
            return Err(NotKeys::TooMany);
        }
        let keys = set.keys.into_iter().filter_map(|key| {
            let key = serde_json::from_value::<Jwk>(key).ok()?;
            Key::usable(&key)
        });
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            return Err(NotKeys::NoneUsable);
        }
        Ok(Self(keys))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The key that a JWT is signed with. One that names no key is signed with
    /// the only one that it could be.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Found {
        let named: Vec<_> = match id {
            Some(id) => {
                let keys = self.0.iter();
                keys.filter(|key| key.id.as_deref() == Some(id)).collect()
            }
            None => self.0.iter().collect(),
        };
        let mut fitting = named
            .iter()
            .filter(|key| key.algorithms.contains(&algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Found::Key(key.verifies.clone()),
            (None, _) if !named.is_empty() => Found::OtherAlgorithm,
            (None | Some(_), _) => Found::Unknown,
        }
    }
}

/// Why a set of keys is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotKeys {
    #[error("it is no JWK set")]
    Form,
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
    #[error("no key in it can be used")]
    NoneUsable,
}

impl Key {
    fn usable(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let is_for_signatures =
            matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let verifies = common
            .key_operations
            .as_ref()
            .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !is_for_signatures || !verifies {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm)?.to_vec();
        if let Some(only) = common.key_algorithm {
            algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == only);
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        if algorithms.is_empty() || !super::provider::is_strong(&key) {
            return None;
        }
        Some(Self {
            id: common.key_id.clone(),
            algorithms,
            verifies: key,
        })
    }
}

/// What a kind of key can be used with.
fn algorithms(kind: &AlgorithmParameters) -> Option<&'static [Algorithm]> {
    if let AlgorithmParameters::RSA(_) = kind {
        Some(RSA)
    } else if let AlgorithmParameters::EllipticCurve(key) = kind {
        let curves = [(EllipticCurve::P256, P256), (EllipticCurve::P384, P384)];
        let mut curves = curves.into_iter();
        curves.find_map(|(curve, algorithms)| (curve == key.curve).then_some(algorithms))
    } else if let AlgorithmParameters::OctetKeyPair(key) = kind {
        (key.curve == EllipticCurve::Ed25519).then_some(ED25519)
    } else {
        None
    }
}
