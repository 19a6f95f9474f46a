//! What an agent may do that is started for one directory (`hakobu agent --root DIR`, in `authorized_keys`): all that the near
//! end asks for is data. Paths are resolved below the directory, where none of them may lead out of it; options that
//! would read or write elsewhere are refused.

use crate::exit;
use hakobu_core::error::{Fatal, quoted};
use hakobu_sys::paths::{Links, OpenPurpose, open_beneath};
use hakobu_sys::{AsFd, dir, errno};
use hakobu_transfer::policy::{Delete, MissingArgs};
use hakobu_transfer::run::{AgentTask, Spec};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Options of tasks that have no path in them and cannot lead out of the directory.
const HARMLESS: &[&str] = &[
    "archive",
    "recursive",
    "dirs",
    "relative",
    "no-implied-dirs",
    "links",
    "safe-links",
    "D",
    "drop-D",
    "P",
    "devices",
    "specials",
    "one-file-system",
    "prune-empty-dirs",
    "ignore-missing-args",
    "max-size",
    "min-size",
    "hard-links",
    "perms",
    "owner",
    "group",
    "times",
    "atimes",
    "open-noatime",
    "executability",
    "omit-link-times",
    "omit-dir-times",
    "acls",
    "xattrs",
    "sparse",
    "chmod",
    "chown",
    "usermap",
    "groupmap",
    "super",
    "fake-super",
    "numeric-ids",
    "checksum",
    "update",
    "size-or-newer",
    "size-only",
    "ignore-times",
    "modify-window",
    "existing",
    "ignore-existing",
    "backup",
    "suffix",
    "inplace",
    "append",
    "append-verify",
    "preallocate",
    "delay-updates",
    "partial",
    "whole-file",
    "compress",
    "compress-choice",
    "compress-level",
    "skip-compress",
    "fsync",
    "mkpath",
    "dry-run",
    "delete",
    "delete-before",
    "delete-during",
    "delete-delay",
    "delete-after",
    "delete-excluded",
    "delete-missing-args",
    "max-delete",
    "ignore-errors",
    "remove-source-files",
    "force",
    "exclude",
    "include",
    "filter-style",
    // Files that they name are those of the near end, which tells what is in them.
    "exclude-from",
    "include-from",
    "filter",
    "F",
    "from0",
    "list-only",
    "checksum-choice",
    "verbose",
    "quiet",
    "debug",
    "itemize-changes",
    "out-format",
    "info",
    "jobs",
    "bwlimit",
];

/// Options whose value is a path; a relative one begins in the target.
const PATHS: &[&str] =
    &["backup-dir", "partial-dir", "temp-dir", "link-dest", "copy-dest", "compare-dest"];

/// The list of names, which the near end tells or which is a file below the directory.
const LIST: &str = "files-from";

/// What an agent may do.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    /// The directory, absolute and without symlinks.
    root: PathBuf,
    pub refuses_reading: bool,
    pub refuses_writing: bool,
    pub refuses_deleting: bool,
    pub refuses_overwriting: bool,
}

fn refused(message: String) -> Fatal {
    Fatal::new(exit::SYNC_UNSUPPORTED, message)
}

impl Confinement {
    /// Enters the directory: relative paths begin there from now on.
    ///
    /// # Errors
    /// It cannot be entered.
    pub fn enter(self, root: &Path) -> Result<Confinement, Fatal> {
        let entered = root.canonicalize().and_then(|root| {
            std::env::set_current_dir(&root)?;
            Ok(root)
        });
        let root = entered.map_err(|error| {
            let message = format!("the agent cannot enter {}: {error}", quoted(root));
            Fatal::new(exit::SYNC_IO, message)
        })?;
        Ok(Confinement { root, ..self })
    }

    /// Returns whether anything is refused.
    pub fn is_any(&self) -> bool {
        let Confinement { refuses_reading, refuses_writing, .. } = self;
        let Confinement { refuses_deleting, refuses_overwriting, .. } = self;
        [refuses_reading, refuses_writing, refuses_deleting, refuses_overwriting]
            .into_iter()
            .any(|it| *it)
    }

    /// Makes the paths of a task, and of its options, those below the directory.
    ///
    /// # Errors
    /// The agent may not do it.
    pub fn confine(&self, task: &mut AgentTask) -> Result<(), Fatal> {
        let is_sync = match &*task.command {
            "sync" => true,
            // It has no option that could lead out.
            "verify" => false,
            other => {
                return Err(refused(format!(
                    "this agent does not take {other} (--root)\nhint: hakobu sync -r, or -a"
                )));
            }
        };
        match task.reads {
            true if self.refuses_reading => {
                return Err(refused("this agent only takes files (--write-only)".into()));
            }
            false if self.refuses_writing => {
                return Err(refused("this agent only gives files (--read-only)".into()));
            }
            _ => {}
        }
        for path in &mut task.paths {
            *path = below(path)?;
            self.check(path)?;
        }
        let target = task.paths.first().filter(|_| !task.reads).cloned().unwrap_or_default();
        for (name, _, _, value) in &mut task.options {
            if HARMLESS.contains(&&**name) {
                continue;
            }
            if name == LIST {
                if task.reads && task.names.is_none() {
                    *value = self.list(Path::new(value))?.0.into_os_string();
                }
                continue;
            }
            if !PATHS.contains(&&**name) {
                return Err(refused(format!("this agent does not take --{name} (--root)")));
            }
            *value = self.path_of_option(&target, value)?;
        }
        if is_sync {
            let root = self.root.clone().into_os_string();
            task.options.push(("confine-root".into(), true, 1, root));
        }
        Ok(())
    }

