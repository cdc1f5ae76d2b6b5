//! Text, from the drawing crate's bitmap fonts, enlarged to the size wanted
//! with smooth edges.

use std::convert::Infallible;

use embedded_graphics::Pixel;
use embedded_graphics::mono_font::iso_8859_1::{FONT_4X6, FONT_9X18, FONT_9X18_BOLD};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::{BinaryColor, Rgb888};
use embedded_graphics::prelude::*;
use embedded_graphics::text::{Baseline, Text};
use fleetgate_runner::reply::Rect;

use super::canvas::Canvas;

/// Where a line of text stands in its rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

/// A style of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) face: Face,
    /// The height of a line in points.
    pub(super) height: f64,
    pub(super) color: Rgb888,
    pub(super) align: Align,
}

/// The fonts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Face {
    Tiny,
    Plain,
    Bold,
}

impl Face {
    fn font(self) -> &'static MonoFont<'static> {
        match self {
            Self::Tiny => &FONT_4X6,
            Self::Plain => &FONT_9X18,
            Self::Bold => &FONT_9X18_BOLD,
        }
    }
}

impl Style {
    /// The width of one character, in points.
    pub(super) fn advance(&self) -> f64 {
        let cell = self.face.font().character_size;
        self.height * f64::from(cell.width) / f64::from(cell.height)
    }
}

/// Draws one line of text, shortened if it does not fit its rectangle, and
/// returns how wide it became, in points.
pub(super) fn line(canvas: &mut Canvas, within: Rect, text: &str, style: &Style) -> f64 {
    let room = crate::ui::geometry::whole(within.width / style.advance());
    let text = fit(text, usize::try_from(room).unwrap_or(usize::MAX));
    let mask = Mask::of(&text, style.face.font());
    if mask.bits.is_empty() {
        return 0.0;
    }
    let width = style.advance() * f64::from(mask.width / mask.cell_width.max(1));
    let left = match style.align {
        Align::Left => within.x,
        Align::Center => within.x + (within.width - width) / 2.0,
        Align::Right => within.x + within.width - width,
    };
    let top = within.y + (within.height - style.height) / 2.0;
    let origin = Point::new(canvas.pixels(left), canvas.pixels(top));
    let size = (canvas.pixels(width), canvas.pixels(style.height));
    mask.enlarge(size, |at, share| {
        canvas.blend(origin + at, style.color, share);
    });
    width
}

/// At most `room` characters, the last ones dots where some were cut.
fn fit(text: &str, room: usize) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() <= room {
        return text;
    }
    let dots = room.min(2);
    text.chars()
        .take(room - dots)
        .chain(std::iter::repeat_n('.', dots))
        .collect()
}

/// A line of text in the font's own pixels.
struct Mask {
    width: i32,
    height: i32,
    cell_width: i32,
    bits: Vec<bool>,
}

impl Mask {
    fn of(text: &str, font: &'static MonoFont<'static>) -> Self {
        let cell = font.character_size;
        let letters = u32::try_from(text.chars().count()).unwrap_or(0);
        let size = Size::new(cell.width.saturating_mul(letters), cell.height);
        let area = usize::try_from(u64::from(size.width) * u64::from(size.height)).unwrap_or(0);
        let length = |side: u32| i32::try_from(side).unwrap_or(0);
        let mut mask = Self {
            width: length(size.width),
            height: length(size.height),
            cell_width: length(cell.width),
            bits: vec![false; area],
        };
        let style = MonoTextStyle::new(font, BinaryColor::On);
        let text = Text::with_baseline(text, Point::zero(), style, Baseline::Top);
        let Ok(_) = text.draw(&mut mask);
        mask
    }

    fn place(&self, x: i32, y: i32) -> Option<usize> {
        let inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        if inside {
            usize::try_from(y * self.width + x).ok()
        } else {
            None
        }
    }

    fn ink(&self, x: i32, y: i32) -> i32 {
        let bit = self.place(x, y).and_then(|place| self.bits.get(place));
        i32::from(bit.copied().unwrap_or(false))
    }

    /// Gives each inked pixel of the enlarged mask and how inked it is, 256
    /// being all: the four nearest of the font's pixels are mixed by distance,
    /// and the edge between ink and paper is then made sharper.
    fn enlarge(&self, (width, height): (i32, i32), mut paint: impl FnMut(Point, i32)) {
        // In 256ths of a font pixel, from the middle of the first one. At the
        // largest screen and scale the product is 1.2e9, which fits.
        let source = |place: i32, from: i32, to: i32| (place * 2 + 1) * from * 128 / to - 128;
        for y in 0..height {
            let at_y = source(y, self.height, height);
            let (row, low) = (at_y >> 8, at_y & 255);
            for x in 0..width {
                let at_x = source(x, self.width, width);
                let (column, right) = (at_x >> 8, at_x & 255);
                let upper =
                    self.ink(column, row) * (256 - right) + self.ink(column + 1, row) * right;
                let lower = self.ink(column, row + 1) * (256 - right)
                    + self.ink(column + 1, row + 1) * right;
                let mixed = (upper * (256 - low) + lower * low) >> 8;
                let share = ((mixed - 84) * 2 + 128).clamp(0, 256);
                if share > 0 {
                    paint(Point::new(x, y), share);
                }
            }
        }
    }
}

impl OriginDimensions for Mask {
    fn size(&self) -> Size {
        Size::new(self.width.unsigned_abs(), self.height.unsigned_abs())
    }
}

impl DrawTarget for Mask {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<BinaryColor>>,
    {
        for Pixel(at, color) in pixels {
            let place = self.place(at.x, at.y);
            if let Some(bit) = place.and_then(|place| self.bits.get_mut(place)) {
                *bit = color.is_on();
            }
        }
        Ok(())
    }
}
