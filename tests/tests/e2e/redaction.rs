//! What nobody may find: a text that is typed, the secrets of tokens, pictures
//! and pairing data, looked for in everything that a gateway of the real binary
//! leaves behind: its log at the finest level, its metrics, its files, and what
//! it says to callers.

use std::fs;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, Envelope, Reply, RunnerCode};
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::in_no_file;
use fleetgate_tests::{APP, pause, screen, soon};
use http::Request;
use http_body_util::Full;
use prost::bytes::Bytes;
use tokio::task::JoinSet;
use tonic::{Code, Status};

mod watched;

use watched::{Watched, exchange, local_token, log, secret_of, serve};

/// What is typed, and a piece of it that is in it however it is quoted.
const TYPED: &str = "Zq7vN2kX \"pa$$\\wörd\" 🔑";
const PIECE: &str = "zq7vn2kx";
/// A token that nobody has made.
const FORGED: &str = "fgt_nobody_wrong4canary4token";

/// What a caller is told who types the text.
async fn type_text(watched: &Watched, command_id: &str) -> String {
    let request = pb::TypeTextRequest {
        device: watched.udid(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        text: TYPED.to_owned(),
    };
    let mut automation = watched.automation(&watched.token).await;
    let typing = automation.type_text(request);
    told(soon("an answer", typing).await)
}

/// An answer with everything that is in it.
fn told<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    match answer {
        Ok(reply) => format!("{reply:?}"),
        Err(status) => {
            let details = String::from_utf8_lossy(status.details()).into_owned();
            format!("{status:?} {} {details}", status.message())
        }
    }
}

#[track_caller]
fn assert_silent(told: &str) {
    for piece in [PIECE, "wörd"] {
        assert!(!told.to_lowercase().contains(piece), "{piece} is in {told}");
    }
}

