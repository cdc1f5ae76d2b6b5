//! What the picture shows, and that it agrees with the snapshot.

use std::io::Cursor;

use fleetgate_runner::reply::Rect;

use super::*;

struct Picture {
    width: usize,
    height: usize,
    scale: f64,
    bytes: Vec<u8>,
}

impl Picture {
    fn of(screen: &Screen, scale: f64) -> Self {
        let mut reader = png::Decoder::new(Cursor::new(screen.screenshot()))
            .read_info()
            .unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(
            (info.color_type, info.bit_depth),
            (png::ColorType::Rgb, png::BitDepth::Eight)
        );
        let side = |length: u32| usize::try_from(length).unwrap();
        Self {
            width: side(info.width),
            height: side(info.height),
            scale,
            bytes,
        }
    }

    fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let start = (y * self.width + x) * 3;
        self.bytes[start..start + 3].try_into().unwrap()
    }

    /// The share of a rectangle's pixels of which something is true.
    fn share(&self, rect: Rect, of: impl Fn([u8; 3]) -> bool) -> f64 {
        let at = |points: f64| usize::try_from(geometry::whole(points * self.scale)).unwrap();
        let (mut all, mut hits) = (0_u32, 0_u32);
        for y in at(rect.y)..at(rect.y + rect.height).min(self.height) {
            for x in at(rect.x)..at(rect.x + rect.width).min(self.width) {
                all += 1;
                hits += u32::from(of(self.pixel(x, y)));
            }
        }
        f64::from(hits) / f64::from(all)
    }
}

fn is_green([r, g, b]: [u8; 3]) -> bool {
    g > 150 && r < 100 && b < 150
}

fn is_dark(pixel: [u8; 3]) -> bool {
    pixel.iter().all(|channel| *channel < 100)
}

#[test]
fn the_picture_is_the_viewport_times_the_scale() {
    for (scale, side) in [(1, (393, 852)), (2, (786, 1_704)), (3, (1_179, 2_556))] {
        let screen = Screen::new(ScreenConfig {
            scale,
            ..ScreenConfig::default()
        });
        let picture = Picture::of(&screen, f64::from(scale));
        assert_eq!((picture.width, picture.height), side);
    }
}

#[test]
fn a_switch_is_green_where_the_snapshot_says_that_it_is_on() {
    let mut screen = general();
    let switch = by_id(&screen, "general.enabled");
    assert!(Picture::of(&screen, 2.0).share(switch.rect, is_green) < 0.01);
    screen.tap(middle(&switch), 1);
    // The ring of the last touch must not lie on the switch when it is looked at.
    screen.tap(point(200.0, 700.0), 1);
    assert!(Picture::of(&screen, 2.0).share(switch.rect, is_green) > 0.3);
}

#[test]
fn every_text_of_the_snapshot_has_ink_in_the_picture() {
    let screen = screen();
    let picture = Picture::of(&screen, 2.0);
    let mut texts = 0;
    for node in look(&screen)
        .nodes
        .iter()
        .filter(|node| node.kind == "StaticText")
    {
        let ink = picture.share(node.rect, |[r, g, b]| r < 200 && g < 200 && b < 200);
        let covered = node.rect.y + node.rect.height > 836.0;
        assert!(ink > 0.005 || covered, "no ink for {node:?}");
        texts += 1;
    }
    assert!(texts > 20);
}

#[test]
fn typed_text_and_keyboard_appear_in_the_picture() {
    let mut screen = general();
    let field = by_id(&screen, "general.name").rect;
    let keyboard = geometry::rect(0.0, 600.0, 393.0, 200.0);
    let before = Picture::of(&screen, 2.0);
    tap(&mut screen, "general.name");
    screen.type_text("MMMMMMMMMMMMMMMMMMMM");
    let after = Picture::of(&screen, 2.0);
    assert!(after.share(field, is_dark) > before.share(field, is_dark) + 0.03);
    assert!(before.share(keyboard, |pixel| pixel == [209, 212, 218]) < 0.01);
    assert!(after.share(keyboard, |pixel| pixel == [209, 212, 218]) > 0.1);
}

#[test]
fn a_touch_leaves_a_mark_and_the_same_screen_the_same_picture() {
    let mut screen = screen();
    let untouched = screen.screenshot();
    assert_eq!(untouched, screen.screenshot());
    screen.tap(point(200.0, 80.0), 1);
    let mark = geometry::rect(198.0, 78.0, 4.0, 4.0);
    assert!(Picture::of(&screen, 2.0).share(mark, |pixel| pixel == [255, 45, 160]) > 0.9);
    assert_ne!(untouched, screen.screenshot());
}

#[test]
fn the_volume_is_shown_until_the_next_touch() {
    let mut screen = screen();
    let bar = geometry::rect(12.0, 188.0, 14.0, 164.0);
    screen.press(Button::VolumeUp);
    assert!(Picture::of(&screen, 2.0).share(bar, is_dark) > 0.3);
    screen.tap(point(300.0, 80.0), 1);
    assert!(Picture::of(&screen, 2.0).share(bar, is_dark) < 0.05);
}

#[test]
fn a_grainy_picture_is_over_six_megabytes_and_still_shows_the_screen() {
    let config = ScreenConfig {
        noise: true,
        scale: 3,
        ..ScreenConfig::default()
    };
    let screen = Screen::new(config);
    let file = screen.screenshot();
    assert!(file.len() > 6_000_000, "{} bytes", file.len());
    assert!(file.len() < 12_000_000, "{} bytes", file.len());
    let card = by_id(&screen, "general").rect;
    assert!(Picture::of(&screen, 3.0).share(card, |pixel| pixel.iter().all(|c| *c >= 192)) > 0.5);
}

#[test]
fn a_plain_picture_is_small() {
    let bytes = screen().screenshot().len();
    assert!(bytes < 200_000, "{bytes} bytes");
}
