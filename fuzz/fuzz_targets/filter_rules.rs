#![no_main]

#[path = "../checks/filter_rules.rs"]
mod filter_rules;

libfuzzer_sys::fuzz_target!(|data: &[u8]| filter_rules::check(data));
