//! Which of an issuer's keys are used.

use fleetgate_identity::{AuthError, Invalid};
use serde_json::{Value, json};

use crate::issuer::{Key, alice, base64, key_set, taking};
use crate::jwts::with_keys;
use crate::support::{bearer, name};

async fn whose(keys: &Value, jwt: &str) -> Result<String, AuthError> {
    let (_directory, settings) = with_keys(keys);
    name(bearer(&taking(settings), jwt).await)
}

fn with(key: &Key, more: &Value) -> Value {
    let mut jwk = key.jwk();
    for (name, value) in more.as_object().unwrap() {
        jwk[name] = value.clone();
    }
    jwk
}

#[tokio::test]
async fn keys_for_other_ends_are_not_used() {
    let (key, other) = (Key::p256("one"), Key::p256("other"));
    for (more, is_used) in [
        (json!({}), true),
        (json!({ "use": "sig", "alg": "ES256" }), true),
        (json!({ "key_ops": ["verify"] }), true),
        (json!({ "use": "enc" }), false),
        (json!({ "key_ops": ["sign"] }), false),
        (json!({ "alg": "RS256" }), false),
        (json!({ "crv": "P-521" }), false),
        (json!({ "crv": "P-384" }), false),
    ] {
        let keys = json!({ "keys": [with(&key, &more), other.jwk()] });
        let whose = whose(&keys, &key.sign(&alice())).await;
        assert_eq!(whose.is_ok(), is_used, "{more}: {whose:?}");
    }
}

#[tokio::test]
async fn a_key_that_names_its_algorithm_is_used_with_no_other() {
    let key = Key::rsa();
    let keys = json!({ "keys": [with(&key, &json!({ "alg": "PS256" }))] });
    assert_eq!(
        whose(&keys, &key.sign_by("PS256", &alice()))
            .await
            .as_deref(),
        Ok("oidc:alice")
    );
    let refused = whose(&keys, &key.sign_by("RS256", &alice())).await;
    assert_eq!(refused, Err(Invalid::Algorithm.into()));
}

#[tokio::test]
async fn keys_that_cannot_be_used_do_not_keep_others_from_it() {
    let key = Key::p256("one");
    let keys = json!({ "keys": [
        7,
        {},
        { "kty": "quantum", "kid": "q", "alg": "Q1" },
        { "kty": "RSA", "kid": "weak", "n": base64([0xff; 64]), "e": "AQAB" },
        { "kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB" },
        { "kty": "EC", "kid": "ec", "crv": "secp256k1", "x": "AA", "y": "AA" },
        key.jwk(),
    ] });
    assert_eq!(
        whose(&keys, &key.sign(&alice())).await.as_deref(),
        Ok("oidc:alice")
    );
    let weak = json!({ "alg": "RS256", "kid": "weak" });
    assert_eq!(
        whose(&keys, &key.sign_with(&weak, &alice())).await,
        Err(Invalid::Key.into())
    );
}

#[tokio::test]
async fn a_modulus_may_begin_with_zeros() {
    let key = Key::rsa();
    let mut jwk = key.jwk();
    let n = jwk["n"].as_str().unwrap();
    let n = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(n).unwrap();
    jwk["n"] = base64([&[0], n.as_slice()].concat()).into();
    let keys = json!({ "keys": [jwk] });
    assert_eq!(
        whose(&keys, &key.sign(&alice())).await.as_deref(),
        Ok("oidc:alice")
    );
}

#[tokio::test]
async fn a_jwt_without_a_key_id_has_the_only_key_that_it_can_have() {
    let (ec, rsa, other) = (Key::p256("one"), Key::rsa(), Key::p256("other"));
    let jwt = ec.sign_with(&json!({ "alg": "ES256" }), &alice());
    assert_eq!(
        whose(&key_set(&[&rsa, &ec]), &jwt).await.as_deref(),
        Ok("oidc:alice")
    );
    assert_eq!(
        whose(&key_set(&[&ec, &other]), &jwt).await,
        Err(Invalid::Key.into())
    );
    assert_eq!(
        whose(&key_set(&[&rsa]), &jwt).await,
        Err(Invalid::Algorithm.into())
    );
}

#[tokio::test]
async fn a_set_without_a_usable_key_is_no_set() {
    let key = Key::p256("one");
    for keys in [
        json!({ "keys": [] }),
        json!({ "keys": [with(&key, &json!({ "use": "enc" }))] }),
        json!({ "keys": vec![key.jwk(); 101] }),
        json!([key.jwk()]),
        json!("keys"),
    ] {
        let refused = whose(&keys, &key.sign(&alice())).await;
        assert_eq!(refused, Err(AuthError::Unavailable), "{keys:.40}");
    }
}
