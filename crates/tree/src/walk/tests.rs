//! The meter reports the progress of any walk.

use crate::remove::{self, ParallelRemoval, RemovalPath, remove_all};
use crate::usage::{UsageMeter, UsageOptions, UsageResult};
use hakobu_core::error::{Cause, Operation};
use hakobu_core::limit::Controls;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

struct Quiet;

impl ParallelRemoval for Quiet {
    fn removed(&self, _: &RemovalPath<'_>) {}
    fn failed(&self, place: &RemovalPath<'_>, _: Operation, _: Cause) {
        panic!("{:?} was not removed", String::from_utf8_lossy(&place.path()));
    }
}

/// 20 directories of 70 files each, an empty one, and a symlink.
fn tree(name: &str) -> PathBuf {
    let base = std::env::temp_dir().join(format!("hakobu-walk-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&base);
    for dir in 0..20 {
        let dir = base.join(format!("d{}/e{dir}", dir % 3));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..70 {
            fs::write(dir.join(file.to_string()), "x").unwrap();
        }
    }
    fs::create_dir(base.join("empty")).unwrap();
    std::os::unix::fs::symlink("nowhere", base.join("link")).unwrap();
    base
}

const NAMES: u64 = 20 * 70 + 1;

fn path(base: &Path) -> CString {
    CString::new(base.as_os_str().as_bytes()).unwrap()
}

#[test]
fn names_are_found_when_listed_and_done_when_visited() {
    let base = tree("counts");
    let top = path(&base);
    for jobs in [1, 4] {
        let controls = Controls::fixed(jobs);
        let failed = |_: &[u8], _: Operation, _: &Cause| panic!("nothing fails here");
        let tops = [top.clone()];
        let meter = UsageMeter::new(UsageOptions::default(), &tops, &controls, 64, None, &failed);
        assert!(matches!(meter.measure(&top, &mut |_, _| ()), UsageResult::Bytes(_)));
        let now = controls.meter.progress();
        assert_eq!((now.found, now.done), (NAMES, NAMES), "{now:?}");
    }
    // Arguments that are not directories count as well.
    fs::write(base.with_extension("file"), "x").unwrap();
    let controls = Controls::fixed(3);
    let tops = [top, path(&base.with_extension("file"))];
    let removed = remove_all(&tops, remove::RemoveOptions::default(), &controls, 64, &Quiet);
    assert_eq!((removed.files, removed.dirs), (NAMES + 1, 20 + 3 + 2));
    let now = controls.meter.progress();
    assert_eq!((now.found, now.done, now.listed), (NAMES + 1, NAMES + 1, true), "{now:?}");
}

#[test]
fn one_of_several_walks_does_not_end_the_listing() {
    let base = tree("parts");
    let top = path(&base);
    let controls = Controls::fixed(2);
    let failed = |_: &[u8], _: Operation, _: &Cause| panic!("nothing fails here");
    let tops = [top.clone(), path(Path::new("/dev/null"))];
    let meter = UsageMeter::new(UsageOptions::default(), &tops, &controls, 64, None, &failed);
    meter.measure(&top, &mut |_, _| ());
    let now = controls.meter.progress();
    assert_eq!((now.found, now.done, now.listed), (NAMES, NAMES, false), "{now:?}");
    fs::remove_dir_all(&base).unwrap();
}
