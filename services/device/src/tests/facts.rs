//! What a phone tells of itself, and what becomes of one that does not.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetgate_runner::SendError;
use fleetgate_usbmux::lockdown::{self, Decoder, ErrorCode, Reply, Request, Value};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::daemon::{ALICE, Lab, Peer, udid, usb};
use crate::{Facts, FactsError};

/// A phone's lockdown, which answers as the test says.
struct Lockdown {
    peer: Peer,
    decoder: Decoder,
}

impl Lockdown {
    async fn on(lab: &mut Lab) -> Self {
        let mut peer = lab.daemon.connecting(1, lockdown::PORT).await;
        peer.result(0).await;
        Self {
            peer,
            decoder: Decoder::new(),
        }
    }

    /// The next request, unless the client hangs up first.
    async fn request(&mut self) -> Option<Request> {
        loop {
            if let Some(message) = self.decoder.next_message().unwrap() {
                return Some(Request::decode(&message).unwrap());
            }
            let read = self.peer.stream.read_buf(self.decoder.input());
            if read.await.unwrap() == 0 {
                return None;
            }
        }
    }

    /// Answers everything.
    async fn serve(mut self, answer: impl Fn(&Request) -> Reply) -> Vec<Request> {
        let mut asked = Vec::new();
        while let Some(request) = self.request().await {
            let reply = answer(&request).encode(&request).unwrap();
            self.peer.raw(&reply).await;
            asked.push(request);
        }
        asked
    }
}

fn service() -> Reply {
    Reply::Type(lockdown::SERVICE.to_owned())
}

/// Asks Alice, whose lockdown answers so.
async fn told(answer: impl Fn(&Request) -> Reply) -> (Result<Facts, FactsError>, Vec<Request>) {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
    tokio::join!(hosts.facts(&device), async {
        Lockdown::on(&mut lab).await.serve(answer).await
    })
}

