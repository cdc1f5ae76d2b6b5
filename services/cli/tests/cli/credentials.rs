//! Tokens and certificates: how they are made, used and refused, and where no
//! token may be seen.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::Value;

use crate::bench::{DENIED, Said, finish};
use crate::host::{Host, Serving};

/// What a line on stderr says, as JSON.
fn error(said: &Said) -> Value {
    let error: Value = serde_json::from_str(&said.stderr).unwrap();
    error["error"].clone()
}

/// A file for its owner alone.
fn secret(host: &Host, name: &str, text: &str) -> PathBuf {
    let path = host.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The part of a token that nobody else may know. There may be an underscore in
/// it.
fn secret_of(token: &str) -> &str {
    let secret = token.splitn(3, '_').nth(2).unwrap();
    assert!(secret.len() > 20, "{} characters", secret.len());
    secret
}

/// Makes a token; what is printed is the token and nothing else.
async fn token(host: &Host, more: &[&str]) -> String {
    let tokens = host.path("tokens.toml");
    let mut command = host.fleetgate();
    command
        .args(["token", "create", "--tokens"])
        .arg(tokens)
        .args(more);
    let said = finish(&mut command, "").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let token = said.text().strip_suffix('\n').unwrap().to_owned();
    assert!(
        token.starts_with("fgt_") && !token.contains(char::is_whitespace),
        "{token}"
    );
    assert!(!said.stderr.contains(&token), "{}", said.stderr);
    token
}

/// Asks a gateway as somebody who is not known on its host.
async fn ask(serving: &Serving, token: &Path, args: &[&str]) -> Said {
    let elsewhere = Host::new();
    let mut command = elsewhere.fleetgate();
    command
        .args([
            "--server",
            &serving.server,
            "--output",
            "json",
            "--token-file",
        ])
        .arg(token)
        .args(args);
    finish(&mut command, "").await
}

#[tokio::test]
async fn a_token_that_would_expire_when_no_clock_can_tell_is_not_made() {
    let host = Host::new();
    let mut command = host.fleetgate();
    command.args(["token", "create", "--name", "ci", "--role", "viewer"]);
    command.args(["--expires", "9999y", "--tokens"]);
    command.arg(host.path("tokens.toml"));
    let said = finish(&mut command, "").await;
    assert!(said.code != 0 && said.stdout.is_empty(), "{}", said.stderr);
    let told = &said.stderr;
    assert!(told.contains("before the year 10000"), "{told}");
    assert!(!told.contains("panicked"), "{told}");
}

#[tokio::test]
async fn a_token_lets_its_holder_do_what_it_is_for_until_it_is_revoked() {
    let host = Host::new();
    let viewer = token(&host, &["--name", "dashboard", "--role", "viewer"]).await;
    let admin = token(
        &host,
        &["--name", "ada", "--role", "admin", "--expires", "90d"],
    )
    .await;
    let brief = token(
        &host,
        &["--name", "guest", "--role", "viewer", "--expires", "1s"],
    )
    .await;
    let serving = host.start("one", "").await;
    let viewer_file = secret(&host, "viewer.token", &viewer);
    let admin_file = secret(&host, "admin.token", &admin);
    let brief = secret(&host, "brief.token", &brief);

    assert_eq!(ask(&serving, &viewer_file, &["devices"]).await.code, 0);
    let drain = ["drain", "--reason", "upgrade"];
    let refused = ask(&serving, &viewer_file, &drain).await;
    assert_eq!(refused.code, DENIED);
    assert_eq!(error(&refused)["reason"], "ROLE_TOO_LOW");

    let refused = loop {
        let said = ask(&serving, &brief, &["devices"]).await;
        if said.code != 0 {
            break said;
        }
    };
    assert_eq!(refused.code, DENIED);
    assert_eq!(error(&refused)["reason"], "CREDENTIALS_EXPIRED");

    // The environment holds one, too.
    let elsewhere = Host::new();
    let mut command = elsewhere.fleetgate();
    command
        .args(["--server", &serving.server, "devices"])
        .env("FLEETGATE_TOKEN", &admin);
    assert_eq!(finish(&mut command, "").await.code, 0);

    let tokens = host.path("tokens.toml").display().to_string();
    let listed = host
        .run(&["token", "list", "--tokens", &tokens, "-o", "json"])
        .await;
    assert!(!listed.text().contains(&viewer) && !listed.text().contains(&admin));
    let listed = listed.json();
    let found = |name: &str| {
        let tokens = listed["tokens"].as_array().unwrap();
        tokens
            .iter()
            .find(|token| token["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(found("dashboard")["grants"][0]["role"], "viewer");
    assert_eq!(found("dashboard")["expires"], Value::Null);
    assert!(found("ada")["expires"].is_string());
    let kept = fs::read_to_string(host.path("tokens.toml")).unwrap();
    assert!(
        !kept.contains(secret_of(&viewer)),
        "a hash is kept, no more"
    );

    let id = found("dashboard")["id"].as_str().unwrap().to_owned();
    let revoked = host
        .run(&["token", "revoke", &id, "--tokens", &tokens])
        .await;
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    assert!(revoked.text().contains("revoked"), "{}", revoked.text());
    let refused = loop {
        let said = ask(&serving, &viewer_file, &["devices"]).await;
        if said.code != 0 {
            break said;
        }
    };
    assert_eq!(refused.code, DENIED);
    assert_eq!(error(&refused)["reason"], "CREDENTIALS_INVALID");
    assert!(error(&refused)["hint"].is_string());
    assert_eq!(ask(&serving, &admin_file, &["devices"]).await.code, 0);
    serving.end().await;
}

#[tokio::test]
async fn a_token_that_others_could_read_is_not_used() {
    let host = Host::new();
    let token = token(&host, &["--name", "ci", "--role", "viewer"]).await;
    let serving = host.start("one", "").await;
    let file = secret(&host, "ci.token", &token);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let said = ask(&serving, &file, &["devices"]).await;
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("chmod 600"), "{}", said.stderr);

    // Nor sent where others could read it on the way.
    let said = host
        .run(&["--server", "http://192.0.2.7:7700", "devices"])
        .await;
    assert_ne!(said.code, 2, "there is none to be sent: {}", said.stderr);
    serving.end().await;
}

#[tokio::test]
async fn no_token_is_in_a_command_line_or_in_a_log() {
    let host = Host::new();
    let token = token(&host, &["--name", "canary", "--role", "viewer"]).await;
    let mut serve = host.serve("one", "[log]\nfilter = 'trace'\n");
    // Into a file: a pipe that nobody empties would hold the gateway up.
    let log = host.path("log");
    serve.stderr(fs::File::create(&log).unwrap());
    let serving = Serving::start(&mut serve).await;
    let local = host.local_token();

    let elsewhere = Host::new();
    let mut watcher = elsewhere.fleetgate();
    let mut watcher = watcher
        .args([
            "--server",
            &serving.server,
            "devices",
            "--watch",
            "-o",
            "json",
        ])
        .env("FLEETGATE_TOKEN", &token)
        .spawn()
        .unwrap();
    let mut lines = {
        use tokio::io::{AsyncBufReadExt, BufReader};
        BufReader::new(watcher.stdout.take().unwrap()).lines()
    };
    crate::processes::line_with(&mut lines, "synced").await;
    for child in [&watcher, &serving.child] {
        let path = format!("/proc/{}/cmdline", child.id().unwrap());
        let line = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        assert!(!line.contains(&token) && !line.contains(&local), "{line}");
    }
    // Whoever is refused leaves none behind either.
    let wrong = secret(&host, "wrong.token", "fgt_canary_wrong-secret");
    assert_eq!(ask(&serving, &wrong, &["devices"]).await.code, DENIED);
    assert_eq!(host.run(&["devices"]).await.code, 0);

    watcher.kill().await.unwrap();
    serving.end().await;
    let log = fs::read_to_string(log).unwrap();
    assert!(log.len() > 1_000, "it was logged at length");
    for canary in [secret_of(&token), secret_of(&local), "wrong-secret"] {
        assert!(!log.contains(canary), "a token is in the log");
    }
}

/// A certificate for the loopback that vouches for itself, and its key.
fn self_signed(host: &Host) -> (PathBuf, PathBuf) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    (
        secret(host, "server.pem", &made.cert.pem()),
        secret(host, "server.key", &made.signing_key.serialize_pem()),
    )
}

#[tokio::test]
async fn a_gateway_that_speaks_tls_is_found_and_verified() {
    let host = Host::new();
    let token = token(&host, &["--name", "ci", "--role", "viewer"]).await;
    let token = secret(&host, "ci.token", &token);
    let (certificate, key) = self_signed(&host);
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    let serving = host.start("one", &tls).await;
    assert!(serving.server.starts_with("https://"), "{}", serving.server);
    let devices = host.run(&["devices"]).await;
    assert_eq!(devices.code, 0, "{}", devices.stderr);
    let listed = host.run(&["instances", "-o", "json"]).await.json();
    assert_eq!(listed["instances"][0]["tls"], true);

    let plain = serving.server.replace("https://", "http://");
    let stranger = Host::new();
    let unencrypted = ["--server", &plain, "devices", "-o", "json"];
    let said = stranger.run(&unencrypted).await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert_eq!(error(&said)["reason"], "GATEWAY_UNREACHABLE");
    assert_eq!(error(&said)["hint"], "does it speak TLS? then https://");
    let doctor = stranger.run(&["--server", &plain, "doctor"]).await;
    assert!(doctor.text().contains("then https://"), "{}", doctor.text());

    let ca = certificate.to_str().unwrap();
    assert_eq!(
        ask(&serving, &token, &["--ca", ca, "devices"]).await.code,
        0
    );
    let unknown = ask(&serving, &token, &["devices"]).await;
    assert_eq!(unknown.code, 4, "{}", unknown.stderr);
    assert!(error(&unknown)["hint"].as_str().unwrap().contains("--ca"));
    let misnamed = ["--ca", ca, "--server-name", "elsewhere.example", "devices"];
    let misnamed = ask(&serving, &token, &misnamed).await;
    assert_eq!(misnamed.code, 4, "{}", misnamed.stderr);
    let renamed = ["--ca", ca, "--server-name", "localhost", "devices"];
    assert_eq!(ask(&serving, &token, &renamed).await.code, 0);
    serving.end().await;
}

#[tokio::test]
async fn a_server_that_shows_an_authoritys_certificate_is_told_apart() {
    let host = Host::new();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = params.self_signed(&key).unwrap();
    let certificate = secret(&host, "server.pem", &made.pem());
    let key = secret(&host, "server.key", &key.serialize_pem());
    let tls = format!(
        "[tls]\ncertificate = '{}'\nkey = '{}'\n",
        certificate.display(),
        key.display()
    );
    let serving = host.start("one", &tls).await;
    let said = host.run(&["devices", "-o", "json"]).await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    let hint = error(&said)["hint"].to_string();
    assert!(hint.contains("CA:FALSE"), "{hint}");
    serving.end().await;
}

#[tokio::test]
async fn a_certificate_says_who_calls() {
    let host = Host::new();
    let (certificate, key) = self_signed(&host);
    let issuer_key = KeyPair::generate().unwrap();
    let mut issuer = CertificateParams::new(Vec::new()).unwrap();
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(issuer, issuer_key).unwrap();
    let client_key = KeyPair::generate().unwrap();
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.distinguished_name.remove(DnType::CommonName);
    client
        .distinguished_name
        .push(DnType::CommonName, "scheduler");
    let client = client.signed_by(&client_key, &issuer).unwrap();
    let clients = secret(&host, "clients.pem", &issuer.pem());
    let client_file = secret(&host, "client.pem", &client.pem());
    let client_key = secret(&host, "client.key", &client_key.serialize_pem());
    let more = format!(
        "[tls]\ncertificate = {certificate:?}\nkey = {key:?}\nclient_ca = {clients:?}\n\
         client_certificate = 'optional'\n[[auth.certificate]]\nsubject = 'CN=scheduler'\n\
         name = 'scheduler'\nrole = 'operator'\n"
    );
    let serving = host.start("one", &more).await;

    let elsewhere = Host::new();
    let ca = certificate.to_str().unwrap();
    let (client_file, client_key) = (client_file.to_str().unwrap(), client_key.to_str().unwrap());
    let shared = ["--server", &serving.server, "--ca", ca];
    let shown = ["--cert", client_file, "--key", client_key];
    let known = elsewhere
        .run(&[&shared[..], &shown, &["lease", "ls"]].concat())
        .await;
    assert_eq!(known.code, 0, "{}", known.stderr);
    let drain = elsewhere
        .run(
            &[
                &shared[..],
                &shown,
                &["drain", "--reason", "a", "-o", "json"],
            ]
            .concat(),
        )
        .await;
    assert_eq!(drain.code, DENIED);
    assert_eq!(error(&drain)["reason"], "ROLE_TOO_LOW");
    let nobody = elsewhere
        .run(&[&shared[..], &["devices", "-o", "json"]].concat())
        .await;
    assert_eq!(error(&nobody)["reason"], "CREDENTIALS_MISSING");
    serving.end().await;

    // Where everybody must show one, nobody gets as far as a call without.
    let required = more.replace("'optional'", "'required'");
    let serving = host.start("two", &required).await;
    let shared = ["--server", &serving.server, "--ca", ca];
    let known = elsewhere
        .run(&[&shared[..], &shown, &["devices"]].concat())
        .await;
    assert_eq!(known.code, 0, "{}", known.stderr);
    let tap = ["tap", "phone", "--app", "app", "--x", "1", "--y", "1"];
    let nobody = elsewhere.run(&[&shared[..], &tap].concat()).await;
    assert_eq!(nobody.code, 8, "{}", nobody.stderr);
    serving.end().await;
}
