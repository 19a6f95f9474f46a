#![no_main]

#[path = "../checks/campaign.rs"]
mod campaign;

libfuzzer_sys::fuzz_target!(|data: &[u8]| campaign::check(data));
