//! A move of one entry: a rename if source and target share a file system, else the policy of the copy that replaces
//! it. Decides and renames; copies nothing itself.

use super::paths::{open_folder, parent};
use crate::failure::c_string;
use crate::journal::{Journal, Ledger, LedgerScope};
use crate::policy::{Ask, Grain, Numbering, Policy, Preserve, Symlinks, is_newer};
use crate::publish;
use hakobu_core::error::{Cause, DIRECTORY_STAYS, ENTRY_STAYS, ErrorClass, Operation, Problem};
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::paths::{Links, PathBelow, ancestors};
use hakobu_sys::{AsFd, dir, errno, meta};
use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Handling of an existing entry with the new name.
#[derive(Clone, Default)]
pub enum Existing {
    /// Replace it (`-f`).
    #[default]
    Replace,
    /// Keep it (`-n`).
    Keep,
    /// Ask (`-i`).
    Ask(Ask),
    /// Ask if it is read-only: the behaviour of mv(1) on a terminal.
    AskIfReadOnly(Ask),
}

/// Options of a move.
#[derive(Clone, Default)]
pub struct RenameOptions {
    /// Handling of an existing entry with the new name.
    pub existing: Existing,
    /// Keep it if it is not older than the source (`-u`).
    pub update: bool,
    /// Keep it under another name (`-b`).
    pub backup: Option<Backup>,
    /// Attributes that are not kept on another file system (`--no-preserve`).
    pub dropped: Dropped,
    /// Fail where only a copy could move the entry (`--no-copy`).
    pub no_copy: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// Suffix of simple ones.
    pub suffix: Vec<u8>,
    pub numbering: Numbering,
}

/// Attributes that a move to another file system does not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Permission bits and ACLs.
    pub mode: bool,
    /// Owner and group.
    pub ownership: bool,
    /// Times.
    pub timestamps: bool,
    /// Hard links.
    pub links: bool,
    /// Extended attributes.
    pub xattrs: bool,
}

/// Result of a move.
pub enum RenameResult {
    /// The entry has its new name.
    Renamed {
        /// Device and inode of the entry.
        identity: (u64, u64),
        /// Backup of the entry that had this name.
        backup: Option<PathBuf>,
        /// A warning: the existing entry would have been kept, but was a half-written file of another run.
        warning: Option<String>,
    },
    /// Nothing was changed, because of an option or an answer.
    Left,
    /// The target is on another file system: move by a copy under this policy, to exactly the target's name
    /// (`Layout::Cp` with `no_target_dir`).
    OtherVolume(Box<Policy>),
}

/// Returns the path of `from` after a move into the directory `into`.
pub fn name_in(from: &Path, into: &Path) -> PathBuf {
    match from.file_name() {
        Some(name) => into.join(name),
        // `..` and `/` have no name of their own; the rename rejects them.
        None => into.join(from),
    }
}

/// Renames `from` to `to`, or returns the policy for copying it.
///
/// `moves`: the sources of the same command, and what it has moved; neither is replaced.
///
/// # Errors
/// Reason that this entry cannot be moved. Nothing has changed then.
pub fn rename_or_copy(
    from: &Path,
    to: &Path,
    options: &RenameOptions,
    moves: &Moves,
) -> Result<RenameResult, Problem> {
    let problem = |refused| {
        let (operation, cause) = match refused {
            Refused::JustMoved => (Operation::Overwrite, Cause::Reason("")),
            Refused::Other(cause) => (Operation::Move, cause),
        };
        let (source, target) = (Some(from.to_owned()), Some(to.to_owned()));
        Problem { operation, source, target, cause, class: ErrorClass::Partial }
    };
    try_move(from, to, options, moves).map_err(problem)
}

/// What one command must not replace: its sources, and what it has moved.
#[derive(Default)]
pub struct Moves {
    sources: HashSet<(u64, u64)>,
    moved: HashSet<(u64, u64)>,
    /// The target directory is one of the sources or inside of one.
    target_is_inside: bool,
}

