//! How each look is painted.

use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Line, PrimitiveStyle};
use fleetgate_runner::reply::Rect;

use super::canvas::Canvas;
use super::text::{Align, Face, Style, line};
use crate::ui::element::{Element, Look, TextLook};
use crate::ui::geometry::{inset, rect, whole};

pub(super) const BLACK: Rgb888 = Rgb888::new(0, 0, 0);
pub(super) const WHITE: Rgb888 = Rgb888::new(255, 255, 255);
const GROUND: Rgb888 = Rgb888::new(242, 242, 247);
const SEPARATOR: Rgb888 = Rgb888::new(209, 209, 214);
const GREY: Rgb888 = Rgb888::new(142, 142, 147);
const PALE: Rgb888 = Rgb888::new(196, 196, 199);
const TRACK: Rgb888 = Rgb888::new(226, 226, 230);
const BLUE: Rgb888 = Rgb888::new(0, 122, 255);
const GREEN: Rgb888 = Rgb888::new(52, 199, 89);
const RED: Rgb888 = Rgb888::new(255, 59, 48);
const PLATE: Rgb888 = Rgb888::new(209, 212, 218);
const FUNCTION_KEY: Rgb888 = Rgb888::new(172, 177, 186);
const KEY_SHADE: Rgb888 = Rgb888::new(137, 139, 143);
const TILES: [Rgb888; 7] = [
    GREY,
    BLUE,
    GREEN,
    Rgb888::new(255, 149, 0),
    Rgb888::new(88, 86, 214),
    RED,
    Rgb888::new(50, 173, 230),
];

pub(super) fn paint(canvas: &mut Canvas, element: &Element) {
    canvas.clip_to(element.visible);
    let at = element.rect;
    let label = element.label.as_deref().unwrap_or_default();
    match element.look {
        Look::Bare => {}
        Look::Page => canvas.fill(at, GROUND),
        Look::Wallpaper => wallpaper(canvas, at),
        Look::Card { first, last } => card(canvas, at, first, last),
        Look::Speck => speck(canvas, at, label),
        Look::Text(look) => {
            line(canvas, at, label, &style(look));
        }
        Look::Tile(number) => tile(canvas, at, 7.0, number),
        Look::AppIcon(number) => app_icon(canvas, at, label, number),
        Look::Chevron => chevron(canvas, at, 1.0, PALE),
        Look::Back => back(canvas, at, label),
        Look::Switch { on } => switch(canvas, at, on),
        Look::Field { focused } => field(canvas, at, element, focused),
        Look::Plate => canvas.fill(at, PLATE),
        Look::Key { function } => key(canvas, at, label, function, element.selected.is_some()),
        Look::Veil => canvas.darken(at),
        Look::Sheet => canvas.fill_round(at, (12.0, 12.0), WHITE),
        Look::Thumb => canvas.fill_round(at, (1.5, 1.5), GREY),
    }
}

fn style(look: TextLook) -> Style {
    let plain = Style {
        face: Face::Plain,
        height: 18.0,
        color: BLACK,
        align: Align::Left,
    };
    match look {
        TextLook::LargeTitle => Style {
            face: Face::Bold,
            height: 34.0,
            ..plain
        },
        TextLook::Title => Style {
            face: Face::Bold,
            align: Align::Center,
            ..plain
        },
        TextLook::Body => plain,
        TextLook::Detail => Style {
            color: GREY,
            align: Align::Right,
            ..plain
        },
        TextLook::Action => Style {
            color: BLUE,
            ..plain
        },
        TextLook::Destructive => Style {
            color: RED,
            ..plain
        },
    }
}

fn wallpaper(canvas: &mut Canvas, at: Rect) {
    const BANDS: u8 = 64;
    let height = at.height / f64::from(BANDS);
    for band in 0..BANDS {
        let color = Rgb888::new(40 + band, 60 + band, 120 + band * 2);
        canvas.fill(
            rect(at.x, at.y + f64::from(band) * height, at.width, height),
            color,
        );
    }
}

fn card(canvas: &mut Canvas, at: Rect, first: bool, last: bool) {
    let corner = |round: bool| if round { 11.0 } else { 0.0 };
    canvas.fill_round(at, (corner(first), corner(last)), WHITE);
    if !last {
        let under = at.y + at.height - 0.5;
        canvas.fill(rect(at.x + 58.0, under, at.width - 58.0, 0.5), SEPARATOR);
    }
}

