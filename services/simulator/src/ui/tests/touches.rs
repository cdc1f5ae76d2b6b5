//! What gestures, typing and buttons change.

use super::*;

#[test]
fn a_tap_on_a_row_opens_its_page_and_back_returns_to_the_list() {
    let mut screen = general();
    assert_eq!(screen.summary().page, "com.example.settings.general");
    let back = find(&screen, |node| {
        node.identifier.as_deref() == Some("BackButton")
    })
    .unwrap();
    let hit = screen.tap(middle(&back), 1);
    assert_eq!(
        hit,
        Hit {
            label: Some("Settings".to_owned()),
            change: Change::WentBack
        }
    );
    assert_eq!(screen.summary().page, "list");
}

#[test]
fn taps_on_the_button_are_counted_in_its_label() {
    let mut screen = general();
    assert_eq!(
        by_id(&screen, "general.counter").label.unwrap(),
        "Tapped 0 times"
    );
    tap(&mut screen, "general.counter");
    assert_eq!(
        by_id(&screen, "general.counter").label.unwrap(),
        "Tapped 1 time"
    );
    let at = middle(&by_id(&screen, "general.counter"));
    assert_eq!(screen.tap(at, 2).change, Change::Counted { taps: 3 });
    assert_eq!(screen.tap(at, 4).change, Change::Counted { taps: 7 });
    assert_eq!(
        by_id(&screen, "general.counter").label.unwrap(),
        "Tapped 7 times"
    );
    assert_eq!(screen.summary().counters["com.example.settings.general"], 7);
    assert_eq!(
        screen.summary().gestures.taps,
        8,
        "one of them opened the page"
    );
}

#[test]
fn a_switch_shows_its_state_as_a_value_and_on_the_list() {
    let mut screen = general();
    assert_eq!(by_id(&screen, "general.enabled").value.unwrap(), "0");
    assert_eq!(
        tap(&mut screen, "general.enabled").change,
        Change::Switched { on: true }
    );
    assert_eq!(by_id(&screen, "general.enabled").value.unwrap(), "1");
    let at = middle(&by_id(&screen, "general.enabled"));
    screen.tap(at, 2);
    assert_eq!(
        by_id(&screen, "general.enabled").value.unwrap(),
        "1",
        "twice is back again"
    );
    screen.tap(point(40.0, 70.0), 1);
    let states = look(&screen).nodes;
    assert_eq!(
        states
            .iter()
            .filter(|node| node.label.as_deref() == Some("On"))
            .count(),
        1
    );
}

#[test]
fn typing_goes_into_the_focused_field_only() {
    let mut screen = general();
    screen.type_text("lost");
    assert!(!screen.has_focus());
    assert_eq!(by_id(&screen, "general.name").value, None);

    tap(&mut screen, "general.name");
    assert!(screen.has_focus());
    screen.type_text("Grüße 🙂");
    let field = by_id(&screen, "general.name");
    assert_eq!(
        (field.value.as_deref(), field.focused),
        (Some("Grüße 🙂"), Some(true))
    );
    screen.keyboard_delete();
    assert_eq!(by_id(&screen, "general.name").value.unwrap(), "Grüße ");
    screen.keyboard_return();
    assert!(!screen.has_focus());
    assert_eq!(by_id(&screen, "general.name").focused, None);
    screen.keyboard_delete();
    assert_eq!(by_id(&screen, "general.name").value.unwrap(), "Grüße ");
}

#[test]
fn a_newline_in_the_text_ends_the_editing() {
    let mut screen = general();
    tap(&mut screen, "general.name");
    screen.type_text("one\ntwo");
    assert_eq!(by_id(&screen, "general.name").value.unwrap(), "one");
    assert!(!screen.has_focus());
}