impl Moves {
    /// Returns the state of a command with these sources and this target.
    pub fn new(sources: &[PathBuf], target: &Path) -> Moves {
        // A single source meets no other one.
        if sources.len() < 2 {
            return Moves::default();
        }
        let identity = |path: &PathBuf| {
            let name = c_path(path).ok()?;
            Some(meta::of(dir::cwd(), &name, false).ok()?.identity())
        };
        let sources: HashSet<_> = sources.iter().filter_map(identity).collect();
        let above = open_folder(target).and_then(|fd| ancestors(fd.as_fd()));
        let target_is_inside = above.is_ok_and(|above| !above.is_disjoint(&sources));
        Moves { sources, target_is_inside, ..Moves::default() }
    }

    /// Records the entry that was moved.
    pub fn add(&mut self, moved: (u64, u64)) {
        self.moved.insert(moved);
    }

    /// Checks that an existing entry may be replaced. A numbered backup keeps what was moved.
    fn check(&self, target: &Meta, backup: Option<&Backup>) -> Result<(), Refused> {
        let keeps = backup.is_some_and(|backup| backup.numbering == Numbering::Numbered);
        if self.moved.contains(&target.identity()) {
            return if keeps { Ok(()) } else { Err(Refused::JustMoved) };
        }
        if self.target_is_inside || self.sources.contains(&target.identity()) {
            return Err(Cause::Reason("the target is a source of the same command").into());
        }
        Ok(())
    }
}

/// Reason that an entry is not moved.
enum Refused {
    /// The same command has moved another entry to the name.
    JustMoved,
    Other(Cause),
}

impl From<Cause> for Refused {
    fn from(cause: Cause) -> Refused {
        Refused::Other(cause)
    }
}

fn try_move(
    from: &Path,
    to: &Path,
    options: &RenameOptions,
    moves: &Moves,
) -> Result<RenameResult, Refused> {
    let (old, new) = (entry_name(from)?, c_path(to)?);
    let source = meta::of(dir::cwd(), &old, false).map_err(Cause::System)?;
    if source.kind != Kind::Dir && (ends_in_slash(from) || ends_in_slash(to)) {
        return Err(Cause::System(io::Error::from_raw_os_error(errno::ENOTDIR)).into());
    }
    let target = match meta::of(dir::cwd(), &new, false) {
        Ok(target) => Some(target),
        Err(error) if errno::is(&error, errno::ENOENT) => None,
        Err(error) => return Err(Cause::System(error).into()),
    };
    let mut over_unfinished = false;
    if let Some(target) = &target {
        check_same(&source, target, from, to, options.backup.as_ref())?;
        if options.backup.is_none() {
            check_kinds(&source, target)?;
        }
        if !stays(&source, target, options) {
            moves.check(target, options.backup.as_ref())?;
        }
        over_unfinished = stays(&source, target, options) && is_unfinished(&source, target, to);
        if !over_unfinished && !may_replace(&source, target, to, &new, options) {
            return Ok(RenameResult::Left);
        }
    }
    let backup = match &options.backup {
        Some(backup) if target.is_some() && !over_unfinished => Some(set_aside(to, backup)?),
        _ => None,
    };
    let keep = matches!(options.existing, Existing::Keep) && !over_unfinished;
    match rename(&old, &new, keep) {
        Ok(()) => {
            let warning = over_unfinished.then(|| publish::unfinished(to));
            Ok(RenameResult::Renamed { identity: source.identity(), backup, warning })
        }
        Err(error) => {
            // Later failures leave the target unchanged.
            if let Some(aside) = &backup {
                let aside = c_path(aside)?;
                dir::rename(dir::cwd(), &aside, dir::cwd(), &new).map_err(Cause::System)?;
            }
            Ok(after_failure(error, from, to, &new, &source, target.as_ref(), options)?)
        }
    }
}

fn rename(old: &CString, new: &CString, keep: bool) -> io::Result<()> {
    if keep {
        match dir::rename_new(dir::cwd(), old, dir::cwd(), new) {
            Err(error) if errno::is(&error, errno::EINVAL) || errno::is(&error, errno::ENOSYS) => {
                // Not every file system supports RENAME_NOREPLACE. EINVAL has a second meaning (a directory into
                // itself), which the plain rename returns again.
                if meta::of(dir::cwd(), new, false).is_ok() {
                    return Err(io::Error::from_raw_os_error(errno::EEXIST));
                }
            }
            other => return other,
        }
    }
    dir::rename(dir::cwd(), old, dir::cwd(), new)
}