fn speck(canvas: &mut Canvas, at: Rect, label: &str) {
    canvas.fill(inset(at, 0.5, 0.5), WHITE);
    let style = Style {
        face: Face::Tiny,
        height: 6.0,
        color: BLACK,
        align: Align::Center,
    };
    line(canvas, at, label, &style);
}

fn tile(canvas: &mut Canvas, at: Rect, radius: f64, number: u32) {
    let number = usize::try_from(number).unwrap_or_default();
    let color = TILES.get(number % TILES.len()).copied().unwrap_or(GREY);
    canvas.fill_round(at, (radius, radius), color);
    let dot = at.width * 0.3;
    canvas.fill_round(inset(at, dot, dot), (dot, dot), WHITE);
}

fn app_icon(canvas: &mut Canvas, at: Rect, label: &str, number: u32) {
    tile(canvas, rect(at.x + 8.0, at.y, 60.0, 60.0), 14.0, number);
    let style = Style {
        face: Face::Plain,
        height: 15.0,
        color: WHITE,
        align: Align::Center,
    };
    line(
        canvas,
        rect(at.x, at.y + 66.0, at.width, 18.0),
        label,
        &style,
    );
}

/// An angle that points right for a `direction` of 1 and left for -1.
fn chevron(canvas: &mut Canvas, at: Rect, direction: f64, color: Rgb888) {
    let middle = (at.x + at.width / 2.0, at.y + at.height / 2.0);
    let (wide, high) = (direction * at.width * 0.4, at.height * 0.42);
    let point = |x: f64, y: f64| Point::new(canvas.pixels(x), canvas.pixels(y));
    let tip = point(middle.0 + wide, middle.1);
    let ends = [-high, high].map(|high| point(middle.0 - wide, middle.1 + high));
    let style = PrimitiveStyle::with_stroke(color, canvas.pixels(2.0).max(1).unsigned_abs());
    for end in ends {
        canvas.shape(&Line::new(end, tip), &style);
    }
}

fn back(canvas: &mut Canvas, at: Rect, label: &str) {
    chevron(
        canvas,
        rect(at.x + 4.0, at.y + 12.0, 13.0, 20.0),
        -1.0,
        BLUE,
    );
    let text = rect(at.x + 24.0, at.y, at.width - 24.0, at.height);
    line(canvas, text, label, &style(TextLook::Action));
}

fn switch(canvas: &mut Canvas, at: Rect, on: bool) {
    let round = at.height / 2.0;
    canvas.fill_round(at, (round, round), if on { GREEN } else { TRACK });
    let size = at.height - 4.0;
    let left = if on {
        at.x + at.width - size - 2.0
    } else {
        at.x + 2.0
    };
    canvas.fill_round(rect(left, at.y + 2.0, size, size), (round, round), WHITE);
}

/// The end of a text that is too long is what is shown of it: the part that is
/// being written.
fn field(canvas: &mut Canvas, at: Rect, element: &Element, focused: bool) {
    let body = style(TextLook::Body);
    let written = if let Some(text) = &element.value {
        let room = whole((at.width - 4.0) / body.advance());
        let room = usize::try_from(room).unwrap_or_default();
        let skipped = text.chars().count().saturating_sub(room);
        let end: String = text.chars().skip(skipped).collect();
        line(canvas, at, &end, &body)
    } else {
        let label = element.label.as_deref().unwrap_or_default();
        let hint = Style {
            color: PALE,
            ..body
        };
        line(canvas, at, label, &hint);
        0.0
    };
    if focused {
        canvas.fill(
            rect(at.x + written + 1.0, at.y + 11.0, 2.0, at.height - 22.0),
            BLUE,
        );
    }
}

fn key(canvas: &mut Canvas, at: Rect, label: &str, function: bool, held: bool) {
    let shade = rect(at.x, at.y + 1.0, at.width, at.height);
    canvas.clip_to(shade);
    canvas.fill_round(shade, (5.0, 5.0), KEY_SHADE);
    let color = if function && !held {
        FUNCTION_KEY
    } else {
        WHITE
    };
    canvas.fill_round(at, (5.0, 5.0), color);
    let letter = label.chars().count() == 1;
    let height = if letter { 22.0 } else { 15.0 };
    let style = Style {
        face: Face::Plain,
        height,
        color: BLACK,
        align: Align::Center,
    };
    line(canvas, at, label, &style);
}
