//! What a usbmuxd says, whatever its bytes are.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fleetgate_fuzz::checks::usbmux(data));
