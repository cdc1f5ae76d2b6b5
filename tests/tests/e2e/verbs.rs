//! Every verb of the command line, as a person types them: `lab` and `serve` in
//! processes of their own, and the phone's account over the lab's control API.

use std::fs;

use fleetgate_tests::pair::{ALIAS, Pair, UDID};
use fleetgate_tests::{APP, screen};
use serde_json::{Value, json};

/// The middle of what the tree shows under an identifier.
fn middle(tree: &Value, identifier: &str) -> (f64, f64) {
    let nodes = tree["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|node| node["identifier"] == identifier);
    let rect = &node.unwrap_or_else(|| panic!("{identifier} in {tree}"))["rect"];
    let number = |key: &str| rect[key].as_f64().unwrap();
    (
        number("x") + number("width") / 2.0,
        number("y") + number("height") / 2.0,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_the_command_line_does_what_it_says() {
    let pair = Pair::start().await;
    let tree = format!("tree {ALIAS} --app {APP}");

    let listed = pair.json("devices").await;
    assert_eq!(listed["devices"][0]["udid"], UDID);
    assert_eq!(listed["devices"][0]["alias"], ALIAS);
    assert_eq!(listed["devices"][0]["state"], "attached");
    assert_eq!(listed["devices"].as_array().unwrap().len(), 2);
    let table = pair.done("devices").await.text();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.starts_with("UDID"), "{table}");

    // From the tree to a tap, by points.
    let (x, y) = middle(&pair.json(&tree).await, screen::ROW);
    let tapped = pair
        .json(&format!("tap {ALIAS} --app {APP} --x {x} --y {y}"))
        .await;
    assert_eq!(tapped["receipt"]["fate"], "completed");
    assert_eq!(pair.effects_of(&tapped["receipt"]["command_id"]).await, 1);
    assert_eq!(pair.phone().await["screen"]["page"], screen::ROW);
    assert!(pair.done(&tree).await.text().contains("Button"));

    // By fractions, on the text field; then text, also from standard input.
    let page = pair.json(&tree).await;
    let (x, y) = middle(&page, &format!("{}.name", screen::ROW));
    let (width, height) = (393.0, 852.0);
    let at = format!("--at-normalized {},{}", x / width, y / height);
    let said = pair
        .done(&format!("tap {ALIAS} --app {APP} {at} --taps 1"))
        .await;
    assert!(
        said.text().contains("fate:    completed"),
        "{}",
        said.text()
    );
    assert_eq!(pair.phone().await["screen"]["focused"], true);
    pair.done(&format!("type {ALIAS} --app {APP} one")).await;
    let stdin = ["type", ALIAS, "--app", APP, "-", "-o", "json"];
    let said = pair.server.ask_with(&stdin, "-two\n").await;
    assert_eq!(
        said.json()["receipt"]["effect"],
        "applied",
        "{}",
        said.stderr
    );
    assert_eq!(
        pair.phone().await["screen"]["texts"][screen::ROW],
        "one-two"
    );

    // A picture in a file, and on standard output.
    let file = pair.place.path("screen.png");
    let saved = pair
        .json(&format!("screenshot {ALIAS} -o {}", file.display()))
        .await;
    let png = fs::read(&file).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(saved["size_bytes"], png.len());
    assert_eq!(saved["file"], file.display().to_string());
    let piped = pair.done(&format!("screenshot {ALIAS} -o -")).await;
    assert!(piped.stdout.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(
        piped.stderr.contains("393 x") || piped.stderr.contains("786 x"),
        "{}",
        piped.stderr
    );

    history(&pair).await;
    pair.end().await;
}

/// What has been done so far, by every filter.
async fn history(pair: &Pair) {
    let all = pair.json("history").await;
    let all = all["commands"].as_array().unwrap();
    let count = |kind: &str| all.iter().filter(|row| row["kind"] == kind).count();
    let counts = ["tap", "type", "snapshot", "screenshot"].map(count);
    assert_eq!(counts, [2, 2, 3, 2]);
    // The viewport that the fractions relate to was read under the tap's turn.
    let middle = all[all.len() / 2]["create_time"].as_str().unwrap();
    for (filters, expected) in [
        ("--kind tap".to_owned(), 2),
        ("--kind tap --kind type".to_owned(), 4),
        ("--fate completed --kind screenshot".to_owned(), 2),
        ("--fate unknown --fate pending".to_owned(), 0),
        (format!("--device {ALIAS}"), all.len()),
        (format!("--device {}", UDID.to_lowercase()), all.len()),
        ("--device 00008110-00F1EE7000000002".to_owned(), 0),
        ("--since 10m".to_owned(), all.len()),
        ("--until 10m".to_owned(), 0),
        ("--limit 3".to_owned(), 3),
    ] {
        let found = pair.json(&format!("history {filters}")).await;
        assert_eq!(
            found["commands"].as_array().unwrap().len(),
            expected,
            "{filters}"
        );
        let table = pair.done(&format!("history {filters}")).await.text();
        let lines = if expected == 0 { 1 } else { expected + 1 };
        assert_eq!(table.lines().count(), lines, "{filters}: {table}");
    }
    // The times are told to the millisecond, so what was made within it may
    // fall on either side.
    let since = pair.json(&format!("history --since {middle}")).await;
    let until = pair.json(&format!("history --until {middle}")).await;
    let parts = [since, until].map(|part| part["commands"].as_array().unwrap().len());
    assert_eq!(parts[0] + parts[1], all.len(), "{parts:?}");
    assert!(parts[0] > 0 && parts[1] > 0, "{parts:?}");

    let id = all[0]["command_id"].as_str().unwrap();
    // What a history tells of a command, and more.
    let shown = pair.json(&format!("command show {id}")).await;
    for (key, value) in all[0].as_object().unwrap() {
        assert_eq!(shown[key], *value, "{key}");
    }
    let shown = pair.done(&format!("command show {id}")).await.text();
    assert!(
        shown.contains(id) && shown.contains("screenshot"),
        "{shown}"
    );
}

/// What must become of a command line.
struct Case {
    line: String,
    faults: Vec<Value>,
    exit: i32,
    code: &'static str,
    reason: &'static str,
    fate: &'static str,
    effect: &'static str,
    hint: bool,
    /// How often the phone felt it.
    times: usize,
}

fn case(line: &str, faults: Vec<Value>, exit: i32, told: [&'static str; 4], hint: bool) -> Case {
    let [code, reason, fate, effect] = told;
    Case {
        line: line.to_owned(),
        faults,
        exit,
        code,
        reason,
        fate,
        effect,
        hint,
        times: usize::from(exit == 6),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_class_of_failure_has_its_exit_code_and_tells_all_that_is_known() {
    let pair = Pair::start().await;
    let tap = format!("tap {ALIAS} --app {APP} --x 20 --y 30");
    let typed = format!("type {ALIAS} --app {APP} zebra");
    let refused = json!({ "inject": { "connect_result": { "number": 3 } } });
    let lost = vec![
        json!({ "on": "tap", "inject": "journal_evicted" }),
        json!({ "on": "tap", "inject": "reply_lost_after_execution" }),
    ];
    for case in [
        case(
            &format!("tap {ALIAS} --app two+words! --x 1 --y 2"),
            vec![],
            2,
            ["INVALID_ARGUMENT", "INVALID_ARGUMENT", "not_sent", "none"],
            false,
        ),
        case(
            &format!("tap nobody --app {APP} --x 1 --y 2"),
            vec![],
            3,
            ["NOT_FOUND", "DEVICE_UNKNOWN", "not_sent", "none"],
            true,
        ),
        case(
            &tap,
            vec![refused],
            4,
            ["UNAVAILABLE", "RUNNER_NOT_LISTENING", "not_sent", "none"],
            true,
        ),
        case(
            &typed,
            vec![],
            5,
            [
                "FAILED_PRECONDITION",
                "TEXT_INPUT_NOT_FOCUSED",
                "failed",
                "none",
            ],
            true,
        ),
        case(
            &tap,
            lost,
            6,
            ["UNKNOWN", "FATE_UNKNOWN", "unknown", "unknown"],
            true,
        ),
    ] {
        fails(&pair, &case).await;
    }
    // What is wrong with the line itself is the parser's to say.
    for line in ["hover", "tap", "history --kind hover", "screenshot anna"] {
        let said = pair.ask(line).await;
        assert_eq!((said.code, said.stdout.len()), (2, 0), "{line}");
        assert!(
            said.stderr.contains("Usage") || said.stderr.contains("error"),
            "{line}"
        );
    }
    for line in [
        "command show never",
        "history --device nobody",
        "tree nobody --app a",
    ] {
        let said = pair.ask(line).await;
        assert_eq!(
            (said.code, said.stdout.len()),
            (3, 0),
            "{line}: {}",
            said.stderr
        );
    }
    pair.end().await;
}

/// Runs a line twice, for people and for programs.
async fn fails(pair: &Pair, case: &Case) {
    let line = &case.line;
    for json in [false, true] {
        for fault in &case.faults {
            pair.plant(fault).await;
        }
        let before = pair.phone().await["effects_total"].clone();
        let said = pair
            .ask(&format!("{line}{}", if json { " -o json" } else { "" }))
            .await;
        assert_eq!(
            (said.code, said.stdout.len()),
            (case.exit, 0),
            "{line}: {}",
            said.stderr
        );
        let after = pair.phone().await["effects_total"].clone();
        let felt = after.as_u64().unwrap() - before.as_u64().unwrap();
        assert_eq!(felt, case.times as u64, "{line}");
        if json {
            let told: Value = serde_json::from_str(&said.stderr).unwrap();
            let told = &told["error"];
            let facts = ["code", "reason", "fate", "effect"].map(|key| told[key].as_str().unwrap());
            assert_eq!(
                facts,
                [case.code, case.reason, case.fate, case.effect],
                "{line}"
            );
            assert_eq!(told["hint"].is_string(), case.hint, "{told}");
            assert_eq!(told["exit_code"], case.exit);
            assert_eq!(
                pair.effects_of(&told["command_id"]).await,
                case.times,
                "{line}"
            );
        } else {
            assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
            for (key, value) in [
                ("code", case.code),
                ("reason", case.reason),
                ("fate", case.fate),
                ("effect", case.effect),
            ] {
                let told = said.stderr.lines().any(|line| {
                    let line = line.trim();
                    line.split_once(':')
                        .is_some_and(|(name, told)| (name, told.trim()) == (key, value))
                });
                assert!(told, "{key} {value} in {}", said.stderr);
            }
            assert_eq!(
                said.stderr.contains("\n  hint:"),
                case.hint,
                "{}",
                said.stderr
            );
        }
    }
}
