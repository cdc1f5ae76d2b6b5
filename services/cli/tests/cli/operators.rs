//! What operators ask of a fleet, and what becomes of it.

use std::collections::HashSet;

use fleetgate_identity::Role;
use fleetgate_proto::v1::CordonDeviceRequest;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use serde_json::{Value, json};
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Endpoint;

use crate::bench::{APP, Bench, DENIED, DEVICE, STATIC};

const TAP: [&str; 8] = ["tap", DEVICE, "--app", APP, "--x", "200", "--y", "20"];

/// A launch of the runner that every simulated phone has already; with a file
/// beside it that says how it fails, it fails.
fn launch(directory: &std::path::Path) -> String {
    let how = directory.join("how").display().to_string();
    let script = format!(
        "test -e {how} && exec sh {how}; echo ARGENT_RUNNER_LISTENING port=8100; exec sleep 600",
    );
    format!(
        "[[launch]]\nname = \"script\"\nlabels = {{}}\nargv = [\"sh\", \"-c\", {script:?}]\n\
         start_timeout = \"30s\"\n[health]\nbackoff_initial = \"30s\"\n"
    )
}

async fn describe(bench: &Bench) -> Value {
    bench.ask(&["describe", DEVICE, "-o", "json"]).await.json()
}

#[tokio::test]
async fn a_phone_gets_an_alias_and_labels_and_loses_them() {
    let bench = Bench::start().await;
    let listed = bench.ask(&["devices", "-o", "json"]).await.json();
    let udid = listed["devices"][1]["udid"].as_str().unwrap().to_owned();
    let set = async |more: &[&str]| {
        let args = [&["device", "set", udid.as_str()], more].concat();
        bench.ask(&args).await
    };
    let named = set(&[
        "--alias", "bert", "--label", "pool=ci", "--label", "rack=a", "-o", "json",
    ])
    .await
    .json();
    assert_eq!(
        (&named["alias"], &named["labels"]),
        (&json!("bert"), &json!({ "pool": "ci", "rack": "a" }))
    );
    let selected = ["devices", "--label", "pool=ci", "-o", "json"];
    let selected = bench.ask(&selected).await.json();
    assert_eq!(selected["devices"].as_array().unwrap().len(), 1);
    assert_eq!(selected["devices"][0]["udid"], udid);
    let none = bench.ask(&["devices", "--label", "pool=lab"]).await;
    assert_eq!(none.text(), "no devices\n");

    let taken = set(&["--alias", DEVICE]).await;
    assert_eq!(taken.code, 1, "{}", taken.stderr);
    assert!(taken.stderr.contains("ALREADY_EXISTS"), "{}", taken.stderr);
    for misuse in [
        &["--label", "a=1", "--label", "a=2"][..],
        &["--label", "a=1", "--remove-label", "a"],
        &["--alias", ""],
    ] {
        assert_eq!(set(misuse).await.code, 2, "{misuse:?}");
    }
    let bare = set(&["--no-alias", "--remove-label", "rack", "-o", "json"])
        .await
        .json();
    assert_eq!(
        (&bare["alias"], &bare["labels"]),
        (&Value::Null, &json!({ "pool": "ci" }))
    );
    bench.end().await;
}

#[tokio::test]
async fn a_cordoned_phone_is_looked_at_and_not_touched() {
    let bench = Bench::start().await;
    let args = [
        "cordon",
        DEVICE,
        "--reason",
        "new battery",
        "--for",
        "2h",
        "-o",
        "json",
    ];
    let cordoned = bench.ask(&args).await.json();
    assert_eq!(cordoned["cordon"]["reason"], "new battery");
    assert!(cordoned["cordon"]["until"].is_string());
    let table = bench.ask(&["devices"]).await;
    assert!(table.text().contains("cordoned"), "{}", table.text());

    let refused = bench.ask(&TAP).await;
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("DEVICE_CORDONED"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("fate:    not_sent"),
        "{}",
        refused.stderr
    );
    assert_eq!(bench.phone().effects().len(), 0);
    assert_eq!(bench.ask(&["tree", DEVICE, "--app", APP]).await.code, 0);

    let open = bench.ask(&["uncordon", DEVICE, "-o", "json"]).await.json();
    assert_eq!(open["cordon"], Value::Null);
    assert_eq!(bench.ask(&TAP).await.code, 0);
    bench.end().await;
}

