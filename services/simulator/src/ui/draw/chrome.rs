//! What belongs to the phone and to no app: status bar, volume, home
//! indicator, and a ring where the last touch was. No snapshot lists it.

use embedded_graphics::pixelcolor::Rgb888;
use fleetgate_runner::reply::Rect;

use super::canvas::Canvas;
use super::parts::{BLACK, WHITE};
use super::text::{Align, Face, Style, line};
use crate::ui::geometry::{inset, of_viewport, rect};
use crate::ui::model::{LOUDEST, Model};

/// The colour of the last touch, which nothing else has.
const MARK: Rgb888 = Rgb888::new(255, 45, 160);

pub(super) fn paint(canvas: &mut Canvas, model: &Model) {
    let screen = of_viewport(model.viewport());
    canvas.clip_to(screen);
    status_bar(canvas, screen, model);
    if model.volume_shown {
        volume(canvas, model.volume);
    }
    let ink = ink(model);
    let home = rect(screen.width / 2.0 - 67.0, screen.height - 13.0, 134.0, 5.0);
    canvas.fill_round(home, (2.5, 2.5), ink);
    if let Some(touch) = model.last_touch {
        let around = |radius: f64| {
            rect(
                touch.x - radius,
                touch.y - radius,
                2.0 * radius,
                2.0 * radius,
            )
        };
        canvas.outline_round(around(16.0), 16.0, 1.0, MARK);
        canvas.outline_round(around(11.0), 11.0, 2.0, MARK);
        canvas.fill_round(around(3.0), (3.0, 3.0), MARK);
    }
}

/// Black on a page, white on the wallpaper.
fn ink(model: &Model) -> Rgb888 {
    if model.front.is_some() { BLACK } else { WHITE }
}

fn status_bar(canvas: &mut Canvas, screen: Rect, model: &Model) {
    let ink = ink(model);
    let style = Style {
        face: Face::Bold,
        height: 18.0,
        color: ink,
        align: Align::Center,
    };
    let clock = if model.silent { "9:41 z" } else { "9:41" };
    line(canvas, rect(24.0, 16.0, 64.0, 24.0), clock, &style);

    let island = rect(screen.width / 2.0 - 60.0, 11.0, 120.0, 34.0);
    canvas.fill_round(island, (17.0, 17.0), BLACK);

    for (bar, height) in [(0.0, 4.0), (1.0, 6.0), (2.0, 9.0), (3.0, 12.0)] {
        let left = screen.width - 82.0 + bar * 5.0;
        canvas.fill_round(rect(left, 34.0 - height, 3.0, height), (1.0, 1.0), ink);
    }
    let battery = rect(screen.width - 55.0, 22.0, 25.0, 12.0);
    canvas.outline_round(battery, 3.5, 1.0, ink);
    canvas.fill_round(inset(battery, 2.0, 2.0), (2.0, 2.0), ink);
    canvas.fill(rect(battery.x + battery.width + 1.0, 26.0, 1.5, 4.0), ink);
}

fn volume(canvas: &mut Canvas, level: u8) {
    const LENGTH: f64 = 160.0;
    let bar = rect(14.0, 190.0, 10.0, LENGTH);
    canvas.fill_round(inset(bar, -2.0, -2.0), (7.0, 7.0), BLACK);
    let filled = LENGTH * f64::from(level) / f64::from(LOUDEST);
    canvas.fill_round(
        rect(bar.x, bar.y + LENGTH - filled, 10.0, filled),
        (5.0, 5.0),
        WHITE,
    );
}
