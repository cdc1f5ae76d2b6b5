//! A runner that repeats what it was to type: nobody else may.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::in_no_file;
use fleetgate_tests::verdict::Verdict;
use fleetgate_tests::{APP, Refusal, Rig, screen};
use tonic::Status;

const CANARY: &str = "canary \"pa$$\\wörd\" 🔑";

async fn type_canary(rig: &Rig, command_id: &str) -> Status {
    let request = pb::TypeTextRequest {
        device: rig.udid(0),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        text: CANARY.to_owned(),
    };
    rig.automation().type_text(request).await.unwrap_err()
}

/// A fault whose words repeat the text, in the message and in the hint.
fn echo(after_effect: bool) -> Fault {
    let message = format!("cannot type {CANARY}, really {CANARY}");
    let hint = Some(format!("do not type {CANARY}"));
    let code = RunnerCode::CommandFailed;
    Fault::from(Injection::Error {
        code,
        message,
        hint,
        after_effect,
    })
    .on(CommandKind::Type)
}

/// Asserts that a status repeats nothing, in words and in its bytes.
fn assert_silent(status: &Status) {
    let words = format!("{status:?} {:?}", Refusal::from(status.clone()));
    let bytes = String::from_utf8_lossy(status.details());
    for secret in [CANARY, "canary", "wörd"] {
        assert!(
            !words.contains(secret) && !bytes.contains(secret),
            "{words}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_that_repeats_typed_text_is_redacted_wherever_it_goes() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);

    phone.fault(Injection::EchoText);
    let echoed = type_canary(&rig, "echoed").await;
    phone.fault(echo(false));
    let advised = type_canary(&rig, "advised").await;
    phone.fault(echo(true));
    let typed = type_canary(&rig, "typed").await;
    assert_eq!(screen::text(&phone), CANARY, "typed once");
    // The same, learnt from the journal.
    phone.fault(echo(false));
    phone.fault(Fault::from(Injection::ReplyLostAfterExecution).on(CommandKind::Type));
    let recovered = type_canary(&rig, "recovered").await;

    let failed = Verdict::of(&RunnerCode::CommandFailed);
    let verdict = failed.clone().saying(
        "cannot type [redacted], really [redacted]",
        Some("do not type [redacted]"),
    );
    for (id, status, verdict) in [
        (
            "echoed",
            echoed,
            failed.saying("could not type \"[redacted]\"", None),
        ),
        ("advised", advised, verdict.clone()),
        ("typed", typed, verdict.clone()),
        (
            "recovered",
            recovered,
            Verdict {
                recovered: true,
                ..verdict
            },
        ),
    ] {
        assert_silent(&status);
        let refusal = Refusal::from(status);
        let row = verdict
            .assert(&rig, &udid, CommandKind::Type, id, &refusal)
            .await;
        assert!(!format!("{row:?}").contains("canary"), "{row:?}");
        let request = pb::GetRunnerCommandStatusRequest {
            device: udid.clone(),
            command_id: id.to_owned(),
        };
        let entry = rig.automation().get_runner_command_status(request).await;
        let entry = entry.unwrap().into_inner();
        assert_eq!(entry.error_code.as_deref(), Some("COMMAND_FAILED"));
        assert!(!format!("{entry:?}").contains("canary"), "{entry:?}");
    }
    in_no_file(rig.dir(), "canary", "recovered");
    let (_, lab, dir) = rig.stop_gateway().await;
    in_no_file(dir.path(), "canary", "recovered");
    lab.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_verdict_is_cut_for_the_status_and_for_the_ledger() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let (message, hint) = ("ж ".repeat(100_000), Some("и ".repeat(100_000)));
    let error = Injection::Error {
        code: RunnerCode::CommandFailed,
        message,
        hint,
        after_effect: false,
    };
    phone.fault(error);
    let status = fleetgate_tests::plain::send(&rig, &udid, CommandKind::Tap, "endless")
        .await
        .unwrap_err();

    assert!(status.message().len() <= 2048 && status.message().contains("ж ж"));
    let refusal = Refusal::from(status);
    assert_eq!(refusal.reason, "COMMAND_FAILED");
    assert!(refusal.meta("hint").starts_with("и и"), "{refusal:?}");
    let row = rig.find("endless").await.unwrap();
    assert!(row.message.unwrap().len() <= 2048);
    assert_eq!(row.reason.as_deref(), Some("COMMAND_FAILED"));
    rig.stop().await;
}