/// Answers with a value by the key that is asked for.
fn values(value: impl Fn(&str) -> Reply) -> impl Fn(&Request) -> Reply {
    move |request| match request {
        Request::QueryType => service(),
        Request::GetValue {
            key: Some(key),
            domain: None,
        } => value(key),
        Request::GetValue { .. } | Request::Other(_) => panic!("{request:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_tells_its_name_model_and_version_and_is_asked_for_nothing_else() {
    let (facts, asked) = told(values(|key| {
        Reply::Value(Value::from(match key {
            "DeviceName" => " Alice\u{7}s phone ",
            "ProductType" => "iPhone14,2",
            "ProductVersion" => "18.1",
            other => panic!("{other}"),
        }))
    }))
    .await;
    let facts = facts.unwrap();
    assert_eq!(facts.name.as_deref(), Some("Alice s phone"));
    assert_eq!(facts.model.as_deref(), Some("iPhone14,2"));
    assert_eq!(facts.os_version.as_deref(), Some("18.1"));
    let expected = ["DeviceName", "ProductType", "ProductVersion"].map(Request::value);
    assert_eq!(asked[0], Request::QueryType);
    assert_eq!(asked[1..], expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_phone_does_not_tell_is_left_out() {
    let (facts, _) = told(values(|key| match key {
        "DeviceName" => Reply::Refused(ErrorCode::PasswordProtected),
        "ProductType" => Reply::Value(Value::Integer(14)),
        _ => Reply::Value(Value::from("x".repeat(1000).as_str())),
    }))
    .await;
    let facts = facts.unwrap();
    assert_eq!((facts.name, facts.model), (None, None));
    assert_eq!(facts.os_version.unwrap().len(), 256);
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_tells_nothing_says_why() {
    let (facts, _) = told(values(|key| {
        Reply::Refused(match key {
            "DeviceName" => ErrorCode::InvalidHostId,
            _ => ErrorCode::MissingValue,
        })
    }))
    .await;
    let error = facts.unwrap_err();
    assert!(
        matches!(error, FactsError::Refused(ErrorCode::InvalidHostId)),
        "{error:?}"
    );
    let (facts, asked) = told(|_| Reply::Refused(ErrorCode::PasswordProtected)).await;
    let error = facts.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the phone refuses to tell: PasswordProtected"
    );
    assert_eq!(asked, [Request::QueryType]);
}

#[tokio::test(start_paused = true)]
async fn something_else_on_that_port_is_told_apart() {
    let (facts, asked) = told(|_| Reply::Type("com.example.other".to_owned())).await;
    let error = facts.unwrap_err();
    assert!(matches!(error, FactsError::NotLockdown), "{error:?}");
    assert_eq!(asked, [Request::QueryType]);
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_answers_rubbish_or_hangs_up_is_an_error() {
    let other = Reply::Refused(ErrorCode::MissingValue);
    let other = other.encode(&Request::value("DeviceName")).unwrap();
    let cases: [(&[u8], &str); 5] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "over the limit"),
        (b"\0\0\0\x04rubb", "unreadable"),
        (b"\0\0\0\x10rubb", "closed the connection"),
        (b"", "closed the connection"),
        (&other, "the key `Request` is missing or unusable"),
    ];
    for (answer, complaint) in cases {
        let mut lab = Lab::with(&[usb(1, ALICE)]).await;
        let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
        let (facts, ()) = tokio::join!(hosts.facts(&device), async {
            let mut phone = Lockdown::on(&mut lab).await;
            phone.request().await.unwrap();
            phone.peer.raw(answer).await;
        });
        let error = facts.unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_is_given_up_after_five_seconds_wherever_it_stalls() {
    for stalls_at in 0..3 {
        let mut lab = Lab::with(&[usb(1, ALICE)]).await;
        let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
        let began = Instant::now();
        let (facts, ()) = tokio::join!(hosts.facts(&device), async {
            match stalls_at {
                // usbmuxd does not answer the Connect.
                0 => assert!(lab.daemon.accept().await.hung_up().await.len() > 16),
                // Lockdown says nothing, or stops in the middle of a message.
                stage => {
                    let mut phone = Lockdown::on(&mut lab).await;
                    phone.request().await.unwrap();
                    if stage == 2 {
                        phone.peer.raw(b"\0\0\0\x10half").await;
                    }
                    assert!(phone.peer.hung_up().await.is_empty());
                }
            }
        });
        let error = facts.unwrap_err();
        assert!(matches!(error, FactsError::Silent), "{error:?}");
        assert_eq!(began.elapsed(), Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn another_phone_that_has_the_number_by_now_is_not_believed() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
    let (facts, ()) = tokio::join!(hosts.facts(&device), async {
        let mut wrong = lab.daemon.connecting(1, lockdown::PORT).await;
        // Whoever answers now is another usbmuxd, whose predecessor's end nobody
        // has noticed.
        lab.listener.hang_up().await;
        wrong.result(0).await;
        lab.listener = lab.daemon.listening(&[usb(2, ALICE)]).await;
        assert_eq!(wrong.hung_up().await, b"");
        lab.daemon
            .connecting(2, lockdown::PORT)
            .await
            .result(3)
            .await;
    });
    assert!(matches!(facts, Err(FactsError::Connect(_))), "{facts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_is_not_there_or_has_no_lockdown_says_so() {
    let mut lab = Lab::with(&[]).await;
    lab.hosts.settled().await;
    let error = lab.hosts.facts(&udid(ALICE)).await.unwrap_err();
    assert!(
        matches!(error, FactsError::Connect(SendError::NotAttached)),
        "{error:?}"
    );
    lab.listener.events(&[usb(1, ALICE)]).await;
    super::daemon::until(&lab.hosts, |view| view.is_reachable(&udid(ALICE))).await;
    let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
    let (facts, ()) = tokio::join!(hosts.facts(&device), async {
        lab.daemon
            .connecting(1, lockdown::PORT)
            .await
            .result(3)
            .await;
    });
    let error = facts.unwrap_err();
    assert!(
        matches!(
            error,
            FactsError::Connect(SendError::NotListening {
                port: Some(lockdown::PORT)
            })
        ),
        "{error:?}"
    );
}

/// A place for logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn neither_what_a_phone_tells_nor_a_pair_record_reaches_the_logs() {
    const SECRET: &str = "Zanzibar";
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let (facts, _) = told(values(|_| Reply::Value(Value::from(SECRET)))).await;
    assert_eq!(facts.unwrap().name.as_deref(), Some(SECRET));
    let answer = format!("<plist><dict><key>{SECRET}</key></plist>");
    let length = u32::try_from(answer.len()).unwrap();
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
    let (facts, ()) = tokio::join!(hosts.facts(&device), async {
        let mut phone = Lockdown::on(&mut lab).await;
        phone.request().await.unwrap();
        phone.peer.raw(&length.to_be_bytes()).await;
        phone.peer.raw(answer.as_bytes()).await;
    });
    let error = facts.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    let record = fleetgate_usbmux::PairRecord(SECRET.as_bytes().into());
    let record = fleetgate_usbmux::Reply::PairRecord(record);
    let (paired, ()) = tokio::join!(hosts.paired(&device), async {
        let mut peer = lab.daemon.accept().await;
        peer.request().await;
        peer.raw(&record.encode(peer.tag).unwrap()).await;
    });
    assert_eq!(paired, Some(true));
    drop(guard);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("listening to usbmuxd"), "{text}");
    for told in [SECRET, "WmFueml"] {
        assert!(!text.contains(told), "{text}");
    }
}
