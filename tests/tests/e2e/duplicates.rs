//! One id, one command: what is on record is not sent a second time, whoever
//! asks for it.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Injection;
use fleetgate_tests::facts::effects;
use fleetgate_tests::{Rig, plain, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

/// Asserts that the id of a mutation cannot be used again in this way.
async fn assert_used(rig: &Rig, n: usize, kind: CommandKind, command_id: &str) {
    let arrived = || {
        let phones = rig.lab.phones();
        phones
            .iter()
            .map(|phone| phone.arrivals().len())
            .sum::<usize>()
    };
    let before = (rig.find(command_id).await, arrived());
    let refusal = refused(plain::send(rig, &rig.udid(n), kind, command_id).await);
    assert_eq!(refusal.code, Code::AlreadyExists, "{refusal:?}");
    assert_eq!(refusal.reason, "DUPLICATE_COMMAND_ID", "{refusal:?}");
    assert_eq!(refusal.meta("command_id"), command_id);
    let proved = (refusal.meta("fate"), refusal.meta("effect"));
    assert_eq!(proved, ("NOT_SENT", "NONE"), "{refusal:?}");
    assert_ne!(refusal.meta("hint"), "");
    assert_eq!(refusal.retry_delay, None);
    let after = (rig.find(command_id).await, arrived());
    assert_eq!(after, before, "the record stands, and nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_recorded_mutation_is_never_sent_again() {
    let mut rig = Rig::plain(2).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let sent = plain::send(&rig, &udid, CommandKind::Tap, "completed").await;
    sent.unwrap();
    phone.fault(Injection::ConnectResult { number: 3 });
    refused(plain::send(&rig, &udid, CommandKind::Tap, "not-sent").await);
    phone.fault(Injection::ReplyLostAfterExecution);
    phone.fault(Injection::JournalEvicted);
    refused(plain::send(&rig, &udid, CommandKind::Tap, "unknown").await);
    for restarted in [false, true] {
        if restarted {
            rig = rig.restart_gateway().await;
        }
        for (id, times) in [("completed", 1), ("not-sent", 0), ("unknown", 1)] {
            // The same, another command, another phone.
            assert_used(&rig, 0, CommandKind::Tap, id).await;
            assert_used(&rig, 0, CommandKind::Type, id).await;
            assert_used(&rig, 1, CommandKind::Tap, id).await;
            assert_eq!(effects(&phone, id).len(), times, "{id}");
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_with_one_id_exactly_one_is_sent() {
    let rig = Rig::plain(2).await;
    let mut calls = JoinSet::new();
    for n in 0..16 {
        let (mut client, udid) = (rig.automation(), rig.udid(n % 2));
        calls.spawn(async move {
            let request = pb::PressButtonRequest {
                device: udid,
                command_id: Some("once".to_owned()),
                lease: None,
                button: pb::Button::VolumeUp.into(),
            };
            client.press_button(request).await
        });
    }
    let answers = soon("sixteen answers", calls.join_all()).await;
    let (done, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(!done.is_empty());
    for answer in failed {
        assert_eq!(refused(answer).code, Code::AlreadyExists);
    }
    let times: usize = (0..2).map(|n| effects(&rig.phone(n), "once").len()).sum();
    assert_eq!(times, 1);
    rig.stop().await;
}
