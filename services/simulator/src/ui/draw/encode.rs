//! The frame buffer as a PNG file.

use embedded_graphics::prelude::*;
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

use super::canvas::Canvas;

/// Encodes with the fastest compression: a screenshot is made for every look
/// at the phone and kept by few. Writing to memory does not fail; if it did,
/// the picture would end early, as a reader of PNG notices.
pub(super) fn png(canvas: &Canvas) -> Vec<u8> {
    let mut file = Vec::new();
    match write(canvas, &mut file) {
        Ok(()) => file,
        Err(error) => {
            tracing::error!(%error, "a screenshot could not be encoded");
            file
        }
    }
}

fn write(canvas: &Canvas, file: &mut Vec<u8>) -> Result<(), EncodingError> {
    let size = canvas.size();
    let mut encoder = Encoder::new(file, size.width, size.height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(canvas.bytes())?;
    writer.finish()
}
