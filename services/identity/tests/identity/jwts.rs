//! What is demanded of a JWT.

use std::time::Duration;

use fleetgate_identity::{
    AuthError, AuthSettings, Authenticator, Binding, Invalid, Kind, OidcSettings, Role,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::issuer::{
    AUDIENCE, ISSUER, Key, alice, alice_but, base64, forge, in_seconds, key_set, message, oidc,
    taking,
};
use crate::support::{authenticator, bearer, directory, name, on_rack};

/// Settings whose keys are in a file.
pub(crate) fn with_keys(keys: &Value) -> (TempDir, OidcSettings) {
    let directory = directory();
    let path = directory.path().join("keys.json");
    std::fs::write(&path, keys.to_string()).unwrap();
    let settings = oidc(path.to_str().unwrap());
    (directory, settings)
}

struct Lab {
    key: Key,
    by: Authenticator,
    _directory: TempDir,
}

fn lab() -> Lab {
    let key = Key::p256("one");
    let (directory, settings) = with_keys(&key_set(&[&key]));
    Lab {
        key,
        by: taking(settings),
        _directory: directory,
    }
}

impl Lab {
    async fn whose(&self, claims: &Value) -> Result<String, AuthError> {
        name(bearer(&self.by, &self.key.sign(claims)).await)
    }
}

fn invalid<T>(why: Invalid) -> Result<T, AuthError> {
    Err(AuthError::Invalid { why })
}

#[tokio::test]
async fn a_good_jwt_names_its_subject() {
    let lab = lab();
    let alice = bearer(&lab.by, &lab.key.sign(&alice())).await.unwrap();
    assert_eq!((alice.name(), alice.kind()), ("oidc:alice", Kind::Oidc));
    assert_eq!(alice.anywhere(), None);
}

#[tokio::test]
async fn every_asymmetric_algorithm_is_taken_with_keys_of_its_kind() {
    let keys = [
        Key::rsa(),
        Key::p256("p256"),
        Key::p384("p384"),
        Key::ed25519("ed"),
    ];
    let (_directory, settings) = with_keys(&key_set(&keys.each_ref()));
    let by = taking(settings);
    let [rsa, p256, p384, ed25519] = &keys;
    for (key, algorithm) in [
        (rsa, "RS256"),
        (rsa, "RS384"),
        (rsa, "RS512"),
        (rsa, "PS256"),
        (rsa, "PS384"),
        (rsa, "PS512"),
        (p256, "ES256"),
        (p384, "ES384"),
        (ed25519, "EdDSA"),
    ] {
        let whose = name(bearer(&by, &key.sign_by(algorithm, &alice())).await);
        assert_eq!(whose.as_deref(), Ok("oidc:alice"), "{algorithm}");
    }
    for (key, algorithm) in [
        (rsa, "ES256"),
        (p256, "RS256"),
        (p256, "ES384"),
        (ed25519, "ES256"),
    ] {
        let whose = name(bearer(&by, &key.sign_by(algorithm, &alice())).await);
        assert_eq!(whose, invalid(Invalid::Algorithm), "{algorithm}");
    }
}

#[tokio::test]
async fn a_jwt_that_is_not_signed_is_refused() {
    let lab = lab();
    for algorithm in ["none", "None", "NONE", ""] {
        let message = message(&json!({ "alg": algorithm, "kid": "one" }), &alice());
        for signature in ["", "AAAA"] {
            let whose = name(bearer(&lab.by, &format!("{message}.{signature}")).await);
            assert_eq!(whose, invalid(Invalid::Jwt), "{algorithm}");
        }
    }
    let signed = lab.key.sign(&alice());
    let (message, _) = signed.rsplit_once('.').unwrap();
    assert_eq!(
        name(bearer(&lab.by, &format!("{message}.")).await),
        invalid(Invalid::Signature)
    );
    assert_eq!(name(bearer(&lab.by, message).await), invalid(Invalid::Jwt));
}

#[tokio::test]
async fn a_public_key_is_no_shared_secret() {
    let keys = [Key::rsa(), Key::p256("p256"), Key::ed25519("ed")];
    let mut set = key_set(&keys.each_ref());
    // An issuer may have such a key; who verifies with it could sign.
    let shared = json!({ "kty": "oct", "kid": "shared", "k": base64("secret"), "alg": "HS256" });
    set["keys"].as_array_mut().unwrap().push(shared);
    let (_directory, settings) = with_keys(&set);
    let by = taking(settings);
    for key in &keys {
        for secret in [key.public(), key.jwk().to_string().into_bytes()] {
            let whose = name(bearer(&by, &forge(key, &secret, &alice())).await);
            assert_eq!(whose, invalid(Invalid::Algorithm), "{}", key.id);
        }
    }
    let mut shared = Key::p256("shared");
    assert_eq!(
        name(bearer(&by, &forge(&shared, b"secret", &alice())).await),
        invalid(Invalid::Algorithm)
    );
    shared.id = "p256".to_owned();
    assert_eq!(
        name(bearer(&by, &shared.sign(&alice())).await),
        invalid(Invalid::Signature)
    );
}

#[tokio::test]
async fn a_jwt_that_was_changed_is_refused() {
    let lab = lab();
    let [mine, other] = [
        lab.key.sign(&alice()),
        lab.key.sign(&alice_but(&json!({ "sub": "eve" }))),
    ];
    let parts = |jwt: &str| -> Vec<String> { jwt.split('.').map(str::to_owned).collect() };
    let (mine, other) = (parts(&mine), parts(&other));
    let jwt = format!("{}.{}.{}", mine[0], other[1], mine[2]);
    assert_eq!(
        name(bearer(&lab.by, &jwt).await),
        invalid(Invalid::Signature)
    );
}

#[tokio::test]
async fn an_issuer_that_is_a_little_ahead_or_behind_is_believed() {
    let lab = lab();
    let ahead = json!({ "iat": in_seconds(4), "nbf": in_seconds(4), "exp": in_seconds(304) });
    assert_eq!(
        lab.whose(&alice_but(&ahead)).await.as_deref(),
        Ok("oidc:alice")
    );
    let behind = json!({ "iat": in_seconds(-304), "exp": in_seconds(-4) });
    assert_eq!(
        lab.whose(&alice_but(&behind)).await.as_deref(),
        Ok("oidc:alice")
    );
}

#[tokio::test]
async fn beyond_the_leeway_times_count() {
    let lab = lab();
    let claims = |claims: Value| alice_but(&claims);
    let expired = lab.whose(&claims(json!({ "exp": in_seconds(-40) }))).await;
    assert_eq!(
        expired,
        Err(AuthError::Expired {
            what: "JWT",
            who: None
        })
    );
    for future in [
        json!({ "nbf": in_seconds(60) }),
        json!({ "iat": in_seconds(60) }),
        json!({ "iat": "now" }),
    ] {
        assert_eq!(lab.whose(&claims(future)).await, invalid(Invalid::Claims));
    }
}

#[tokio::test]
async fn who_did_not_sign_it_is_not_told_that_it_has_expired() {
    let lab = lab();
    let other = Key::p256("one");
    let expired = other.sign(&alice_but(&json!({ "exp": in_seconds(-400) })));
    assert_eq!(
        name(bearer(&lab.by, &expired).await),
        invalid(Invalid::Signature)
    );
}

#[tokio::test]
async fn a_jwt_is_of_this_issuer_and_for_this_audience_and_ends() {
    let lab = lab();
    for wrong in [
        json!({ "iss": "https://id.lab.example/" }),
        json!({ "iss": null }),
        json!({ "iss": 7 }),
        json!({ "aud": "another" }),
        json!({ "aud": ["another"] }),
        json!({ "aud": [] }),
        json!({ "aud": null }),
        json!({ "exp": null }),
        json!({ "exp": "tomorrow" }),
    ] {
        let whose = lab.whose(&alice_but(&wrong)).await;
        assert_eq!(whose, invalid(Invalid::Claims), "{wrong}");
    }
    let several = alice_but(&json!({ "aud": ["another", AUDIENCE] }));
    assert_eq!(lab.whose(&several).await.as_deref(), Ok("oidc:alice"));
}

#[tokio::test]
async fn a_jwt_that_names_nobody_is_refused() {
    let lab = lab();
    for sub in [
        json!(null),
        json!(""),
        json!(7),
        json!("a\nb"),
        json!("a".repeat(300)),
    ] {
        let whose = lab.whose(&alice_but(&json!({ "sub": sub }))).await;
        assert_eq!(whose, invalid(Invalid::Nameless), "{sub}");
    }
}

#[tokio::test]
async fn what_must_be_understood_and_is_not_is_refused() {
    let lab = lab();
    for header in [
        json!({ "alg": "ES256", "kid": "one", "crit": ["exp"], "exp": 1 }),
        json!({ "alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false }),
        json!({ "alg": "ES256", "kid": 1 }),
        json!({ "kid": "one" }),
    ] {
        let whose = name(bearer(&lab.by, &lab.key.sign_with(&header, &alice())).await);
        assert_eq!(whose, invalid(Invalid::Jwt), "{header}");
    }
    // Keys and places of keys that a JWT brings along are not looked at.
    let mut own = Key::p256("own");
    let header =
        json!({ "alg": "ES256", "jwk": own.jwk(), "jku": "http://127.0.0.1:1/", "kid": "own" });
    let whose = name(bearer(&lab.by, &own.sign_with(&header, &alice())).await);
    assert_eq!(whose, invalid(Invalid::Key));
    own.id = "one".to_owned();
    let header = json!({ "alg": "ES256", "jwk": own.jwk(), "kid": "one" });
    let whose = name(bearer(&lab.by, &own.sign_with(&header, &alice())).await);
    assert_eq!(whose, invalid(Invalid::Signature));
}

#[tokio::test]
async fn what_is_no_jwt_is_refused() {
    let lab = lab();
    let long = format!("a.b.{}", "c".repeat(20_000));
    for text in ["a", "a.b", "a.b.c", "..", "a.b.c.d", "e30.e30.e30", &long] {
        let whose = name(bearer(&lab.by, text).await);
        assert_eq!(whose, invalid(Invalid::Jwt), "{text:.20}");
    }
}

#[tokio::test]
async fn roles_come_from_their_claim_and_from_bindings() {
    let key = Key::p256("one");
    let (_directory, mut settings) = with_keys(&key_set(&[&key]));
    settings.principal_claim = "email".to_owned();
    settings.roles_claim = Some("realm_access.roles".to_owned());
    let by = authenticator(AuthSettings {
        oidc: Some(settings),
        bindings: vec![
            Binding {
                principal: "oidc:alice@lab".to_owned(),
                grant: on_rack(Role::Admin, "a"),
            },
            Binding {
                principal: "alice@lab".to_owned(),
                grant: on_rack(Role::Admin, "b"),
            },
        ],
        ..AuthSettings::default()
    });
    let claims = json!({ "email": "alice@lab", "realm_access": { "roles": ["viewer", "dev"] } });
    let alice = bearer(&by, &key.sign(&alice_but(&claims))).await.unwrap();
    let on = |rack: &str| alice.on(&on_rack(Role::Viewer, rack).labels);
    assert_eq!(alice.name(), "oidc:alice@lab");
    assert_eq!(alice.fleet_wide(), Some(Role::Viewer));
    assert_eq!((on("a"), on("b")), (Some(Role::Admin), Some(Role::Viewer)));
    let claims = json!({ "email": "bob@lab", "roles": ["admin"] });
    let bob = bearer(&by, &key.sign(&alice_but(&claims))).await.unwrap();
    assert_eq!((bob.name(), bob.anywhere()), ("oidc:bob@lab", None));
}

#[tokio::test]
async fn settings_that_would_take_too_much_are_refused() {
    let good = oidc("/keys.json");
    for bad in [
        OidcSettings {
            issuer: String::new(),
            ..good.clone()
        },
        OidcSettings {
            audience: Vec::new(),
            ..good.clone()
        },
        OidcSettings {
            audience: vec![String::new()],
            ..good.clone()
        },
        OidcSettings {
            principal_claim: String::new(),
            ..good.clone()
        },
        OidcSettings {
            leeway: Duration::from_secs(601),
            ..good.clone()
        },
    ] {
        let refused = Authenticator::new(AuthSettings {
            oidc: Some(bad.clone()),
            ..AuthSettings::default()
        });
        assert!(refused.is_err(), "{bad:?}");
    }
    assert_eq!(ISSUER, good.issuer);
}