    /// Returns the path of a list of names below the directory, and the links that may lead to it.
    ///
    /// # Errors
    /// It leads out of the directory; the agent gives nothing.
    pub fn list(&self, path: &Path) -> Result<(PathBuf, Links), Fatal> {
        if self.refuses_reading {
            return Err(refused("this agent only takes files (--write-only)".into()));
        }
        let path = below(path)?;
        self.check(&path)?;
        // A name that is only a dash is standard input.
        Ok((Path::new(".").join(path), Links::Within(self.root.clone())))
    }

    fn path_of_option(&self, target: &Path, value: &OsStr) -> Result<OsString, Fatal> {
        let path = Path::new(value);
        let is_absolute = path.is_absolute();
        let inside = match is_absolute {
            true => below(path)?,
            false => below(&target.join(path))?,
        };
        self.check(&inside)?;
        Ok(match is_absolute {
            true => self.root.join(inside).into_os_string(),
            false => value.to_owned(),
        })
    }

    /// Checks and limits what the options of a task mean.
    ///
    /// # Errors
    /// The agent may not do it.
    pub fn limit(&self, task: &AgentTask, spec: &mut Spec) -> Result<(), Fatal> {
        let policy = &mut spec.policy;
        let deletes = policy.delete != Delete::No
            || policy.delete_excluded
            || policy.force
            || policy.missing_args == MissingArgs::Delete;
        let keeps_all = self.refuses_deleting || self.refuses_writing;
        if self.refuses_deleting && deletes && !task.reads {
            return Err(refused("this agent deletes nothing (--no-delete)".into()));
        }
        if keeps_all && policy.remove_source_files && task.reads {
            return Err(refused("this agent removes no sources (--no-delete, --read-only)".into()));
        }
        if self.refuses_overwriting && !task.reads {
            let moves = policy.backup || policy.partial_dir.is_some() || policy.delay_updates;
            if moves {
                return Err(refused(
                    "this agent replaces nothing (--no-overwrite): neither does it take --backup, \
                     --partial-dir and --delay-updates"
                        .into(),
                ));
            }
            policy.ignore_existing = true;
        }
        if self.refuses_reading && !task.reads {
            // Hashes of what is there would tell what is in it.
            policy.whole_file = true;
        }
        policy.root = Some(self.root.clone());
        policy.links = Links::Within(self.root.clone());
        spec.remember = false;
        Ok(())
    }

    /// Checks that the part of a path that exists does not lead out of the directory.
    fn check(&self, path: &Path) -> Result<(), Fatal> {
        let failed = |error: std::io::Error| {
            let message = format!("the agent cannot look at {}: {error}", quoted(path));
            Fatal::new(exit::SYNC_IO, message)
        };
        let c_path =
            |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|e| failed(e.into()));
        let root = dir::open_root(&c_path(&self.root)?).map_err(failed)?;
        for part in path.ancestors() {
            match open_beneath(root.as_fd(), &c_path(part)?, OpenPurpose::Looking) {
                Err(error)
                    if errno::is(&error, errno::EXDEV) || errno::is(&error, errno::ELOOP) =>
                {
                    return Err(leads_out(path));
                }
                Err(_) => {}
                Ok(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

fn leads_out(path: &Path) -> Fatal {
    refused(format!("{} leads out of the directory of this agent (--root)", quoted(path)))
}

/// Returns a path as one below the directory: an absolute one begins there, too.
///
/// # Errors
/// It leads out of it by its text.
fn below(path: &Path) -> Result<PathBuf, Fatal> {
    let text = path.as_os_str().as_bytes();
    let start = text.iter().position(|byte| *byte != b'/').unwrap_or(text.len());
    let inside = text.get(start..).unwrap_or_default();
    let mut depth = 0_usize;
    for name in inside.split(|byte| *byte == b'/') {
        depth = match name {
            b"" | b"." => depth,
            b".." => depth.checked_sub(1).ok_or_else(|| leads_out(path))?,
            _ => depth + 1,
        };
    }
    let slash = if start > 0 { &b"./"[..] } else { b"." };
    let inside = if inside.is_empty() { slash } else { inside };
    Ok(PathBuf::from(OsString::from_vec(inside.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sync::FAR;
    use crate::commands::verify;

    #[test]
    fn paths_begin_in_the_directory() {
        for (path, inside) in [
            ("a/b", "a/b"),
            ("/a/b/", "a/b/"),
            ("//a", "a"),
            ("/", "./"),
            ("", "."),
            (".", "."),
            ("a/../b", "a/../b"),
            ("/a/./b", "a/./b"),
        ] {
            assert_eq!(below(Path::new(path)).unwrap().as_os_str(), inside, "{path}");
        }
        for path in ["..", "/..", "a/../..", "../a", "a/b/../../../c", "/../etc"] {
            assert!(below(Path::new(path)).is_err(), "{path}");
        }
    }

    /// Whoever adds an option for agents decides what it means for a restricted one.
    #[test]
    fn every_option_is_classified() {
        const REFUSED: &[&str] = &[
            "copy-links",
            "copy-dirlinks",
            "copy-unsafe-links",
            "keep-dirlinks",
            "confine-root",
            "insecure-links",
            "copy-devices",
            "write-devices",
            "cvs-exclude",
        ];
        for option in FAR {
            let lists = [HARMLESS, PATHS, REFUSED, &[LIST]];
            let count = lists.iter().filter(|list| list.contains(option)).count();
            assert_eq!(count, 1, "{option}");
        }
        for option in verify::FAR {
            assert!(HARMLESS.contains(option), "{option}");
        }
    }
}
