//! Packets of usbmuxd whose content the protocol's own codec has no words for.

use std::io;

use plist::Value;

/// The length of a packet's header; the version stands at 4, the tag at 12.
pub(crate) const HEADER: usize = 16;

/// A packet with this property list as XML.
pub(crate) fn write(tag: u32, list: &Value) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for number in [0, 1, 8, tag] {
        bytes.extend_from_slice(&u32::to_le_bytes(number));
    }
    list.to_writer_xml(&mut bytes).map_err(io::Error::other)?;
    bytes.push(b'\n');
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    put(&mut bytes, 0, length);
    Ok(bytes)
}

/// Overwrites one number of a header.
pub(crate) fn put(packet: &mut [u8], at: usize, number: u32) {
    if let Some(place) = packet.get_mut(at..at + 4) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}
