//! Check of free space before the first byte: bytes and inodes.
//!
//! Counting a tree takes a walk, so the cheap bound comes first: the usage of the source's whole file system. Only if
//! that does not fit is the tree counted, for a second at most; and only for some milliseconds if the target has
//! content already and little may be missing.

use super::{Argument, Place};
use crate::engine::failure::c_string;
use hakobu_core::event::{Event, Listener};
use hakobu_core::number;
use hakobu_core::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, meta, volume};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Maximum time for counting before a copy into an empty target.
const COUNT_TIME_MAX: Duration = Duration::from_secs(1);
/// Maximum time for counting before an update, which may have nothing to do.
const UPDATE_COUNT_TIME_MAX: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Need {
    bytes: u64,
    entries: u64,
    /// Counting was aborted: the numbers are lower bounds.
    at_least: bool,
}

/// Warns if the target has less room than the sources need in addition to the existing content. `name` is the single
/// argument's name at the target, if it has one.
pub fn warn_of_space(place: &Place, arguments: &[Argument], listener: &dyn Listener) {
    let Some(target) = place.dir.as_ref().map(AsFd::as_fd) else { return };
    let Ok(room) = volume::space(target) else { return };
    if room.read_only {
        listener.event(Event::Warning("the target file system is mounted read-only".into()));
        return;
    }
    let mut upper = Need::default();
    let mut volumes = Vec::new();
    let mut trees = Vec::new();
    for argument in arguments {
        let Ok(path) = c_string(argument.path().as_os_str().as_bytes()) else { continue };
        let Ok(source) = meta::of(dir::cwd(), &path, true) else { continue };
        if source.kind != Kind::Dir {
            upper.bytes = upper.bytes.saturating_add(source.size);
            upper.entries += 1;
            continue;
        }
        let Ok(fd) = dir::open_root(&path) else { continue };
        if let Ok(used) = volume::space(fd.as_fd())
            && !volumes.contains(&source.dev)
        {
            volumes.push(source.dev);
            upper.bytes = upper.bytes.saturating_add(used.used_bytes);
            upper.entries = upper.entries.saturating_add(used.used_inodes.unwrap_or(u64::MAX));
        }
        trees.push((fd, counterpart(target, place, argument)));
    }
    let fits = |need: &Need| {
        need.bytes <= room.free_bytes && room.free_inodes.is_none_or(|free| need.entries <= free)
    };
    if fits(&upper) {
        return;
    }
    let need = match trees.is_empty() {
        true => upper,
        false => {
            let updates = trees.iter().any(|(_, there)| there.as_ref().is_some_and(has_content));
            let time_max = if updates { UPDATE_COUNT_TIME_MAX } else { COUNT_TIME_MAX };
            count(trees, Instant::now() + time_max)
        }
    };
    if fits(&need) {
        return;
    }
    let least = if need.at_least { "at least " } else { "" };
    let (needed, free) = match need.bytes > room.free_bytes {
        true => (number::bytes(need.bytes), number::bytes(room.free_bytes)),
        false => (format!("{} inodes", need.entries), room.free_inodes.unwrap_or(0).to_string()),
    };
    listener.event(Event::Warning(format!(
        "{least}{needed} are to come and the target has room for {free}: it may fill up"
    )));
}

/// Returns whether a directory has any entry.
fn has_content(fd: &OwnedFd) -> bool {
    let mut any = false;
    let listed = dir::Reader::default().next_batch(fd.as_fd(), |_, _, _| any = true);
    let rewound = dir::rewind(fd.as_fd());
    any || listed.is_err() || rewound.is_err()
}

/// Returns the existing target directory of an argument's directory.
fn counterpart(target: BorrowedFd<'_>, place: &Place, argument: &Argument) -> Option<OwnedFd> {
    let mut names = argument.names.as_slice();
    if !argument.relative {
        names = names.last().map(std::slice::from_ref).unwrap_or_default();
    }
    let mut fd = dir::open(target, c".", false).ok()?;
    if let Some(name) = &place.name {
        return dir::open(fd.as_fd(), name, true).ok();
    }
    for name in names {
        fd = dir::open(fd.as_fd(), &c_string(name).ok()?, true).ok()?;
    }
    Some(fd)
}

/// A directory on both sides, and a subdirectory that waits to be counted. Parents stay open as long as children
/// wait: in depth-first order that is a few for each level.
type Waiting = (Rc<(OwnedFd, Option<OwnedFd>)>, CString);

/// Adds up the need of trees beyond their existing target, depth first, until the deadline.
fn count(trees: Vec<(OwnedFd, Option<OwnedFd>)>, deadline: Instant) -> Need {
    let mut need = Need::default();
    let mut reader = dir::Reader::default();
    let dot = || c".".to_owned();
    let mut waiting: Vec<Waiting> = trees.into_iter().map(|pair| (Rc::new(pair), dot())).collect();
    while let Some((parent, name)) = waiting.pop() {
        let Ok(source) = dir::open(parent.0.as_fd(), &name, false) else { continue };
        let target = parent.1.as_ref().and_then(|fd| dir::open(fd.as_fd(), &name, false).ok());
        let here = Rc::new((source, target));
        let listed = reader.for_each(here.0.as_fd(), |name, kind, _| {
            if need.at_least || Instant::now() > deadline {
                need.at_least = true;
                return;
            }
            let at_target =
                |fd: &OwnedFd| meta::of(fd.as_fd(), name, false).ok().filter(|m| m.kind == kind);
            let there = here.1.as_ref().and_then(at_target);
            need.entries += u64::from(there.is_none());
            if kind == Kind::Dir {
                waiting.push((Rc::clone(&here), name.to_owned()));
            } else if let Ok(meta) = meta::of(here.0.as_fd(), name, false) {
                let size = meta.allocated_bytes().min(meta.size.next_multiple_of(4096));
                let has = there.map_or(0, |there| there.allocated_bytes());
                need.bytes += size.saturating_sub(has);
            }
        });
        // A directory that cannot be listed is not copied either.
        drop(listed);
        if need.at_least {
            break;
        }
    }
    need
}
