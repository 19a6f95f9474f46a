#![no_main]

#[path = "../checks/s3_url.rs"]
mod s3_url;

libfuzzer_sys::fuzz_target!(|data: &[u8]| s3_url::check(data));
