#![no_main]

#[path = "../judge/mod.rs"]
mod judge;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judge::record(data));
