//! The sampler on the real machine, and on texts.

mod devices;
mod limits;
mod parsing;
mod rates;
mod reading;
mod trees;

use std::io::Write;

/// Reports a skipped test, past the capture of test output; with `HAKOBU_REQUIRE_ALL=1` it fails instead.
fn skip(why: &str) {
    let required = std::env::var_os("HAKOBU_REQUIRE_ALL");
    let required = required.is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "HAKOBU_REQUIRE_ALL is set, and: {why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