fn after_failure(
    error: io::Error,
    from: &Path,
    to: &Path,
    new: &CString,
    source: &Meta,
    target: Option<&Meta>,
    options: &RenameOptions,
) -> Result<RenameResult, Cause> {
    let is_dir = source.kind == Kind::Dir;
    match error.raw_os_error() {
        Some(errno::EEXIST) if matches!(options.existing, Existing::Keep) => Ok(RenameResult::Left),
        Some(errno::EINVAL) if is_dir => Err(Cause::Reason("it cannot be moved into itself")),
        Some(errno::EXDEV) if options.no_copy => Err(Cause::System(error)),
        Some(errno::EXDEV) => {
            if is_dir && is_inside(to, from) {
                return Err(Cause::Reason("it cannot be moved into itself"));
            }
            // Directories are never merged: an existing one is backed up, or must be empty, as for rename(2).
            match (&options.backup, target) {
                (Some(backup), Some(target)) if is_dir || target.kind == Kind::Dir => {
                    set_aside(to, backup)?;
                }
                (None, Some(_)) if is_dir => {
                    dir::rmdir(dir::cwd(), new).map_err(Cause::System)?;
                }
                _ => {}
            }
            Ok(RenameResult::OtherVolume(Box::new(copy_policy(options))))
        }
        _ => Err(Cause::System(error)),
    }
}

/// Returns the policy of the copy: everything is kept, nothing is asked again, and the source is removed when its
/// copy is complete.
fn copy_policy(options: &RenameOptions) -> Policy {
    let Dropped { mode, ownership, timestamps, links, xattrs } = options.dropped;
    let backup = options.backup.clone();
    Policy {
        recurse: true,
        symlinks: Symlinks::Keep,
        hard_links: !links,
        devices: true,
        specials: true,
        preserve: Preserve {
            mode: !mode,
            owner: !ownership,
            group: !ownership,
            times: !timestamps,
            atimes: !timestamps,
            acls: !mode,
            xattrs: !xattrs,
            ..Preserve::default()
        },
        ignore_times: true,
        ignore_existing: matches!(options.existing, Existing::Keep),
        backup: backup.is_some(),
        numbering: backup.as_ref().map(|backup| backup.numbering).unwrap_or_default(),
        suffix: backup.map_or_else(|| b"~".to_vec(), |backup| backup.suffix),
        remove_source_files: true,
        // rename(2) follows all of them.
        links: Links::Any,
        remove_source_dirs: true,
        ..Policy::default()
    }
}

/// Refuses what would lose content: a move onto the same file, of a symlink onto the file that it leads to, or of what
/// the target's backup would replace.
fn check_same(
    source: &Meta,
    target: &Meta,
    from: &Path,
    to: &Path,
    backup: Option<&Backup>,
) -> Result<(), Cause> {
    const SAME: Cause = Cause::Reason("they are the same file");
    if source.identity() == target.identity() {
        // A file with one name is renamed where names differ in case only.
        let one = source.kind == Kind::Dir || source.nlink < 2;
        let differs = backup.is_some() || one;
        return if is_same_name(from, to) || !differs { Err(SAME) } else { Ok(()) };
    }
    match backup {
        Some(Backup { suffix, numbering }) if *numbering != Numbering::Numbered => {
            let bytes = trimmed(to.as_os_str().as_bytes());
            let simple = PathBuf::from(OsStr::from_bytes(&[bytes, suffix].concat()));
            let there = meta::of(dir::cwd(), &c_path(&simple)?, false);
            if simple.file_name() == from.file_name()
                && there.is_ok_and(|there| there.identity() == source.identity())
            {
                return Err(Cause::Reason("backing up the target might destroy the source"));
            }
        }
        Some(_) => {}
        None if source.kind == Kind::Symlink => {
            let referent = meta::of(dir::cwd(), &c_path(from)?, true);
            let leads = referent.is_ok_and(|named| named.identity() == target.identity());
            // Another name of the file keeps its content.
            let by_another = || {
                let place = |path: &Path| std::fs::canonicalize(path).ok();
                target.nlink > 1 && place(from).is_some_and(|path| place(to) != Some(path))
            };
            if leads && !by_another() {
                return Err(SAME);
            }
        }
        None => {}
    }
    Ok(())
}

