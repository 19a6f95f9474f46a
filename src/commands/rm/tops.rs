//! Check of the arguments of `rm`: never `.`, `..` or `/`, directories only with `-r` or `-d`, missing ones are
//! errors without `-f`.

use super::options::Plan;
use super::report::fail;
use crate::names::strip_slashes;
use crate::show::Show;
use hakobu_core::error::{Cause, Operation};
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_sys::{dir, errno, meta};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// An argument to be removed: its path without trailing slashes, and its metadata.
pub struct Top {
    pub path: CString,
    pub kind: Kind,
}

/// Returns the valid arguments; the others are reported and counted.
pub fn check(plan: &Plan, show: &Show, totals: &mut Totals) -> Vec<Top> {
    let root = meta::of(dir::cwd(), c"/", false).ok().map(|meta| meta.identity());
    let mut tops = Vec::with_capacity(plan.paths.len());
    for path in &plan.paths {
        match one(plan, path, root) {
            Ok(Some(top)) => tops.push(top),
            Ok(None) => {}
            Err(cause) => {
                totals.failed += 1;
                fail(show, path.as_bytes(), Operation::Remove, cause);
            }
        }
    }
    tops
}

fn system(code: i32) -> Cause {
    Cause::System(io::Error::from_raw_os_error(code))
}

fn one(plan: &Plan, typed: &OsStr, root: Option<(u64, u64)>) -> Result<Option<Top>, Cause> {
    let bytes = strip_slashes(typed.as_bytes());
    // --keep-dirs keeps both.
    if plan.recursive && !plan.keep_dirs && is_dot(bytes) {
        return Err(Cause::Reason("'.' and '..' are never removed"));
    }
    let path = CString::new(bytes).map_err(|_| system(errno::EINVAL))?;
    let meta = match meta::of(dir::cwd(), &path, false) {
        Ok(meta) => meta,
        Err(error)
            if plan.force
                && (errno::is(&error, errno::ENOENT) || errno::is(&error, errno::ENOTDIR)) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(Cause::System(error)),
    };
    if plan.kept.excludes(bytes, b"", meta.kind) {
        return Ok(None);
    }
    if meta.kind != Kind::Dir {
        return match bytes.len() == typed.len() {
            true => Ok(Some(Top { path, kind: meta.kind })),
            // A trailing slash requires a directory, which does not exist.
            false if plan.force && meta.kind != Kind::Symlink => Ok(None),
            // A symlink is never followed, and is not the requested directory either.
            false => Err(system(errno::ENOTDIR)),
        };
    }
    if !plan.recursive && !plan.empty_dirs {
        return Err(Cause::Reason("it is a directory (-r removes it with everything below)"));
    }
    if plan.recursive {
        guard(plan, &path, &meta, root)?;
    }
    Ok(Some(Top { path, kind: meta.kind }))
}

/// Refuses the root of the system, and with `--preserve-root=all` of every file system.
fn guard(plan: &Plan, path: &CString, meta: &Meta, root: Option<(u64, u64)>) -> Result<(), Cause> {
    if plan.preserve_root && Some(meta.identity()) == root {
        return Err(Cause::Reason("this is the root of the system (--no-preserve-root allows it)"));
    }
    if plan.preserve_mounts {
        let above = [path.to_bytes(), b"/.."].concat();
        let above = CString::new(above).map_err(|_| system(errno::EINVAL))?;
        let above = meta::of(dir::cwd(), &above, true).map_err(Cause::System)?;
        if above.dev != meta.dev {
            return Err(Cause::Reason("a file system is mounted there (--preserve-root=all)"));
        }
    }
    Ok(())
}

fn is_dot(path: &[u8]) -> bool {
    matches!(path.rsplit(|&byte| byte == b'/').next(), Some(b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_refused() {
        let here = meta::of(dir::cwd(), c"/tmp", true).unwrap();
        let plan = |preserve_root| Plan {
            recursive: true,
            force: true,
            ask: crate::commands::rm::options::Ask::Never,
            preserve_root,
            ..Plan::new(false)
        };
        // Nothing is removed here, so any directory can act as the root.
        let root = Some(here.identity());
        for spelled in ["/tmp", "/tmp/", "/tmp//", "/../tmp", "//tmp"] {
            assert!(one(&plan(true), OsStr::new(spelled), root).is_err(), "{spelled}");
            assert!(one(&plan(false), OsStr::new(spelled), root).is_ok(), "{spelled}");
        }
    }

    #[test]
    fn slashes_and_dots() {
        for (path, stripped, dot) in [
            ("a", "a", false),
            ("a///", "a", false),
            ("/", "/", false),
            ("//", "/", false),
            (".", ".", true),
            ("a/..//", "a/..", true),
            ("a/.b", "a/.b", false),
            ("...", "...", false),
            ("", "", false),
        ] {
            let found = strip_slashes(path.as_bytes());
            assert_eq!((found, is_dot(found)), (stripped.as_bytes(), dot), "{path}");
        }
    }
}
