//! Steering: numbers of jobs that are found, remembered and told; limits that are refused or hold;
//! what is said at the end.

#[path = "../common/mod.rs"]
mod common;
#[path = "../wire/server.rs"]
#[allow(dead_code, reason = "a part of what the tests of the wire need")]
mod server;

mod limits;
mod memory;
mod path;
mod polite;
mod said;

/// Files of one size, `f0` and so on, in a folder that is made.
fn files(dir: &std::path::Path, count: usize, bytes: usize) {
    std::fs::create_dir_all(dir).unwrap();
    for number in 0..count {
        std::fs::write(dir.join(format!("f{number}")), vec![b'x'; bytes]).unwrap();
    }
}