#[test]
fn the_keys_of_the_keyboard_type_and_leave_the_viewport_alone() {
    let mut screen = general();
    let before = screen.viewport();
    tap(&mut screen, "general.name");
    assert_eq!(screen.viewport(), before);
    for label in ["shift", "H", "i", "space", "x", "delete"] {
        let at = middle(&key(&screen, label));
        assert_eq!(screen.tap(at, 1).change, Change::Typed);
    }
    assert_eq!(by_id(&screen, "general.name").value.unwrap(), "Hi ");
    let at = middle(&key(&screen, "return"));
    screen.tap(at, 1);
    assert!(!screen.has_focus());
    assert!(find(&screen, |node| node.kind == "Key").is_none());
}

#[test]
fn a_long_press_on_the_button_opens_a_menu_that_resets_it() {
    let mut screen = general();
    tap(&mut screen, "general.counter");
    let at = middle(&by_id(&screen, "general.counter"));
    let short = screen.long_press(at, Duration::from_millis(100));
    assert_eq!(short.change, Change::Counted { taps: 2 });

    let long = screen.long_press(at, Duration::from_millis(800));
    assert_eq!(long.change, Change::MenuOpened);
    assert_eq!(
        screen.tap(point(200.0, 700.0), 1).change,
        Change::MenuClosed
    );
    screen.long_press(at, Duration::from_millis(800));
    assert_eq!(
        tap(&mut screen, "general.counter.reset").change,
        Change::CounterReset
    );
    assert_eq!(
        by_id(&screen, "general.counter").label.unwrap(),
        "Tapped 0 times"
    );
    assert_eq!(screen.summary().gestures.long_presses, 3);
}

#[test]
fn a_settled_drag_scrolls_by_its_length_and_reveals_rows() {
    let mut screen = screen();
    assert!(find(&screen, |node| node.label.as_deref() == Some("Privacy")).is_none());
    let before = by_id(&screen, "wallpaper").rect.y;
    assert_eq!(
        drag_up(&mut screen, 250.0, true).change,
        Change::Scrolled { by: 250.0 }
    );
    assert!((before - by_id(&screen, "wallpaper").rect.y - 250.0).abs() < 1e-9);
    drag_up(&mut screen, 250.0, true);
    assert_eq!(
        tap(&mut screen, "privacy").label.as_deref(),
        Some("Privacy")
    );
}

#[test]
fn a_row_scrolled_under_the_title_cannot_be_tapped_there() {
    let mut screen = screen();
    drag_up(&mut screen, 40.0, true);
    let row = by_id(&screen, "general").rect;
    let (hidden, seen) = (
        point(200.0, row.y + 5.0),
        point(200.0, row.y + row.height - 5.0),
    );
    assert_eq!(
        screen.tap(hidden, 1),
        Hit {
            label: None,
            change: Change::Nothing
        }
    );
    assert_eq!(screen.tap(seen, 1).label.as_deref(), Some("General"));
}

#[test]
fn a_touch_outside_the_screen_hits_nothing() {
    let mut screen = screen();
    for at in [
        point(-1.0, 300.0),
        point(200.0, 852.0),
        point(f64::MAX, f64::MIN),
    ] {
        assert_eq!(
            screen.tap(at, 1),
            Hit {
                label: None,
                change: Change::Nothing
            }
        );
    }
    assert_eq!(screen.summary().page, "list");
}

#[test]
fn a_flung_list_rolls_on_and_stops_at_its_end() {
    let (mut settled, mut flung) = (screen(), screen());
    drag_up(&mut settled, 100.0, true);
    drag_up(&mut flung, 100.0, false);
    // 100 points in half a second are 200 points per second, half a second long.
    assert!((settled.summary().scroll - 100.0).abs() < 1e-9);
    assert!((flung.summary().scroll - 200.0).abs() < 1e-9);
    for _ in 0..10 {
        drag_up(&mut flung, 600.0, false);
    }
    let end = flung.summary().scroll;
    assert_eq!(drag_up(&mut flung, 600.0, false).change, Change::Nothing);
    let last = by_id(&flung, "maps").rect;
    assert!(
        last.y + last.height <= 852.0,
        "the last row can be reached: {last:?}"
    );
    assert!(end > 0.0);
}

