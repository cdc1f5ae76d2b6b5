//! gRPC-Web over HTTP/1.1, as a page or a program without HTTP/2 speaks it:
//! bytes by hand, after the protocol's own description.

use bytes::Bytes;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::capture_screenshot_response::Part;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::{APP, Rig, plain};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The bit that tells trailers from a message.
const TRAILERS: u8 = 0x80;

/// The answer to one call.
struct Answer {
    headers: HeaderMap,
    messages: Vec<Bytes>,
    trailers: String,
}

/// One call on a connection of its own.
async fn call(rig: &Rig, method: &str, message: &impl Message) -> Answer {
    let address = rig.url().replace("http://", "");
    let stream = TokioIo::new(TcpStream::connect(&address).await.unwrap());
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);

    let message = message.encode_to_vec();
    let mut body = vec![0];
    body.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    body.extend_from_slice(&message);
    let request = Request::post(format!("/fleetgate.v1.{method}"))
        .header("host", address)
        .header("content-type", "application/grpc-web+proto")
        .header("x-grpc-web", "1")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{method}");
    assert_eq!(response.version(), http::Version::HTTP_11);
    let headers = response.headers().clone();
    let mut body = response.into_body().collect().await.unwrap().to_bytes();

    let (mut messages, mut trailers) = (Vec::new(), String::new());
    while !body.is_empty() {
        let head = body.split_to(5);
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let content = body.split_to(length as usize);
        assert_eq!(trailers, "", "trailers come last");
        if head[0] == TRAILERS {
            trailers = String::from_utf8(content.to_vec()).unwrap();
        } else {
            messages.push(content);
        }
    }
    Answer {
        headers,
        messages,
        trailers,
    }
}

impl Answer {
    /// The status, which stands in the headers where there is nothing else.
    fn status(&self) -> String {
        let in_trailers = self
            .trailers
            .lines()
            .find_map(|line| line.strip_prefix("grpc-status:"));
        let status = in_trailers.map(|status| status.trim().to_owned());
        status.unwrap_or_else(|| self.headers["grpc-status"].to_str().unwrap().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_taps_reads_and_is_told_what_went_wrong() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let tap = pb::TapRequest {
        device: udid.clone(),
        command_id: Some("web".to_owned()),
        app_bundle_id: APP.to_owned(),
        point: plain::absolute(20.0, 30.0),
        ..pb::TapRequest::default()
    };
    let answer = call(&rig, "AutomationService/Tap", &tap).await;
    assert_eq!((answer.status().as_str(), answer.messages.len()), ("0", 1));
    let reply = pb::TapResponse::decode(answer.messages[0].clone()).unwrap();
    clean(reply.receipt, "web");
    assert_eq!(effects(&phone, "web").len(), 1);

    // The same id for something else: the failure's facts are all there, too.
    let other = pb::TapRequest {
        number_of_taps: Some(2),
        ..tap
    };
    let answer = call(&rig, "AutomationService/Tap", &other).await;
    assert_eq!((answer.status().as_str(), answer.messages.len()), ("6", 0));
    let told = format!("{:?}{}", answer.headers, answer.trailers);
    assert!(told.contains("grpc-status-details-bin"), "{told}");
    assert_eq!(effects(&phone, "web").len(), 1);

    let request = pb::GetCommandRequest {
        command_id: "web".to_owned(),
    };
    let answer = call(&rig, "LedgerService/GetCommand", &request).await;
    let reply = pb::GetCommandResponse::decode(answer.messages[0].clone()).unwrap();
    let row = reply.command.unwrap();
    assert_eq!(
        (row.fate(), row.effect()),
        (Fate::Completed, Effect::Applied)
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_gets_a_picture_in_its_parts() {
    let rig = Rig::plain(1).await;
    let request = pb::CaptureScreenshotRequest {
        device: rig.udid(0),
        ..pb::CaptureScreenshotRequest::default()
    };
    let answer = call(&rig, "AutomationService/CaptureScreenshot", &request).await;
    assert_eq!(answer.status(), "0");
    let mut parts = answer.messages.into_iter().map(|message| {
        let response = pb::CaptureScreenshotResponse::decode(message).unwrap();
        response.part.unwrap()
    });
    let Some(Part::Header(header)) = parts.next() else {
        panic!("the header comes first");
    };
    let mut png = Vec::new();
    for part in parts {
        match part {
            Part::Chunk(chunk) => png.extend_from_slice(&chunk),
            Part::Header(header) => panic!("{header:?}"),
        }
    }
    assert_eq!(png.len() as u64, header.size_bytes);
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    rig.stop().await;
}
