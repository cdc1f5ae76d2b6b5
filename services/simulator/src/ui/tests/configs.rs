//! What a scenario may say of a screen.

use super::*;

fn parse(text: &str) -> Result<ScreenConfig, toml::de::Error> {
    toml::from_str(text)
}

#[test]
fn what_is_not_said_has_a_default_and_what_is_unknown_is_refused() {
    assert_eq!(parse("").unwrap(), ScreenConfig::default());
    let expected = ScreenConfig {
        rows: 7,
        noise: true,
        ..ScreenConfig::default()
    };
    assert_eq!(parse("rows = 7\nnoise = true").unwrap(), expected);
    assert!(parse("row = 7").is_err());
    assert!(parse("rows = -1").is_err());
}

#[test]
fn width_and_height_are_those_of_the_viewport() {
    let screen = Screen::new(parse("width = 430\nheight = 932").unwrap());
    let viewport = screen.viewport();
    assert_eq!(
        geometry::of_viewport(viewport),
        geometry::rect(0.0, 0.0, 430.0, 932.0)
    );
    assert_eq!(look(&screen).nodes[0].rect, geometry::of_viewport(viewport));
}

#[test]
fn rows_are_as_many_as_were_asked_for() {
    let cells = |rows: u32| {
        let screen = Screen::new(ScreenConfig {
            rows,
            ..ScreenConfig::default()
        });
        look(&screen)
            .nodes
            .iter()
            .filter(|node| node.kind == "Cell")
            .count()
    };
    assert_eq!((cells(0), cells(1), cells(6)), (0, 1, 6));
}

#[test]
fn sizes_beyond_the_limits_are_brought_within_them() {
    let huge = Screen::new(parse("width = 4000000000\nheight = 4000000000").unwrap());
    assert_eq!(
        geometry::of_viewport(huge.viewport()),
        geometry::rect(0.0, 0.0, 1_100.0, 1_400.0)
    );
    let tiny = Screen::new(parse("width = 0\nheight = 0\nscale = 0").unwrap());
    assert_eq!(
        geometry::of_viewport(tiny.viewport()),
        geometry::rect(0.0, 0.0, 320.0, 600.0)
    );
    assert!(!tiny.screenshot().is_empty());
}

#[test]
fn the_controls_of_the_smallest_screen_stay_clear_of_its_keyboard() {
    let mut screen = Screen::new(ScreenConfig {
        height: 0,
        ..ScreenConfig::default()
    });
    tap(&mut screen, "general");
    tap(&mut screen, "general.name");
    let controls = by_id(&screen, "general.counter").rect;
    let keyboard = find(&screen, |node| node.kind == "Keyboard").unwrap().rect;
    assert!(controls.y + controls.height <= keyboard.y);
    assert_eq!(
        tap(&mut screen, "general.counter").change,
        Change::Counted { taps: 1 }
    );
}
