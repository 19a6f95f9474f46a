#![no_main]

#[path = "../checks/results.rs"]
mod results;

libfuzzer_sys::fuzz_target!(|data: &[u8]| results::check(data));
