//! How a gateway's own user finds it: by a record that nobody else can read, and
//! that goes with the gateway.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use fleetgate_tests::place::{Place, Server, run};
use fleetgate_tests::{binary, soon};

use super::{Guarded, files, serve};

fn mode(path: &std::path::Path) -> u32 {
    let metadata = fs::symlink_metadata(path).unwrap();
    metadata.permissions().mode() & 0o7777
}

/// What a client of this user finds that is told nothing.
async fn found(place: &Place) -> serde_json::Value {
    let mut command = binary::command();
    command.args(["instances", "-o", "json"]);
    command.env("FLEETGATE_RUNTIME_DIR", place.runtime_dir());
    let said = run(&mut command, "").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    said.json()["instances"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_its_users_only_and_goes_with_its_gateway() {
    let guarded = Guarded::start().await;
    assert_eq!(mode(&guarded.place.runtime_dir()), 0o700);
    let [file] = &files(&guarded.place)[..] else {
        panic!("one record")
    };
    assert_eq!(mode(file), 0o600);
    let record = guarded.records().pop().unwrap();
    assert_eq!(record.pid, guarded.pid());
    assert_eq!(format!("http://{}", record.address), guarded.server.url);
    guarded.ask(&guarded.user()).await.unwrap();
    // A client that is told nothing finds it, and is let in.
    let mut client = binary::command();
    client.arg("devices");
    client.env("FLEETGATE_RUNTIME_DIR", guarded.place.runtime_dir());
    let said = run(&mut client, "").await;
    assert_eq!((said.code, said.text().as_str()), (0, "no devices\n"));

    let Guarded {
        place,
        server,
        channel,
    } = guarded;
    drop(channel);
    assert_eq!(server.end().await, Some(0));
    assert_eq!(files(&place).len(), 0, "gone after SIGTERM");
    assert_eq!(found(&place).await.as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_a_gateway_that_was_killed_is_ignored_and_its_token_with_it() {
    let mut guarded = Guarded::start().await;
    let (ghost, old) = (guarded.records().pop().unwrap(), files(&guarded.place));
    let child = &mut guarded.server.running.child;
    child.start_kill().unwrap();
    soon("the end", child.wait()).await.unwrap();
    assert_eq!(files(&guarded.place), old, "nobody was there to remove it");

    let Guarded { place, .. } = guarded;
    let server = Server::start(&mut serve(&place, "")).await;
    let instances = found(&place).await;
    let instances = instances.as_array().unwrap();
    assert_eq!(instances.len(), 1, "{instances:?}");
    assert_eq!(instances[0]["server"], server.url);
    let channel = fleetgate_tests::connect(&server.url).await;
    let guarded = Guarded {
        place,
        server,
        channel,
    };
    guarded.ask(&guarded.user()).await.unwrap();
    let refused = guarded.ask(&guarded.holder(ghost.token.expose())).await;
    let refusal = fleetgate_tests::refused(refused);
    assert_eq!(refusal.reason, "CREDENTIALS_INVALID");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_cannot_publish_itself_to_its_user_alone_does_not_start() {
    let place = Place::new();
    let file = place.path("a-file");
    fs::write(&file, "").unwrap();
    let open = place.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let (private, link) = (place.path("private"), place.path("link"));
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    symlink(&private, &link).unwrap();
    for directory in [file.join("run"), file.clone(), open.clone(), link] {
        let mut serve = serve(&place, "");
        serve.env("FLEETGATE_RUNTIME_DIR", &directory);
        let said = run(&mut serve, "").await;
        assert_ne!(said.code, 0, "{}", directory.display());
        assert_eq!(said.text(), "", "it never said that it listens");
        for words in ["FLEETGATE_RUNTIME_DIR", "discovery of [auth]"] {
            assert!(said.stderr.contains(words), "{}", said.stderr);
        }
    }
    for directory in [&open, &private] {
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
    }
    assert_eq!(mode(&open), 0o777, "what is not ours is left alone");
    // It is not needed where nobody is to find it.
    let mut serve = serve(&place, "[auth]\ndiscovery = false\n");
    serve.env("FLEETGATE_RUNTIME_DIR", &open);
    assert_eq!(Server::start(&mut serve).await.end().await, Some(0));
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
}