#[tokio::test]
async fn who_did_what_is_told_to_operators_and_so_is_what_was_denied() {
    let bench = Bench::start().await;
    let (ann, eve) = tokio::join!(
        bench.token_of("ann", Role::Operator),
        bench.token_of("eve", Role::Viewer),
    );
    let by = async |token: &str, args: &[&str]| {
        let who = ["--token-file", token];
        bench.ask(&[&who[..], args].concat()).await
    };
    by(&ann, &["cordon", DEVICE, "--reason", "new battery"]).await;
    by(&ann, &["uncordon", DEVICE]).await;
    let refused = by(&eve, &["operations", "-o", "json"]).await;
    assert_eq!(refused.code, DENIED, "{}", refused.stderr);
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(error["error"]["reason"], "ROLE_TOO_LOW");

    // It is on record a moment after it is told.
    let ask = ["operations", "--who", "token:eve", "--what", "deny-call"];
    let denied = loop {
        let listed = by(&ann, &[&ask[..], &["-o", "json"]].concat()).await;
        let listed = listed.json()["operations"].as_array().unwrap().clone();
        if !listed.is_empty() {
            break listed;
        }
    };
    assert_eq!(denied.len(), 1, "{denied:?}");
    let path = "/fleetgate.v1.LedgerService/ListOperations";
    assert_eq!(denied[0]["target"], path);
    assert_eq!(denied[0]["detail"]["reason"], "ROLE_TOO_LOW");
    let table = by(&ann, &ask).await;
    for told in ["WHO", "token:eve", "deny-call", path, "reason=ROLE_TOO_LOW"] {
        assert!(table.text().contains(told), "{told}: {}", table.text());
    }

    let udid = bench.phone().udid().to_string();
    let whats = async |filters: &[&str]| {
        let args = [&["operations", "-o", "json"], filters].concat();
        let listed = by(&ann, &args).await.json();
        let listed = listed["operations"].as_array().unwrap().iter();
        listed
            .map(|operation| operation["what"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let both = ["uncordon-device", "cordon-device"];
    assert_eq!(whats(&["--target", &udid, "--since", "1h"]).await, both);
    assert_eq!(whats(&["--target", &udid, "--limit", "1"]).await, both[..1]);
    let none = by(&ann, &["operations", "--what", "recycle-runner"]).await;
    assert_eq!(none.text(), "no operations\n");
    bench.end().await;
}

#[tokio::test]
async fn more_operations_than_a_page_holds_come_whole_and_each_once() {
    const OPERATIONS: usize = 1_005;
    let more = "[limits]\ncalls_per_second = 10000\ncall_burst = 10000\n";
    let bench = Bench::configured(&format!("{STATIC}{more}")).await;
    let token = bench.token_of("ann", Role::Operator).await;
    let token = std::fs::read_to_string(token).unwrap();
    let bearer: AsciiMetadataValue = format!("Bearer {token}").parse().unwrap();
    let channel = Endpoint::from_shared(bench.server.clone()).unwrap();
    let mut fleet = FleetServiceClient::with_interceptor(
        channel.connect().await.unwrap(),
        move |mut request: Request<()>| {
            request
                .metadata_mut()
                .insert("authorization", bearer.clone());
            Ok(request)
        },
    );
    for n in 0..OPERATIONS {
        let request = CordonDeviceRequest {
            device: DEVICE.to_owned(),
            reason: format!("for the {n}th time"),
            until: None,
        };
        fleet.cordon_device(request).await.unwrap();
    }
    let list = async |limit: &str| {
        let filters = ["--what", "cordon-device", "--limit", limit, "-o", "json"];
        let args = [&["operations"][..], &filters].concat();
        let listed = bench.ask(&args).await.json();
        listed["operations"].as_array().unwrap().clone()
    };
    let operations = list("5000").await;
    let reasons: HashSet<_> = operations
        .iter()
        .map(|operation| operation["detail"]["reason"].as_str())
        .collect();
    assert_eq!((operations.len(), reasons.len()), (OPERATIONS, OPERATIONS));
    assert_eq!(list("1001").await, operations[..1_001]);
    bench.end().await;
}

#[tokio::test]
async fn a_phone_is_described_with_its_history_of_states() {
    let bench = Bench::start().await;
    let told = describe(&bench).await;
    assert_eq!(told["udid"], bench.phone().udid().to_string());
    assert_eq!(told["runner"]["launch_kind"], "static");
    let history = told["transitions"].as_array().unwrap();
    assert_eq!(
        (&history[0]["to"], &history[0]["reason"]),
        (&json!("ready"), &json!("RUNNER_READY"))
    );
    assert!(history.len() >= 2, "{history:?}");
    for (limit, expected) in [("1", 1), ("0", 0)] {
        let args = ["describe", DEVICE, "--history", limit, "-o", "json"];
        let some = bench.ask(&args).await.json();
        assert_eq!(some["transitions"].as_array().unwrap().len(), expected);
    }
    let text = bench.ask(&["describe", DEVICE]).await;
    for told in ["state:", "port:", "history", "RUNNER_READY", "PLUGGED"] {
        assert!(text.text().contains(told), "{told}: {}", text.text());
    }
    assert_eq!(bench.ask(&["describe", "nobody"]).await.code, 3);
    bench.end().await;
}

#[tokio::test]
async fn a_runner_that_the_gateway_did_not_launch_is_not_recycled() {
    let bench = Bench::start().await;
    for args in [&["recycle", DEVICE][..], &["recycle", DEVICE, "--wait"]] {
        let said = bench.ask(args).await;
        assert_eq!(said.code, 1, "{}", said.stderr);
        assert!(
            said.stderr.contains("FAILED_PRECONDITION"),
            "{}",
            said.stderr
        );
    }
    bench.end().await;
}

#[tokio::test]
async fn a_recycled_runner_is_waited_for_until_another_is_ready() {
    let scripts = tempfile::tempdir().unwrap();
    let bench = Bench::configured(&launch(scripts.path())).await;
    let before = describe(&bench).await;
    let args = [
        "recycle",
        DEVICE,
        "--reason",
        "new build",
        "--wait",
        "--timeout",
        "60s",
        "-o",
        "json",
    ];
    let said = bench.ask(&args).await;
    let after = said.json();
    assert_eq!(after["state"], "ready");
    assert_ne!(after["runner"]["pid"], before["runner"]["pid"]);
    assert_eq!(
        after["runner"]["launches"].as_u64(),
        before["runner"]["launches"]
            .as_u64()
            .map(|before| before + 1)
    );
    assert!(said.stderr.contains("launching"), "{}", said.stderr);
    bench.end().await;
}

#[tokio::test]
async fn a_recycled_runner_that_does_not_come_up_ends_with_5_and_the_tail_of_its_log() {
    let scripts = tempfile::tempdir().unwrap();
    let bench = Bench::configured(&launch(scripts.path())).await;
    let how = scripts.path().join("how");
    std::fs::write(&how, "echo Developer Mode is off; exit 65\n").unwrap();
    let said = bench
        .ask(&["recycle", DEVICE, "--wait", "--timeout", "60s"])
        .await;
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert!(
        said.stderr.contains("EXITED") && said.stderr.contains("  Developer Mode is off"),
        "{}",
        said.stderr
    );

    let examined = bench.ask(&["doctor", "-o", "json"]).await;
    assert_eq!(examined.code, 7, "{}", examined.stderr);
    let found: Value = serde_json::from_slice(&examined.stdout).unwrap();
    let found = found["findings"].as_array().unwrap();
    let finding = found
        .iter()
        .find(|finding| finding["code"] == "RUNNER_NOT_STARTED")
        .unwrap();
    let log = finding["log"].as_array().unwrap();
    assert!(log.contains(&json!("Developer Mode is off")), "{log:?}");
    bench.end().await;
}

#[tokio::test]
async fn a_wait_that_is_too_long_says_that_the_recycling_goes_on() {
    let scripts = tempfile::tempdir().unwrap();
    let bench = Bench::configured(&launch(scripts.path())).await;
    std::fs::write(scripts.path().join("how"), "exec sleep 600\n").unwrap();
    let said = bench
        .ask(&["recycle", DEVICE, "--wait", "--timeout", "2s"])
        .await;
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("goes on"), "{}", said.stderr);
    bench.end().await;
}
