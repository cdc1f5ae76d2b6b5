//! Every command: what it answers, what it does, what it refuses.

use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::wire::{Bench, SETTINGS, pipe, tap};

pub(crate) fn app(command: &str) -> Value {
    json!({"command": command, "commandId": command, "appBundleId": SETTINGS})
}

pub(crate) fn with(mut body: Value, more: Value) -> Value {
    let (Value::Object(body_fields), Value::Object(more)) = (&mut body, more) else {
        panic!("objects")
    };
    body_fields.extend(more);
    body
}

#[tokio::test(start_paused = true)]
async fn status_tells_uptime_state_and_both_counters() {
    let bench = Bench::of("[[phones]]\nuptime = \"1h\"\n");
    let reply = bench.exchange(json!({"command": "status"})).await;
    let expected = json!({
        "uptimeMs": 3_600_000, "state": "idle", "suppressedIssues": 0, "recordedFailures": 0
    });
    assert_eq!(reply.envelope, json!({"ok": true, "data": expected}));
}

#[tokio::test(start_paused = true)]
async fn viewport_is_the_frame_of_the_app() {
    let bench = Bench::new();
    let reply = bench.exchange(app("viewport")).await;
    let data = reply.data();
    let numbers = ["x", "y", "width", "height"].map(|key| data[key].as_f64().unwrap());
    assert_eq!(
        numbers.map(|number| number.to_string()),
        ["0", "0", "393", "852"]
    );
}