fn check_kinds(source: &Meta, target: &Meta) -> Result<(), Cause> {
    match (source.kind == Kind::Dir, target.kind == Kind::Dir) {
        (true, false) => Err(Cause::Reason(ENTRY_STAYS)),
        (false, true) => Err(Cause::Reason(DIRECTORY_STAYS)),
        _ => Ok(()),
    }
}

/// Returns whether an option keeps the target without a question.
fn stays(source: &Meta, target: &Meta, options: &RenameOptions) -> bool {
    let shown = |meta: &Meta| Grain::shown_by(meta.mtime, meta.ctime);
    let newer = || {
        let grain = shown(source).max(shown(target));
        is_newer(target.mtime, source.mtime, None, grain).unwrap_or(true)
    };
    options.update && source.kind != Kind::Dir && newer()
        || matches!(options.existing, Existing::Keep)
}

/// Returns whether the target is a half-written file of another run (`journal::Ledger`).
fn is_unfinished(source: &Meta, target: &Meta, to: &Path) -> bool {
    let ledger = Ledger::new(&Journal::of_user(), LedgerScope::default());
    ledger.is_unfinished_at(source, target, || PathBelow::typed(to))
}

fn may_replace(
    source: &Meta,
    target: &Meta,
    to: &Path,
    new: &CString,
    options: &RenameOptions,
) -> bool {
    if stays(source, target, options) {
        return false;
    }
    match &options.existing {
        Existing::Replace => true,
        Existing::Keep => false,
        Existing::Ask(ask) => ask(to),
        Existing::AskIfReadOnly(ask) => {
            target.kind == Kind::Symlink || dir::may_write(dir::cwd(), new) || ask(to)
        }
    }
}

/// Renames the target to its backup name and returns that.
fn set_aside(to: &Path, backup: &Backup) -> Result<PathBuf, Cause> {
    let to = Path::new(OsStr::from_bytes(trimmed(to.as_os_str().as_bytes())));
    let Some(name) = to.file_name() else {
        return Err(Cause::System(io::Error::from_raw_os_error(errno::EINVAL)));
    };
    let aside = open_folder(parent(to)).and_then(|folder| {
        let how = (&*backup.suffix, backup.numbering);
        publish::set_aside(how, folder.as_fd(), &c_string(name.as_bytes())?)
    });
    let aside = aside.map_err(Cause::System)?;
    Ok(to.with_file_name(OsStr::from_bytes(aside.to_bytes())))
}

/// Returns whether both paths are one entry: the same name in the same directory.
fn is_same_name(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        Some((std::fs::canonicalize(parent(path)).ok()?, path.file_name()?.to_owned()))
    };
    place(a).is_some() && place(a) == place(b)
}

