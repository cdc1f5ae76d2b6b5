//! A mutation whose reply is lost: asked for in the runner's journal, never
//! sent again, and told as what the journal says.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandReceipt, Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Fault, Injection, Phone, Scenario};
use fleetgate_tests::facts::{effects, on_record};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::verdict::Verdict;
use fleetgate_tests::{APP, Rig, plain, refused, screen, soon, stranger};
use serde_json::json;
use tonic::Status;

/// One phone in its own time: nothing here waits for a window to close.
async fn real_time() -> Rig {
    Rig::start(Scenario::fleet(1)).await
}

async fn tap(rig: &Rig, command_id: &str) -> Result<pb::TapResponse, Status> {
    let request = pb::TapRequest {
        device: rig.udid(0),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        point: plain::absolute(20.0, 30.0),
        number_of_taps: None,
    };
    Ok(rig.automation().tap(request).await?.into_inner())
}

/// Asserts that the runner read one command of this kind, and whether it was
/// asked for a journal entry.
#[track_caller]
fn assert_sent_once(phone: &Phone, kind: CommandKind, asked: bool) {
    let report = phone.report();
    assert_eq!(report.arrivals_of(kind), 1, "{:?}", report.arrivals);
    let lookups = report.arrivals_of(CommandKind::CommandStatus);
    assert_eq!(lookups > 0, asked, "{:?}", report.arrivals);
}

