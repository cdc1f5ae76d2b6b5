//! Gateways of this host, and how their user's clients find them.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::bench::DENIED;
use crate::host::Host;
use crate::processes::signal;

#[tokio::test]
async fn the_one_gateway_of_a_host_is_found_and_lets_its_user_in() {
    let host = Host::new();
    let serving = host.start("one", "").await;
    let devices = host.run(&["devices"]).await;
    assert_eq!(devices.text(), "no devices\n", "{}", devices.stderr);
    let named = host.run(&["--server", &serving.server, "devices"]).await;
    assert_eq!(named.code, 0, "{}", named.stderr);

    let records = host.records();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((records.len(), mode(&records[0])), (1, 0o600));
    assert_eq!(mode(&host.runtime()), 0o700);

    let pid = serving.child.id().unwrap();
    let listed = host.run(&["instances", "-o", "json"]).await.json();
    let instances = listed["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 1, "{listed}");
    assert_eq!(instances[0]["server"], serving.server);
    assert_eq!(instances[0]["pid"], pid);
    assert_eq!(instances[0]["tls"], false);
    assert_eq!(instances[0]["version"], env!("CARGO_PKG_VERSION"));
    let table = host.run(&["instances"]).await;
    assert!(table.text().contains(&serving.server), "{}", table.text());
    let token = host.local_token();
    assert!(!listed.to_string().contains(&token) && !table.text().contains(&token));

    serving.end().await;
    assert_eq!(host.records().len(), 0, "a record goes with its gateway");
    assert_eq!(host.run(&["instances"]).await.text(), "no gateways\n");
}

#[tokio::test]
async fn of_several_gateways_the_user_says_which() {
    let host = Host::new();
    let (one, two) = (host.start("one", "").await, host.start("two", "").await);
    let said = host.run(&["devices"]).await;
    assert_eq!(said.code, 2, "{}", said.stderr);
    for serving in [&one, &two] {
        assert!(said.stderr.contains(&serving.server), "{}", said.stderr);
        let devices = host.run(&["--server", &serving.server, "devices"]).await;
        assert_eq!(devices.code, 0, "{}", devices.stderr);
    }
    let listed = host.run(&["instances", "-o", "json"]).await.json();
    assert_eq!(listed["instances"].as_array().unwrap().len(), 2);
    one.end().await;
    let devices = host.run(&["devices"]).await;
    assert_eq!(devices.code, 0, "{}", devices.stderr);
    two.end().await;
}

#[tokio::test]
async fn two_demos_stand_side_by_side() {
    let host = Host::new();
    let demo = ["demo", "--once", "--port", "0"];
    let (one, two) = tokio::join!(host.run(&demo), host.run(&demo));
    for said in [one, two] {
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
    assert_eq!(host.records().len(), 0);
}

#[tokio::test]
async fn the_record_of_a_gateway_that_was_killed_is_no_gateway() {
    let host = Host::new();
    let mut serving = host.start("one", "").await;
    serving.child.kill().await.unwrap();
    assert_eq!(host.records().len(), 1, "it could not take it away");
    assert_eq!(host.run(&["instances"]).await.text(), "no gateways\n");
    assert_eq!(host.records().len(), 0);
}

#[tokio::test]
async fn a_token_goes_to_the_address_that_its_gateway_published_and_to_no_namesake() {
    let host = Host::new();
    let serving = host.start("one", "").await;
    let port = serving.server.rsplit(':').next().unwrap();
    // Where there is no other family of addresses, nobody can lurk there.
    let rogue = TcpListener::bind(format!("[::1]:{port}"));
    let named = format!("http://localhost:{port}");
    let devices = host.run(&["--server", &named, "devices"]).await;
    assert_eq!(devices.code, 0, "{}", devices.stderr);
    if let Ok(rogue) = rogue {
        rogue.set_nonblocking(true).unwrap();
        assert_eq!(rogue.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    serving.end().await;
}

#[tokio::test]
async fn other_users_of_a_host_are_not_let_in() {
    let host = Host::new();
    let stranger = Host::new();
    let serving = host.start("one", "").await;
    let said = stranger
        .run(&["--server", &serving.server, "devices", "-o", "json"])
        .await;
    assert_eq!(said.code, DENIED);
    let error: Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!(error["error"]["reason"], "CREDENTIALS_MISSING");
    let doctor = stranger.run(&["--server", &serving.server, "doctor"]).await;
    assert!(doctor.text().contains("NOT_LET_IN"), "{}", doctor.text());
    serving.end().await;
}

#[tokio::test]
async fn a_gateway_that_cannot_be_found_does_not_start() {
    let host = Host::new();
    fs::create_dir(host.runtime()).unwrap();
    fs::set_permissions(host.runtime(), fs::Permissions::from_mode(0o755)).unwrap();
    let said = crate::bench::finish(&mut host.serve("one", ""), "").await;
    assert_eq!((said.code, said.text()), (1, ""), "{}", said.stderr);
    assert!(
        said.stderr.contains("FLEETGATE_RUNTIME_DIR"),
        "{}",
        said.stderr
    );
    let doctor = host.run(&["doctor"]).await;
    assert_eq!(doctor.code, 1, "clients do not look there either");
    assert!(doctor.stderr.contains("chmod 700"), "{}", doctor.stderr);

    let unlisted = "[auth]\ndiscovery = false\nanonymous = 'viewer'\n";
    let mut command = host.serve("two", unlisted);
    command.stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = {
        use tokio::io::{AsyncBufReadExt, BufReader};
        BufReader::new(child.stdout.take().unwrap()).lines()
    };
    let line = crate::processes::line_with(&mut lines, "listening on ").await;
    let server = crate::processes::after(&line, "listening on ");
    let elsewhere = Host::new();
    let devices = elsewhere.run(&["--server", server, "devices"]).await;
    assert_eq!(devices.code, 0, "{}", devices.stderr);
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_gateway_that_others_could_reach_unknown_does_not_start() {
    let host = Host::new();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let mut serve = host.serve("one", "");
        serve.env("FLEETGATE_SERVER__LISTEN", listen);
        let said = crate::bench::finish(&mut serve, "").await;
        assert_eq!((said.code, said.text()), (1, ""), "{}", said.stderr);
        for word in [listen, "[tls]", "fleetgate token create", "[auth.oidc]"] {
            assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
        }
    }
    assert!(!host.runtime().exists() || host.records().is_empty());
}
