//! Each way to be known, and each way not to be.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64_simd::URL_SAFE_NO_PAD;
use fleetgate_identity::Role;
use http::{HeaderMap, HeaderValue};
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData, SigningKey};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Code;

use crate::guarded::{Guarded, Raw, code, config, detail, everywhere, token, tokens};
use crate::support::reason;

const VIEWER: &str = "/fleetgate.v1.FleetService/GetGateway";
const ADMIN: &str = "/fleetgate.v1.FleetService/DrainGateway";

const ISSUER: &str = "https://id.lab";

/// An issuer of JWTs, whose keys are in a file.
struct Issuer {
    key: KeyPair,
    directory: TempDir,
}

impl Issuer {
    fn new() -> Self {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let public = URL_SAFE_NO_PAD.encode_to_string(key.der_bytes());
        let keys = json!({ "keys": [
            { "kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": public },
        ] });
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("keys.json"), keys.to_string()).unwrap();
        Self { key, directory }
    }

    /// What a gateway that takes them is configured with.
    fn section(&self) -> String {
        format!(
            "auth.oidc.issuer = \"{ISSUER}\"\nauth.oidc.audience = \"fleetgate\"\n\
             auth.oidc.jwks = \"{}\"\nauth.oidc.roles_claim = \"groups\"\n",
            self.directory.path().join("keys.json").display()
        )
    }

    fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode_to_string(value.to_string());
        let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": "one" });
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.key.sign(signed.as_bytes()).unwrap();
        format!(
            "Bearer {signed}.{}",
            URL_SAFE_NO_PAD.encode_to_string(signature)
        )
    }
}

/// Claims that are good from `from` seconds ago, until in so many seconds.
fn claims(subject: &str, groups: &[&str], from: i64, until: i64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_secs()).unwrap();
    json!({
        "iss": ISSUER, "aud": "fleetgate", "sub": subject, "groups": groups,
        "nbf": now - from, "iat": now - from, "exp": now + until,
    })
}

#[tokio::test]
async fn a_jwt_says_who_calls_and_bindings_add_to_what_it_may_do() {
    let issuer = Issuer::new();
    let binding = "[[auth.binding]]\nprincipal = \"oidc:bob\"\nrole = \"admin\"\n";
    let guarded = Guarded::start(&format!("{}{binding}", issuer.section())).await;
    let mut raw = Raw::to(&guarded.gateway).await;
    let alice = issuer.sign(&claims("alice", &["viewer", "staff"], 0, 60));
    assert_eq!(code(raw.by(VIEWER, &alice).await.as_ref()), Code::Ok);
    let status = raw.by(ADMIN, &alice).await.unwrap();
    assert_eq!(
        reason(&status),
        (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned())
    );
    let nobody = issuer.sign(&claims("nobody", &["staff"], 0, 60));
    let status = raw.by(VIEWER, &nobody).await.unwrap();
    assert_eq!(
        reason(&status),
        (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned())
    );
    // An issuer whose clock is four seconds ahead.
    let ahead = issuer.sign(&claims("bob", &[], -4, 60));
    assert_eq!(code(raw.by(ADMIN, &ahead).await.as_ref()), Code::Ok);
    drop(raw);
    let entries = guarded.end().await;
    let who: Vec<_> = entries
        .iter()
        .map(|entry| entry.operation.who.as_str())
        .collect();
    assert_eq!(who, ["oidc:alice", "oidc:nobody"]);
}

