//! Ledgers that cannot be opened, and one that has no room left: the real
//! binary on files of every bad kind.

use std::fs;
use std::path::Path;

use fleetgate_ledger::{Ledger, LedgerConfig};
use fleetgate_simulator::{Lab, Scenario};
use fleetgate_tests::place::{Place, Said, Server, run};
use fleetgate_tests::{APP, binary, pause, soon};
use serde_json::Value;
use tokio::process::Command;

/// Starts a gateway that must refuse to: it says why, in which file, and
/// touches nothing.
async fn refuses(place: &Place, ledger: &Path, words: &[&str]) -> Said {
    let before = fs::read(ledger).unwrap();
    let said = run(&mut place.serve_on(ledger, ""), "").await;
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.text(), "", "it never listens");
    let path = ledger.display().to_string();
    for word in words.iter().chain([&path.as_str()]) {
        assert!(said.stderr.contains(word), "{word} in {}", said.stderr);
    }
    assert!(fs::read(ledger).unwrap() == before, "the file is as it was");
    said
}

/// Executes SQL by Python, which the foreign clients need anyway: nothing of
/// ours may write into a ledger but the ledger.
async fn sql(ledger: &Path, statement: &str) {
    let script = "import sqlite3, sys\n\
                  with sqlite3.connect(sys.argv[1]) as db: db.execute(sys.argv[2])\n\
                  db.close()";
    let mut python = Command::new("python3");
    python.arg("-c").arg(script).arg(ledger).arg(statement);
    let said = run(&mut python, "").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_cannot_be_used_is_named_and_left_alone() {
    let place = Place::new();
    let config = |name: &str| LedgerConfig::new(place.path(name));

    let newer = place.path("newer.db");
    Ledger::open(config("newer.db"))
        .await
        .unwrap()
        .close()
        .await;
    sql(
        &newer,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9000, 'from the future', TRUE, x'00', 0)",
    )
    .await;
    refuses(&place, &newer, &["schema 9000", "newer gateway"]).await;

    let corrupt = place.path("corrupt.db");
    fs::write(&corrupt, "no database, for sure. ".repeat(400)).unwrap();
    refuses(&place, &corrupt, &["damaged"]).await;

    let foreign = place.path("foreign.db");
    sql(&foreign, "CREATE TABLE songs (title TEXT)").await;
    refuses(&place, &foreign, &["another program"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_never_share_a_ledger() {
    let place = Place::new();
    let ledger = place.path("ledger.db");
    let first = place.serve().await;
    let said = run(&mut place.serve_on(&ledger, ""), "").await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.stderr.contains("open in another gateway"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("ledger.db"), "{}", said.stderr);
    assert_eq!(first.ask(&["devices"]).await.code, 0, "the first goes on");
    assert_eq!(first.end().await, Some(0));
    let second = place.serve().await;
    assert_eq!(second.end().await, Some(0));
}

/// A gateway in a mount namespace of its own, whose ledger lives in a file
/// system of 2 MB; only whoever may not make namespaces cannot run this.
fn serve_in_two_megabytes(place: &Place) -> Command {
    let disk = place.path("disk");
    fs::create_dir(&disk).unwrap();
    let serve = place.serve_on(&disk.join("ledger.db"), "");
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs -o size=2m tmpfs \"$1\" && shift && exec \"$@\"")
        .arg("sh")
        .arg(&disk)
        .arg(binary::path())
        .args(serve.as_std().get_args())
        .env("FLEETGATE_SERVER__LISTEN", "127.0.0.1:0")
        .kill_on_drop(true);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_mutations_are_refused_and_all_else_is_served() {
    let place = Place::new();
    let lab = Lab::start(Scenario::fleet(1).scaled(0.05));
    lab.serve_unix(place.usbmuxd()).await.unwrap();
    let phone = lab.phones().remove(0);
    let udid = phone.udid().to_string();
    let server = Server::start(&mut serve_in_two_megabytes(&place)).await;
    let tap = [
        "tap", &udid, "--app", APP, "--x", "20", "--y", "30", "-o", "json",
    ];
    soon("the phone", async {
        while server
            .ask(&["devices"])
            .await
            .text()
            .matches("attached")
            .count()
            == 0
        {
            pause().await;
        }
    })
    .await;
    let tapped = server.ask(&tap).await;
    assert_eq!(tapped.code, 0, "{}", tapped.stderr);

    // The disk as the gateway sees it.
    let pid = server.running.child.id().unwrap();
    let disk = place.path("disk");
    let disk = Path::new("/proc")
        .join(pid.to_string())
        .join("root")
        .join(disk.strip_prefix("/").unwrap());
    assert!(
        disk.join("ledger.db").exists(),
        "the ledger is on the small disk"
    );
    let filler = disk.join("filler");
    let full = fs::write(&filler, vec![0; 4 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);

    // What room the ledger has reserved for itself is used up before.
    let before = phone.effects().len();
    let mut done = 0;
    let refused = loop {
        let said = server.ask(&tap).await;
        if said.code != 0 {
            break said;
        }
        done += 1;
        assert!(done < 500, "the room should have come to an end");
    };
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let told: Value = serde_json::from_str(&refused.stderr).unwrap();
    let told = &told["error"];
    assert_eq!(told["code"], "UNAVAILABLE", "{told}");
    assert_eq!(told["reason"], "LEDGER_UNAVAILABLE", "{told}");
    assert_eq!(
        (&told["fate"], &told["effect"]),
        (&"not_sent".into(), &"none".into())
    );
    assert!(told["retry_after_ms"].is_number(), "{told}");
    assert_eq!(phone.effects().len(), before + done, "nothing was sent");

    for served in [
        &["devices"][..],
        &["tree", &udid, "--app", APP],
        &["history"],
        &["screenshot", &udid, "-o", "-"],
    ] {
        let said = server.ask(served).await;
        assert_eq!(said.code, 0, "{served:?}: {}", said.stderr);
    }

    fs::remove_file(&filler).unwrap();
    let tapped = server.ask(&tap).await;
    assert_eq!(tapped.code, 0, "it recovers by itself: {}", tapped.stderr);
    assert_eq!(phone.effects().len(), before + done + 1);
    let id = tapped.json()["receipt"]["command_id"].clone();
    let shown = server
        .ask(&["command", "show", id.as_str().unwrap(), "-o", "json"])
        .await;
    assert_eq!(shown.json()["fate"], "completed");
    assert_eq!(server.end().await, Some(0));
    lab.shutdown().await;
}