#[test]
fn a_row_is_carried_only_after_it_was_held() {
    let mut screen = screen();
    let (from, to) = (by_id(&screen, "general"), by_id(&screen, "battery"));
    let mut carry = |hold| {
        let second = Duration::from_secs(1);
        screen
            .drag(
                middle(&from),
                middle(&to),
                second,
                Duration::from_millis(hold),
                true,
            )
            .change
    };
    assert_eq!(
        carry(50),
        Change::Nothing,
        "at the top of the list it cannot scroll down"
    );
    assert_eq!(carry(600), Change::Moved { from: 0, to: 2 });
    let order = screen.summary().first_rows;
    assert_eq!(
        order[..3],
        ["accessibility", "battery", "general"].map(|row| format!("{DEMO_BUNDLE}.{row}"))
    );
    assert!((by_id(&screen, "general").rect.y - to.rect.y).abs() < 1e-9);
}

#[test]
fn a_swipe_from_the_left_edge_goes_back() {
    let mut screen = general();
    let mut swipe = |x| {
        let (from, to) = (point(x, 400.0), point(x + 300.0, 400.0));
        screen
            .drag(
                from,
                to,
                Duration::from_millis(200),
                Duration::from_millis(50),
                false,
            )
            .change
    };
    assert_eq!(swipe(60.0), Change::Nothing);
    assert_eq!(swipe(2.0), Change::WentBack);
}

#[test]
fn home_shows_the_springboard_and_an_icon_brings_the_app_back() {
    let springboard: BundleId = SPRINGBOARD_BUNDLE.parse().unwrap();
    let mut screen = general();
    tap(&mut screen, "general.name");
    assert_eq!(screen.app_state(&demo()), AppState::Foreground);
    assert!(screen.press(Button::Home));
    assert_eq!(screen.app_state(&demo()), AppState::Background);
    assert_eq!(screen.app_state(&springboard), AppState::Foreground);
    assert!(!screen.has_focus());

    let nodes = screen.snapshot(&springboard).nodes;
    let icon = nodes.iter().find(|node| node.kind == "Icon").unwrap();
    assert_eq!(
        screen.tap(middle(icon), 1).change,
        Change::Launched { app: demo() }
    );
    assert_eq!(
        screen.summary().page,
        "com.example.settings.general",
        "it is where it was left"
    );
}

#[test]
fn bringing_an_app_to_front_sends_the_other_one_to_the_background() {
    let mut screen = general();
    let notes: BundleId = "com.example.notes".parse().unwrap();
    assert_eq!(screen.app_state(&notes), AppState::NotRunning);
    screen.set_app_state(&notes, AppState::Foreground);
    assert_eq!(screen.app_state(&demo()), AppState::Background);
    assert_eq!(look(&screen).nodes.len(), 1);
    assert!(screen.snapshot(&notes).nodes.len() > 1);
    screen.set_app_state(&demo(), AppState::NotRunning);
    screen.set_app_state(&notes, AppState::NotRunning);
    assert_eq!(screen.app_state(&notes), AppState::NotRunning);
    assert_eq!(screen.summary().front, None);
    screen.set_app_state(&demo(), AppState::Foreground);
    assert_eq!(screen.summary().page, "list", "a killed app starts anew");
}

#[test]
fn buttons_change_the_volume_within_its_range_and_an_absent_one_does_nothing() {
    let mut screen = screen();
    for _ in 0..30 {
        assert!(screen.press(Button::VolumeUp));
    }
    assert_eq!(screen.summary().volume, 16);
    assert!(screen.press(Button::VolumeDown));
    assert_eq!(screen.summary().volume, 15);
    assert!(!screen.press(Button::ActionButton));
    assert_eq!(screen.summary().gestures.presses, 31);

    let mut pro = Screen::new(ScreenConfig {
        action_button: true,
        ..ScreenConfig::default()
    });
    assert!(pro.press(Button::ActionButton));
    assert!(pro.summary().silent);
}
