//! What the wire types share: how numbers are written, and how a parser's
//! complaint is put so that it does not repeat what was parsed.
//!
//! Invariant: nothing outside this file handles a serialiser's error, because
//! the types of this crate cannot cause one.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The value as JSON text.
pub(crate) fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| {
        unreachable!("wire types have string keys and no failing parts: {error}")
    })
}

/// The value as a JSON object.
pub(crate) fn to_object<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        // Without the value: it may hold what is to be typed.
        Ok(_) => unreachable!("a wire struct is an object"),
        Err(error) => unreachable!("wire types have string keys and no failing parts: {error}"),
    }
}

/// What is wrong with a text, without the values that stand in it: they may be
/// secrets, or megabytes.
pub(crate) fn complaint(error: &serde_json::Error) -> String {
    // The parser quotes what it found in one of these marks, and then says what
    // it expected; or it quotes only the name of a field that it knows.
    const MARKS: [char; 2] = ['"', '`'];
    const EXPECTED: &str = ", expected ";
    let text = error.to_string();
    let found = ["missing field `", "duplicate field `"];
    if found.iter().any(|start| text.starts_with(start)) {
        return text;
    }
    let end = text.rfind(EXPECTED).or_else(|| text.rfind(MARKS));
    match (text.find(MARKS), end) {
        (Some(first), Some(end)) if first < end => format!("{}…{}", &text[..first], &text[end..]),
        (Some(_) | None, Some(_) | None) => text,
    }
}

/// A number that is written as an integer when it is one.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Number(pub(crate) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Integers of this size are exact in both types.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "integral and in range, as just checked"
            )]
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Writes a coordinate. One that is not finite is written as zero, as a runner
/// does for an element without geometry.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn coordinate<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number(if value.is_finite() { *value } else { 0.0 }).serialize(serializer)
}

/// A duration in milliseconds: written whole, read from any number. What is
/// negative reads as zero, since no duration of the protocol can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Millis(pub(crate) Duration);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX))
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyNumber;

        impl Visitor<'_> for AnyNumber {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of milliseconds")
            }

            fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Millis, E> {
                Ok(Millis(Duration::from_millis(millis)))
            }

            fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Millis, E> {
                Ok(Millis(Duration::from_millis(
                    u64::try_from(millis).unwrap_or(0),
                )))
            }

            fn visit_f64<E: de::Error>(self, millis: f64) -> Result<Millis, E> {
                let duration = Duration::try_from_secs_f64(millis.max(0.0) / 1000.0);
                Ok(Millis(duration.unwrap_or(Duration::from_millis(u64::MAX))))
            }
        }

        deserializer.deserialize_any(AnyNumber)
    }
}