#[tokio::test(start_paused = true)]
async fn taps_land_where_the_snapshot_says() {
    let bench = Bench::new();
    bench.tap_on("com.example.settings.general").await;
    for _ in 0..3 {
        bench.tap_on("com.example.settings.general.counter").await;
    }
    assert_eq!(
        bench.phone.screen().counters["com.example.settings.general"],
        3
    );
    let effects = bench.phone.effects();
    assert_eq!(
        effects.iter().map(|effect| effect.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    assert!(effects[0].what.contains("General"), "{}", effects[0].what);
}

#[tokio::test(start_paused = true)]
async fn two_taps_are_one_gesture_and_more_land_one_by_one() {
    let bench = Bench::new();
    for (taps, least, most) in [(2, 0, 100), (4, 900, 1100)] {
        let start = Instant::now();
        let reply = bench
            .exchange(with(tap(&taps.to_string()), json!({"numberOfTaps": taps})))
            .await;
        assert_eq!(reply.data()["message"], "tapped");
        let took = start.elapsed();
        assert!(
            took >= Duration::from_millis(least),
            "{taps} taps took {took:?}"
        );
        assert!(
            took <= Duration::from_millis(most),
            "{taps} taps took {took:?}"
        );
    }
    assert_eq!(bench.phone.screen().gestures.taps, 6);
    assert_eq!((bench.effects_of("2"), bench.effects_of("4")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_long_press_takes_its_time_and_at_least_50_ms() {
    let bench = Bench::new();
    for (body, least) in [
        (json!({}), 800),
        (json!({"durationMs": 1}), 50),
        (json!({"durationMs": 2000}), 2000),
    ] {
        let start = Instant::now();
        let press = with(with(app("longPress"), json!({"x": 5, "y": 5})), body);
        assert_eq!(
            bench.exchange(press).await.data()["message"],
            "long-pressed"
        );
        let took = start.elapsed().as_millis();
        assert!(
            (least..least + 50).contains(&took),
            "{took} ms instead of {least}"
        );
    }
    assert_eq!(bench.phone.screen().gestures.long_presses, 3);
}

#[tokio::test(start_paused = true)]
async fn a_drag_takes_its_hold_its_way_and_its_rest() {
    let bench = Bench::new();
    // 300 points: in 500 ms; at the cap of 5000 points/s; at the floor of 60.
    for (body, least) in [
        (json!({"durationMs": 500}), 50 + 500 + 50),
        (
            json!({"durationMs": 500, "holdMs": 700, "settle": true}),
            700 + 500 + 300,
        ),
        (json!({"durationMs": 1, "holdMs": 1}), 50 + 60 + 50),
        (json!({"durationMs": 60_000}), 50 + 5000 + 50),
    ] {
        let start = Instant::now();
        let way = json!({"fromX": 200, "fromY": 700, "toX": 200, "toY": 400});
        let reply = bench.exchange(with(with(app("drag"), way), body)).await;
        assert_eq!(reply.data()["message"], "dragged");
        let took = start.elapsed().as_millis();
        assert!(
            (least..least + 50).contains(&took),
            "{took} ms instead of {least}"
        );
    }
    assert!(bench.phone.screen().scroll > 0.0);
}

#[tokio::test(start_paused = true)]
async fn the_keyboard_types_deletes_and_returns_where_the_focus_is() {
    let bench = Bench::new();
    bench.focus().await;
    let typed = with(app("type"), json!({"text": "Grüße"}));
    assert_eq!(bench.exchange(typed).await.envelope["ok"], true);
    assert_eq!(
        bench.exchange(app("keyboardDelete")).await.envelope["ok"],
        true
    );
    assert_eq!(
        bench.phone.screen().texts["com.example.settings.general"],
        "Grüß"
    );
    assert_eq!(
        bench.exchange(app("keyboardReturn")).await.envelope["ok"],
        true
    );
    assert!(!bench.phone.screen().focused);
    let what: Vec<_> = bench
        .phone
        .effects()
        .into_iter()
        .map(|effect| effect.what)
        .collect();
    assert_eq!(
        what[2..],
        [
            "typed 5 characters",
            "deleted a character",
            "pressed return"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_focus_the_keyboard_commands_refuse_and_two_of_them_wait_first() {
    let bench = Bench::new();
    for (command, waits) in [
        ("type", 3000),
        ("keyboardDelete", 3000),
        ("keyboardReturn", 0),
    ] {
        let start = Instant::now();
        let reply = bench
            .exchange(with(app(command), json!({"text": "x"})))
            .await;
        assert_eq!(reply.code(), "TEXT_INPUT_NOT_FOCUSED");
        let took = start.elapsed().as_millis();
        assert!(
            (waits..waits + 50).contains(&took),
            "{command} took {took} ms"
        );
    }
    assert_eq!(bench.phone.effects(), []);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_lists_the_screen_in_the_spec_s_shape() {
    let bench = Bench::new();
    let reply = bench.exchange(app("snapshot")).await;
    let data = reply.data();
    assert_eq!(
        data["quality"],
        json!({"state": "healthy", "backend": "xctest"})
    );
    let nodes = data["nodes"].as_array().unwrap();
    assert_eq!(
        (&nodes[0]["index"], &nodes[0]["depth"]),
        (&json!(0), &json!(0))
    );
    assert!(nodes[0].get("parentIndex").is_none(), "absent, not null");
    let general = nodes
        .iter()
        .find(|node| node["identifier"] == "com.example.settings.general")
        .unwrap();
    for key in ["type", "label", "rect", "enabled", "parentIndex"] {
        assert!(
            general.get(key).is_some_and(|value| !value.is_null()),
            "{key}: {general}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowded_screen_is_cut_at_1500_nodes_and_says_so() {
    let bench = Bench::of("[[phones]]\nscreen = { rows = 1000, dense = true }\n");
    let reply = bench.exchange(app("snapshot")).await;
    let data = reply.data();
    assert_eq!(data["nodes"].as_array().unwrap().len(), 1500);
    assert_eq!(data["quality"]["state"], "degraded");
    assert_eq!(data["quality"]["reasonCode"], "node_cap");
}

#[tokio::test(start_paused = true)]
async fn a_screenshot_is_a_png_in_base64() {
    let bench = Bench::new();
    let reply = bench
        .exchange(json!({"command": "screenshot", "commandId": "s"}))
        .await;
    let image = reply.data()["imageBase64"].as_str().unwrap();
    assert!(image.starts_with("iVBORw0KGgo"), "{}", &image[..20]);
    assert!(bench.journal("s").await.get("responseJson").is_none());
}

#[tokio::test(start_paused = true)]
async fn buttons_are_pressed_and_an_absent_one_is_refused() {
    let bench = Bench::new();
    let button = |name: &str| json!({"command": "button", "commandId": name, "button": name});
    let before = bench.phone.screen().volume;
    assert_eq!(
        bench.exchange(button("volumeUp")).await.data()["message"],
        "pressed volumeUp"
    );
    assert_eq!(bench.phone.screen().volume, before + 1);
    assert_eq!(
        bench.exchange(button("volumeDown")).await.data()["message"],
        "pressed volumeDown"
    );
    assert_eq!(
        bench.exchange(button("home")).await.data()["message"],
        "pressed home"
    );
    assert_eq!(bench.phone.screen().front, None);
    assert_eq!(
        bench.exchange(button("actionButton")).await.code(),
        "UNSUPPORTED_OPERATION"
    );
    assert_eq!(bench.effects_of("actionButton"), 0);
    assert_eq!(
        bench.exchange(button("power")).await.code(),
        "INVALID_REQUEST"
    );
    assert_eq!(
        bench.exchange(json!({"command": "button"})).await.code(),
        "INVALID_REQUEST"
    );

    let pro = Bench::of("[[phones]]\nscreen = { action_button = true }\n");
    assert_eq!(
        pro.exchange(button("actionButton")).await.data()["message"],
        "pressed actionButton"
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_is_answered_before_the_runner_ends() {
    let bench = Bench::new();
    let mut waiting = pipe(&bench.lab, 1).await;
    let reply = bench
        .exchange(json!({"command": "shutdown", "commandId": "bye"}))
        .await;
    assert_eq!(
        reply.envelope,
        json!({"ok": true, "data": {"message": "shutting down"}})
    );
    bench.until(|phone| phone.runner.is_none()).await;
    assert_eq!(
        crate::wire::read_all(&mut waiting).await,
        b"",
        "open connections end with it"
    );
    assert_eq!(
        crate::wire::try_pipe(&bench.lab, 1, crate::wire::PORT_8100)
            .await
            .unwrap_err(),
        3
    );
}

#[tokio::test(start_paused = true)]
async fn an_app_must_be_named() {
    let bench = Bench::new();
    for command in [
        "viewport",
        "tap",
        "longPress",
        "drag",
        "type",
        "keyboardReturn",
        "keyboardDelete",
        "snapshot",
    ] {
        for bundle in [json!({}), json!({"appBundleId": "  "})] {
            let body = with(
                json!({"command": command, "x": 1, "y": 1, "text": "x"}),
                bundle,
            );
            assert_eq!(
                bench.exchange(body).await.code(),
                "APP_BUNDLE_ID_REQUIRED",
                "{command}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn values_out_of_range_are_refused() {
    let bench = Bench::new();
    for body in [
        with(tap("t"), json!({"numberOfTaps": 0})),
        with(app("longPress"), json!({"x": 1})),
        with(app("drag"), json!({"fromX": 1, "fromY": 1, "toX": 1})),
        with(app("type"), json!({"text": ""})),
        app("type"),
    ] {
        let reply = bench.exchange(body.clone()).await;
        assert_eq!(
            (reply.status, reply.code()),
            (500, "INVALID_REQUEST"),
            "{body}"
        );
    }
    assert_eq!(bench.phone.effects(), []);
}
