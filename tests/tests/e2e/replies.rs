//! Replies that are none, or that never come, and connections that are not
//! made: what becomes of a mutation, and what of a read.

use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::facts::effects;
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::{Rig, plain, refused};
use tonic::Code;

/// Just above what a client takes.
const OVERSIZE: usize = 64 * 1024 * 1024 + 1;

/// What spoils a reply at once, and may not spoil the next.
const SPOILT: [Injection; 5] = [
    Injection::GarbageReply,
    Injection::NotJson,
    Injection::NotAnEnvelope,
    Injection::TruncatedReply,
    Injection::ReplyLostAfterExecution,
];

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_with_a_useless_reply_is_recovered_and_happens_once() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let oversize = Injection::OversizeReply { bytes: OVERSIZE };
    for (at, fault) in SPOILT.into_iter().chain([oversize]).enumerate() {
        let id = format!("tap-{at}");
        phone.fault(fault.clone());

        let receipt = plain::send(&rig, &udid, CommandKind::Tap, &id)
            .await
            .unwrap();

        assert_eq!(
            (
                receipt.fate(),
                receipt.effect(),
                receipt.attempts,
                receipt.recovered
            ),
            (Fate::Completed, Effect::Applied, 1, true),
            "{fault:?}"
        );
        let row = rig.find(&id).await.unwrap();
        assert_eq!(
            (row.fate(), row.recovered),
            (Fate::Completed, true),
            "{fault:?}"
        );
        assert_eq!(effects(&phone, &id).len(), 1, "{fault:?}");
        assert_eq!(
            phone.report().arrivals_of(CommandKind::Tap),
            at + 1,
            "{fault:?}"
        );
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_whose_reply_stops_half_way_is_recovered_when_its_window_closes() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::PartialReply);
    let receipt = plain::send(&rig, &udid, CommandKind::Button, "half")
        .await
        .unwrap();

    assert_eq!((receipt.fate(), receipt.recovered), (Fate::Completed, true));
    assert_eq!(receipt.attempts, 1);
    assert_eq!(effects(&phone, "half").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_on_a_half_open_connection_is_unknown_and_not_sent_again() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::HalfOpen);
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Button, "void").await);

    Outcome::unknown()
        .assert(&rig, &udid, CommandKind::Button, "void", &refusal)
        .await;
    let report = phone.report();
    assert_eq!(report.arrivals_of(CommandKind::Button), 0);
    assert!(report.arrivals_of(CommandKind::CommandStatus) > 0);
    // The lane is free again.
    plain::send(&rig, &udid, CommandKind::Button, "next")
        .await
        .unwrap();
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_with_a_useless_reply_is_sent_again_up_to_three_times() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.2)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let before = Injection::ReplyLostBeforeExecution;
    for (at, fault) in SPOILT.into_iter().chain([before]).enumerate() {
        let kind = [CommandKind::Viewport, CommandKind::Snapshot][at % 2];
        for times in [1, 2] {
            let id = format!("read-{at}-{times}");
            phone.fault(Fault::from(fault.clone()).times(times));
            let receipt = plain::send(&rig, &udid, kind, &id).await.unwrap();
            assert_eq!(
                (receipt.fate(), receipt.attempts, receipt.recovered),
                (Fate::Completed, times + 1, false),
                "{fault:?}"
            );
            assert_eq!(rig.find(&id).await.unwrap().attempts, times + 1);
        }

        let (id, seen) = (format!("read-{at}-3"), phone.report().arrivals_of(kind));
        phone.fault(Fault::from(fault.clone()).times(3));
        let refusal = refused(plain::send(&rig, &udid, kind, &id).await);
        // Reading it once more does no harm.
        let given_up = Outcome {
            attempts: 3,
            retry: true,
            ..Outcome::unknown()
        };
        given_up.assert(&rig, &udid, kind, &id, &refusal).await;
        assert_eq!(phone.report().arrivals_of(kind), seen + 3, "{fault:?}");
        assert_eq!(phone.report().faults, [], "{fault:?}");
    }
    let report = phone.report();
    assert_eq!(report.arrivals_of(CommandKind::CommandStatus), 0);
    assert_eq!(report.effects, []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_gets_no_reply_is_sent_again_when_its_window_has_closed() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.03)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    for (id, fault) in [
        ("partial", Injection::PartialReply),
        ("half-open", Injection::HalfOpen),
    ] {
        phone.fault(fault);
        let receipt = plain::send(&rig, &udid, CommandKind::Snapshot, id)
            .await
            .unwrap();
        assert_eq!(
            (receipt.fate(), receipt.attempts),
            (Fate::Completed, 2),
            "{id}"
        );
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_with_a_reply_that_is_too_large_is_not_asked_for_again() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::OversizeReply { bytes: OVERSIZE });
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Snapshot, "huge").await);

    // It would be as large the next time.
    Outcome::unknown()
        .assert(&rig, &udid, CommandKind::Snapshot, "huge", &refusal)
        .await;
    assert_eq!(phone.report().arrivals_of(CommandKind::Snapshot), 1);
    plain::send(&rig, &udid, CommandKind::Snapshot, "next")
        .await
        .unwrap();
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_usbmuxd_does_not_make_proves_that_nothing_was_sent() {
    let unavailable = |reason| Outcome::not_sent(Code::Unavailable, reason);
    for (number, expected) in [
        (1, Outcome::internal()),
        (2, unavailable("DEVICE_UNATTACHED")),
        (3, unavailable("RUNNER_NOT_LISTENING")),
        (4, unavailable("RUNNER_NOT_LISTENING")),
        (6, Outcome::internal()),
        (99, unavailable("MUX_UNAVAILABLE")),
    ] {
        let rig = Rig::start(Scenario::fleet(1)).await;
        let (phone, udid) = (rig.phone(0), rig.udid(0));
        phone.fault(Injection::ConnectResult { number });
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "tap").await);

        let row = expected
            .assert(&rig, &udid, CommandKind::Tap, "tap", &refusal)
            .await;
        let report = phone.report();
        assert_eq!(
            (report.arrivals.len(), report.effects_total),
            (0, 0),
            "{number}"
        );
        assert_eq!(report.connects.refused, 1, "{number}");
        if !matches!(number, 2..=4) {
            let words = format!("result {number}");
            assert!(refusal.message.contains(&words), "{refusal:?}");
            assert!(row.message.is_some_and(|message| message.contains(&words)));
        }
        // Whatever it was, it passes.
        rig.attached().await;
        plain::send(&rig, &udid, CommandKind::Tap, "again")
            .await
            .unwrap();
        assert_eq!(
            (effects(&phone, "tap").len(), effects(&phone, "again").len()),
            (0, 1)
        );
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_device_number_is_looked_up_again_within_the_same_attempt() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::Replug);
    let receipt = plain::send(&rig, &udid, CommandKind::Tap, "tap")
        .await
        .unwrap();
    assert_eq!((receipt.fate(), receipt.attempts), (Fate::Completed, 1));
    assert_eq!(effects(&phone, "tap").len(), 1);
    assert_eq!(phone.report().connects.refused, 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_sent_again_past_connections_that_are_not_made() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Fault::from(Injection::ConnectResult { number: 3 }).times(2));
    let receipt = plain::send(&rig, &udid, CommandKind::Viewport, "seen")
        .await
        .unwrap();
    assert_eq!((receipt.fate(), receipt.attempts), (Fate::Completed, 3));

    phone.fault(Fault::from(Injection::ConnectResult { number: 3 }).times(3));
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Viewport, "unseen").await);
    let given_up = Outcome {
        attempts: 3,
        ..Outcome::not_sent(Code::Unavailable, "RUNNER_NOT_LISTENING")
    };
    given_up
        .assert(&rig, &udid, CommandKind::Viewport, "unseen", &refusal)
        .await;
    rig.stop().await;
}
