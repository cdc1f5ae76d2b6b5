//! A runner's reply, whatever its bytes are.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fleetgate_fuzz::checks::runner_reply(data));
