//! Names: a phone in every spelling, a command by its caller's id or by one
//! that was made for it.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Injection, Scenario};
use fleetgate_tests::facts::rows;
use fleetgate_tests::plain::Head;
use fleetgate_tests::{APP, Rig, plain, refused};

const NEW: &str = "00008110-000978540290401E";
const OLD: &str = "0123456789abcdef0123456789abcdef01234567";

async fn rig_with_both() -> Rig {
    let mut scenario = Scenario::fleet(2).scaled(0.02);
    for (phone, udid) in scenario.phones.iter_mut().zip([NEW, OLD]) {
        phone.udid = udid.parse().unwrap();
        phone.serial = udid.replace('-', "");
    }
    let devices = format!(
        "[[device]]\nudid = '{}'\nalias = 'rack-1/Ω'\n[[device]]\nudid = '{}'\nalias = 'old-one'\n",
        NEW.to_lowercase(),
        OLD.to_uppercase(),
    );
    Rig::configured(scenario, |config| {
        let path = config.ledger.path.with_extension("devices.toml");
        std::fs::write(&path, devices).unwrap();
        config.device = fleetgate_gateway::Config::load_with(Some(&path), [])
            .unwrap()
            .device;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_spelling_of_a_udid_and_its_alias_name_one_phone() {
    let rig = rig_with_both().await;
    let spellings = [
        (NEW, "00008110-000978540290401E"),
        (NEW, "00008110-000978540290401e"),
        (NEW, "00008110000978540290401E"),
        (NEW, "00008110000978540290401e"),
        (NEW, "  00008110-000978540290401E\n"),
        (NEW, "rack-1/Ω"),
        (OLD, "0123456789abcdef0123456789abcdef01234567"),
        (OLD, "0123456789ABCDEF0123456789ABCDEF01234567"),
        (OLD, "0123456789abcdef0123456789ABCDEF01234567"),
        (OLD, "old-one"),
    ];
    for (at, (udid, spelling)) in spellings.into_iter().enumerate() {
        let phone = rig.lab.phone(&udid.parse().unwrap()).unwrap();
        let id = format!("named-{at}");
        plain::send(&rig, spelling, CommandKind::Button, &id)
            .await
            .unwrap();
        assert_eq!(phone.effects_of(&id.parse().unwrap()), 1, "{spelling:?}");
        assert_eq!(rig.find(&id).await.unwrap().device, udid, "{spelling:?}");

        let id = format!("failed-{at}");
        phone.fault(Injection::Error {
            code: RunnerCode::CommandFailed,
            message: String::new(),
            hint: None,
            after_effect: false,
        });
        let refusal = refused(plain::send(&rig, spelling, CommandKind::Button, &id).await);
        assert_eq!(refusal.meta("device"), udid, "{spelling:?}");
        phone.clear_faults();

        let request = pb::GetDeviceRequest {
            device: spelling.to_owned(),
        };
        let device = rig
            .fleet()
            .get_device(request)
            .await
            .unwrap()
            .into_inner()
            .device
            .unwrap();
        assert_eq!(device.udid, udid);
        let request = pb::ListCommandsRequest {
            device: spelling.to_owned(),
            page_size: 1,
            ..pb::ListCommandsRequest::default()
        };
        let listed = rig
            .ledger()
            .list_commands(request)
            .await
            .unwrap()
            .into_inner()
            .commands;
        assert_eq!(listed[0].command_id, id, "{spelling:?}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_an_id_is_given_a_new_one_that_sorts_after_those_before() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    let mut minted = Vec::new();
    for kind in plain::queued().filter(|kind| *kind != CommandKind::Shutdown) {
        let head = Head {
            device: rig.udid(0),
            command_id: None,
            lease: None,
            app_bundle_id: APP.to_owned(),
        };
        let outcome = plain::send_as(&rig, kind, head).await;
        // Without focus, typing is refused; the id is told all the same.
        let id = match outcome {
            Ok(receipt) => receipt.command_id,
            Err(status) => fleetgate_tests::Refusal::from(status)
                .meta("command_id")
                .to_owned(),
        };
        let arrived = phone.arrivals().pop().unwrap();
        assert_eq!(
            arrived.command_id,
            Some(id.parse().unwrap()),
            "one id here and there"
        );
        assert_eq!(rig.find(&id).await.unwrap().kind(), plain::kind(kind));
        minted.push(id);
    }
    assert_eq!(minted.len(), 10);
    assert!(minted.is_sorted_by(|one, next| one < next), "{minted:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_id_is_the_runners_and_the_ledgers_whatever_it_looks_like() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    let longest = "x".repeat(128);
    let ids = [
        "a",
        "argent-1234",
        "~!@#$%^&*()_+{}|:\"<>?`-=[]\\;',./",
        &longest,
    ];
    for id in ids {
        let receipt = plain::send(&rig, &rig.udid(0), CommandKind::Button, id)
            .await
            .unwrap();
        assert_eq!(receipt.command_id, id);
        assert_eq!(phone.effects_of(&id.parse().unwrap()), 1);
        assert_eq!(rig.find(id).await.unwrap().command_id, id);
    }
    // White space around it is not part of it.
    let receipt = plain::send(&rig, &rig.udid(0), CommandKind::Button, " b ")
        .await
        .unwrap();
    assert_eq!(receipt.command_id, "b");
    assert_eq!(rows(&rig).await.len(), 5);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_on_record_is_refused_to_another_command() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    plain::send(&rig, &udid, CommandKind::Button, "once")
        .await
        .unwrap();
    let row = rig.find("once").await.unwrap();

    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "once").await);

    assert_eq!(refusal.code, tonic::Code::AlreadyExists);
    assert_eq!(refusal.meta("command_id"), "once");
    assert_eq!(refusal.retry_delay, None);
    assert!(!refusal.meta("hint").is_empty());
    assert_eq!(
        rig.find("once").await.unwrap(),
        row,
        "the first one's row is as it was"
    );
    assert_eq!(phone.effects().len(), 1);
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 0);
    rig.stop().await;
}
