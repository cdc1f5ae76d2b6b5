//! How the messages that carry secrets or pictures are formatted.
//!
//! Requests end up in logs and error texts by way of `Debug`. Typed text and
//! image bytes must not, so that these show their length only.

use std::fmt;

use crate::v1::capture_screenshot_response::Part;
use crate::v1::{CaptureScreenshotResponse, TypeTextRequest};

impl fmt::Debug for TypeTextRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            command_id,
            lease,
            app_bundle_id,
            text,
        } = self;
        f.debug_struct("TypeTextRequest")
            .field("device", device)
            .field("command_id", command_id)
            .field("lease", lease)
            .field("app_bundle_id", app_bundle_id)
            .field("text", &format_args!("{} chars", text.chars().count()))
            .finish()
    }
}

impl fmt::Debug for CaptureScreenshotResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part } = self;
        f.debug_struct("CaptureScreenshotResponse")
            .field("part", part)
            .finish()
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(header) => f.debug_tuple("Header").field(header).finish(),
            Self::Chunk(bytes) => write!(f, "Chunk({} bytes)", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::bytes::Bytes;

    use super::*;

    #[test]
    fn typed_text_is_formatted_as_its_length() {
        let request = TypeTextRequest {
            text: "hunter2 é".to_owned(),
            device: "rack-1".to_owned(),
            ..Default::default()
        };
        let formatted = format!("{request:?}");

        assert!(
            formatted.contains("rack-1") && formatted.contains("9 chars"),
            "{formatted}"
        );
        assert!(!formatted.contains("hunter2"), "{formatted}");
    }

    #[test]
    fn image_bytes_are_formatted_as_their_number() {
        let response = CaptureScreenshotResponse {
            part: Some(Part::Chunk(Bytes::from_static(b"PNGPNG"))),
        };
        let formatted = format!("{response:?}");

        assert!(formatted.contains("6 bytes"), "{formatted}");
        assert!(!formatted.contains("PNG"), "{formatted}");
    }
}
