//! Launches through the control API: a stream of events.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{Api, PHONE};
use crate::wire::try_pipe;

/// The head of an answer whose body goes on, and a way to the rest.
async fn launch(api: &Api, body: Value) -> (String, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(api.address).await.unwrap();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = format!(
        "POST {PHONE}/runner/launch HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
        api.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).await.unwrap();
    }
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    (head, reader)
}

/// The next event of a body in chunks.
async fn event(reader: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).await.unwrap(), 0, "the end");
        if line.starts_with(['{', '"']) {
            return serde_json::from_str(&line).unwrap();
        }
    }
}

#[tokio::test]
async fn a_launch_is_a_stream_of_events_and_ends_with_the_connection() {
    let api = Api::new().await;
    let fault = json!({"times": 2, "inject": "ignores_sigterm"});
    let faults = format!("{PHONE}/launch-faults");
    api.done("POST", &faults, fault.clone()).await;
    let (_, phone) = api.ask("GET", PHONE, Value::Null).await;
    assert_eq!(phone["launch_faults"][0]["times"], 2);

    let (head, mut events) = launch(&api, json!({"port": 8300, "mishaps": ["port_zero"]})).await;
    let head = head.to_lowercase();
    assert!(
        head.contains("content-type: application/x-ndjson"),
        "{head}"
    );
    let mut seen = Vec::new();
    while seen.last() != Some(&json!({"runner": "ARGENT_RUNNER_SERVING"})) {
        seen.push(event(&mut events).await);
    }
    for expected in [
        json!("ignore_sigterm"),
        json!({"runner": "ARGENT_RUNNER_STARTING requestedPort=8300"}),
        json!({"runner": "ARGENT_RUNNER_LISTENING port=0"}),
        json!({"runner": "ARGENT_RUNNER_LISTENING port=8300"}),
    ] {
        assert!(seen.contains(&expected), "{expected}: {seen:?}");
    }
    let port = u16::swap_bytes(8300).into();
    assert!(try_pipe(&api.lab, 1, port).await.is_ok());

    drop(events);
    let phone = api.lab.phones().remove(0);
    phone.wait_until(|phone| phone.launch.is_none()).await;
    assert_eq!(try_pipe(&api.lab, 1, port).await.unwrap_err(), 3);

    api.done("DELETE", &faults, Value::Null).await;
    let (_, phone) = api.ask("GET", PHONE, Value::Null).await;
    assert_eq!(phone["launch_faults"], json!([]));
    for (path, senseless) in [
        (
            faults.as_str(),
            json!({"times": 0, "inject": "leaves_child"}),
        ),
        (
            "/phones/0000811000f1ee7000000001/runner/launch",
            json!({"mishaps": ["never_listens", {"exits": {}}]}),
        ),
    ] {
        assert_eq!(api.ask("POST", path, senseless).await.0, 400, "{path}");
    }
}

#[tokio::test]
async fn a_launch_that_fails_says_so_in_its_events() {
    let api = Api::new().await;
    api.lab.phones()[0].detach();
    let (_, mut events) = launch(&api, Value::Null).await;
    let mut last = event(&mut events).await;
    while last["exit"].is_null() {
        last = event(&mut events).await;
    }
    assert_eq!(last, json!({"exit": 70}));
}
