#![no_main]

#[path = "../checks/job_file.rs"]
mod job_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| job_file::check(data));
