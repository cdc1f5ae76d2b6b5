//! Keys that come and go, and issuers that cannot be reached.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use fleetgate_identity::{AuthError, Authenticator, Invalid};
use tokio::task::JoinSet;

use crate::issuer::{Key, alice, key_set, oidc, taking};
use crate::jwts::with_keys;
use crate::server::{Answer, Server};
use crate::support::{bearer, name, pass};

/// Longer than the pause between two fetches.
const REST: Duration = Duration::from_secs(11);
const AGE: Duration = Duration::from_secs(601);

async fn whose(by: &Authenticator, key: &Key) -> Result<String, AuthError> {
    name(bearer(by, &key.sign(&alice())).await)
}

const ALICE: Result<&str, &AuthError> = Ok("oidc:alice");

fn text(whose: &Result<String, AuthError>) -> Result<&str, &AuthError> {
    whose.as_ref().map(String::as_str)
}

#[tokio::test]
async fn keys_are_fetched_once_for_any_number_of_callers() {
    let key = Key::p256("one");
    let server = Server::with(&key_set(&[&key])).await;
    let by = taking(oidc(&server.url()));
    let mut callers = JoinSet::new();
    for _ in 0..50 {
        let (by, key) = (by.clone(), key.clone());
        callers.spawn(async move { whose(&by, &key).await });
    }
    while let Some(whose) = callers.join_next().await {
        assert_eq!(text(&whose.unwrap()), ALICE);
    }
    assert_eq!(server.asked(), 1);
    let request = &server.requests()[0];
    assert!(
        request.starts_with("GET /keys?v=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        !request.to_ascii_lowercase().contains("authorization"),
        "{request}"
    );
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_jwt_names_it_but_not_too_often() {
    let (one, two, three) = (Key::p256("one"), Key::p256("two"), Key::p256("three"));
    let server = Server::with(&key_set(&[&one])).await;
    let by = taking(oidc(&server.url()));
    assert_eq!(text(&whose(&by, &one).await), ALICE);
    server.publish(&key_set(&[&one, &two]));
    // Just fetched: a stranger's keys do not make the issuer busy.
    assert_eq!(whose(&by, &two).await, Err(Invalid::Key.into()));
    assert_eq!(server.asked(), 1);
    pass(REST).await;
    assert_eq!(text(&whose(&by, &two).await), ALICE);
    assert_eq!(server.asked(), 2);
    for _ in 0..20 {
        assert_eq!(whose(&by, &three).await, Err(Invalid::Key.into()));
    }
    assert_eq!(server.asked(), 2);
    pass(REST).await;
    assert_eq!(whose(&by, &three).await, Err(Invalid::Key.into()));
    assert_eq!(server.asked(), 3);
    assert_eq!(text(&whose(&by, &one).await), ALICE);
}

#[tokio::test]
async fn a_key_that_was_withdrawn_is_refused_after_the_next_fetch() {
    let (one, two) = (Key::p256("one"), Key::p256("two"));
    let server = Server::with(&key_set(&[&one])).await;
    let by = taking(oidc(&server.url()));
    assert_eq!(text(&whose(&by, &one).await), ALICE);
    server.publish(&key_set(&[&two]));
    pass(AGE).await;
    server.when_asked(2).await;
    // Nobody asked for it: the new key is there, and the old one is gone.
    assert_eq!(text(&whose(&by, &two).await), ALICE);
    assert_eq!(whose(&by, &one).await, Err(Invalid::Key.into()));
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn a_key_of_the_same_name_is_another_key() {
    let (one, other) = (Key::p256("one"), Key::p256("one"));
    let server = Server::with(&key_set(&[&one])).await;
    let by = taking(oidc(&server.url()));
    assert_eq!(text(&whose(&by, &one).await), ALICE);
    assert_eq!(whose(&by, &other).await, Err(Invalid::Signature.into()));
}

#[tokio::test]
async fn keys_stay_while_their_issuer_cannot_be_reached() {
    let (one, two) = (Key::p256("one"), Key::p256("two"));
    let server = Server::with(&key_set(&[&one])).await;
    let by = taking(oidc(&server.url()));
    assert_eq!(text(&whose(&by, &one).await), ALICE);
    for (number, answer) in [
        Answer::Status(503, ""),
        Answer::Body("<html>".to_owned()),
        Answer::Cut,
        Answer::Endless,
        Answer::Body("{\"keys\":[]}".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        server.answer(answer);
        pass(REST).await;
        assert_eq!(whose(&by, &two).await, Err(Invalid::Key.into()));
        assert_eq!(server.asked(), number + 2);
        assert_eq!(text(&whose(&by, &one).await), ALICE);
    }
    server.answer(Answer::Chunked(key_set(&[&two]).to_string()));
    pass(REST).await;
    assert_eq!(text(&whose(&by, &two).await), ALICE);
}

#[tokio::test]
async fn without_any_keys_nothing_can_be_judged_until_there_are_some() {
    let key = Key::p256("one");
    let server = Server::start(Answer::Status(500, "")).await;
    let by = taking(oidc(&server.url()));
    for _ in 0..5 {
        assert_eq!(whose(&by, &key).await, Err(AuthError::Unavailable));
    }
    assert_eq!(server.asked(), 1);
    server.publish(&key_set(&[&key]));
    pass(REST).await;
    assert_eq!(text(&whose(&by, &key).await), ALICE);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let key = Key::p256("one");
    let elsewhere = Server::with(&key_set(&[&key])).await;
    let location = format!("location: {}\r\n", elsewhere.url());
    let server = Server::start(Answer::Status(302, location.leak())).await;
    let by = taking(oidc(&server.url()));
    assert_eq!(whose(&by, &key).await, Err(AuthError::Unavailable));
    assert_eq!((server.asked(), elsewhere.asked()), (1, 0));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for_long() {
    let key = Key::p256("one");
    let server = Server::start(Answer::Silence).await;
    let by = taking(oidc(&server.url()));
    let mut caller = JoinSet::new();
    let (also_by, also_key) = (by.clone(), key.clone());
    caller.spawn(async move { whose(&also_by, &also_key).await });
    server.when_asked(1).await;
    pass(Duration::from_secs(6)).await;
    let answer = caller.join_next().await.unwrap().unwrap();
    assert_eq!(answer, Err(AuthError::Unavailable));
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_nobody_along() {
    let key = Key::p256("one");
    let server = Server::start(Answer::Silence).await;
    let by = taking(oidc(&server.url()));
    let mut callers = JoinSet::new();
    let (also_by, also_key) = (by.clone(), key.clone());
    let first = callers.spawn(async move { whose(&also_by, &also_key).await });
    server.when_asked(1).await;
    first.abort();
    assert!(
        callers
            .join_next()
            .await
            .unwrap()
            .unwrap_err()
            .is_cancelled()
    );
    pass(Duration::from_secs(6)).await;
    assert_eq!(whose(&by, &key).await, Err(AuthError::Unavailable));
    server.publish(&key_set(&[&key]));
    pass(REST).await;
    assert_eq!(text(&whose(&by, &key).await), ALICE);
}

#[tokio::test]
async fn fetching_ends_with_the_last_authenticator() {
    let key = Key::p256("one");
    let server = Server::with(&key_set(&[&key])).await;
    let by = taking(oidc(&server.url()));
    let clone = by.clone();
    assert_eq!(text(&whose(&by, &key).await), ALICE);
    drop(by);
    pass(AGE).await;
    server.when_asked(2).await;
    drop(clone);
    pass(AGE).await;
    // By the time that another has asked, the first would have, too.
    let other = taking(oidc(&server.url()));
    assert_eq!(text(&whose(&other, &key).await), ALICE);
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn keys_of_a_file_are_read_again_when_it_changes() {
    let (one, two) = (Key::p256("one"), Key::p256("two"));
    let (directory, settings) = with_keys(&key_set(&[&one]));
    let path = directory.path().join("keys.json");
    let by = taking(settings);
    assert_eq!(text(&whose(&by, &one).await), ALICE);
    std::fs::write(&path, key_set(&[&two]).to_string()).unwrap();
    pass(REST).await;
    assert_eq!(text(&whose(&by, &two).await), ALICE);
    assert_eq!(whose(&by, &one).await, Err(Invalid::Key.into()));
    std::fs::remove_file(&path).unwrap();
    pass(REST).await;
    assert_eq!(text(&whose(&by, &two).await), ALICE);
}

#[tokio::test]
async fn a_file_that_anybody_can_write_is_nobodys_word() {
    let key = Key::p256("one");
    let (directory, settings) = with_keys(&key_set(&[&key]));
    let path = directory.path().join("keys.json");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let by = taking(settings);
    assert_eq!(whose(&by, &key).await, Err(AuthError::Unavailable));
}
