//! What a failure tells, and the exit code that it ends with.

use serde_json::{Value, json};

use crate::bench::{APP, Bench, DEVICE, Said, run};

const TAP: [&str; 8] = ["tap", DEVICE, "--app", APP, "--x", "200", "--y", "20"];

/// The command that an error names to look its fate up.
fn look_up(said: &Said) -> Vec<&str> {
    let line = said
        .stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("look up: fleetgate "));
    line.unwrap_or_else(|| panic!("no look-up in {}", said.stderr))
        .split(' ')
        .collect()
}

#[tokio::test]
async fn a_request_that_makes_no_sense_ends_with_2() {
    assert_eq!(run(["hover"], "").await.code, 2);
    assert_eq!(run(["type", DEVICE, "--app", APP, "-"], "\n").await.code, 2);
    let bench = Bench::start().await;
    let said = bench
        .ask(&["tap", DEVICE, "--app", "two words", "--x", "1", "--y", "1"])
        .await;
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("field:   app_bundle_id"),
        "{}",
        said.stderr
    );
    assert_eq!(bench.phone().effects().len(), 0);
    bench.end().await;
}

#[tokio::test]
async fn what_does_not_exist_ends_with_3() {
    let bench = Bench::start().await;
    for args in [
        &["tree", "nobody", "--app", APP][..],
        &["command", "show", "never-sent"],
        &["screenshot", "nobody", "-o", "-"],
    ] {
        let said = bench.ask(args).await;
        assert_eq!(said.code, 3, "{args:?}: {}", said.stderr);
        assert_eq!(said.stdout, b"");
        assert!(
            said.stderr.contains("code:    NOT_FOUND"),
            "{}",
            said.stderr
        );
    }
    bench.end().await;
}

#[tokio::test]
async fn a_gateway_that_is_not_there_ends_with_4() {
    // Bound and not listening: nothing else can take the port meanwhile.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let server = socket.local_addr().unwrap().to_string();
    let said = run(["--server", &server].iter().chain(&TAP), "").await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(
        said.stderr.contains("GATEWAY_UNREACHABLE"),
        "{}",
        said.stderr
    );
}

#[tokio::test]
async fn an_unplugged_phone_ends_with_4_and_felt_nothing() {
    let bench = Bench::start().await;
    bench.phone().detach();
    let said = loop {
        let said = bench.ask(&TAP).await;
        // The gateway hears of the plug a moment later.
        if said.code != 0 {
            break said;
        }
    };
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(said.stderr.contains("fate:    not_sent"), "{}", said.stderr);
    assert!(said.stderr.contains("effect:  none"), "{}", said.stderr);
    bench.end().await;
}

#[tokio::test]
async fn a_verdict_of_the_phone_ends_with_5() {
    let bench = Bench::start().await;
    let said = bench
        .ask(&["type", DEVICE, "--app", APP, "text", "-o", "json"])
        .await;
    assert_eq!(said.code, 5, "{}", said.stderr);
    let told: Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!(told["error"]["code"], "FAILED_PRECONDITION");
    assert_eq!(told["error"]["reason"], "TEXT_INPUT_NOT_FOCUSED");
    assert_eq!(told["error"]["fate"], "failed");
    assert_eq!(told["error"]["effect"], "none");
    assert_eq!(told["error"]["exit_code"], 5);
    bench.end().await;
}

#[tokio::test]
async fn an_unknown_fate_ends_with_6_and_says_how_to_look_it_up() {
    let bench = Bench::start().await;
    bench.plant(json!({ "on": "tap", "inject": "journal_evicted" }));
    bench.plant(json!({ "on": "tap", "inject": "reply_lost_after_execution" }));
    let said = bench.ask(&TAP).await;
    assert_eq!(said.code, 6, "{}", said.stderr);
    assert!(
        said.stderr.contains("reason:  FATE_UNKNOWN"),
        "{}",
        said.stderr
    );

    let looked_up = run(look_up(&said).into_iter().chain(["-o", "json"]), "")
        .await
        .json();
    assert_eq!(looked_up["fate"], "unknown");
    assert_eq!(
        bench
            .phone()
            .effects_of(&looked_up["command_id"].as_str().unwrap().parse().unwrap()),
        1
    );
    bench.end().await;
}

#[tokio::test]
async fn a_deadline_that_passes_ends_with_6_and_the_command_goes_on() {
    let bench = Bench::start().await;
    bench.plant(json!({ "on": "tap", "inject": { "slow": { "by": "10s" } } }));
    let said = bench
        .ask(&[&["--timeout", "400ms"][..], &TAP].concat())
        .await;
    assert_eq!(said.code, 6, "{}", said.stderr);
    assert!(
        said.stderr.contains("code:    DEADLINE_EXCEEDED"),
        "{}",
        said.stderr
    );

    bench
        .phone()
        .wait_until(|phone| phone.effects_total == 1)
        .await;
    let args = look_up(&said);
    loop {
        let fate = run(args.iter().copied().chain(["-o", "json"]), "")
            .await
            .json()["fate"]
            .clone();
        // The phone acts a moment before the fate is on record.
        if fate != "pending" {
            assert_eq!(fate, "completed");
            break;
        }
    }
    bench.end().await;
}

#[tokio::test]
async fn a_deadline_that_passes_in_the_queue_ends_with_4_and_the_gateways_word_that_nothing_was_sent()
 {
    let bench = Bench::start().await;
    bench.plant(json!({ "on": "tap", "inject": { "slow": { "by": "20s" } } }));
    let (said, _) = tokio::join!(
        async {
            bench.phone().wait_until(|phone| phone.in_flight == 1).await;
            let waiting = [&["--timeout", "300ms"][..], &TAP].concat();
            bench.ask(&waiting).await
        },
        bench.ask(&TAP)
    );
    assert_eq!(said.code, 4, "{}", said.stderr);
    for told in ["DEADLINE_IN_QUEUE", "fate:    not_sent", "effect:  none"] {
        assert!(said.stderr.contains(told), "{told}: {}", said.stderr);
    }
    assert_eq!(bench.phone().effects().len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_picture_that_fails_leaves_the_old_file_alone() {
    let bench = Bench::start().await;
    let path = bench.directory.path().join("screen.png");
    std::fs::write(&path, "old").unwrap();
    let error = json!({ "error": { "code": "COMMAND_FAILED", "message": "no picture" } });
    bench.plant(json!({ "on": "screenshot", "inject": error }));
    let said = bench
        .ask(&["screenshot", DEVICE, "-o", path.to_str().unwrap()])
        .await;
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    bench.end().await;
}

#[tokio::test]
async fn a_read_whose_deadline_passes_ends_with_4_for_it_can_be_asked_again() {
    let bench = Bench::start().await;
    bench.plant(json!({ "on": "screenshot", "inject": { "slow": { "by": "10s" } } }));
    let said = bench
        .ask(&["--timeout", "200ms", "screenshot", DEVICE, "-o", "-"])
        .await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(
        said.stderr.contains("code:    DEADLINE_EXCEEDED"),
        "{}",
        said.stderr
    );
    assert_eq!(look_up(&said)[2..4], ["command", "show"]);
    assert_eq!(said.stdout, b"");
    bench.end().await;
}
