//! Whatever is done to it, the screen stays whole.

use proptest::prelude::*;

use super::*;

fn any_point() -> impl Strategy<Value = AppPoint> {
    let axis = || {
        prop_oneof![
            4 => -50.0..900.0_f64,
            1 => proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
            1 => Just(f64::MAX),
        ]
    };
    (axis(), axis()).prop_map(|(x, y)| point(x, y))
}

#[derive(Debug, Clone)]
enum Deed {
    Tap(AppPoint, u32),
    LongPress(AppPoint, u16),
    Drag(AppPoint, AppPoint, u16, u16, bool),
    Type(String),
    Press(Button),
    Relaunch,
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let buttons = [
        Button::Home,
        Button::VolumeUp,
        Button::VolumeDown,
        Button::ActionButton,
    ];
    prop_oneof![
        6 => (any_point(), 0..5_u32).prop_map(|(at, taps)| Deed::Tap(at, taps)),
        1 => (any_point(), any::<u16>()).prop_map(|(at, held)| Deed::LongPress(at, held)),
        3 => (any_point(), any_point(), any::<u16>(), 0..1_000_u16, any::<bool>())
            .prop_map(|(a, b, over, hold, settle)| Deed::Drag(a, b, over, hold, settle)),
        1 => any::<String>().prop_map(Deed::Type),
        1 => proptest::sample::select(buttons.to_vec()).prop_map(Deed::Press),
        1 => Just(Deed::Relaunch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_gesture_breaks_the_screen(
        deeds in proptest::collection::vec(any_deed(), 1..20),
        rows in 0..60_u32,
        dense: bool,
    ) {
        let config = ScreenConfig { rows, dense, scale: 1, ..ScreenConfig::default() };
        let mut screen = Screen::new(config);
        for deed in deeds {
            match deed {
                Deed::Tap(at, taps) => drop(screen.tap(at, taps)),
                Deed::LongPress(at, held) => {
                    screen.long_press(at, Duration::from_millis(held.into()));
                }
                Deed::Drag(from, to, over, hold, settle) => {
                    let [over, hold] = [over, hold].map(|ms| Duration::from_millis(ms.into()));
                    screen.drag(from, to, over, hold, settle);
                }
                Deed::Type(text) => screen.type_text(&text),
                Deed::Press(button) => drop(screen.press(button)),
                Deed::Relaunch => screen.set_app_state(&demo(), AppState::Foreground),
            }
        }
        prop_assert!(screen.summary().scroll.is_finite());
        for node in look(&screen).nodes {
            prop_assert!(node.rect.x.is_finite() && node.rect.y.is_finite());
        }
        prop_assert!(!screen.screenshot().is_empty());
    }
}
