//! The description of a transfer.

use crate::failure::c_string;
use crate::local::Carried;
use crate::location::{Location, Sources};
use crate::object::ObjectOptions;
use crate::object::list::Inventory;
use crate::policy::{Digest, EntrySelection, Policy};
use hakobu_core::error::{Fatal, quoted};
use hakobu_core::event::Remarks;
use hakobu_core::limit::Limits;
use hakobu_core::unit::{Meta, Time};
use hakobu_s3::Settings;
use hakobu_sys::{OwnedFd, dir};
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rule by which source arguments become names at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// rsync's rule: `DIR` makes `DST/DIR`, `DIR/` fills `DST`; with `relative` (`-R`) the whole path as typed is
    /// kept, from `/./` on if that occurs.
    Rsync {
        /// `-R`.
        relative: bool,
    },
    /// cp's rule: into `DST` if that is a directory, else under the name `DST`.
    Cp {
        /// `-T`: `DST` is the name itself even if it is a directory.
        no_target_dir: bool,
        /// `-t`, or several sources: `DST` must be a directory.
        target_is_dir: bool,
        /// `--parents`: the whole path as typed is kept below `DST`.
        parents: bool,
    },
}

/// A transfer: sources, target, policy and limits.
#[derive(Clone)]
pub struct Spec {
    /// The sources.
    pub sources: Sources,
    /// The target; with `null:` everything is read and discarded.
    pub target: Location,
    /// Layout of names.
    pub layout: Layout,
    /// Only these paths, relative to the single source (`--files-from`); bytes as read.
    pub files_from: Option<Vec<Vec<u8>>>,
    /// Only these entries below the single source, between paths; replaces `files_from`.
    pub chosen: Option<Arc<EntrySelection>>,
    /// Decides about each entry.
    pub policy: Policy,
    /// What it may take.
    pub limits: Limits,
    /// Good numbers of jobs are stored and reused (off: `--no-memory`).
    pub remember: bool,
    /// Number of jobs to begin with, instead of a stored one: that of a run just before between the same ends.
    pub jobs_before: Option<usize>,
    /// Experiments during the run test its verdict (`--prove`).
    pub prove: bool,
    /// Whether the listener receives an `Item` event for every change.
    pub items: bool,
    /// Whether it receives items for unchanged entries, too (`-ii`, `-vv`).
    pub items_unchanged: bool,
    /// Whether the listener receives a `Planned` event for every change between paths.
    pub plans: bool,
    /// With one job between paths, entries are taken in the order of their names (`--no-inc-recursive`).
    pub ordered: bool,
    /// Other messages about entries between paths that the listener receives.
    pub remarks: Remarks,
    /// Kind of the checksums that `Item` events of files between paths contain: of transferred files, with
    /// `Policy::checksum` of all.
    pub digest: Option<Digest>,
    /// Missing parents of the target are created (`--mkpath`).
    pub mkpath: bool,
    /// Whether free space is compared with the need before the start.
    pub check_space: bool,
    /// Between paths: groups of hard links that earlier runs of the same command left open, and that this one leaves.
    pub carried: Option<Arc<Carried>>,
    /// The file that the program writes its log to (`--log-file`).
    pub log_file: Option<PathBuf>,
    /// Settings of a transfer with S3 on a side.
    pub objects: Objects,
}

impl Spec {
    /// Returns whether any end is in S3.
    pub fn has_store(&self) -> bool {
        self.sources.are_s3() || self.target.is_s3()
    }
}

/// Settings of a transfer with S3 on a side: accounts, endpoints, and options for writing objects.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Settings for the store of `s3://` sources.
    pub source: Settings,
    /// Settings for the store of `s3://` targets.
    pub target: Settings,
    /// Options for writing objects.
    pub options: ObjectOptions,
    /// `*` and `?` in source keys are literal (`--raw`).
    pub raw: bool,
    /// Every source gets its base name in the target folder (`--flatten`).
    pub flatten: bool,
    /// Names that are transferred only if they still have these sizes and times.
    pub expected: Option<Arc<Expected>>,
    /// Names of the source, instead of a listing of its store.
    pub inventory: Option<Arc<Inventory>>,
}

/// Sizes and times that names had when a transfer was planned.
#[derive(Clone, Debug, Default)]
pub struct Expected(pub HashMap<Box<[u8]>, (u64, Time)>);

