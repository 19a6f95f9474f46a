//! A job for the tests of other modules.

use super::*;

/// A job as fio's defaults have it, with this `rw`, for the tests of other modules.
pub(crate) fn job(rw: &str) -> Job {
    let random = rw.starts_with("rand");
    let way = rw.trim_start_matches("rand");
    Job {
        name: "job".to_owned(),
        rw: Rw { reads: way != "write", writes: way != "read", random },
        percentiles: vec![50.0, 99.0],
        ..Job::default()
    }
}
