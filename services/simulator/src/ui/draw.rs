//! From the elements of the screen to a PNG.
//!
//! Owns the order of painting: the app's elements from the back to the front,
//! then what belongs to the phone. Where things are is the layout's business;
//! nothing here moves an element. The same screen always gives the same bytes.

use super::layout;
use super::model::Model;

mod canvas;
mod chrome;
mod encode;
mod parts;
mod text;

use canvas::Canvas;

/// The picture of a screen.
pub(super) fn png(model: &Model) -> Vec<u8> {
    encode::png(&paint(model))
}

fn paint(model: &Model) -> Canvas {
    let mut canvas = Canvas::new(&model.config);
    for element in layout::lay_out(model).as_slice() {
        if element.is_visible() {
            parts::paint(&mut canvas, element);
        }
    }
    chrome::paint(&mut canvas, model);
    if model.config.noise {
        canvas.add_grain();
    }
    canvas
}
