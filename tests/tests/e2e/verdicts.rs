//! Every code that a runner can answer every command with, as the runner's
//! scripted word, and what becomes of it.

use std::time::Duration;

use fleetgate_proto::v1::{GetRunnerStatusRequest, RunnerState};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, Phone};
use fleetgate_tests::facts::effects;
use fleetgate_tests::verdict::{Verdict, can_answer};
use fleetgate_tests::{Rig, plain, plain_lab, refused, screen};
use futures_util::future::join_all;

const CODES: [RunnerCode; 12] = [
    RunnerCode::InvalidRequest,
    RunnerCode::AppBundleIdRequired,
    RunnerCode::AppNotAvailable,
    RunnerCode::AppBackgrounded,
    RunnerCode::TextInputNotFocused,
    RunnerCode::UnsupportedOperation,
    RunnerCode::RunnerBusy,
    RunnerCode::RunnerWedged,
    RunnerCode::XctestRecordedFailure,
    RunnerCode::SnapshotFailed,
    RunnerCode::CommandTimedOut,
    RunnerCode::CommandFailed,
];

fn codes() -> impl Iterator<Item = RunnerCode> {
    CODES
        .into_iter()
        .chain([RunnerCode::Other("FROM_THE_FUTURE".to_owned())])
}

fn answer(code: &RunnerCode, after_effect: bool) -> Fault {
    let (message, hint) = (
        "the runner's words".to_owned(),
        Some("its advice".to_owned()),
    );
    Fault::from(Injection::Error {
        code: code.clone(),
        message,
        hint,
        after_effect,
    })
}

/// A phone for each command of the queue, with a focused text field, so that
/// each would have its effect if it ran.
async fn a_phone_for_each(time_scale: f64) -> (Rig, Vec<(CommandKind, Phone)>) {
    let count = u32::try_from(plain::queued().count()).unwrap();
    let rig = Rig::start(plain_lab(count, time_scale)).await;
    let phones: Vec<_> = plain::queued().zip(rig.lab.phones()).collect();
    for (_, phone) in &phones {
        screen::focus(phone);
    }
    (rig, phones)
}