/// Returns whether the location of `inner` is in the directory `outer`.
fn is_inside(inner: &Path, outer: &Path) -> bool {
    match (std::fs::canonicalize(parent(inner)), std::fs::canonicalize(outer)) {
        (Ok(inner), Ok(outer)) => inner.starts_with(outer),
        _ => false,
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

fn trimmed(mut path: &[u8]) -> &[u8] {
    while let [start @ .., b'/'] = path
        && !start.is_empty()
    {
        path = start;
    }
    path
}

/// Returns the path of the entry itself, not of the referent of a symlink at its end.
fn entry_name(path: &Path) -> Result<CString, Cause> {
    let name = c_path(path)?;
    if matches!(name.to_bytes().rsplit(|b| *b == b'/').next(), Some(b"." | b"..")) {
        return Err(Cause::Reason("'.' and '..' cannot be moved"));
    }
    Ok(name)
}

fn c_path(path: &Path) -> Result<CString, Cause> {
    c_string(trimmed(path.as_os_str().as_bytes())).map_err(Cause::System)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    /// An empty directory of this test.
    fn place(name: &str) -> io::Result<PathBuf> {
        let path = std::env::temp_dir().join(format!("hakobu-mv-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    fn result(done: Result<RenameResult, Problem>) -> String {
        match done {
            Ok(RenameResult::Renamed { backup: None, .. }) => "renamed".into(),
            Ok(RenameResult::Renamed { backup: Some(_), .. }) => "renamed, backup".into(),
            Ok(RenameResult::Left) => "left".into(),
            Ok(RenameResult::OtherVolume(_)) => "copy".into(),
            Err(problem) => problem.cause.to_string(),
        }
    }

    #[test]
    fn renames() -> io::Result<()> {
        let top = place("renames")?;
        let at = |name: &str| top.join(name);
        let try_with = |from: &str, to: &str, options: &RenameOptions| {
            result(rename_or_copy(&at(from), &at(to), options, &Moves::default()))
        };
        let plain = RenameOptions::default();
        let keep = RenameOptions { existing: Existing::Keep, ..RenameOptions::default() };
        let no = RenameOptions {
            existing: Existing::Ask(Arc::new(|_| false)),
            ..RenameOptions::default()
        };
        let update = RenameOptions { update: true, ..RenameOptions::default() };
        let backed_up = |numbering| {
            let backup = Some(Backup { suffix: b"~".to_vec(), numbering });
            RenameOptions { backup, ..RenameOptions::default() }
        };
        let backup = backed_up(Numbering::Simple);
        let numbered = backed_up(Numbering::Numbered);
        fs::write(at("a"), "a")?;
        fs::write(at("b"), "b")?;
        fs::create_dir_all(at("dir/sub"))?;
        fs::create_dir(at("empty"))?;
        symlink("dir", at("link"))?;
        for (from, to, options, expected) in [
            ("nosuch", "x", &plain, "No such file or directory"),
            ("a", "a", &plain, "they are the same file"),
            ("a", "dir/../a", &plain, "they are the same file"),
            ("a", "b", &keep, "left"),
            ("a", "b", &no, "left"),
            ("a", "b", &update, "left"),
            ("a", "dir", &plain, DIRECTORY_STAYS),
            ("dir", "a", &plain, ENTRY_STAYS),
            ("dir", "dir/sub/x", &plain, "it cannot be moved into itself"),
            ("dir", "dir/sub/x", &keep, "it cannot be moved into itself"),
            ("empty", "dir", &plain, "Directory not empty"),
            ("link/", "x", &plain, "Not a directory"),
            ("a", "x/", &plain, "Not a directory"),
            ("dir/.", "x", &plain, "'.' and '..' cannot be moved"),
            ("a", "b", &backup, "renamed, backup"),
            ("b", "c", &keep, "renamed"),
            ("dir/", "moved/", &plain, "renamed"),
            ("moved", "empty", &plain, "renamed"),
            ("link", "l2", &plain, "renamed"),
            ("c", "/dev/shm/nosuch/x", &plain, "No such file or directory"),
        ] {
            assert_eq!(try_with(from, to, options), expected, "{from} {to}");
        }
        assert_eq!((fs::read(at("c"))?, fs::read(at("b~"))?), (b"a".to_vec(), b"b".to_vec()));
        fs::hard_link(at("c"), at("c2"))?;
        symlink("c", at("to-c"))?;
        fs::write(at("d~"), "d~")?;
        fs::write(at("d"), "d")?;
        for (from, to, options, expected) in [
            ("c", "c2", &plain, "they are the same file"),
            ("to-c", "c", &plain, "they are the same file"),
            ("c", "c2", &backup, "renamed, backup"),
            ("d~", "d", &backup, "backing up the target might destroy the source"),
            ("d~", "d", &numbered, "renamed, backup"),
            ("d", "empty", &backup, "renamed, backup"),
            ("empty~", "empty", &backup, "backing up the target might destroy the source"),
            ("empty~", "empty", &numbered, "renamed, backup"),
        ] {
            assert_eq!(try_with(from, to, options), expected, "{from} {to}");
        }
        assert_eq!(
            (fs::read(at("d.~1~"))?, fs::read(at("empty.~1~"))?),
            (b"d".to_vec(), b"d~".to_vec())
        );
        fs::remove_dir_all(top)
    }

    #[test]
    fn names() {
        for (from, name) in [("a/b", "d/b"), ("a/b/", "d/b"), ("b", "d/b")] {
            assert_eq!(name_in(Path::new(from), Path::new("d")), Path::new(name));
        }
    }
}
