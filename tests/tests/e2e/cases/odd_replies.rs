//! Case 6: answers of usbmuxd that are odd, legal ones and others.

use fleetgate_proto::v1::Fate;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Asked, Odd, Oddity};
use fleetgate_tests::facts::effects;
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{plain, plain_lab, refused};
use tokio::task::JoinSet;
use tonic::Code;

use super::framing::{is_as_good_as_any, is_survived};
use super::{PLUGGED, READY, assert_history, lands, ready, seldom_asked};

const SCALE: f64 = 0.2;

fn weather() -> String {
    "Weather".to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_lists_old_headers_and_words_that_nobody_knows_are_no_trouble() {
    let mut all = JoinSet::new();
    for odd in [Odd::BinaryPlist, Odd::VersionZero] {
        let asked = [Asked::Listen, Asked::Event, Asked::Connect];
        all.spawn(async move { is_as_good_as_any(odd, SCALE, &asked).await });
    }
    let message_type = weather();
    for odd in [
        Odd::UnknownEvent { message_type },
        Odd::Paired { device: 1 },
        Odd::Paired { device: 4711 },
    ] {
        // What is behind the answer to a Connect is the pipe's.
        let asked = [Asked::Listen, Asked::Event];
        all.spawn(async move { is_as_good_as_any(odd, SCALE, &asked).await });
    }
    all.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_question_is_no_answer_to_a_listen() {
    let mut all = JoinSet::new();
    let message_type = weather();
    for odd in [
        Odd::WrongTag,
        Odd::NoNumber,
        Odd::Unrelated { message_type },
    ] {
        all.spawn(is_survived(Odd::Cut { bytes: 0 }, odd));
    }
    all.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_question_is_no_pipe_and_nothing_is_sent() {
    let rig = seldom_asked(Reach::Unix, plain_lab(2, SCALE)).await;
    let _mirror = ready(&rig).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let (message_type, length) = (weather(), 15);
    let odd = [
        Odd::WrongTag,
        Odd::NoNumber,
        Odd::Unrelated { message_type },
        Odd::Length { length },
        Odd::Length { length: u32::MAX },
    ];
    for (n, odd) in odd.into_iter().enumerate() {
        let answer = Oddity::from(odd.clone()).on(Asked::Connect);
        rig.lab.oddity(answer.clone());
        let (arrived, id) = (phone.arrivals().len(), format!("tap-{n}"));
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, &id).await);
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::Unavailable, "MUX_UNAVAILABLE"),
            "{odd:?}"
        );
        assert!(refusal.retry_delay.is_some(), "{odd:?}");
        assert_eq!(rig.concluded(&id).await.fate(), Fate::NotSent);
        assert_eq!(phone.arrivals().len(), arrived, "{odd:?}");
        // A read is simply tried again.
        rig.lab.oddity(answer);
        let read = format!("read-{n}");
        let receipt = plain::send(&rig, &udid, CommandKind::Screenshot, &read).await;
        assert_eq!(receipt.unwrap().attempts, 2, "{odd:?}");
        lands(&rig, &phone, &format!("after-{n}")).await;
        assert_eq!(effects(&phone, &id).len(), 0);
    }
    for n in 0..2 {
        assert_history(&rig, &rig.udid(n), &[PLUGGED, READY]).await;
    }
    rig.stop().await;
}
