//! Single fields: each function gives a value that is right, or notes what is
//! wrong with it.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{
    AppPoint, Budgets, BundleId, Button, CommandClass, CommandId, MAX_REQUEST_BYTES, Point,
    TypedText, UnitPoint,
};

use super::violations::Violations;

/// What a request holds besides the text: the HTTP header, the ids and the
/// names of the fields. The longest ids leave a third of it unused.
const REQUEST_OVERHEAD_BYTES: usize = 1024;

/// A device as a caller names it.
pub(crate) fn device_name(name: &str, violations: &mut Violations) -> Option<String> {
    let name = name.trim();
    if name.is_empty() {
        return violations.refuse("device", "must name a device by its UDID or alias");
    }
    Some(name.to_owned())
}

/// How many items a page may hold: 0 means 100, more than 1000 means 1000.
pub(crate) fn page_size(size: i32, violations: &mut Violations) -> Option<usize> {
    const DEFAULT: usize = 100;
    const MOST: usize = 1000;
    match usize::try_from(size) {
        Ok(0) => Some(DEFAULT),
        Ok(size) => Some(size.min(MOST)),
        Err(_) => violations.refuse("page_size", "must not be negative"),
    }
}

pub(super) fn command_id(id: Option<&str>, violations: &mut Violations) -> Option<CommandId> {
    match id {
        Some(id) => violations.take("command_id", id.parse()),
        None => Some(CommandId::mint()),
    }
}

pub(super) fn bundle_id(id: &str, violations: &mut Violations) -> Option<BundleId> {
    violations.take("app_bundle_id", id.parse())
}

pub(super) fn point(
    field: &str,
    point: Option<pb::Point>,
    violations: &mut Violations,
) -> Option<Point> {
    match point.and_then(|point| point.place) {
        Some(pb::point::Place::Absolute(pb::AbsolutePoint { x, y })) => {
            let x = finite(format!("{field}.absolute.x"), x, violations);
            let y = finite(format!("{field}.absolute.y"), y, violations);
            Some(Point::Absolute(AppPoint::new(x?, y?)?))
        }
        Some(pb::point::Place::Normalized(pb::NormalizedPoint { x, y })) => {
            let x = fraction(format!("{field}.normalized.x"), x, violations);
            let y = fraction(format!("{field}.normalized.y"), y, violations);
            Some(Point::Normalized(UnitPoint::new(x?, y?)?))
        }
        None => violations.refuse(field, "must be given, as absolute or normalized"),
    }
}

fn finite(field: String, value: f64, violations: &mut Violations) -> Option<f64> {
    if value.is_finite() {
        Some(value)
    } else {
        violations.refuse(field, "must be finite")
    }
}

fn fraction(field: String, value: f64, violations: &mut Violations) -> Option<f64> {
    // NaN is in no range.
    if (0.0..=1.0).contains(&value) {
        Some(value)
    } else {
        violations.refuse(field, "must be from 0 to 1")
    }
}

/// A duration of a gesture: absent is fine, and then the runner's default
/// holds. `None` if it is wrong.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
pub(super) fn gesture_duration(
    field: &str,
    duration: Option<prost_types::Duration>,
    violations: &mut Violations,
) -> Option<Option<Duration>> {
    let Some(duration) = duration else {
        return Some(None);
    };
    let most = Budgets::default().budget(CommandClass::Gesture).runner;
    match Duration::try_from(duration) {
        Err(_) => violations.refuse(field, "must not be negative"),
        Ok(duration) if duration > most => violations.refuse(
            field,
            format!("must be at most {most:?}, after which a runner gives up"),
        ),
        Ok(duration) if duration.subsec_nanos() % 1_000_000 != 0 => {
            violations.refuse(field, "must be whole milliseconds")
        }
        Ok(duration) => Some(Some(duration)),
    }
}

pub(super) fn typed_text(text: String, violations: &mut Violations) -> Option<TypedText> {
    let most = MAX_REQUEST_BYTES - REQUEST_OVERHEAD_BYTES;
    if json_len(&text) > most {
        return violations.refuse(
            "text",
            format!("must be at most {most} bytes long when escaped for JSON"),
        );
    }
    TypedText::new(text).or_else(|| violations.refuse("text", "must not be empty"))
}

/// The bytes of a text between the quotes of a JSON string.
fn json_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
            0x00..=0x1F => 6,
            _ => 1,
        })
        .sum()
}

pub(super) fn button(button: i32, violations: &mut Violations) -> Option<Button> {
    match pb::Button::try_from(button) {
        Ok(pb::Button::Home) => Some(Button::Home),
        Ok(pb::Button::VolumeUp) => Some(Button::VolumeUp),
        Ok(pb::Button::VolumeDown) => Some(Button::VolumeDown),
        Ok(pb::Button::ActionButton) => Some(Button::ActionButton),
        Ok(pb::Button::Unspecified) => violations.refuse("button", "must be given"),
        Err(_) => violations.refuse("button", "is not a button of this API"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_escaped_text_is_what_the_encoder_writes() {
        let text: String = (0..0x80_u8)
            .map(char::from)
            .chain("ж€🙂\u{7F}\u{2028}".chars())
            .collect();
        assert_eq!(
            json_len(&text) + 2,
            serde_json::to_string(&text).unwrap().len()
        );
    }
}
