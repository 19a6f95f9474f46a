#![no_main]

#[path = "../checks/run_file.rs"]
mod run_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| run_file::check(data));