/// Every way in which a runner may repeat what it was to type.
fn echoes() -> Vec<Vec<Fault>> {
    let quoted = serde_json::to_string(TYPED).unwrap();
    let error = |code: RunnerCode, words: &str| Injection::Error {
        code,
        message: format!("could not type {words}"),
        hint: Some(format!("do not type {words}")),
        after_effect: false,
    };
    let failed = |words: &str| error(RunnerCode::CommandFailed, words);
    let says = |body: String| Injection::ReplyBody { body };
    let mut echoes = vec![
        vec![Injection::EchoText],
        vec![failed(TYPED)],
        vec![failed(&TYPED.to_uppercase())],
        vec![failed(&quoted)],
        vec![failed(&TYPED[..10])],
        vec![error(RunnerCode::XctestRecordedFailure, TYPED)],
        vec![error(RunnerCode::Other(TYPED.to_owned()), TYPED)],
        // Known from the journal.
        vec![failed(TYPED), Injection::ReplyLostAfterExecution],
        vec![Injection::EchoText, Injection::GarbageReply],
    ];
    let bodies = [
        TYPED.to_owned(),
        quoted.clone(),
        format!("{{\"ok\":{quoted}}}"),
        format!("{{\"ok\":true,\"data\":{{\"message\":{quoted}}},\"warning\":{quoted}}}"),
        format!("{{\"ok\":false,\"error\":{{\"code\":{quoted},\"message\":{quoted}}}}}"),
        format!("{{\"ok\":false,\"error\":{quoted}}}"),
    ];
    echoes.extend(bodies.map(|body| vec![says(body)]));
    let on_type = |fault| Fault::from(fault).on(CommandKind::Type);
    let echoes = echoes.into_iter();
    echoes
        .map(|faults| faults.into_iter().map(on_type).collect())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_is_found_nowhere_whatever_a_runner_says_of_it() {
    let watched = Watched::start().await;
    screen::focus(&watched.phone);
    assert_silent(&type_text(&watched, "typed-0").await);
    assert!(screen::text(&watched.phone).contains(TYPED), "it was typed");
    let mut automation = watched.automation(&watched.token).await;
    let mut ledger = watched.ledger().await;
    for (n, faults) in echoes().into_iter().enumerate() {
        let id = format!("typed-{}", n + 1);
        for fault in faults {
            watched.phone.fault(fault);
        }
        assert_silent(&type_text(&watched, &id).await);
        // Told again, from the record.
        assert_silent(&type_text(&watched, &id).await);
        let request = pb::GetCommandRequest {
            command_id: id.clone(),
        };
        assert_silent(&told(ledger.get_command(request).await));
        let request = pb::GetRunnerCommandStatusRequest {
            device: watched.udid(),
            command_id: id,
        };
        assert_silent(&told(automation.get_runner_command_status(request).await));
    }
    // Other questions are answered by a runner that quotes as well.
    let body = format!("{{\"ok\":false,\"error\":{{\"code\":\"X\",\"message\":\"{PIECE}\"}}}}");
    for kind in [CommandKind::Status, CommandKind::CommandStatus] {
        let spoilt = Injection::ReplyBody { body: body.clone() };
        watched.phone.fault(Fault::from(spoilt).on(kind).times(3));
    }
    let lost = Injection::ReplyLostAfterExecution;
    watched.phone.fault(Fault::from(lost).on(CommandKind::Type));
    assert_silent(&type_text(&watched, "typed-asked").await);
    let listed = ledger.list_commands(pb::ListCommandsRequest::default());
    let listed = told(listed.await);
    assert!(listed.contains("typed-asked"), "{listed}");
    assert_silent(&listed);
    // What cannot be taken in the first place.
    let odd = pb::TypeTextRequest {
        device: TYPED.to_owned(),
        command_id: Some("no id".to_owned()),
        app_bundle_id: "no app".to_owned(),
        text: TYPED.to_owned(),
        lease: None,
    };
    let refused = automation.type_text(odd).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let metrics = watched.metrics().await;
    assert!(metrics.contains("fleetgate_"), "{metrics}");
    assert_silent(&metrics);
    leaves_nothing(watched).await;
}

/// A gateway that is killed while a text is typed: what the next one learns of it
/// from the journal.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_is_not_learnt_again_from_a_journal() {
    let mut watched = Watched::start().await;
    screen::focus(&watched.phone);
    assert_silent(&type_text(&watched, "typed-0").await);
    let error = Injection::Error {
        code: RunnerCode::CommandFailed,
        message: format!("could not type {TYPED}"),
        hint: Some(TYPED.to_owned()),
        after_effect: true,
    };
    for fault in [error, Injection::PartialReply] {
        watched
            .phone
            .fault(Fault::from(fault).on(CommandKind::Type));
    }
    let mut automation = watched.automation(&watched.token).await;
    let request = pb::TypeTextRequest {
        device: watched.udid(),
        command_id: Some("typed-1".to_owned()),
        app_bundle_id: APP.to_owned(),
        text: TYPED.to_owned(),
        lease: None,
    };
    let mut calls = JoinSet::new();
    calls.spawn(async move { told(automation.type_text(request).await) });
    let id = "typed-1".parse().unwrap();
    watched
        .phone
        .wait_until(|phone| phone.effects_total == 2)
        .await;
    assert_eq!(watched.phone.effects_of(&id), 1);
    watched.server.running.child.start_kill().unwrap();
    let killed = watched.server.running.child.wait();
    soon("the end", killed).await.unwrap();
    assert_silent(&calls.join_next().await.unwrap().unwrap());

    watched.server = serve(&watched.place).await;
    let mut ledger = watched.ledger().await;
    let record = soon("a fate on record", async {
        loop {
            let request = pb::GetCommandRequest {
                command_id: "typed-1".to_owned(),
            };
            let found = ledger.get_command(request).await.unwrap().into_inner();
            if found.command.as_ref().unwrap().fate() == pb::Fate::Failed {
                return found;
            }
            pause().await;
        }
    })
    .await;
    assert!(record.command.as_ref().unwrap().recovered, "{record:?}");
    assert_silent(&format!("{record:?}"));
    leaves_nothing(watched).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_pictures_and_pairing_data_are_found_nowhere() {
    let watched = Watched::start().await;
    assert!(watched.token.starts_with("fgt_"), "{}", watched.token);
    let secret = secret_of(&watched.token);
    screen::focus(&watched.phone);
    assert_silent(&type_text(&watched, "typed-0").await);

    // Who may not, and who shows what is no token at all.
    let mut forger = watched.automation(FORGED).await;
    let request = pb::PressButtonRequest {
        device: watched.udid(),
        button: pb::Button::Home.into(),
        ..pb::PressButtonRequest::default()
    };
    let status = forger.press_button(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    let refused = told::<()>(Err(status));
    assert!(!refused.contains("canary"), "{refused}");
    // The same over HTTP/1.1.
    for bearer in [watched.bearer(), format!("Bearer {FORGED}")] {
        let address = watched.server.url.replace("http://", "");
        let list = Request::post("/fleetgate.v1.FleetService/ListDevices")
            .header("content-type", "application/grpc-web+proto")
            .header("authorization", bearer)
            .body(Full::new(Bytes::from_static(&[0; 5])))
            .unwrap();
        let answer = exchange(&address, list).await;
        let told = format!("{answer:?}");
        assert!(!told.contains(secret) && !told.contains("canary"), "{told}");
    }
    assert!(!watched.metrics().await.contains(secret));

    let mut automation = watched.automation(&watched.token).await;
    let request = pb::CaptureScreenshotRequest {
        device: watched.udid(),
        ..pb::CaptureScreenshotRequest::default()
    };
    let mut parts = automation.capture_screenshot(request).await.unwrap();
    let mut png = Vec::new();
    while let Some(part) = parts.get_mut().message().await.unwrap() {
        if let Some(pb::capture_screenshot_response::Part::Chunk(bytes)) = part.part {
            png.extend_from_slice(&bytes);
        }
    }
    let image = fleetgate_runner::Screenshot { png: png.into() };
    let body = Envelope::from(Ok(Reply::Screenshot(image))).encode();
    let body = String::from_utf8(body).unwrap();
    let middle = body.len() / 2;
    watched.assert_nowhere(&body[middle..middle + 24]);

    let local = local_token(&watched.place);
    let pairing = ["HostPrivateKey", "secret of"];
    let image = ["IHDR", "PNG\r\n\u{1a}"];
    let others = [secret, "canary", &local];
    for secret in others.into_iter().chain(pairing).chain(image) {
        watched.assert_nowhere(secret);
    }
    leaves_nothing(watched).await;
}

/// Ends a gateway and looks once more.
async fn leaves_nothing(watched: Watched) {
    let log = watched.log();
    for target in ["h2::", "fleetgate_device::", "fleetgate_gateway::"] {
        assert!(log.contains(target), "{target} logs nothing");
    }
    let Watched {
        place,
        lab,
        server,
        token,
        ..
    } = watched;
    assert_eq!(server.end().await, Some(0));
    lab.shutdown().await;
    let log = fs::read(self::log(&place)).unwrap();
    let log = String::from_utf8_lossy(&log).to_lowercase();
    let secret = secret_of(&token);
    for secret in [PIECE, "wörd", &secret.to_lowercase()] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is in the log");
    }
    for secret in ["Zq7vN2kX", PIECE, "ZQ7VN2KX", "wörd", secret] {
        in_no_file(&place.path(""), secret, "typed-0");
    }
}
