//! The names that callers give: of phones, commands and apps, and the address
//! of a usbmuxd.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use fleetgate_device::Address;
use fleetgate_runner::{BundleId, CommandId, Udid};

/// Takes the bytes as each kind of name. Bytes that are not UTF-8 are replaced.
///
/// # Panics
///
/// If a name is taken in a form that is not its canonical one, or one phone can
/// have two.
pub fn names(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);

    if let Some(udid) = canonical::<Udid>(text) {
        let canonical = udid.as_str();
        let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some((chip, unit)) = canonical.split_once('-') {
            assert!(chip.len() == 8 && unit.len() == 16 && hex(chip) && hex(unit));
            assert_eq!(canonical, canonical.to_ascii_uppercase());
            assert_same(&udid, &canonical.replace('-', ""));
        } else {
            assert!(canonical.len() == 40 && hex(canonical));
            assert_eq!(canonical, canonical.to_ascii_lowercase());
        }
        assert_same(&udid, &text.to_ascii_lowercase());
        assert_same(&udid, &text.to_ascii_uppercase());
        assert_kept_as_text(&udid);
    }
    if let Some(id) = canonical::<CommandId>(text) {
        assert!((1..=CommandId::MAX_LEN).contains(&id.as_str().len()));
        assert!(id.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        assert_kept_as_text(&id);
    }
    if let Some(id) = canonical::<BundleId>(text) {
        assert!((1..=BundleId::MAX_LEN).contains(&id.as_str().len()));
        assert!(!id.as_str().contains(['/', ':', '"', '\\', ' ']));
        assert_kept_as_text(&id);
    }
    if let Some(address) = canonical::<Address>(text) {
        match address {
            Address::Unix(path) => assert!(path.is_absolute()),
            Address::Tcp(host) => assert!(host.rsplit_once(':').is_some_and(|(name, port)| {
                !name.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
            })),
        }
    }
}

/// The name, if it is one: what it is shown as is the same name, and white
/// space around it is not part of it.
fn canonical<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let name: T = text.parse().ok()?;
    assert_same(&name, &name.to_string());
    assert_same(&name, &format!(" {text}\n"));
    Some(name)
}

fn assert_same<T: FromStr + PartialEq + Debug>(name: &T, text: &str) {
    assert_eq!(text.parse().ok().as_ref(), Some(name), "{text:?}");
}

fn assert_kept_as_text<T>(name: &T)
where
    T: Clone + Into<String> + TryFrom<String> + PartialEq + Debug,
{
    let text: String = name.clone().into();
    assert_eq!(T::try_from(text).ok().as_ref(), Some(name));
}
