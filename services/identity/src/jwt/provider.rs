//! Signatures by ring, for the JWT library.
//!
//! The library leaves the algorithms to whom it may find; ring is what TLS
//! uses here. Only verifying is done: nothing here can sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, new_error};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature as by;

/// What RSA signatures are safe with, in bytes of the modulus: 2048 to 8192
/// bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: |algorithm, key| {
        let verifier = Ring::new(*algorithm, key.clone());
        let verifier = verifier.ok_or_else(|| new_error(ErrorKind::UnsupportedAlgorithm))?;
        Ok(Box::new(verifier) as Box<dyn JwtVerifier>)
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Lets the library verify with ring, in this process. Once is enough.
pub(super) fn install() {
    // The only other one that may be there is this one.
    PROVIDER.install_default().ok();
}

/// Whether a key is one that can be verified with safely.
pub(super) fn is_strong(key: &DecodingKey) -> bool {
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, .. } => RSA_BYTES.contains(&trim(n).len()),
        DecodingKeyKind::SecretOrDer(_) => key.family() != AlgorithmFamily::Hmac,
    }
}

enum Way {
    Rsa(&'static by::RsaParameters),
    Other(&'static dyn by::VerificationAlgorithm),
}

struct Ring {
    algorithm: Algorithm,
    way: Way,
    key: DecodingKey,
}

impl Ring {
    fn new(algorithm: Algorithm, key: DecodingKey) -> Option<Self> {
        let way = way(algorithm)?;
        (key.family() == algorithm.family()).then_some(Self {
            algorithm,
            way,
            key,
        })
    }
}

fn way(algorithm: Algorithm) -> Option<Way> {
    let ways = [
        (Algorithm::RS256, Way::Rsa(&by::RSA_PKCS1_2048_8192_SHA256)),
        (Algorithm::RS384, Way::Rsa(&by::RSA_PKCS1_2048_8192_SHA384)),
        (Algorithm::RS512, Way::Rsa(&by::RSA_PKCS1_2048_8192_SHA512)),
        (Algorithm::PS256, Way::Rsa(&by::RSA_PSS_2048_8192_SHA256)),
        (Algorithm::PS384, Way::Rsa(&by::RSA_PSS_2048_8192_SHA384)),
        (Algorithm::PS512, Way::Rsa(&by::RSA_PSS_2048_8192_SHA512)),
        (Algorithm::ES256, Way::Other(&by::ECDSA_P256_SHA256_FIXED)),
        (Algorithm::ES384, Way::Other(&by::ECDSA_P384_SHA384_FIXED)),
        (Algorithm::EdDSA, Way::Other(&by::ED25519)),
    ];
    let mut ways = ways.into_iter();
    ways.find_map(|(of, way)| (of == algorithm).then_some(way))
}

impl Verifier<Vec<u8>> for Ring {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match (&self.way, self.key.kind()) {
            (Way::Rsa(way), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = by::RsaPublicKeyComponents {
                    n: trim(n),
                    e: trim(e),
                };
                key.verify(way, message, signature)
            }
            (Way::Other(way), DecodingKeyKind::SecretOrDer(key)) => {
                by::UnparsedPublicKey::new(*way, key).verify(message, signature)
            }
            (Way::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (Way::Other(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                return Err(Error::new());
            }
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ring {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// A number without the zeros that some issuers put before it.
fn trim(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