impl Expected {
    /// Returns whether an entry is unchanged since planning. Times are compared at the coarser precision: a store
    /// returns milliseconds in a listing and seconds elsewhere.
    pub fn is_met(&self, name: &[u8], meta: &Meta) -> bool {
        let Some((size, mtime)) = self.0.get(name) else { return false };
        let ns = mtime.ns == 0 || meta.mtime.ns == 0 || mtime.ns == meta.mtime.ns;
        *size == meta.size && mtime.s == meta.mtime.s && ns
    }
}

// Parsing of one source argument: a folder's content, or a name in a folder.

/// One parsed source argument. The file system has not been accessed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The argument as typed, for messages.
    pub typed: PathBuf,
    /// The folder in which names are looked up, starting as the user typed it.
    pub folder: PathBuf,
    /// Path components below it, outermost first; empty: the folder's content itself.
    pub names: Vec<Vec<u8>>,
    /// The names before the last one are created at the target as well (`--relative`).
    pub relative: bool,
    /// The folder itself sets its attributes at the target, without its content: a relative path typed with a leading
    /// `./`.
    pub dot: bool,
    /// The last name may be a symlink that is followed (it was typed with a slash). The content of this directory is
    /// listed even without recursion.
    pub follow: bool,
    /// It comes from a list of names in this folder: symlinks below it are followed only if
    /// [`Policy::links`](crate::policy::Policy::links) allows it.
    pub top: Option<Arc<Path>>,
    /// The last name must be a directory (`cp f/`). rsync takes `-R f/` for the file `f`.
    pub dir_only: bool,
}

impl Argument {
    /// Returns the whole path.
    pub fn path(&self) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(self.names.iter().map(|name| OsStr::from_bytes(name)));
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }

    /// Returns whether the argument means the content of a folder, not the folder.
    pub fn is_content(&self) -> bool {
        self.names.is_empty()
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Parses one source argument by the layout's rule.
///
/// # Errors
/// Code 1 for an empty argument, and for `..` if the path is to be created at the target.
pub fn argument(typed: &Path, layout: Layout) -> Result<Argument, Fatal> {
    let bytes = typed.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Fatal::new(1, "an empty source path names nothing"));
    }
    match layout {
        Layout::Rsync { relative: true } | Layout::Cp { parents: true, .. } => {
            relative(typed, bytes, matches!(layout, Layout::Rsync { .. }))
        }
        Layout::Rsync { relative: false } => Ok(plain(typed, bytes, true)),
        Layout::Cp { .. } => Ok(plain(typed, bytes, false)),
    }
}

/// Parses without `--relative`: `a/b` is the name `b` in `a`; `a/b/` (rsync only), `a/.`, `..` and `/` are contents.
fn plain(typed: &Path, bytes: &[u8], slash_is_content: bool) -> Argument {
    let slash = bytes.ends_with(b"/");
    let trimmed = trim_end(bytes);
    let (folder, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&trimmed[..at + 1], &trimmed[at + 1..]),
        None => (&b"."[..], trimmed),
    };
    let content = name.is_empty() || name == b"." || name == b".." || (slash && slash_is_content);
    let argument = Argument {
        typed: typed.to_owned(),
        folder: path(bytes),
        names: Vec::new(),
        relative: false,
        dot: false,
        follow: slash,
        top: None,
        dir_only: slash,
    };
    if content {
        return argument;
    }
    // Do not show "." if it was not typed.
    let folder = if folder == b"." { PathBuf::new() } else { path(folder) };
    Argument { folder, names: vec![name.to_vec()], ..argument }
}

/// Parses with `--relative`. `slash_dot`: rsync's rule, else that of `cp --parents`.
fn relative(typed: &Path, bytes: &[u8], slash_dot: bool) -> Result<Argument, Fatal> {
    let marker = bytes.windows(3).position(|part| part == b"/./").filter(|_| slash_dot);
    let (folder, rest) = match marker {
        Some(0) => (&b"/"[..], bytes.get(3..).unwrap_or_default()),
        Some(at) => (&bytes[..at], bytes.get(at + 3..).unwrap_or_default()),
        None if bytes.starts_with(b"./") => (&b""[..], bytes.get(2..).unwrap_or_default()),
        None if bytes.starts_with(b"/") => (&b"/"[..], bytes),
        None => (&b""[..], bytes),
    };
    let parts = rest.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let names: Vec<Vec<u8>> = parts.map(<[u8]>::to_vec).collect();
    if names.iter().any(|name| name == b"..") {
        let hint = if slash_dot { "; write FOLDER/./PATH to say where it begins" } else { "" };
        let message =
            format!("{}: a path with '..' cannot be kept at the target{hint}", quoted(typed));
        return Err(Fatal::new(1, message));
    }
    let follow = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
    let dot = bytes.starts_with(b"./") && marker.is_none() || rest.starts_with(b"./");
    let dot = dot && !names.is_empty() && slash_dot;
    let (folder, typed) = (path(folder), typed.to_owned());
    let dir_only = follow && !slash_dot;
    Ok(Argument { typed, folder, names, relative: true, dot, follow, top: None, dir_only })
}

