//! A screenshot as a stream: one header, then slices of the one buffer that
//! came from the runner.
//!
//! Chunks are cut when the reader is ready for them and share the picture's
//! memory, so that a slow reader costs one picture, however slow it is.

use std::fmt;

use bytes::Bytes;
use fleetgate_proto::v1::capture_screenshot_response::Part;
use fleetgate_proto::v1::{CaptureScreenshotResponse, CommandReceipt, ScreenshotHeader};
use tonic::Status;

/// The most bytes in one chunk.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// The picture is not a PNG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner's screenshot is not a PNG")]
pub(crate) struct NotPng;

/// The messages of one screenshot: image bytes, so that formatting it shows
/// their number only.
pub(crate) struct Parts {
    header: Option<ScreenshotHeader>,
    rest: Bytes,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parts({} bytes left)", self.rest.len())
    }
}

impl Parts {
    /// Reads the picture's dimensions from its header.
    pub(crate) fn new(receipt: CommandReceipt, png: Bytes) -> Result<Self, NotPng> {
        let (width, height) = dimensions(&png).ok_or(NotPng)?;
        let header = ScreenshotHeader {
            receipt: Some(receipt),
            media_type: "image/png".to_owned(),
            size_bytes: png.len() as u64,
            width,
            height,
        };
        Ok(Self {
            header: Some(header),
            rest: png,
        })
    }
}

impl Iterator for Parts {
    type Item = Result<CaptureScreenshotResponse, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = match self.header.take() {
            Some(header) => Part::Header(header),
            None if self.rest.is_empty() => return None,
            None => Part::Chunk(self.rest.split_to(self.rest.len().min(CHUNK_BYTES))),
        };
        Some(Ok(CaptureScreenshotResponse { part: Some(part) }))
    }
}

/// Width and height from the IHDR chunk, which always comes first.
fn dimensions(png: &[u8]) -> Option<(u32, u32)> {
    let ihdr = png.strip_prefix(b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR")?;
    let (width, rest) = ihdr.split_first_chunk()?;
    let height = rest.first_chunk()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture's first bytes as the PNG specification has them, then filler.
    fn png(size: usize) -> Bytes {
        let mut png = b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\x04\x9A\0\0\x09\xFC".to_vec();
        png.extend((png.len()..size).map(|at| at.to_le_bytes()[0]));
        png.into()
    }

    fn parts(png: &Bytes) -> Vec<Part> {
        Parts::new(CommandReceipt::default(), png.clone())
            .unwrap()
            .map(|part| part.unwrap().part.unwrap())
            .collect()
    }

    #[test]
    fn the_header_comes_first_and_tells_what_is_coming() {
        let png = png(1000);
        let Part::Header(header) = &parts(&png)[0] else {
            panic!("a header first")
        };
        assert_eq!((header.width, header.height), (1178, 2556));
        assert_eq!(header.size_bytes, 1000);
        assert_eq!(header.media_type, "image/png");
    }

    #[test]
    fn chunks_are_bounded_in_order_and_share_the_pictures_memory() {
        let png = png(2 * CHUNK_BYTES + 1);
        let chunks: Vec<_> = parts(&png)
            .into_iter()
            .skip(1)
            .map(|part| match part {
                Part::Chunk(chunk) => chunk,
                Part::Header(_) => panic!("a second header"),
            })
            .collect();
        assert_eq!(
            chunks.iter().map(Bytes::len).collect::<Vec<_>>(),
            [CHUNK_BYTES, CHUNK_BYTES, 1]
        );
        assert_eq!(chunks.concat(), png);
        assert!(
            chunks
                .iter()
                .all(|chunk| png.as_ptr_range().contains(&chunk.as_ptr()))
        );
    }

    #[test]
    fn what_is_not_a_png_is_refused() {
        for picture in [
            &b""[..],
            b"\x89PNG",
            b"\xFF\xD8\xFF\xE0JPEG",
            &png(24)[..23],
        ] {
            let picture = Bytes::copy_from_slice(picture);
            assert_eq!(
                Parts::new(CommandReceipt::default(), picture).unwrap_err(),
                NotPng
            );
        }
    }
}
