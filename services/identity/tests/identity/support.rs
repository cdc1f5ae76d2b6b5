//! What several of these tests need.

use std::collections::BTreeMap;
use std::time::Duration;

use fleetgate_identity::{
    AuthError, AuthSettings, Authenticator, Credentials, Grant, NewToken, Principal, Role, Secret,
    TokenFile,
};
use tempfile::TempDir;
use tokio::time;

/// A directory for its owner only.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn authenticator(settings: AuthSettings) -> Authenticator {
    Authenticator::new(settings).unwrap()
}

/// What becomes of a caller with this bearer's credential.
pub(crate) async fn bearer(by: &Authenticator, credential: &str) -> Result<Principal, AuthError> {
    let header = format!("Bearer {credential}");
    let credentials = Credentials {
        authorization: Some(header.as_bytes()),
        certificate: None,
    };
    by.authenticate(credentials).await
}

pub(crate) fn name(principal: Result<Principal, AuthError>) -> Result<String, AuthError> {
    principal.map(|principal| principal.name().to_owned())
}

/// Lets time pass, without waiting for it. It runs again afterwards: sockets
/// are real.
pub(crate) async fn pass(time: Duration) {
    time::pause();
    time::advance(time).await;
    time::resume();
}

pub(crate) fn on_rack(role: Role, rack: &str) -> Grant {
    Grant {
        role,
        labels: BTreeMap::from([("rack".to_owned(), rack.to_owned())]),
    }
}

/// Makes a token without an end.
pub(crate) fn token(file: &TokenFile, name: &str, role: Role) -> Secret {
    let new = NewToken {
        name: name.to_owned(),
        grants: vec![Grant::fleet_wide(role)],
        expires: None,
    };
    file.create(new).unwrap().1
}

/// The part of a token that is secret; there may be `_` in it, too.
pub(crate) fn secret_of(token: &Secret) -> &str {
    let text = token.expose();
    text.splitn(3, '_').nth(2).unwrap()
}
