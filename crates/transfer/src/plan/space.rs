//! Check of free space at the target before and beside a transfer: bytes and inodes.
//!
//! Counting a tree takes a walk, so the cheap bound comes first: the usage of the source's whole file system. Only if
//! that does not fit is the tree counted. A copy into an empty target begins at once and is counted for beside it, as
//! one thread that walks a network file system would hold up all others. A target with content is counted before
//! anything changes there, for some milliseconds at most: little may be missing.

use super::paths::c_path;
use super::{Argument, TargetPlace};
use crate::failure::c_string;
use crate::object::room::room_warning;
use hakobu_core::event::{Event, Listener};
use hakobu_core::number;
use hakobu_core::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, disk, meta, process};
use std::ffi::CString;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time for counting beside a copy into an empty target.
const COUNT_TIME_MAX: Duration = Duration::from_secs(1);
/// Maximum time for counting before an update, which may have nothing to do.
const UPDATE_COUNT_TIME_MAX: Duration = Duration::from_millis(2);
/// Niceness of the thread that counts beside a copy: the lowest priority.
const NICE: i32 = 19;
/// Directories below this depth are not counted: those above stay open, and descriptors belong to the transfer.
const DEPTH_MAX: u32 = 8;

/// The count of a copy into an empty target, and the room that there was when it began.
pub struct Count {
    trees: Vec<Tree>,
    room: disk::Space,
}

/// A source directory, and the target directory that exists for it.
type Tree = (OwnedFd, Option<OwnedFd>);

#[derive(Default)]
struct Need {
    bytes: u64,
    entries: u64,
    /// Counting was aborted: the numbers are lower bounds.
    at_least: bool,
}

/// Warns if the target has less room than the sources need in addition to the existing content. Returns the count to
/// make beside the transfer if only that can tell.
pub fn warn_of_space(
    place: &TargetPlace,
    arguments: &[Argument],
    listener: &dyn Listener,
) -> Option<Count> {
    let target = place.dir.as_ref().map(AsFd::as_fd)?;
    let room = disk::space(target).ok()?;
    if room.read_only {
        listener
            .event(Event::Warning("warning: the target file system is mounted read-only".into()));
        return None;
    }
    let mut upper = Need::default();
    let mut volumes = Vec::new();
    let mut trees = Vec::new();
    for argument in arguments {
        let Ok(path) = c_path(&argument.path()) else { continue };
        let Ok(source) = meta::of(dir::cwd(), &path, true) else { continue };
        if source.kind != Kind::Dir {
            upper.bytes = upper.bytes.saturating_add(source.size);
            upper.entries += 1;
            continue;
        }
        let Ok(fd) = dir::open_root(&path) else { continue };
        if let Ok(used) = disk::space(fd.as_fd())
            && !volumes.contains(&source.dev)
        {
            volumes.push(source.dev);
            upper.bytes = upper.bytes.saturating_add(used.used_bytes);
            upper.entries = upper.entries.saturating_add(used.used_inodes.unwrap_or(u64::MAX));
        }
        trees.push((fd, counterpart(target, place, argument)));
    }
    if upper.fits(&room) {
        return None;
    }
    if trees.is_empty() {
        upper.warn(&room, listener);
        return None;
    }
    if !trees.iter().any(|(_, there)| there.as_ref().is_some_and(has_content)) {
        // Nothing of it is there yet, and what the copy brings meanwhile is part of the need.
        let trees = trees.into_iter().map(|(source, _)| (source, None)).collect();
        return Some(Count { trees, room });
    }
    count(trees, UPDATE_COUNT_TIME_MAX, &AtomicBool::new(false)).warn(&room, listener);
    None
}

impl Count {
    /// Counts until `stop`, for a second at most, and warns if the room does not suffice. For a thread of its own, of
    /// which this lowers the priority: where the CPUs are the limit, the copy has them.
    pub fn warn(self, stop: &AtomicBool, listener: &dyn Listener) {
        // A higher one only costs time.
        drop(process::set_nice(NICE));
        count(self.trees, COUNT_TIME_MAX, stop).warn(&self.room, listener);
    }
}

impl Need {
    fn fits(&self, room: &disk::Space) -> bool {
        self.bytes <= room.free_bytes && room.free_inodes.is_none_or(|free| self.entries <= free)
    }

    fn warn(&self, room: &disk::Space, listener: &dyn Listener) {
        if self.fits(room) {
            return;
        }
        let least = if self.at_least { "at least " } else { "" };
        let (needed, free) = match self.bytes > room.free_bytes {
            true => (number::bytes(self.bytes), number::bytes(room.free_bytes)),
            false => {
                let free = number::grouped(room.free_inodes.unwrap_or(0));
                (format!("{} entries", number::grouped(self.entries)), format!("{free} inodes"))
            }
        };
        let text = room_warning(&format!("{least}{needed}"), &free);
        listener.event(Event::Warning(text));
    }
}

/// Returns whether a directory has any entry.
pub(super) fn has_content(fd: &OwnedFd) -> bool {
    let mut any = false;
    let listed = dir::Reader::default().next_batch(fd.as_fd(), |_, _, _| any = true);
    let rewound = dir::seek(fd.as_fd(), 0);
    any || listed.is_err() || rewound.is_err()
}

/// Returns the existing target directory of an argument's directory.
pub(super) fn counterpart(
    target: BorrowedFd<'_>,
    place: &TargetPlace,
    argument: &Argument,
) -> Option<OwnedFd> {
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

/// A directory on both sides, a subdirectory that waits to be counted, and its depth. Parents stay open as long as
/// children wait: in depth-first order that is one for each level.
type Waiting = (Rc<Tree>, CString, u32);

/// Adds up the need of trees beyond their existing target, depth first, for `time_max` or until `stop`.
fn count(trees: Vec<Tree>, time_max: Duration, stop: &AtomicBool) -> Need {
    let deadline = Instant::now() + time_max;
    let mut need = Need::default();
    let mut reader = dir::Reader::default();
    let dot = || c".".to_owned();
    let mut waiting: Vec<Waiting> =
        trees.into_iter().map(|tree| (Rc::new(tree), dot(), 0)).collect();
    let mut ended = false;
    while let Some((parent, name, depth)) = waiting.pop() {
        let Ok(source) = dir::open(parent.0.as_fd(), &name, false) else { continue };
        let target = parent.1.as_ref().and_then(|fd| dir::open(fd.as_fd(), &name, false).ok());
        let here = Rc::new((source, target));
        let listed = reader.for_each(here.0.as_fd(), |name, kind, _| {
            ended = ended || Instant::now() > deadline || stop.load(Ordering::Relaxed);
            if ended {
                return;
            }
            let at_target =
                |fd: &OwnedFd| meta::of(fd.as_fd(), name, false).ok().filter(|m| m.kind == kind);
            let there = here.1.as_ref().and_then(at_target);
            need.entries += u64::from(there.is_none());
            if kind != Kind::Dir {
                let Ok(meta) = meta::of(here.0.as_fd(), name, false) else { return };
                let size = meta.allocated_bytes().min(meta.size.next_multiple_of(4096));
                let has = there.map_or(0, |there| there.allocated_bytes());
                need.bytes += size.saturating_sub(has);
            } else if depth < DEPTH_MAX {
                waiting.push((Rc::clone(&here), name.to_owned(), depth + 1));
            } else {
                need.at_least = true;
            }
        });
        // A directory that cannot be listed is not copied either.
        drop(listed);
        if ended {
            need.at_least = true;
            break;
        }
    }
    need
}
