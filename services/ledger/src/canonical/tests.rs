//! The encoding against bytes and hashes that were written down by hand.

use super::{Event, Hash, Head};
use crate::batch::rows::{Links, TransitionJson};
use crate::entry::NewTransition;
use crate::event::EventKind;

#[test]
fn an_event_is_encoded_as_the_table_says() {
    let mut event = Event::new(2, "opened", 1, -1);
    event.null();
    event.text("é");
    event.blob(&[0, 255]);
    event.integer_or_null(None);
    event.text_or_null(Some(""));
    let expected = [
        b"i\0\0\0\0\0\0\0\x02".as_slice(),
        b"t\0\0\0\0\0\0\0\x06opened",
        b"i\0\0\0\0\0\0\0\x01",
        b"i\xff\xff\xff\xff\xff\xff\xff\xff",
        b"n",
        b"t\0\0\0\0\0\0\0\x02\xc3\xa9",
        b"b\0\0\0\0\0\0\0\x02\x00\xff",
        b"n",
        b"t\0\0\0\0\0\0\0\0",
    ]
    .concat();
    assert_eq!(event.0, expected);
}

/// The hashes are those of Python's hashlib, over the bytes that are written
/// down here and, for the second link, over the first hash and the like.
#[test]
fn a_transition_is_encoded_as_the_table_says() {
    const AT: i64 = 1_750_000_000_000_001;
    let mut moved = NewTransition {
        device: "00008110-000978540290401E".parse().unwrap(),
        from: "READY".to_owned(),
        to: "WEDGED".to_owned(),
        reason: "RUNNER_WEDGED".to_owned(),
        detail: Some("é: no answer".to_owned()),
    };
    let at = b"i\x00\x06\x37\x9d\xa0\x5b\x60\x01";
    let expected = [
        b"i\0\0\0\0\0\0\0\x01".as_slice(),
        b"t\0\0\0\0\0\0\0\x0atransition",
        b"i\0\0\0\0\0\0\0\x01",
        at,
        b"t\0\0\0\0\0\0\0\x1900008110-000978540290401E",
        b"t\0\0\0\0\0\0\0\x05READY",
        b"t\0\0\0\0\0\0\0\x06WEDGED",
        b"t\0\0\0\0\0\0\0\x0dRUNNER_WEDGED",
        b"t\0\0\0\0\0\0\0\x0d\xc3\xa9: no answer",
        at,
    ]
    .concat();
    let mut event = Event::new(1, "transition", 1, AT);
    TransitionJson::of(1, AT, &moved).bind(&mut event);
    assert_eq!(event.0, expected);

    let mut links = Links::after(Head::NONE);
    links.add(EventKind::Transition, 1, AT, |event| {
        TransitionJson::of(1, AT, &moved).bind(event);
    });
    let first = "71ce8fa210c5e1571439cae4d5c3579853eb7e422fc1b3d06014b66db425d01f";
    assert_eq!(links.head.hash.to_string(), first);
    moved.detail = None;
    links.add(EventKind::Transition, 2, AT, |event| {
        TransitionJson::of(2, AT, &moved).bind(event);
    });
    let second = "83ff61afcd8b7bc434e9b2e1cd10888633d4ee5e104f85a9180d76d559689052";
    assert_eq!(
        (links.head.seq, links.head.hash.to_string()),
        (2, second.to_owned())
    );
}

/// `hashlib.sha256(bytes(32)).hexdigest()` and the hash of 32 zero bytes and
/// `abc`, by Python.
#[test]
fn a_link_hashes_the_one_before_it_and_the_event() {
    for (event, hash) in [
        (
            "",
            "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925",
        ),
        ("abc", ABC),
    ] {
        let next = Head::NONE.next(&Event(event.into()));
        assert_eq!((next.seq, next.hash.to_string()), (1, hash.to_owned()));
    }
}

const ABC: &str = "365aa7d8f7f9402c4b9434502b4cc89ddb09fe50d7cd95b493b834c62d5a5370";

#[test]
fn a_hash_reads_back_from_its_digits_and_from_nothing_else() {
    let hash: Hash = ABC.parse().unwrap();
    assert_eq!(hash.to_string(), ABC);
    assert_eq!(Hash::try_from(hash.as_bytes().as_slice()), Ok(hash));
    for wrong in ["", "00", &ABC[1..], &ABC.replace('0', "g"), &"é".repeat(32)] {
        assert!(wrong.parse::<Hash>().is_err(), "{wrong}");
    }
}