#[track_caller]
fn assert_recovered(receipt: &CommandReceipt) {
    assert_eq!(
        (receipt.fate(), receipt.effect(), receipt.attempts),
        (Fate::Completed, Effect::Applied, 1),
        "{receipt:?}"
    );
    assert!(receipt.recovered, "{receipt:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_lost_after_a_tap_is_recovered_and_the_phone_is_tapped_once() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    phone.fault(Injection::ReplyLostAfterExecution);

    let reply = tap(&rig, "lost").await.unwrap();

    assert_eq!(reply.message, "tapped");
    let receipt = reply.receipt.unwrap();
    assert_recovered(&receipt);
    let place = json!({ "x": 20.0, "y": 30.0, "numberOfTaps": 1.0 });
    let row = on_record(&rig, &rig.udid(0), CommandKind::Tap, &receipt, place).await;
    assert!(row.recovered);
    assert_eq!(effects(&phone, "lost").len(), 1);
    assert_sent_once(&phone, CommandKind::Tap, true);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mutation_whose_reply_is_lost_has_its_effect_once() {
    let mutations: Vec<_> = plain::queued()
        .filter(|kind| kind.is_mutation() && *kind != CommandKind::Shutdown)
        .collect();
    assert_eq!(mutations.len(), 7);
    let count = u32::try_from(mutations.len()).unwrap();
    let rig = Rig::start(Scenario::fleet(count)).await;
    for (kind, phone) in mutations.into_iter().zip(rig.lab.phones()) {
        let udid = phone.udid().to_string();
        let id = format!("lost-{kind}");
        screen::focus(&phone);
        phone.fault(Injection::ReplyLostAfterExecution);

        let receipt = plain::send(&rig, &udid, kind, &id).await.unwrap();

        assert_recovered(&receipt);
        assert_eq!(effects(&phone, &id).len(), 1, "{id}");
        assert_sent_once(&phone, kind, true);
        let row = rig.find(&id).await.unwrap();
        assert_eq!(
            (row.fate(), row.recovered),
            (Fate::Completed, true),
            "{row:?}"
        );
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_whose_reply_is_lost_happens_once_and_takes_its_journal_along() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::ReplyLostAfterExecution);
    let result = plain::send(&rig, &udid, CommandKind::Shutdown, "bye").await;

    assert_eq!(effects(&phone, "bye").len(), 1);
    assert_eq!(phone.report().arrivals_of(CommandKind::Shutdown), 1);
    // The runner may still be there for the question, or not.
    match result {
        Ok(receipt) => assert_recovered(&receipt),
        Err(status) => {
            let refusal = refused::<()>(Err(status));
            Outcome::unknown()
                .assert(&rig, &udid, CommandKind::Shutdown, "bye", &refusal)
                .await;
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completed_without_a_retained_reply_is_a_success_without_a_message() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    phone.fault(Injection::LongMessage { bytes: 20_000 });
    phone.fault(Injection::ReplyLostAfterExecution);

    let reply = tap(&rig, "lost").await.unwrap();

    assert_eq!(reply.message, "");
    let receipt = reply.receipt.unwrap();
    assert_eq!(
        (receipt.fate(), receipt.effect(), receipt.attempts),
        (Fate::CompletedResultLost, Effect::Applied, 1)
    );
    let place = json!({ "x": 20.0, "y": 30.0, "numberOfTaps": 1.0 });
    on_record(&rig, &rig.udid(0), CommandKind::Tap, &receipt, place).await;
    assert_eq!(effects(&phone, "lost").len(), 1);
    assert_sent_once(&phone, CommandKind::Tap, true);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_is_the_error_that_the_journal_holds() {
    let rig = real_time().await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    // The second is too long to be retained as an envelope.
    for (id, code, words, landed) in [
        ("short", RunnerCode::CommandFailed, "it broke".to_owned(), 1),
        (
            "long",
            RunnerCode::CommandFailed,
            "it broke ".repeat(3_000),
            1,
        ),
        (
            "none",
            RunnerCode::AppNotAvailable,
            "it is gone".to_owned(),
            0,
        ),
    ] {
        phone.fault(Injection::Error {
            code: code.clone(),
            message: words,
            hint: Some("mend it".to_owned()),
            after_effect: landed > 0,
        });
        phone.fault(Injection::ReplyLostAfterExecution);

        let refusal = refused(tap(&rig, id).await);

        let verdict = Verdict {
            recovered: true,
            ..Verdict::of(&code).saying("it ", Some("mend it"))
        };
        verdict
            .assert(&rig, &udid, CommandKind::Tap, id, &refusal)
            .await;
        assert_eq!(effects(&phone, id).len(), landed, "{id}");
    }
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 3);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_from_the_journal_says_that_the_app_was_brought_to_the_front() {
    let rig = real_time().await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::leave(&phone);
    let (code, words) = (RunnerCode::CommandFailed, "it broke");
    phone.fault(Injection::Error {
        code: code.clone(),
        message: words.to_owned(),
        hint: None,
        after_effect: false,
    });
    phone.fault(Injection::ReplyLostAfterExecution);

    let refusal = refused(tap(&rig, "fronted").await);

    let verdict = Verdict {
        recovered: true,
        reactivated: true,
        ..Verdict::of(&code).saying(words, None)
    };
    verdict
        .assert(&rig, &udid, CommandKind::Tap, "fronted", &refusal)
        .await;
    assert_eq!(phone.report().refronts, 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn started_is_asked_about_until_the_command_ends() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    phone.fault(Injection::Slow {
        by: Duration::from_secs(2),
    });
    let unplug = async {
        phone
            .wait_until(|report| report.in_flight == 1 && report.faults.is_empty())
            .await;
        phone.replug();
    };
    let (reply, ()) = tokio::join!(tap(&rig, "slow"), unplug);

    let reply = reply.unwrap();
    assert_eq!(reply.message, "tapped");
    assert_recovered(&reply.receipt.unwrap());
    assert_eq!(effects(&phone, "slow").len(), 1);
    let report = phone.report();
    assert_eq!(report.arrivals_of(CommandKind::Tap), 1);
    assert!(report.arrivals_of(CommandKind::CommandStatus) > 1);
    assert!(rig.find("slow").await.unwrap().recovered);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_is_asked_about_until_the_window_closes_and_then_unknown() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.03)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    // Somebody else's commands keep the runner beyond our window of 90 s.
    let slow = Injection::Slow {
        by: Duration::from_secs(70),
    };
    phone.fault(Fault::from(slow).on(CommandKind::Tap).times(2));
    let stranger = |id: &str| {
        let body = json!({ "command": "tap", "commandId": id, "appBundleId": APP, "x": 1, "y": 1 });
        let rig = &rig;
        async move { stranger::post(rig, 0, &body.to_string()).await }
    };
    let ours = async {
        phone.wait_until(|report| report.in_flight == 2).await;
        let unplug = async {
            phone.wait_until(|report| report.in_flight == 3).await;
            phone.replug();
        };
        let press = plain::send(&rig, &udid, CommandKind::LongPress, "behind");
        tokio::join!(press, unplug).0
    };
    let (_, _, result) = tokio::join!(stranger("first"), stranger("second"), ours);

    let refusal = refused(result);
    Outcome::unknown()
        .assert(&rig, &udid, CommandKind::LongPress, "behind", &refusal)
        .await;
    let report = phone.report();
    assert_eq!(report.arrivals_of(CommandKind::LongPress), 1);
    assert!(report.arrivals_of(CommandKind::CommandStatus) > 1);
    // That it may have happened is no more than the truth.
    assert_eq!(effects(&phone, "behind"), [""; 0]);
    soon(
        "the press",
        phone.wait_until(|report| report.in_flight == 0),
    )
    .await;
    assert_eq!(effects(&phone, "behind").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn not_accepted_proves_nothing_and_is_never_an_invitation_to_retry() {
    let killed = |after_effect, restart_on| Injection::Killed {
        after_effect,
        restart_on,
    };
    let (here, elsewhere) = (Some(DEFAULT_PORT), Some(DEFAULT_PORT + 200));
    // What befalls the tap, whether it lands, and whether a runner is there to
    // be asked.
    for (faults, landed, asked) in [
        (vec![Injection::ReplyLostBeforeExecution], 0, true),
        (
            vec![
                Injection::JournalEvicted,
                Injection::ReplyLostAfterExecution,
            ],
            1,
            true,
        ),
        (vec![killed(true, here)], 1, true),
        (vec![killed(false, here)], 0, true),
        (vec![killed(true, elsewhere)], 1, false),
        (vec![killed(false, elsewhere)], 0, false),
        (vec![killed(true, None)], 1, false),
    ] {
        let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
        let (phone, udid) = (rig.phone(0), rig.udid(0));
        faults.iter().cloned().for_each(|fault| phone.fault(fault));

        let refusal = refused(tap(&rig, "lost").await);

        Outcome::unknown()
            .assert(&rig, &udid, CommandKind::Tap, "lost", &refusal)
            .await;
        assert_eq!(effects(&phone, "lost").len(), landed, "{faults:?}");
        assert_sent_once(&phone, CommandKind::Tap, asked);
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_fails_is_asked_again_and_the_command_is_not() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    phone.fault(Injection::ReplyLostAfterExecution);
    let question = Fault::from(Injection::GarbageReply).on(CommandKind::CommandStatus);
    phone.fault(question.times(2));

    let reply = tap(&rig, "asked").await.unwrap();

    assert_recovered(&reply.receipt.unwrap());
    let report = phone.report();
    assert_eq!(report.arrivals_of(CommandKind::Tap), 1);
    assert!(report.arrivals_of(CommandKind::CommandStatus) > 2);
    assert_eq!(effects(&phone, "asked").len(), 1);
    rig.stop().await;
}
