//! The encoding against bytes and hashes that were written down by hand.

use super::{Event, Hash, Head};

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
