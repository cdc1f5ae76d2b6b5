//! The frame buffer: RGB, 8 bits each, addressed in pixels by the drawing
//! crate and in points by us.
//!
//! Invariant: what lies outside the picture, or outside the clip, is not
//! drawn and is no error.

use std::convert::Infallible;

use embedded_graphics::Pixel;
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{
    CornerRadii, PrimitiveStyle, PrimitiveStyleBuilder, Rectangle, RoundedRectangle, StyledDrawable,
};
use fleetgate_runner::reply::Rect;

use crate::ui::config::ScreenConfig;
use crate::ui::geometry::nearest;

const BYTES_PER_PIXEL: usize = 3;
/// The bits of each byte that grain changes: few enough to see the picture
/// through it, enough that it does not compress.
const GRAIN: u64 = 0x1F1F_1F1F_1F1F_1F1F;

#[derive(Debug)]
pub(super) struct Canvas {
    size: Size,
    scale: f64,
    clip: Rectangle,
    bytes: Vec<u8>,
}

impl Canvas {
    pub(super) fn new(config: &ScreenConfig) -> Self {
        let size = Size::new(config.width * config.scale, config.height * config.scale);
        let bytes = index(size.width).saturating_mul(index(size.height)) * BYTES_PER_PIXEL;
        Self {
            size,
            scale: f64::from(config.scale),
            clip: Rectangle::new(Point::zero(), size),
            bytes: vec![0; bytes],
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A length in pixels.
    pub(super) fn pixels(&self, points: f64) -> i32 {
        nearest(points * self.scale)
    }

    pub(super) fn area(&self, rect: Rect) -> Rectangle {
        let (left, top) = (self.pixels(rect.x), self.pixels(rect.y));
        let (right, bottom) = (
            self.pixels(rect.x + rect.width),
            self.pixels(rect.y + rect.height),
        );
        let length = |from: i32, to: i32| to.saturating_sub(from).max(0).unsigned_abs();
        Rectangle::new(
            Point::new(left, top),
            Size::new(length(left, right), length(top, bottom)),
        )
    }

    /// Lets nothing be drawn outside `rect` until the next call.
    pub(super) fn clip_to(&mut self, rect: Rect) {
        self.clip = self
            .area(rect)
            .intersection(&Rectangle::new(Point::zero(), self.size));
    }

    /// Fills a rectangle.
    pub(super) fn fill(&mut self, rect: Rect, color: Rgb888) {
        let area = self.area(rect);
        let Ok(()) = self.fill_solid(&area, color);
    }

    /// Fills a rectangle with round corners: those of the top, of the bottom.
    pub(super) fn fill_round(&mut self, rect: Rect, (top, bottom): (f64, f64), color: Rgb888) {
        self.round(rect, (top, bottom), &PrimitiveStyle::with_fill(color));
    }

    /// Draws the outline of a rectangle with round corners.
    pub(super) fn outline_round(&mut self, rect: Rect, radius: f64, width: f64, color: Rgb888) {
        let style = PrimitiveStyleBuilder::new()
            .stroke_color(color)
            .stroke_width(self.pixels(width).max(1).unsigned_abs())
            .build();
        self.round(rect, (radius, radius), &style);
    }

    fn round(&mut self, rect: Rect, (top, bottom): (f64, f64), style: &PrimitiveStyle<Rgb888>) {
        let corner = |radius: f64| Size::new_equal(self.pixels(radius).unsigned_abs());
        let (top, bottom) = (corner(top), corner(bottom));
        let corners = CornerRadii {
            top_left: top,
            top_right: top,
            bottom_right: bottom,
            bottom_left: bottom,
        };
        let shape = RoundedRectangle::new(self.area(rect), corners);
        let Ok(()) = shape.draw_styled(style, self);
    }

    /// Draws a shape of the drawing crate, whose coordinates are pixels.
    pub(super) fn shape<S>(&mut self, shape: &S, style: &PrimitiveStyle<Rgb888>)
    where
        S: StyledDrawable<PrimitiveStyle<Rgb888>, Color = Rgb888>,
    {
        let Ok(_) = shape.draw_styled(style, self);
    }

    /// Mixes a colour into one pixel: all of it at 256, none at 0.
    pub(super) fn blend(&mut self, at: Point, color: Rgb888, share: i32) {
        if !self.clip.contains(at) {
            return;
        }
        let start = self.offset(at);
        let Some(pixel) = self.bytes.get_mut(start..start + BYTES_PER_PIXEL) else {
            return;
        };
        for (byte, new) in pixel.iter_mut().zip([color.r(), color.g(), color.b()]) {
            let old = i32::from(*byte);
            let mixed = old + (((i32::from(new) - old) * share) >> 8);
            *byte = u8::try_from(mixed).unwrap_or(u8::MAX);
        }
    }

    /// Takes a quarter of the light from a rectangle.
    pub(super) fn darken(&mut self, rect: Rect) {
        let area = self.area(rect).intersection(&self.clip);
        let length = index(area.size.width) * BYTES_PER_PIXEL;
        for y in area.rows() {
            let start = self.offset(Point::new(area.top_left.x, y));
            if let Some(row) = self.bytes.get_mut(start..start + length) {
                for byte in row {
                    *byte -= *byte / 4;
                }
            }
        }
    }

    /// Makes the picture grainy, the same way each time. Up to seven bytes of
    /// its last pixels stay as they are.
    pub(super) fn add_grain(&mut self) {
        let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
        let (chunks, _) = self.bytes.as_chunks_mut();
        for chunk in chunks {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *chunk = (u64::from_le_bytes(*chunk) ^ (state & GRAIN)).to_le_bytes();
        }
    }

    /// Where a pixel of the clip begins in the bytes.
    fn offset(&self, at: Point) -> usize {
        let (x, y) = (index(at.x.unsigned_abs()), index(at.y.unsigned_abs()));
        (y * index(self.size.width) + x) * BYTES_PER_PIXEL
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        self.size
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        for Pixel(at, color) in pixels {
            self.blend(at, color, 256);
        }
        Ok(())
    }

    /// What everything but text comes down to: a row at a time.
    fn fill_solid(&mut self, area: &Rectangle, color: Rgb888) -> Result<(), Infallible> {
        let area = area.intersection(&self.clip);
        let length = index(area.size.width) * BYTES_PER_PIXEL;
        let row: Vec<u8> = [color.r(), color.g(), color.b()].repeat(index(area.size.width));
        for y in area.rows() {
            let start = self.offset(Point::new(area.top_left.x, y));
            if let Some(bytes) = self.bytes.get_mut(start..start + length) {
                bytes.copy_from_slice(&row);
            }
        }
        Ok(())
    }
}

fn index(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
