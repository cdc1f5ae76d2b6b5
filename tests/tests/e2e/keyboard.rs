//! Typing, return and delete: what ends up in the text field, and that what
//! was typed ends up nowhere else.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::ui::Screen;
use fleetgate_tests::facts::{clean, effects, in_no_file, on_record};
use fleetgate_tests::{APP, Rig, plain, screen};
use serde_json::json;

fn typing(device: &str, command_id: &str, text: &str) -> pb::TypeTextRequest {
    pb::TypeTextRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        text: text.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_any_script_reaches_the_field_and_only_its_length_the_ledger() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);

    let mut typed = String::new();
    for (id, text) in [
        ("ascii", "hello"),
        ("escapes", "\"\\/\t<&>'{}"),
        ("scripts", "Grüße, мир, 世界"),
        ("beyond", "🙂👩‍🚀e\u{301}"),
    ] {
        let reply = rig
            .automation()
            .type_text(typing(&udid, id, text))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(reply.message, "typed");
        let receipt = clean(reply.receipt, id);
        let length = text.chars().count();
        let fields = json!({ "textLength": f64::from(u32::try_from(length).unwrap()) });
        on_record(&rig, &udid, CommandKind::Type, &receipt, fields).await;
        typed.push_str(text);
        assert_eq!(screen::text(&phone), typed);
        assert_eq!(effects(&phone, id), [format!("typed {length} characters")]);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn return_ends_the_editing() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);
    phone.with_screen(|screen| screen.type_text("kept"));

    let request = pb::PressKeyboardReturnRequest {
        device: udid.clone(),
        command_id: Some("return".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    let reply = rig
        .automation()
        .press_keyboard_return(request)
        .await
        .unwrap()
        .into_inner();

    assert_eq!(reply.message, "pressed return");
    let receipt = clean(reply.receipt, "return");
    on_record(
        &rig,
        &udid,
        CommandKind::KeyboardReturn,
        &receipt,
        json!({}),
    )
    .await;
    assert!(!phone.screen().focused);
    assert_eq!(screen::text(&phone), "kept");
    assert_eq!(effects(&phone, "return"), ["pressed return"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_takes_one_character_away() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);
    phone.with_screen(|screen| screen.type_text("ab🙂"));

    for (id, left) in [("delete-1", "ab"), ("delete-2", "a")] {
        let request = pb::PressKeyboardDeleteRequest {
            device: udid.clone(),
            command_id: Some(id.to_owned()),
            lease: None,
            app_bundle_id: APP.to_owned(),
        };
        let reply = rig
            .automation()
            .press_keyboard_delete(request)
            .await
            .unwrap()
            .into_inner();

        assert_eq!(reply.message, "deleted");
        let receipt = clean(reply.receipt, id);
        on_record(
            &rig,
            &udid,
            CommandKind::KeyboardDelete,
            &receipt,
            json!({}),
        )
        .await;
        assert_eq!(screen::text(&phone), left);
        assert_eq!(effects(&phone, id), ["deleted a character"]);
    }
    assert!(phone.screen().focused);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_text_is_in_no_file_that_the_gateway_writes() {
    const CANARY: &str = "canary-Zq7vN2-Ω";
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);
    rig.automation()
        .type_text(typing(&udid, "typed", CANARY))
        .await
        .unwrap();
    assert_eq!(screen::text(&phone), CANARY);
    // The same without focus: a verdict against it is on record, too.
    phone.with_screen(Screen::keyboard_return);
    rig.automation()
        .type_text(typing(&udid, "refused", CANARY))
        .await
        .unwrap_err();
    let device = udid.clone();
    plain::send(&rig, &device, CommandKind::Snapshot, "shown")
        .await
        .unwrap();

    // While the ledger is open, its log beside it, and when all is closed.
    in_no_file(rig.dir(), CANARY, "typed");
    let (_, lab, dir) = rig.stop_gateway().await;
    in_no_file(dir.path(), CANARY, "typed");
    lab.shutdown().await;
}
