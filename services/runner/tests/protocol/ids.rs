//! Names and their spellings.

use fleetgate_runner::{BundleId, CommandId, InvalidId, Udid};

#[test]
fn every_spelling_of_a_phone_is_one_key() {
    for spelling in [
        "00008020-00060D691AD8003A",
        "00008020-00060d691ad8003a",
        "0000802000060D691AD8003A",
        " 0000802000060d691ad8003a\n",
    ] {
        let udid: Udid = spelling.parse().unwrap();
        assert_eq!(udid.as_str(), "00008020-00060D691AD8003A");
    }
    for spelling in [
        "0123456789ABCDEF0123456789ABCDEF01234567",
        "0123456789abcdef0123456789abcdef01234567",
    ] {
        let udid: Udid = spelling.parse().unwrap();
        assert_eq!(udid.as_str(), "0123456789abcdef0123456789abcdef01234567");
    }
}

#[test]
fn a_udid_made_of_its_numbers_is_in_its_canonical_spelling() {
    let udid = Udid::from_parts(0x8020, 0x0006_0D69_1AD8_003A);
    assert_eq!(udid, "00008020-00060D691AD8003A".parse().unwrap());
    let largest = Udid::from_parts(u32::MAX, u64::MAX);
    assert_eq!(largest.as_str().parse(), Ok(largest));
}

#[test]
fn what_is_no_udid_is_refused() {
    for text in [
        "",
        "00008020",
        "00008020-00060D691AD8003",
        "00008020-00060D691AD8003AA",
        "0000802-000060D691AD8003A",
        "00008020_00060D691AD8003A",
        "00008020-00060D691AD8003G",
        "0000802000060D691AD8-003A",
        "0123456789abcdef0123456789abcdef0123456",
        "0123456789abcdef0123456789abcdef0123456g",
        "éééééééééééé",
        "0000802é00060D691AD8003",
    ] {
        assert_eq!(text.parse::<Udid>(), Err(InvalidId::Udid), "{text:?}");
    }
}

#[test]
fn command_ids_are_trimmed_visible_ascii() {
    assert_eq!(
        " argent-1 ".parse::<CommandId>().unwrap().as_str(),
        "argent-1"
    );
    assert!("x".repeat(128).parse::<CommandId>().is_ok());
    for text in ["", " ", "two words", "naïve", "a\u{7f}", &"x".repeat(129)] {
        assert_eq!(
            text.parse::<CommandId>(),
            Err(InvalidId::CommandId),
            "{text:?}"
        );
    }
}

#[test]
fn minted_ids_are_new_and_in_order() {
    let ids: Vec<CommandId> = (0..100).map(|_| CommandId::mint()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    assert!(
        ids.iter()
            .all(|id| id.as_str().parse::<CommandId>().as_ref() == Ok(id))
    );
}

#[test]
fn bundle_ids_are_letters_digits_dots_hyphens_and_underscores() {
    assert_eq!(
        " com.example.My-App_2 "
            .parse::<BundleId>()
            .unwrap()
            .as_str(),
        "com.example.My-App_2"
    );
    for text in [
        "",
        "  ",
        "com.example/app",
        "com example",
        "cöm",
        &"x".repeat(256),
    ] {
        assert_eq!(
            text.parse::<BundleId>(),
            Err(InvalidId::BundleId),
            "{text:?}"
        );
    }
}

#[test]
fn names_read_from_text_are_checked() {
    assert_eq!(
        serde_json::from_str::<Udid>(r#""0000802000060d691ad8003a""#)
            .unwrap()
            .as_str(),
        "00008020-00060D691AD8003A"
    );
    assert!(serde_json::from_str::<CommandId>(r#""""#).is_err());
}
