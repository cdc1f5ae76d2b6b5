//! The control API, asked with requests written by hand.

use std::net::SocketAddr;

use fleetgate_simulator::{Lab, Scenario};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::oddities::list;
use crate::wire::{PORT_8100, ask, plist, read_all, tap, try_pipe};

mod launching;

const PHONE: &str = "/phones/0000811000f1ee7000000001";

struct Api {
    lab: Lab,
    address: SocketAddr,
}

impl Api {
    async fn new() -> Self {
        let lab = Lab::start(Scenario::fleet(2));
        let address = lab
            .serve_control("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        Self { lab, address }
    }

    async fn raw(&self, request: String) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.raw(format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        ))
        .await
    }

    async fn done(&self, method: &str, path: &str, body: Value) {
        assert_eq!(
            self.ask(method, path, body).await,
            (204, Value::Null),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn phones_are_listed_and_shown_under_any_spelling() {
    let api = Api::new().await;
    let (status, phones) = api.ask("GET", "/phones", Value::Null).await;
    assert_eq!((status, phones.as_array().unwrap().len()), (200, 2));
    assert_eq!(phones[0]["udid"], "00008110-00F1EE7000000001");
    assert_eq!(phones[0]["runner"]["state"], "idle");
    let (status, phone) = api.ask("GET", PHONE, Value::Null).await;
    assert_eq!(
        (status, &phone["plugged"], &phone["effects"]),
        (200, &json!(["usb"]), &json!([]))
    );
    assert_eq!(phone["screen"]["front"], "com.example.settings");
    let (_, load) = api.ask("GET", "/lab", Value::Null).await;
    assert_eq!(load, json!({"in_flight": 0, "max_in_flight": 0}));
}

#[tokio::test]
async fn faults_are_queued_shown_and_cleared() {
    let api = Api::new().await;
    let faults = format!("{PHONE}/faults");
    let fault = json!({"on": "tap", "inject": {"slow": {"by": "2s"}}});
    api.done("POST", &faults, fault).await;
    let (_, phone) = api.ask("GET", PHONE, Value::Null).await;
    let queued = json!([{"on": "tap", "times": 1, "skip": 0, "inject": {"slow": {"by": "2s"}}}]);
    assert_eq!(phone["faults"], queued);
    api.done("DELETE", &faults, Value::Null).await;
    let (_, phone) = api.ask("GET", PHONE, Value::Null).await;
    assert_eq!(phone["faults"], json!([]));

    let (status, answer) = api
        .ask("POST", &faults, json!({"inject": "gremlins"}))
        .await;
    assert_eq!(status, 422);
    assert!(
        answer["error"].as_str().unwrap().contains("gremlins"),
        "{answer}"
    );
    let (status, _) = api
        .ask("POST", &faults, json!({"on": "tap", "inject": "replug"}))
        .await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn what_a_command_did_can_be_read() {
    let api = Api::new().await;
    let mut pipe = try_pipe(&api.lab, 1, PORT_8100).await.unwrap();
    pipe.write_all(&crate::wire::post(&tap("t").to_string()))
        .await
        .unwrap();
    read_all(&mut pipe).await;
    let (_, phone) = api.ask("GET", PHONE, Value::Null).await;
    assert_eq!(phone["effects"][0]["command_id"], "t");
    assert_eq!(phone["effects"][0]["kind"], "tap");
    assert_eq!(phone["arrivals"].as_array().unwrap().len(), 1);
    assert_eq!(phone["screen"]["taps"], 1);
}

#[tokio::test]
async fn phones_are_plugged_locked_and_their_apps_moved() {
    let api = Api::new().await;
    let shown = async |key: &str| api.ask("GET", PHONE, Value::Null).await.1[key].clone();
    api.done(
        "POST",
        &format!("{PHONE}/detach"),
        json!({"transport": "usb"}),
    )
    .await;
    assert_eq!(shown("plugged").await, json!([]));
    api.done(
        "POST",
        &format!("{PHONE}/attach"),
        json!({"transport": "network"}),
    )
    .await;
    assert_eq!(shown("plugged").await, json!(["network"]));
    api.done("POST", &format!("{PHONE}/lock"), Value::Null)
        .await;
    assert_eq!(shown("locked").await, json!(true));
    api.done("POST", &format!("{PHONE}/unlock"), Value::Null)
        .await;
    assert_eq!(shown("locked").await, json!(false));
    let mail = format!("{PHONE}/apps/com.example.mail");
    api.done("PUT", &mail, json!({"state": "foreground"})).await;
    assert_eq!(shown("screen").await["front"], "com.example.mail");
}

#[tokio::test]
async fn runners_and_the_daemon_end_and_start() {
    let api = Api::new().await;
    api.done("POST", &format!("{PHONE}/runner/kill"), Value::Null)
        .await;
    assert_eq!(try_pipe(&api.lab, 1, PORT_8100).await.unwrap_err(), 3);
    api.done(
        "POST",
        &format!("{PHONE}/runner/restart"),
        json!({"port": 8100}),
    )
    .await;
    assert!(try_pipe(&api.lab, 1, PORT_8100).await.is_ok());
    api.done("POST", &format!("{PHONE}/replug"), Value::Null)
        .await;
    assert!(try_pipe(&api.lab, 3, PORT_8100).await.is_ok());

    api.done(
        "POST",
        "/usbmuxd/oddities",
        json!({"say": {"cut": {"bytes": 0}}}),
    )
    .await;
    assert_eq!(read_all(&mut list(&api.lab).await).await, b"");
    let silence = json!({"say": "silence", "times": 9});
    api.done("POST", "/usbmuxd/oddities", silence).await;
    api.done("DELETE", "/usbmuxd/oddities", Value::Null).await;
    assert!(try_pipe(&api.lab, 3, PORT_8100).await.is_ok());

    api.done("POST", "/usbmuxd/stop", Value::Null).await;
    assert_eq!(read_all(&mut api.lab.connect()).await, b"");
    api.done("POST", "/usbmuxd/start", json!({"reuse_ids": false}))
        .await;
    assert!(try_pipe(&api.lab, 4, PORT_8100).await.is_ok());
    api.done("POST", "/usbmuxd/restart", json!({"reuse_ids": true}))
        .await;
    assert!(try_pipe(&api.lab, 1, PORT_8100).await.is_ok());
    api.done("POST", "/usbmuxd/stall", Value::Null).await;
    api.done("POST", "/usbmuxd/resume", Value::Null).await;
    assert!(try_pipe(&api.lab, 2, PORT_8100).await.is_ok());
}

#[tokio::test]
async fn a_phone_is_replugged_locked_and_trusted_in_particular_ways() {
    let api = Api::new().await;
    let shown = async |key: &str| api.ask("GET", PHONE, Value::Null).await.1[key].clone();
    let replug = json!({"attached_first": true, "gap": "1h"});
    api.done("POST", &format!("{PHONE}/replug"), replug).await;
    for device in [1, 3] {
        assert!(try_pipe(&api.lab, device, PORT_8100).await.is_ok());
    }
    api.done("POST", &format!("{PHONE}/lock"), json!({"stall": true}))
        .await;
    assert_eq!(shown("locked").await, json!(true));
    assert_eq!(shown("trusted").await, json!(true));
    api.done("POST", &format!("{PHONE}/untrust"), Value::Null)
        .await;
    assert_eq!(shown("trusted").await, json!(false));
    api.done("POST", &format!("{PHONE}/trust"), Value::Null)
        .await;
    assert_eq!(shown("trusted").await, json!(true));
    let (status, _) = api
        .ask("POST", &format!("{PHONE}/replug"), json!({"gaps": "1h"}))
        .await;
    assert_eq!(status, 422);
}

#[tokio::test]
async fn counters_are_set_and_a_runner_restarts_on_its_port() {
    let api = Api::new().await;
    let runner = async || api.ask("GET", PHONE, Value::Null).await.1["runner"].clone();
    let counters = format!("{PHONE}/runner/counters");
    api.done("PUT", &counters, json!({"recorded_failures": 4}))
        .await;
    api.done("PUT", &counters, json!({"suppressed_issues": 9}))
        .await;
    let up = runner().await;
    assert_eq!(up["recorded_failures"], 4);
    assert_eq!(up["suppressed_issues"], 9);

    let restart = format!("{PHONE}/runner/restart");
    api.done("POST", &restart, Value::Null).await;
    let up = runner().await;
    assert_eq!(
        (&up["port"], &up["recorded_failures"]),
        (&json!(8100), &json!(0))
    );
    api.done("POST", &format!("{PHONE}/runner/kill"), Value::Null)
        .await;
    for (method, path, body) in [
        ("POST", &restart, Value::Null),
        ("PUT", &counters, json!({"recorded_failures": 4})),
    ] {
        assert_eq!(api.ask(method, path, body).await.0, 409, "{path}");
    }
}

#[tokio::test]
async fn strays_come_and_go() {
    let api = Api::new().await;
    let listed = async || read_once(&api).await;
    api.done(
        "POST",
        "/usbmuxd/strays",
        json!({"serial": "odd", "lacks": ["connection_type"]}),
    )
    .await;
    assert!(listed().await.contains("odd"));
    api.done("DELETE", "/usbmuxd/strays", Value::Null).await;
    assert!(!listed().await.contains("odd"));
}

async fn read_once(api: &Api) -> String {
    ask(&mut api.lab.connect(), 1, &plist("ListDevices", "")).await
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_missing() {
    let api = Api::new().await;
    let nobody = "/phones/00008110-0000000000000000";
    let (status, answer) = api.ask("GET", nobody, Value::Null).await;
    assert_eq!(status, 404);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("00008110-0000000000000000")
    );
    assert_eq!(api.ask("GET", "/phones/nonsense", Value::Null).await.0, 400);
}

#[tokio::test]
async fn strangers_are_refused() {
    let api = Api::new().await;
    let request =
        |headers: &str| format!("GET /phones HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "localhost:80x",
    ] {
        assert_eq!(
            api.raw(request(&format!("Host: {host}\r\n"))).await.0,
            403,
            "{host}"
        );
    }
    for host in ["localhost", "localhost:9000", "127.0.0.1", "[::1]:9000"] {
        assert_eq!(
            api.raw(request(&format!("Host: {host}\r\n"))).await.0,
            200,
            "{host}"
        );
    }
    let from_a_page = request("Host: localhost\r\nOrigin: http://localhost\r\n");
    assert_eq!(api.raw(from_a_page).await.0, 403);
}

#[tokio::test]
async fn only_loopback_is_bound() {
    let lab = Lab::start(Scenario::fleet(1));
    let refused = lab
        .serve_control("0.0.0.0:0".parse().unwrap())
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
}
