//! Leases at the command line: who has a phone, who waits, and who does not
//! drive it.

use fleetgate_identity::Role;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::bench::{APP, Bench, DEVICE, Said, fleetgate};
use crate::processes::line_with;

/// What the binary ends with for want of a lease.
const NO_LEASE: i32 = 9;

/// A tap that goes where it does no harm.
const TAP: [&str; 8] = ["tap", DEVICE, "--app", APP, "--x", "1", "--y", "1"];

/// Somebody at the command line.
struct Caller<'a> {
    bench: &'a Bench,
    token: String,
}

impl<'a> Caller<'a> {
    async fn new(bench: &'a Bench, name: &str, role: Role) -> Self {
        let token = bench.token_of(name, role).await;
        Self { bench, token }
    }

    async fn ask(&self, args: &[&str]) -> Said {
        let who = ["--token-file", &self.token, "--output", "json"];
        self.bench.ask(&[&who[..], args].concat()).await
    }

    /// Asks for what must be done.
    async fn done(&self, args: &[&str]) -> Value {
        self.ask(args).await.json()
    }
}

fn id(lease: &Value) -> &str {
    lease["lease_id"].as_str().unwrap()
}

fn reason(said: &Said) -> String {
    let error: Value = serde_json::from_str(&said.stderr).unwrap();
    error["error"]["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn whoever_has_the_lease_drives_the_phone_and_nobody_else_does() {
    let bench = Bench::start().await;
    let ci = Caller::new(&bench, "ci", Role::Operator).await;
    let eve = Caller::new(&bench, "eve", Role::Operator).await;
    let lease = ci
        .done(&[
            "lease",
            "create",
            "--device",
            DEVICE,
            "--ttl",
            "5m",
            "--context",
            "build=7",
        ])
        .await;
    assert_eq!(lease["state"], "active");
    assert_eq!(lease["owner"], "token:ci");
    assert_eq!(lease["devices"][0], bench.phone().udid().to_string());
    assert_eq!(lease["context"]["build"], "7");
    let epoch = lease["epoch"].to_string();

    for (who, under) in [
        (&ci, &[][..]),
        (&eve, &[]),
        (&eve, &["--lease", id(&lease), "--epoch", &epoch]),
    ] {
        let refused = who.ask(&[&TAP[..], under].concat()).await;
        assert_eq!(refused.code, NO_LEASE, "{}", refused.stderr);
    }
    let stale = ["--lease", id(&lease), "--epoch", "999999"];
    let refused = ci.ask(&[&TAP[..], &stale].concat()).await;
    assert_eq!(reason(&refused), "LEASE_EPOCH_STALE");
    let under = ["--lease", id(&lease), "--epoch", &epoch];
    let tapped = ci.done(&[&TAP[..], &under].concat()).await;
    assert_eq!(tapped["receipt"]["fate"], "completed");
    // Whoever only looks needs none.
    assert_eq!(eve.ask(&["tree", DEVICE, "--app", APP]).await.code, 0);

    let described = eve.done(&["describe", DEVICE]).await;
    assert_eq!(described["lease"]["lease_id"], lease["lease_id"]);
    let listed = eve.done(&["lease", "ls"]).await;
    assert_eq!(id(&listed["leases"][0]), id(&lease));
    let renewed = ci.done(&["lease", "renew", id(&lease)]).await;
    assert_eq!(renewed["epoch"], lease["epoch"]);
    assert_eq!(
        reason(&eve.ask(&["lease", "release", id(&lease)]).await),
        "LEASE_NOT_OWNER"
    );
    ci.done(&["lease", "release", id(&lease)]).await;
    let ended = loop {
        let shown = ci.done(&["lease", "show", id(&lease)]).await;
        if shown["state"] != "draining" {
            break shown;
        }
    };
    assert_eq!(
        (&ended["state"], &ended["end_reason"]),
        (&"released".into(), &"RELEASED".into())
    );
    // Again is the same as once.
    ci.done(&["lease", "release", id(&lease)]).await;
    let late = ci.ask(&[&TAP[..], &under].concat()).await;
    assert_eq!(
        (late.code, reason(&late)),
        (NO_LEASE, "LEASE_RELEASED".to_owned())
    );
    assert_eq!(eve.ask(&TAP).await.code, 0, "a free phone is anybody's");
    assert_eq!(
        ci.done(&["lease", "ls"]).await["leases"],
        Value::Array(Vec::new())
    );
    let all = ci
        .done(&["lease", "ls", "--all", "--owner", "token:ci"])
        .await;
    assert_eq!(all["leases"].as_array().unwrap().len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_wish_waits_its_turn_and_says_why() {
    let bench = Bench::start().await;
    let ci = Caller::new(&bench, "ci", Role::Operator).await;
    let ada = Caller::new(&bench, "ada", Role::Admin).await;
    let held = ci
        .done(&["lease", "create", "--device", DEVICE, "--ttl", "10m"])
        .await;

    let mut waiting = fleetgate()
        .args(["--server", &bench.server, "--token-file", &ada.token])
        .args([
            "lease", "create", "--device", DEVICE, "--wait", "-o", "json",
        ])
        .spawn()
        .unwrap();
    let mut notes = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let progress = loop {
        let line = notes.next_line().await.unwrap().unwrap();
        if line.contains("place 1 in line: ") {
            break line;
        }
    };
    assert!(progress.contains("1 leased"), "{progress}");
    let queued = ada.done(&["lease", "ls", "--state", "queued"]).await;
    let queued = &queued["leases"][0];
    assert_eq!(queued["queue_position"], 1);
    let explained = ci.done(&["lease", "explain", id(queued)]).await;
    assert_eq!(explained["devices"][0]["obstacle"], "leased");
    assert_eq!(explained["devices"][0]["lease_id"], held["lease_id"]);
    let text = bench.ask(&["lease", "explain", id(queued)]).await;
    assert!(text.text().contains("OBSTACLE"), "{}", text.text());

    let revoked = ci
        .ask(&["lease", "revoke", id(&held), "--reason", "mine"])
        .await;
    assert_eq!(reason(&revoked), "ROLE_TOO_LOW");
    ada.done(&["lease", "revoke", id(&held), "--reason", "rack moves"])
        .await;
    let output = waiting.wait_with_output().await.unwrap();
    let granted: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&granted["state"], &granted["owner"]),
        (&"active".into(), &"token:ada".into())
    );
    assert!(granted["epoch"].as_u64() > held["epoch"].as_u64());
    let lost = ci.done(&["lease", "show", id(&held)]).await;
    assert_eq!(
        (&lost["end_detail"], &lost["ended_by"]),
        (&"rack moves".into(), &"token:ada".into())
    );
    bench.end().await;
}

#[tokio::test]
async fn a_wish_that_cannot_come_true_ends_with_its_reason() {
    let bench = Bench::start().await;
    let none = ["lease", "create", "--selector", "rack=none", "--wait"];
    let said = bench.ask(&none).await;
    assert_eq!(said.code, NO_LEASE, "{}", said.stderr);
    assert!(said.stderr.contains("UNSATISFIABLE"), "{}", said.stderr);

    bench
        .ask(&["lease", "create", "--count", "2", "-o", "json"])
        .await
        .json();
    let now_or_never = ["lease", "create", "--queue-timeout", "0s", "--wait"];
    let said = bench.ask(&now_or_never).await;
    assert_eq!(said.code, NO_LEASE, "{}", said.stderr);
    assert!(said.stderr.contains("QUEUE_TIMEOUT"), "{}", said.stderr);

    // Without a wait it is told as well, and ends the same way.
    for (wish, state) in [
        (["--selector", "rack=none"], "unsatisfiable"),
        (["--queue-timeout", "0s"], "expired"),
    ] {
        let create = ["lease", "create", "-o", "json"];
        let said = bench.ask(&[&create[..], &wish].concat()).await;
        assert_eq!(said.code, NO_LEASE, "{}", said.stderr);
        let told: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(told["state"], state);
    }

    let unknown = bench.ask(&["lease", "show", "nobodys"]).await;
    assert_eq!(unknown.code, 3, "{}", unknown.stderr);
    bench.end().await;
}

#[tokio::test]
async fn a_wait_that_takes_too_long_takes_the_wish_back() {
    let bench = Bench::start().await;
    let create = ["lease", "create", "--device", DEVICE, "-o", "json"];
    bench.ask(&[&create[..], &["--ttl", "10m"]].concat()).await;
    let limited = ["--wait", "--timeout", "1s"];
    let late = bench.ask(&[&create[..], &limited].concat()).await;
    assert_eq!((late.code, late.text()), (4, ""), "{}", late.stderr);
    assert!(
        late.stderr.contains("DEADLINE_EXCEEDED") && late.stderr.contains("not granted in time"),
        "{}",
        late.stderr
    );
    let left = ["lease", "ls", "--state", "queued", "-o", "json"];
    let left = bench.ask(&left).await.json();
    assert_eq!(left["leases"], Value::Array(Vec::new()));
    bench.end().await;
}

#[tokio::test]
async fn a_lease_is_watched_to_its_end() {
    let bench = Bench::start().await;
    let lease = bench
        .ask(&["lease", "create", "--device", DEVICE, "-o", "json"])
        .await
        .json();
    let mut watcher = fleetgate()
        .args([
            "--server",
            &bench.server,
            "lease",
            "watch",
            id(&lease),
            "-o",
            "json",
        ])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    line_with(&mut lines, "\"snapshot\"").await;
    bench.ask(&["lease", "renew", id(&lease)]).await;
    line_with(&mut lines, "\"updated\"").await;
    bench.ask(&["lease", "release", id(&lease)]).await;
    line_with(&mut lines, "\"released\"").await;
    assert_eq!(watcher.wait().await.unwrap().code(), Some(0));

    let text = bench.ask(&["lease", "watch", id(&lease)]).await;
    assert_eq!(
        text.code, 0,
        "one that has ended is told of once: {}",
        text.stderr
    );
    assert!(text.text().contains("RELEASED"), "{}", text.text());
    bench.end().await;
}
