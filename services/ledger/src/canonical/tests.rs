//! The encoding against bytes and hashes that were written down by hand.

use fleetgate_runner::CommandKind;
use serde_json::{Map, json};

use super::{Event, Hash, Head};
use crate::batch::rows::{CommandJson, Links, TransitionJson};
use crate::entry::{NewIntent, NewTransition};
use crate::event::EventKind;
use crate::leases::LeaseStamp;

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

fn tap(principal: Option<&str>, lease: Option<(&str, u64)>) -> NewIntent {
    NewIntent {
        command_id: "c-1".parse().unwrap(),
        device: "00008110-000978540290401E".parse().unwrap(),
        kind: CommandKind::Tap,
        app_bundle_id: Some("com.example".parse().unwrap()),
        parameters: [("x".to_owned(), json!(1.5))].into_iter().collect(),
        asked: Map::new(),
        caller: Some("127.0.0.1:1".to_owned()),
        principal: principal.map(ToOwned::to_owned),
        lease: lease.map(|(id, epoch)| LeaseStamp {
            id: id.to_owned(),
            epoch,
        }),
    }
}

/// What a command is encoded as that names neither a principal nor a lease: as it
/// was when there were none.
fn plain(seq: u8) -> Vec<u8> {
    let at = b"i\x00\x06\x37\x9d\xa0\x5b\x60\x01";
    [
        [b"i\0\0\0\0\0\0\0".as_slice(), &[seq]].concat().as_slice(),
        b"t\0\0\0\0\0\0\0\x08intended",
        [b"i\0\0\0\0\0\0\0".as_slice(), &[seq]].concat().as_slice(),
        at,
        b"t\0\0\0\0\0\0\0\x03c-1",
        b"t\0\0\0\0\0\0\0\x1900008110-000978540290401E",
        b"t\0\0\0\0\0\0\0\x03tap",
        b"i\0\0\0\0\0\0\0\x01",
        b"t\0\0\0\0\0\0\0\x0bcom.example",
        b"t\0\0\0\0\0\0\0\x09{\"x\":1.5}",
        b"t\0\0\0\0\0\0\0\x02{}",
        b"t\0\0\0\0\0\0\0\x0b127.0.0.1:1",
        at,
    ]
    .concat()
}

/// The hashes are those of Python's hashlib, over the bytes that are written
/// down here, each with the one before it.
#[test]
fn a_command_is_encoded_with_its_principal_and_lease_only_if_it_has_one() {
    const AT: i64 = 1_750_000_000_000_001;
    let forms: [(NewIntent, &[u8], &str); 4] = [
        (
            tap(None, None),
            b"",
            "8761e1cbc5d3d9f5b09bafa7ea7f2c87ff68acbd69b88d77667c00178b86b902",
        ),
        (
            tap(Some("token:ci"), Some(("lease-1", 7))),
            b"t\0\0\0\0\0\0\0\x08token:cit\0\0\0\0\0\0\0\x07lease-1i\0\0\0\0\0\0\0\x07",
            "4d5babd59f7a430523c578446d004b79403dee92827ddc60931ac5452a640a39",
        ),
        (
            tap(Some("token:ci"), None),
            b"t\0\0\0\0\0\0\0\x08token:cinn",
            "8dbcc13b65e5fa34c65dbebb6fc7851e54fb5bb93fda99cf97e9b274d64d8ddd",
        ),
        (
            tap(None, Some(("lease-1", 0))),
            b"nt\0\0\0\0\0\0\0\x07lease-1i\0\0\0\0\0\0\0\0",
            "4595c4617077d8584223e95d9e69fed7d7fee627931b88cb39ca9b5eb4d99093",
        ),
    ];
    let mut links = Links::after(Head::NONE);
    for (number, (command, access, hash)) in (1_u8..).zip(forms) {
        let seq = i64::from(number);
        let row = CommandJson::of(seq, AT, &command).unwrap();
        let mut event = Event::new(seq, "intended", seq, AT);
        row.bind(&mut event);
        assert_eq!(event.0, [plain(number).as_slice(), access].concat());
        links.add(EventKind::Intended, seq, AT, |event| row.bind(event));
        assert_eq!(links.head.hash.to_string(), hash);
    }
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
