//! System calls that fail permanently from some moment on; and harmless failures.

use crate::common::snapshot::Snapshot;
use crate::sweep::fault::{Fault, behind, run};
use crate::sweep::judge::{Scenario, can_inject};
use crate::sweep::local::{Kind, Local, SYNC};
use crate::sweep::table::May;

fn stage() -> Option<Local> {
    let line = "sync -aHAX --delete -j 1 SRC/ DST";
    Local::new(Kind { line, ..SYNC }).filter(|_| can_inject())
}

#[test]
fn lasting_failures() {
    let Some(stage) = stage() else { return };
    let moments = stage.moments();
    let mut failed = Vec::new();
    for (call, how) in [
        ("write", "error=ENOSPC"),
        ("write", "error=EIO"),
        ("openat", "error=EMFILE"),
        ("utimensat", "error=EPERM"),
        ("fchown", "error=EPERM"),
        ("fchownat", "error=EPERM"),
        ("linkat", "error=EPERM"),
        ("copy_file_range", "error=EXDEV"),
        ("read", "retval=0"),
        ("pread64", "retval=0"),
        ("getdents64", "error=EIO"),
        ("fsetxattr", "error=ENOSPC"),
        ("unlinkat", "error=EBUSY"),
        ("close", "error=EIO"),
    ] {
        let Some(last) = moments.get(call).and_then(|when| when.last()) else { continue };
        for part in [2, 3, 4] {
            let fault = Fault::lasting(call, how, (last * part / 4).max(1));
            failed.extend(stage.try_out(&fault, May::End).and_then(Result::err));
        }
    }
    assert!(failed.is_empty(), "{} failures:\n{}", failed.len(), failed.join("\n"));
}

/// Unsupported operations of a kernel or file system have a fallback.
#[test]
fn failures_that_are_none() {
    let Some(stage) = stage() else { return };
    for (call, error) in [
        ("copy_file_range", "EXDEV"),
        ("copy_file_range", "EOPNOTSUPP"),
        ("ioctl", "EOPNOTSUPP"),
        ("fallocate", "EOPNOTSUPP"),
        ("setxattrat", "ENOSYS"),
        ("fchmodat2", "ENOSYS"),
        ("openat2", "ENOSYS"),
    ] {
        stage.prepare();
        let fault = Fault::lasting(call, &format!("error={error}"), 1);
        run(behind(fault.strace(&stage.log()), &stage.command())).ok();
        assert!(stage.not_whole().is_empty(), "{fault}: {:?}", stage.not_whole());
        assert!(!Snapshot::of(&stage.dst()).entries.is_empty());
    }
}
