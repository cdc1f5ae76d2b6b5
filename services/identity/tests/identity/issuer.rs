//! An issuer of JWTs, whose keys are made while the tests run.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use base64_simd::URL_SAFE_NO_PAD;
use fleetgate_identity::{AuthSettings, Authenticator, JwksSource, OidcSettings};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
    RsaPublicKeyComponents,
};
use ring::{hmac, signature};
use rsa::pkcs1::EncodeRsaPrivateKey;
use serde_json::{Value, json};

use crate::support::authenticator;

pub(crate) const ISSUER: &str = "https://id.lab.example";
pub(crate) const AUDIENCE: &str = "fleetgate";

/// A key pair of an issuer.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pair: Arc<Pair>,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode_to_string(bytes)
}

impl Key {
    fn new(id: &str, pair: Pair) -> Self {
        Self {
            id: id.to_owned(),
            pair: Arc::new(pair),
        }
    }

    fn ec(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
        let rng = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &rng).unwrap();
        EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &rng).unwrap()
    }

    pub(crate) fn p256(id: &str) -> Self {
        Self::new(id, Pair::P256(Self::ec(&ECDSA_P256_SHA256_FIXED_SIGNING)))
    }

    pub(crate) fn p384(id: &str) -> Self {
        Self::new(id, Pair::P384(Self::ec(&ECDSA_P384_SHA384_FIXED_SIGNING)))
    }

    pub(crate) fn ed25519(id: &str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        Self::new(id, Pair::Ed25519(pair))
    }

    /// The one RSA key of these tests: it takes a while to find.
    pub(crate) fn rsa() -> Self {
        static KEY: OnceLock<Key> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let key = rsa::PrivateKey::new(&mut rand::rng(), 2048).unwrap();
            let der = key.to_pkcs1_der().unwrap();
            Self::new(
                "rsa",
                Pair::Rsa(RsaKeyPair::from_der(der.as_bytes()).unwrap()),
            )
        });
        key.clone()
    }

    /// The public key, as the issuer publishes it.
    pub(crate) fn jwk(&self) -> Value {
        let point = |curve: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({ "kid": self.id, "kty": "EC", "crv": curve, "x": base64(x), "y": base64(y) })
        };
        match &*self.pair {
            Pair::Rsa(pair) => {
                let public: RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
                let (n, e) = (public.n, public.e);
                json!({ "kid": self.id, "kty": "RSA", "use": "sig", "n": base64(n), "e": base64(e) })
            }
            Pair::P256(pair) => point("P-256", pair.public_key().as_ref()),
            Pair::P384(pair) => point("P-384", pair.public_key().as_ref()),
            Pair::Ed25519(pair) => {
                json!({ "kid": self.id, "kty": "OKP", "crv": "Ed25519", "x": base64(pair.public_key()) })
            }
        }
    }

    /// The public key in DER, with which others may try to sign.
    pub(crate) fn public(&self) -> Vec<u8> {
        match &*self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::P256(pair) | Pair::P384(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// The algorithm that it is used with unless another is said.
    fn algorithm(&self) -> &'static str {
        match &*self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let rng = SystemRandom::new();
        let made: Result<signature::Signature, _> = match &*self.pair {
            Pair::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &rng, message, &mut signature).unwrap();
                return signature;
            }
            Pair::P256(pair) | Pair::P384(pair) => pair.sign(&rng, message),
            Pair::Ed25519(pair) => Ok(pair.sign(message)),
        };
        made.unwrap().as_ref().to_vec()
    }

    /// A JWT by this key.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_by(self.algorithm(), claims)
    }

    pub(crate) fn sign_by(&self, algorithm: &str, claims: &Value) -> String {
        let header = json!({ "typ": "JWT", "alg": algorithm, "kid": self.id });
        self.sign_with(&header, claims)
    }

    /// A JWT by this key, whatever its header says.
    pub(crate) fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = self.signature(algorithm, message.as_bytes());
        format!("{message}.{}", base64(signature))
    }
}

pub(crate) fn message(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        base64(header.to_string()),
        base64(claims.to_string())
    )
}

/// What who has only the public key can do.
pub(crate) fn forge(key: &Key, secret: &[u8], claims: &Value) -> String {
    let message = message(&json!({ "alg": "HS256", "kid": key.id }), claims);
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        message.as_bytes(),
    );
    format!("{message}.{}", base64(tag))
}

/// The time in so many seconds, or so many seconds ago.
pub(crate) fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap() + seconds
}

/// What a good JWT of alice says.
pub(crate) fn alice() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": in_seconds(300) })
}

/// The same, but for some claims: null takes one away.
pub(crate) fn alice_but(claims: &Value) -> Value {
    let mut all = alice();
    for (name, value) in claims.as_object().unwrap() {
        if value.is_null() {
            all.as_object_mut().unwrap().remove(name);
        } else {
            all[name] = value.clone();
        }
    }
    all
}

pub(crate) fn key_set(keys: &[&Key]) -> Value {
    let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
    json!({ "keys": keys })
}

pub(crate) fn oidc(jwks: &str) -> OidcSettings {
    OidcSettings {
        issuer: ISSUER.to_owned(),
        audience: vec![AUDIENCE.to_owned()],
        jwks: jwks.parse::<JwksSource>().unwrap(),
        leeway: Duration::from_secs(30),
        principal_claim: OidcSettings::PRINCIPAL_CLAIM.to_owned(),
        roles_claim: None,
    }
}

pub(crate) fn taking(oidc: OidcSettings) -> Authenticator {
    authenticator(AuthSettings {
        oidc: Some(oidc),
        ..AuthSettings::default()
    })
}