async fn every_code(rig: &Rig, kind: CommandKind, phone: &Phone) -> usize {
    let device = phone.udid().to_string();
    let mut told = 0;
    for code in codes().filter(|code| can_answer(kind, code)) {
        let id = format!("{kind}-{code}");
        let verdict = Verdict::of(&code).saying("the runner's words", Some("its advice"));
        // The one code that is tried again is given until the gateway gives up.
        let (times, attempts) = if code == RunnerCode::RunnerBusy {
            (10_000, None)
        } else {
            (1, Some(1))
        };
        phone.fault(answer(&code, false).on(kind).times(times));
        let refusal = refused(plain::send(rig, &device, kind, &id).await);
        phone.clear_faults();

        Verdict {
            attempts,
            ..verdict
        }
        .assert(rig, &device, kind, &id, &refusal)
        .await;
        assert_eq!(effects(phone, &id), [""; 0], "{id} did nothing");
        told += 1;
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_that_a_command_can_be_answered_with_reaches_caller_and_ledger() {
    let (rig, phones) = a_phone_for_each(0.02).await;
    let all = phones
        .iter()
        .map(|(kind, phone)| every_code(&rig, *kind, phone));
    let told: usize = join_all(all).await.into_iter().sum();
    assert_eq!(told, 11 * 7 + 8 * 2 + 2 + 3 + 8, "commands times codes");
    for (_, phone) in &phones {
        assert_eq!(phone.effects(), []);
        assert_eq!(phone.max_in_flight(), 1);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_that_ran_and_failed_has_an_unknown_effect_and_is_not_sent_again() {
    let (rig, phones) = a_phone_for_each(0.02).await;
    for (kind, phone) in phones.iter().filter(|(kind, _)| kind.is_mutation()) {
        let device = phone.udid().to_string();
        for code in [RunnerCode::CommandFailed, RunnerCode::CommandTimedOut] {
            // Return ends the editing, and the next one needs it.
            if !phone.screen().focused {
                screen::touch(phone, &format!("{}.name", screen::ROW));
            }
            let id = format!("{kind}-{code}");
            phone.fault(answer(&code, true).on(*kind));
            let refusal = refused(plain::send(&rig, &device, *kind, &id).await);
            let verdict = Verdict::of(&code).saying("the runner's words", Some("its advice"));
            verdict.assert(&rig, &device, *kind, &id, &refusal).await;
            assert_eq!(effects(phone, &id).len(), 1, "{id} ran once");
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_xctest_recorded_is_told_although_the_command_had_its_effect() {
    let (rig, phones) = a_phone_for_each(0.02).await;
    for (kind, phone) in &phones {
        let (device, id) = (phone.udid().to_string(), format!("{kind}-recorded"));
        phone.fault(Fault::from(Injection::RecordedFailure).on(*kind));
        let outcome = plain::send(&rig, &device, *kind, &id).await;
        if kind.is_mutation() {
            let verdict = Verdict::of(&RunnerCode::XctestRecordedFailure).saying("XCTest", None);
            verdict
                .assert(&rig, &device, *kind, &id, &refused(outcome))
                .await;
            assert_eq!(effects(phone, &id).len(), 1, "{id} ran once");
        } else {
            outcome.unwrap();
        }
        assert_eq!(phone.report().runner.unwrap().recorded_failures, 1);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_is_tried_again_under_the_same_id_until_the_command_runs_once() {
    let (rig, phones) = a_phone_for_each(0.05).await;
    for (kind, phone) in &phones {
        let (device, id) = (phone.udid().to_string(), format!("{kind}-patient"));
        phone.fault(Fault::from(Injection::Busy).on(*kind).times(2));
        let receipt = plain::send(&rig, &device, *kind, &id).await.unwrap();
        assert_eq!(receipt.attempts, 3);
        assert_eq!(rig.find(&id).await.unwrap().attempts, 3);
        assert_eq!(effects(phone, &id).len(), usize::from(kind.is_mutation()));
        let arrivals = phone.arrivals();
        let ids: Vec<_> = arrivals
            .iter()
            .filter_map(|arrival| arrival.command_id.as_ref())
            .collect();
        assert_eq!(ids.iter().filter(|sent| sent.as_str() == id).count(), 3);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_hangs_times_out_then_the_runner_is_busy_then_wedged() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let state = async || {
        let request = GetRunnerStatusRequest {
            device: udid.clone(),
        };
        rig.automation()
            .get_runner_status(request)
            .await
            .unwrap()
            .into_inner()
            .state()
    };
    phone.fault(Fault::from(Injection::NeverEnds));
    let began = tokio::time::Instant::now();
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Screenshot, "hangs").await);
    assert!(
        began.elapsed() >= rig.scaled(Duration::from_secs(30)),
        "the runner's whole budget"
    );
    let verdict = Verdict::of(&RunnerCode::CommandTimedOut).saying(
        "overran its budget",
        Some("the command may still take effect"),
    );
    verdict
        .assert(&rig, &udid, CommandKind::Screenshot, "hangs", &refusal)
        .await;
    assert_eq!(state().await, RunnerState::Busy);

    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "busy").await);
    let verdict = Verdict::of(&RunnerCode::RunnerBusy)
        .saying("draining", Some("send the command again in a moment"));
    let verdict = Verdict {
        attempts: None,
        ..verdict
    };
    verdict
        .assert(&rig, &udid, CommandKind::Tap, "busy", &refusal)
        .await;

    fleetgate_tests::soon("a wedged runner", async {
        while state().await != RunnerState::Wedged {
            fleetgate_tests::pause().await;
        }
    })
    .await;
    for kind in [
        CommandKind::Tap,
        CommandKind::Screenshot,
        CommandKind::Shutdown,
    ] {
        let id = format!("{kind}-wedged");
        let refusal = refused(plain::send(&rig, &udid, kind, &id).await);
        let verdict = Verdict::of(&RunnerCode::RunnerWedged)
            .saying("stuck", Some("recycle the runner's session"));
        verdict.assert(&rig, &udid, kind, &id, &refusal).await;
    }
    assert_eq!(phone.effects(), []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runners_own_time_limit_reaches_the_caller_in_every_class_of_commands() {
    let classes = [
        CommandKind::Tap,
        CommandKind::Type,
        CommandKind::Snapshot,
        CommandKind::Viewport,
    ];
    let (rig, phones) = a_phone_for_each(0.05).await;
    let phones = phones
        .into_iter()
        .filter(|(kind, _)| classes.contains(kind));
    let all = phones.map(async |(kind, phone)| {
        let (device, id) = (phone.udid().to_string(), format!("{kind}-overruns"));
        phone.fault(Fault::from(Injection::NeverEnds));
        let refusal = refused(plain::send(&rig, &device, kind, &id).await);
        let verdict = Verdict::of(&RunnerCode::CommandTimedOut).saying(
            "overran its budget",
            Some("the command may still take effect"),
        );
        verdict.assert(&rig, &device, kind, &id, &refusal).await;
        assert_eq!(effects(&phone, &id), [""; 0]);
    });
    assert_eq!(join_all(all).await.len(), 4);
    rig.stop().await;
}