#[tokio::test]
async fn who_says_nothing_is_let_in_as_far_as_is_set_and_may_not_be_more() {
    let guarded = Guarded::start("auth.anonymous = \"viewer\"").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    assert_eq!(code(raw.by(VIEWER, "").await.as_ref()), Code::Ok);
    let status = raw.by(ADMIN, "").await.unwrap();
    assert_eq!(
        reason(&status),
        (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned())
    );
    let status = raw.by(VIEWER, "Bearer of bad news").await.unwrap();
    assert_eq!(
        status.code(),
        Code::Unauthenticated,
        "bad credentials are not none"
    );
    drop(raw);
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn every_way_to_be_nobody_is_refused_and_on_record_with_the_reason() {
    let issuer = Issuer::new();
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(&directory);
    let new = |name, expires| token(&tokens, name, everywhere(Role::Viewer), expires);
    let (_, valid) = new("ci", None);
    let (_, expired) = new("old", Some(SystemTime::now() - Duration::from_hours(1)));
    let (info, revoked) = new("gone", None);
    tokens.revoke(info.id.as_str()).unwrap();
    let section = issuer.section();
    let guarded = Guarded::start_in(directory, |directory| config(directory, &section)).await;
    let mut other = valid.clone();
    let last = other.pop().unwrap();
    other.push(if last == 'A' { 'Q' } else { 'A' });
    let other_issuer = Issuer::new().sign(&claims("alice", &["admin"], 0, 60));
    let over = issuer.sign(&claims("alice", &["admin"], 600, -300));
    let mut elsewhere = claims("alice", &["admin"], 0, 60);
    elsewhere["aud"] = json!("another");
    let elsewhere = issuer.sign(&elsewhere);
    let cases = [
        ("", "CREDENTIALS_MISSING", "unknown"),
        ("Basic cm9vdDpyb290", "CREDENTIALS_INVALID", "unknown"),
        ("Bearer", "CREDENTIALS_INVALID", "unknown"),
        ("Bearer fgt_x_y", "CREDENTIALS_INVALID", "unknown"),
        ("Bearer not.a.jwt", "CREDENTIALS_INVALID", "unknown"),
        (&other, "CREDENTIALS_INVALID", "unknown"),
        (&revoked, "CREDENTIALS_INVALID", "token:gone"),
        (&expired, "CREDENTIALS_EXPIRED", "token:old"),
        (&other_issuer, "CREDENTIALS_INVALID", "unknown"),
        (&elsewhere, "CREDENTIALS_INVALID", "unknown"),
        (&over, "CREDENTIALS_EXPIRED", "unknown"),
    ];
    let mut raw = Raw::to(&guarded.gateway).await;
    for (says, why, _) in cases {
        let status = raw.by(VIEWER, says).await.unwrap();
        assert_eq!(
            reason(&status),
            (Code::Unauthenticated, why.to_owned()),
            "{says}"
        );
        let secret = says.rsplit('_').next().unwrap_or_default();
        let told = format!("{status:?}");
        assert!(secret.len() < 20 || !told.contains(secret), "{told}");
    }
    assert_eq!(code(raw.by(VIEWER, &valid).await.as_ref()), Code::Ok);
    drop(raw);

    let denials = guarded.denials(cases.len()).await;
    for (denial, (says, why, who)) in denials.iter().zip(cases) {
        assert_eq!(denial.who, who);
        assert_eq!(denial.target.as_deref(), Some(VIEWER));
        assert_eq!(detail(denial, "reason").as_deref(), Some(why), "{says}");
        let address = detail(denial, "address").unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let is_told = detail(denial, "why").is_some();
        assert_eq!(is_told, why == "CREDENTIALS_INVALID", "{denial:?}");
        let secret = says.rsplit('_').next().unwrap_or_default();
        let told = format!("{denial:?}");
        assert!(secret.len() < 20 || !told.contains(secret), "{told}");
    }
    guarded.gateway.shutdown().await;
}

/// What is answered once the keys of the issuer are given away, which takes until
/// `released`.
async fn vouch(listener: TcpListener, keys: String, released: oneshot::Receiver<()>) {
    let (mut stream, _) = listener.accept().await.unwrap();
    released.await.unwrap();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{keys}",
        keys.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    // Until the other side has gone, too.
    stream.read_to_end(&mut Vec::new()).await.ok();
}

#[tokio::test]
async fn a_callers_deadline_counts_from_its_call_however_long_it_takes_to_know_who_calls() {
    let issuer = Issuer::new();
    let keys = std::fs::read_to_string(issuer.directory.path().join("keys.json")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let section = format!(
        "auth.oidc.issuer = \"{ISSUER}\"\nauth.oidc.audience = \"fleetgate\"\n\
         auth.oidc.jwks = \"http://{}/keys\"\nauth.oidc.roles_claim = \"groups\"\n",
        listener.local_addr().unwrap()
    );
    let (release, released) = oneshot::channel();
    let mut vouching = JoinSet::new();
    vouching.spawn(vouch(listener, keys, released));
    let guarded = Guarded::start(&section).await;
    let mut headers = HeaderMap::new();
    let jwt = issuer.sign(&claims("alice", &["viewer"], 0, 60));
    headers.insert("authorization", jwt.parse().unwrap());
    let mut hurried = headers.clone();
    hurried.insert("grpc-timeout", HeaderValue::from_static("100m"));
    let mut raw = Raw::to(&guarded.gateway).await;
    let (status, ()) = tokio::join!(raw.call(VIEWER, hurried), async {
        sleep(Duration::from_secs(1)).await;
        release.send(()).unwrap();
    });
    let status = status.unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    let patient = raw.call(VIEWER, headers).await;
    assert_eq!(code(patient.as_ref()), Code::Ok, "{patient:?}");
    drop(raw);
    guarded.gateway.shutdown().await;
}
