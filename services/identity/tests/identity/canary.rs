//! Secrets do not come out where they should not.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetgate_identity::{
    AuthSettings, Credentials, InstanceRecord, Instances, LocalToken, Role, TokenFile,
};
use tracing_subscriber::fmt::MakeWriter;
use uuid::Uuid;

use crate::issuer::{Key, alice, key_set, oidc};
use crate::server::Server;
use crate::support::{authenticator, bearer, directory, pass, secret_of, token};

/// All that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_is_shown_logged_or_told() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .init();
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let (good, gone) = (
        token(&file, "good", Role::Viewer),
        token(&file, "gone", Role::Viewer),
    );
    let local = LocalToken::mint();
    let local_text = local.text().clone();
    let key = Key::p256("one");
    let server = Server::with(&key_set(&[&key])).await;
    let jwt = key.sign(&alice());
    let settings = AuthSettings {
        local: Some(local.clone()),
        tokens: Some(file.path().to_owned()),
        oidc: Some(oidc(&server.url())),
        ..AuthSettings::default()
    };
    let mut seen = format!("{local:?} {settings:?} {good:?}");
    let by = authenticator(settings);
    file.revoke("gone").unwrap();
    pass(Duration::from_secs(2)).await;
    let wrong_jwt = format!("{}A", &jwt[..jwt.len() - 1]);
    let wrong_token = format!("{}A", good.expose());
    for credential in [
        good.expose(),
        gone.expose(),
        local_text.expose(),
        &jwt,
        &wrong_jwt,
        &wrong_token,
        "nothing canary-of-no-form",
    ] {
        let header = format!("Bearer {credential}");
        let credentials = Credentials {
            authorization: Some(header.as_bytes()),
            certificate: None,
        };
        let answer = bearer(&by, credential).await;
        write!(seen, "{credentials:?} {answer:?} ").unwrap();
        if let Err(error) = answer {
            write!(seen, "{error} ").unwrap();
        }
    }
    // Files that mean nothing any more are complained about, not quoted.
    let text = std::fs::read_to_string(file.path()).unwrap();
    std::fs::write(
        file.path(),
        text.replace("version = 1", &format!("version = \"{}\"", good.expose())),
    )
    .unwrap();
    pass(Duration::from_secs(2)).await;
    assert!(bearer(&by, good.expose()).await.is_ok());
    write!(seen, "{:?}", file.list().unwrap_err()).unwrap();
    let instances = Instances::at(directory.path().join("run"));
    let address = "127.0.0.1:1".parse().unwrap();
    let record =
        InstanceRecord::of_this_process(Uuid::now_v7(), address, local_text.clone()).unwrap();
    let published = instances.publish(&record).unwrap();
    write!(
        seen,
        "{record:?} {published:?} {:?}",
        instances.list().unwrap()
    )
    .unwrap();
    let text = std::fs::read_to_string(published.path()).unwrap();
    std::fs::write(
        published.path(),
        text.replace("\"version\": 1", "\"version\": 1, \"version\": 2"),
    )
    .unwrap();
    assert_eq!(instances.list().unwrap(), []);
    write!(seen, "{by:?}").unwrap();

    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the token file cannot be used"), "{logged}");
    assert!(
        logged.contains("a discovery record is left alone"),
        "{logged}"
    );
    let (_, signature) = jwt.rsplit_once('.').unwrap();
    for canary in [
        secret_of(&good).to_owned(),
        secret_of(&gone).to_owned(),
        secret_of(&local_text).to_owned(),
        signature[..40].to_owned(),
        "canary-of-no-form".to_owned(),
    ] {
        for text in [&seen, &logged] {
            assert!(!text.contains(&canary), "{canary} in {text}");
        }
    }
}
