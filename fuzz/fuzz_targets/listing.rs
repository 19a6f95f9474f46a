#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hakobu_s3::ops::fuzz::listing(data));