/// Returns the components of a path of a list. `..` never leaves the folder, as in rsync.
fn inside(name: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// One line of a list of names: where the path is cut (`/./`), and whether it denotes a directory.
pub(super) struct Line<'a> {
    /// The names before the first `/./`.
    pub(super) lead: Vec<&'a [u8]>,
    /// The names after it.
    pub(super) names: Vec<&'a [u8]>,
    /// It ends with a slash, `.` or `..`.
    pub(super) slash: bool,
    /// It begins with `./`.
    dot: bool,
}

impl<'a> Line<'a> {
    /// Parses a line. Without `cuts`, `/./` has no meaning.
    pub(super) fn new(name: &'a [u8], cuts: bool) -> Line<'a> {
        let marker = name.windows(3).position(|part| part == b"/./").filter(|_| cuts);
        let (lead, rest) = match marker {
            Some(at) => (&name[..at], &name[at + 3..]),
            None => (&b""[..], name),
        };
        let lead = inside(lead);
        let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let dot = lead.is_empty() && (name.starts_with(b"./") || name.starts_with(b"/./"));
        Line { lead, names: inside(rest), slash: matches!(last, b"" | b"." | b".."), dot }
    }

    fn argument(&self, folder: &Arc<Path>, relative: bool) -> Argument {
        let join = |folder: &Path, names: &[&[u8]]| {
            let names = names.iter().map(|name| OsStr::from_bytes(name));
            names.fold(folder.to_owned(), |path, name| path.join(name))
        };
        let lead = join(folder, &self.lead);
        let mut argument = Argument {
            typed: join(&lead, &self.names),
            folder: lead,
            names: self.names.iter().map(|name| name.to_vec()).collect(),
            relative,
            dot: relative && self.dot && !self.names.is_empty(),
            follow: self.slash,
            top: Some(Arc::clone(folder)),
            dir_only: false,
        };
        if !relative {
            // Only the last name is created at the target; for a directory's content it is not.
            let names = self.names.split_last().filter(|_| !self.slash);
            (argument.folder, argument.names) = match names {
                Some((last, above)) => (join(folder, above), vec![last.to_vec()]),
                None => (argument.typed.clone(), Vec::new()),
            };
        }
        argument
    }
}

/// Returns the arguments for the lines of a list (`--files-from`), without duplicates.
pub fn listed(folder: &Path, list: &[Vec<u8>], relative: bool) -> Vec<Argument> {
    let lines = list.iter().filter(|name| !name.is_empty());
    let folder = Arc::from(folder);
    let lines = lines.map(|name| Line::new(name, relative).argument(&folder, relative));
    let mut arguments: Vec<Argument> = lines.collect();
    let mut order: Vec<usize> = (0..arguments.len()).collect();
    let key = |number: usize| (&arguments[number].folder, &arguments[number].names, number);
    order.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let mut again = vec![false; arguments.len()];
    let mut first = 0;
    for number in order {
        let (one, other) = (&arguments[first], &arguments[number]);
        if number != first && one.folder == other.folder && one.names == other.names {
            again[number] = true;
            // One line with a slash is enough.
            arguments[first].follow |= arguments[number].follow;
            arguments[first].dot |= arguments[number].dot;
        } else {
            first = number;
        }
    }
    let mut again = again.into_iter();
    arguments.retain(|_| !again.next().unwrap_or_default());
    arguments
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

/// Parses all source arguments.
///
/// # Errors
/// As [`argument`].
pub fn arguments(sources: &[PathBuf], layout: Layout) -> Result<Vec<Argument>, Fatal> {
    sources.iter().map(|typed| argument(typed, layout)).collect()
}

// Paths as the user types them, for system calls.

/// Makes a C string of a path.
///
/// # Errors
/// EINVAL if there is a NUL inside.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str().as_bytes())
}

/// Returns a folder's path; an empty one is the current folder.
pub(super) fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the folder of an entry's path.
pub(super) fn parent(path: &Path) -> &Path {
    or_here(path.parent().unwrap_or(Path::new("")))
}

/// Opens a folder by its path.
///
/// # Errors
/// Those of the system.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    dir::open_root(&c_path(or_here(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, layout: Layout) -> (String, Vec<String>, bool) {
        let argument = argument(Path::new(text), layout).expect("a fine argument");
        let names = argument.names.iter().map(|n| String::from_utf8_lossy(n).into_owned());
        (argument.folder.display().to_string(), names.collect(), argument.follow)
    }

    #[test]
    fn rsync_arguments() {
        let plain = Layout::Rsync { relative: false };
        let cases = [
            ("a", "", vec!["a"], false),
            ("a/b", "a/", vec!["b"], false),
            ("/a", "/", vec!["a"], false),
            ("a/", "a/", vec![], true),
            ("a/b//", "a/b//", vec![], true),
            (".", ".", vec![], false),
            ("a/.", "a/.", vec![], false),
            ("..", "..", vec![], false),
            ("/", "/", vec![], true),
        ];
        for (text, folder, names, follow) in cases {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            assert_eq!(taken(text, plain), (folder.to_string(), names, follow), "{text}");
        }
    }

    #[test]
    fn relative_arguments() {
        let relative = Layout::Rsync { relative: true };
        let cases = [
            ("a/b/c", "", vec!["a", "b", "c"], false),
            ("/a/b", "/", vec!["a", "b"], false),
            ("/x/./a/b", "/x", vec!["a", "b"], false),
            ("x/./a/", "x", vec!["a"], true),
            ("x/./", "x", vec![], true),
            ("./a", "", vec!["a"], false),
        ];
        for (text, folder, names, follow) in cases {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            assert_eq!(taken(text, relative), (folder.to_string(), names, follow), "{text}");
        }
        assert!(argument(Path::new("../a"), relative).is_err());
    }

    #[test]
    fn lines_of_a_list() {
        let taken = |line: &str, relative: bool| -> Vec<String> {
            let lines: Vec<Vec<u8>> = line.split('|').map(|line| line.into()).collect();
            let shown = |argument: &Argument| {
                let names = argument.names.iter().map(|n| String::from_utf8_lossy(n).into_owned());
                let names: Vec<String> = names.collect();
                let slash = if argument.follow { "/" } else { "" };
                let dot = if argument.dot { " dot" } else { "" };
                format!("{}:{}{slash}{dot}", argument.folder.display(), names.join("/"))
            };
            listed(Path::new("s"), &lines, relative).iter().map(shown).collect()
        };
        for (line, expected) in [
            ("d", "s:d"),
            ("d/", "s:d/"),
            ("d/.", "s:d/"),
            ("d/./", "s/d:/"),
            ("d/./f", "s/d:f"),
            ("x/./y/./z", "s/x:y/z"),
            ("x//y", "s:x/y"),
            ("/d/f", "s:d/f"),
            ("../../d/f", "s:d/f"),
            ("d/e/..", "s:d/"),
            ("d/./../f", "s/d:f"),
            ("./d", "s:d dot"),
            (".", "s:/"),
            ("/", "s:/"),
        ] {
            assert_eq!(taken(line, true), [expected], "{line}");
        }
        for (line, expected) in [("x/y", "s/x:y"), ("x/./y", "s/x:y"), ("d/.", "s/d:/")] {
            assert_eq!(taken(line, false), [expected], "{line}");
        }
        assert_eq!(taken("d|a|d/|./a|d", true), ["s:d/", "s:a dot"]);
        assert_eq!(taken("d/./f|d/f", true), ["s/d:f", "s:d/f"]);
        // A folder with the marker in its own name is not cut.
        let argument = &listed(Path::new("a/./b"), &[b"f".to_vec()], true)[0];
        assert_eq!((argument.folder.as_path(), argument.names.len()), (Path::new("a/./b"), 1));
    }

    #[test]
    fn cp_arguments() {
        let cp = Layout::Cp { no_target_dir: false, target_is_dir: false, parents: false };
        assert_eq!(taken("a/", cp), (String::new(), vec!["a".to_string()], true));
        assert_eq!(taken("a/.", cp), ("a/.".to_string(), vec![], false));
    }
}
