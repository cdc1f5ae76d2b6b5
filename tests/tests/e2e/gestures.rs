//! Taps, long presses and drags: every field of their requests, from the
//! caller to what moved on the screen.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::{clean, effects, on_record, parameters, rows, wait};
use fleetgate_tests::plain::{absolute, normalized};
use fleetgate_tests::{APP, Rig, screen};
use serde_json::json;

fn tap(
    device: &str,
    command_id: &str,
    point: Option<pb::Point>,
    taps: Option<u32>,
) -> pb::TapRequest {
    pb::TapRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        point,
        number_of_taps: taps,
    }
}

fn long_press(
    device: &str,
    command_id: &str,
    point: Option<pb::Point>,
    duration: Option<prost_types::Duration>,
) -> pb::LongPressRequest {
    pb::LongPressRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        point,
        duration,
    }
}

fn drag(
    device: &str,
    command_id: &str,
    from: Option<pb::Point>,
    to: Option<pb::Point>,
) -> pb::DragRequest {
    pb::DragRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        from,
        to,
        duration: None,
        hold: None,
        settle: false,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it fills a message's field")]
fn millis(millis: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration {
        seconds: (millis / 1000).into(),
        nanos: millis % 1000 * 1_000_000,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_lands_as_often_as_it_was_asked_for() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::open(&phone);
    let (x, y) = screen::centre(&phone, &format!("{}.counter", screen::ROW));

    let (mut tapped, mut log) = (0, Vec::new());
    for (id, asked, taps) in [
        ("t-0", None, 1),
        ("t-1", Some(1), 1),
        ("t-2", Some(2), 2),
        ("t-3", Some(3), 3),
    ] {
        let before = phone.screen().gestures.taps;
        let reply = rig
            .automation()
            .tap(tap(&udid, id, absolute(x, y), asked))
            .await
            .unwrap()
            .into_inner();

        assert_eq!(reply.message, "tapped");
        let receipt = clean(reply.receipt, id);
        let fields = json!({ "x": x, "y": y, "numberOfTaps": f64::from(taps) });
        on_record(&rig, &udid, CommandKind::Tap, &receipt, fields).await;
        tapped += taps;
        assert_eq!(screen::taps(&phone), tapped);
        assert_eq!(phone.screen().gestures.taps, before + u64::from(taps));
        assert_eq!(phone.screen().last_touch, Some((x, y)));
        log.push(effects(&phone, id));
    }
    // Two are one gesture; three are three, of which the log holds the first.
    let place = format!("at ({x:.1}, {y:.1}) on Tapped");
    assert_eq!(
        log[0],
        [format!("tap {place} 0 times: Counted {{ taps: 1 }}")]
    );
    assert_eq!(
        log[1],
        [format!("tap {place} 1 time: Counted {{ taps: 2 }}")]
    );
    assert_eq!(
        log[2],
        [format!("2 taps {place} 2 times: Counted {{ taps: 4 }}")]
    );
    assert_eq!(
        log[3],
        [format!("3 taps {place} 4 times: Counted {{ taps: 5 }}")]
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_normalized_tap_lands_where_the_viewport_of_that_moment_puts_it() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::open(&phone);

    for (id, at, (x, y)) in [
        ("n-corner", normalized(0.0, 0.0), (0.0, 0.0)),
        ("n-middle", normalized(0.5, 0.25), (196.5, 213.0)),
        ("n-far", normalized(1.0, 1.0), (393.0, 852.0)),
    ] {
        let reply = rig
            .automation()
            .tap(tap(&udid, id, at, None))
            .await
            .unwrap()
            .into_inner();
        let receipt = clean(reply.receipt, id);
        let fields = json!({ "x": x, "y": y, "numberOfTaps": 1.0 });
        on_record(&rig, &udid, CommandKind::Tap, &receipt, fields).await;
        assert_eq!(phone.screen().last_touch, Some((x, y)));
        assert_eq!(effects(&phone, id).len(), 1);
    }
    // Each was preceded by a read of its own, which is on record as well.
    assert_eq!(phone.report().arrivals_of(CommandKind::Viewport), 3);
    let kinds: Vec<_> = rows(&rig)
        .await
        .iter()
        .rev()
        .map(pb::CommandRecord::kind)
        .collect();
    let pair = [pb::CommandKind::Viewport, pb::CommandKind::Tap];
    assert_eq!(kinds, pair.repeat(3));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_press_lasts_as_long_as_it_was_asked_to_or_the_runners_default() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::open(&phone);
    let button = format!("{}.counter", screen::ROW);
    let (x, y) = screen::centre(&phone, &button);
    let menu = |id: &str| {
        effects(&phone, id)
            == [format!(
                "long press at ({x:.1}, {y:.1}) on Tapped {} times: MenuOpened",
                screen::taps(&phone)
            )]
    };

    // Half a second opens the button's menu; less is a slow tap.
    let request = long_press(&udid, "p-default", absolute(x, y), None);
    let reply = rig
        .automation()
        .long_press(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(reply.message, "long-pressed");
    let receipt = clean(reply.receipt, "p-default");
    on_record(
        &rig,
        &udid,
        CommandKind::LongPress,
        &receipt,
        json!({ "x": x, "y": y }),
    )
    .await;
    assert!(menu("p-default"), "{:?}", effects(&phone, "p-default"));
    screen::touch(&phone, "PopoverDismissRegion");

    let request = long_press(&udid, "p-short", absolute(x, y), millis(499));
    let reply = rig
        .automation()
        .long_press(request)
        .await
        .unwrap()
        .into_inner();
    let receipt = clean(reply.receipt, "p-short");
    let fields = json!({ "x": x, "y": y, "durationMs": 499.0 });
    on_record(&rig, &udid, CommandKind::LongPress, &receipt, fields).await;
    assert_eq!(screen::taps(&phone), 1, "a slow tap");

    // By fractions of the viewport, and longer than a second.
    let at = normalized(x / 393.0, y / 852.0);
    let reply = rig
        .automation()
        .long_press(long_press(&udid, "p-long", at, millis(2500)))
        .await
        .unwrap()
        .into_inner();
    let receipt = clean(reply.receipt, "p-long");
    let scaled = rig.scaled(Duration::from_millis(2500));
    assert!(wait(receipt.device_time) >= scaled, "{receipt:?}");
    let row = rig.find("p-long").await.unwrap();
    assert_eq!(parameters(&row)["durationMs"], json!(2500.0));
    assert_eq!(effects(&phone, "p-long").len(), 1);
    screen::touch(&phone, &format!("{button}.reset"));
    assert_eq!(screen::taps(&phone), 0, "the menu was open");
    assert_eq!(phone.screen().gestures.long_presses, 3);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drag_that_settles_moves_the_list_by_its_length_and_one_that_does_not_flings_it() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));

    let settled = pb::DragRequest {
        settle: true,
        ..drag(
            &udid,
            "d-settled",
            absolute(200.0, 400.0),
            absolute(200.0, 350.0),
        )
    };
    let reply = rig.automation().drag(settled).await.unwrap().into_inner();
    assert_eq!(reply.message, "dragged");
    let receipt = clean(reply.receipt, "d-settled");
    let fields =
        json!({ "fromX": 200.0, "fromY": 400.0, "toX": 200.0, "toY": 350.0, "settle": true });
    on_record(&rig, &udid, CommandKind::Drag, &receipt, fields).await;
    assert!(screen::scrolled(&phone, 50.0));
    assert_eq!(phone.screen().last_touch, Some((200.0, 350.0)));
    assert_eq!(effects(&phone, "d-settled").len(), 1);

    // 50 points in half a second are 100 points per second, and the list rolls
    // on for half a second's worth.
    let flung = pb::DragRequest {
        duration: millis(500),
        ..drag(
            &udid,
            "d-flung",
            absolute(200.0, 400.0),
            absolute(200.0, 350.0),
        )
    };
    let reply = rig.automation().drag(flung).await.unwrap().into_inner();
    let receipt = clean(reply.receipt, "d-flung");
    let fields =
        json!({ "fromX": 200.0, "fromY": 400.0, "toX": 200.0, "toY": 350.0, "durationMs": 500.0 });
    on_record(&rig, &udid, CommandKind::Drag, &receipt, fields).await;
    assert!(screen::scrolled(&phone, 150.0));
    assert_eq!(phone.screen().gestures.drags, 2);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drag_that_holds_first_picks_a_row_up_and_drops_it_elsewhere() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let rows = phone.screen().first_rows;
    let (from, to) = (
        screen::centre(&phone, &rows[0]),
        screen::centre(&phone, &rows[2]),
    );

    let held = pb::DragRequest {
        duration: millis(400),
        hold: millis(600),
        settle: true,
        ..drag(
            &udid,
            "d-held",
            absolute(from.0, from.1),
            absolute(to.0, to.1),
        )
    };
    let reply = rig.automation().drag(held).await.unwrap().into_inner();
    let receipt = clean(reply.receipt, "d-held");
    let fields = json!({
        "fromX": from.0, "fromY": from.1, "toX": to.0, "toY": to.1,
        "durationMs": 400.0, "holdMs": 600.0, "settle": true,
    });
    on_record(&rig, &udid, CommandKind::Drag, &receipt, fields).await;
    let moved: Vec<_> = [1, 2, 0].map(|at: usize| rows[at].clone()).to_vec();
    assert_eq!(phone.screen().first_rows[..3], moved[..]);
    assert!(screen::scrolled(&phone, 0.0));
    assert_eq!(effects(&phone, "d-held").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drag_takes_either_end_as_fractions_with_one_look_at_the_viewport() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    for (id, from, to, looks) in [
        ("d-both", normalized(0.5, 0.5), normalized(0.5, 0.4), 1),
        ("d-from", normalized(0.5, 0.5), absolute(196.5, 340.8), 2),
        ("d-to", absolute(196.5, 426.0), normalized(0.5, 0.4), 3),
    ] {
        let request = pb::DragRequest {
            settle: true,
            ..drag(&udid, id, from, to)
        };
        let reply = rig.automation().drag(request).await.unwrap().into_inner();
        let receipt = clean(reply.receipt, id);
        let fields =
            json!({ "fromX": 196.5, "fromY": 426.0, "toX": 196.5, "toY": 340.8, "settle": true });
        on_record(&rig, &udid, CommandKind::Drag, &receipt, fields).await;
        assert_eq!(phone.report().arrivals_of(CommandKind::Viewport), looks);
        assert_eq!(effects(&phone, id).len(), 1);
    }
    assert!(screen::scrolled(&phone, 3.0 * 85.2));
    rig.stop().await;
}
