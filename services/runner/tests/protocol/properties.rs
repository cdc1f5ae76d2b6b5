//! What holds for every value and for any bytes at all.

use bytes::Bytes;
use fleetgate_runner::http::{FrameError, RequestDecoder};
use fleetgate_runner::{AppAction, Envelope, InvalidReply, Request, TypedText, Udid};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::IgnoredAny;

use crate::arbitrary::{envelope, kind, request};
use crate::build::app;

/// Bytes that look enough like JSON to get far into a decoder.
fn almost_json() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("\""),
        Just("\\"),
        Just("null"),
        Just("true"),
        Just("1e999"),
        Just("-0"),
        Just("\"ok\":true"),
        Just("\"data\":"),
        Just("\"error\":"),
        Just("\"command\":\"tap\""),
        Just("\"x\":1"),
        Just("\"nodes\":["),
        Just("\"imageBase64\":\"\\/w==\""),
        Just("\u{fffd}"),
        Just("\\ud800"),
    ];
    vec(token, 0..24).prop_map(|tokens| tokens.concat().into_bytes())
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..64), almost_json()]
}

/// Bytes of a connection: usually something like a header, then anything.
fn connection() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("Content-Length: 5".to_owned()),
        "[Cc]ontent-[Ll]ength ?: ?-?[0-9]{0,8}",
        "[A-Za-z-]{0,8}: .{0,8}",
    ];
    (vec(line, 0..4), vec(any::<u8>(), 0..40), any::<bool>()).prop_map(|(lines, body, ends)| {
        let end = if ends { "\r\n\r\n" } else { "" };
        let mut bytes = format!("POST / HTTP/1.1\r\n{}{end}", lines.join("\r\n")).into_bytes();
        bytes.extend(body);
        bytes
    })
}

/// What comes of a connection whose bytes arrive in these pieces.
fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Bytes>, FrameError> {
    let mut decoder = RequestDecoder::new();
    for piece in pieces {
        match decoder.push(piece) {
            Ok(None) => {}
            done @ (Ok(Some(_)) | Err(_)) => return done,
        }
    }
    Ok(None)
}

proptest! {
    #[test]
    fn a_request_survives_the_wire(request in request()) {
        prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
    }

    #[test]
    fn an_envelope_survives_the_wire((kind, envelope) in envelope()) {
        prop_assert_eq!(Envelope::decode(kind, &envelope.encode()), Ok(envelope));
    }

    #[test]
    fn no_absent_part_is_written_as_null(request in request(), (_, envelope) in envelope()) {
        for body in [request.encode(), envelope.encode()] {
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            prop_assert!(!holds_null(&value), "{value}");
        }
    }

    #[test]
    fn a_record_never_holds_what_was_typed(secret in "[a-z]{12}") {
        let text = TypedText::new(secret.clone()).unwrap();
        let command = app(AppAction::Type { text });
        let recorded = serde_json::to_string(&command.recorded()).unwrap();
        prop_assert!(!recorded.contains(&secret));
        let formatted = format!("{command:?}");
        prop_assert!(!formatted.contains(&secret));
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in any_bytes(), kind in kind()) {
        let _ = Request::decode(&bytes);
        let decoded = Envelope::decode(kind, &bytes);
        if serde_json::from_slice::<IgnoredAny>(&bytes).is_err() {
            let refused = matches!(decoded, Err(InvalidReply::NotAnEnvelope { .. }));
            prop_assert!(refused);
        }
    }

    #[test]
    fn no_data_makes_a_decoder_panic(data in almost_json(), kind in kind()) {
        let body = [&b"{\"ok\":true,\"data\":"[..], &data, b"}"].concat();
        let _ = Envelope::decode(kind, &body);
    }

    #[test]
    fn any_cut_of_a_connection_gives_the_same_request(
        bytes in connection(),
        cuts in vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let bounds: Vec<usize> = [0].into_iter().chain(cuts).chain([bytes.len()]).collect();
        let pieces = bounds.windows(2).map(|bounds| &bytes[bounds[0]..bounds[1]]);
        let whole = outcome([&bytes[..]]);
        prop_assert_eq!(outcome(pieces), whole.clone());
        prop_assert_eq!(outcome(bytes.chunks(1)), whole);
    }

    #[test]
    fn a_framed_request_is_taken_whole(body in vec(any::<u8>(), 0..300)) {
        let head = format!("POST /command HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
        let request = [head.as_bytes(), &body].concat();
        prop_assert_eq!(outcome([&request[..]]), Ok(Some(Bytes::from(body))));
    }

    #[test]
    fn a_udid_is_in_its_canonical_spelling_once_it_is_parsed(text in "[0-9a-fA-F-]{23,41}|.{0,41}") {
        if let Ok(udid) = text.parse::<Udid>() {
            prop_assert_eq!(udid.as_str().parse::<Udid>(), Ok(udid.clone()));
            let other_case = text.to_ascii_lowercase().parse::<Udid>();
            prop_assert_eq!(other_case, Ok(udid));
        }
    }
}

fn holds_null(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(values) => values.iter().any(holds_null),
        serde_json::Value::Object(object) => object.values().any(holds_null),
        serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => false,
    }
}
