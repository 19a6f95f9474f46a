//! Free space, looked at before the first byte: bytes and inodes.
//!
//! Counting a tree takes a walk, so the cheap bound comes first: what the source's whole file
//! system holds. Only where that does not fit is the tree counted, for a second at most.

use super::Argument;
use crate::engine::node::c_string;
use crate::event::{Event, Listener};
use crate::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, meta, volume};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// How long counting may delay the start.
const COUNT_TIME_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Need {
    bytes: u64,
    entries: u64,
    /// Counting was given up: it is at least this much.
    at_least: bool,
}

/// Warns where the target has less room than the sources need. Space that existing files of the
/// target will give back is not known and not counted.
pub fn warn_of_space(target: BorrowedFd<'_>, arguments: &[Argument], listener: &dyn Listener) {
    let Ok(room) = volume::space(target) else { return };
    if room.read_only {
        listener.event(Event::Warning("the target file system is mounted read-only".into()));
        return;
    }
    let mut roots = Vec::new();
    let mut upper = (0u64, 0u64);
    let mut volumes = Vec::new();
    for argument in arguments {
        let Ok(name) = c_string(argument.path().as_os_str().as_bytes()) else { continue };
        let Ok(source) = meta::of(dir::cwd(), &name, true) else { continue };
        if source.kind != Kind::Dir {
            upper = (upper.0.saturating_add(source.size), upper.1 + 1);
            continue;
        }
        let Ok(fd) = dir::open_root(&name) else { continue };
        if let Ok(used) = volume::space(fd.as_fd())
            && !volumes.contains(&source.dev)
        {
            volumes.push(source.dev);
            let inodes = used.used_inodes.unwrap_or(u64::MAX);
            upper = (upper.0.saturating_add(used.used_bytes), upper.1.saturating_add(inodes));
        }
        roots.push(fd);
    }
    let fits = |bytes: u64, entries: u64| {
        bytes <= room.free_bytes && room.free_inodes.is_none_or(|free| entries <= free)
    };
    if fits(upper.0, upper.1) {
        return;
    }
    let mut need = Need::default();
    let deadline = Instant::now() + COUNT_TIME_MAX;
    for root in roots {
        count(root, &mut need, deadline);
    }
    if upper.0 > 0 && need.entries == 0 {
        (need.bytes, need.entries) = upper;
    }
    if fits(need.bytes, need.entries) {
        return;
    }
    let least = if need.at_least { "at least " } else { "" };
    let message = if need.bytes > room.free_bytes {
        format!(
            "the sources hold {least}{} bytes and the target has room for {}: it may fill up",
            need.bytes, room.free_bytes
        )
    } else {
        format!(
            "the sources hold {least}{} entries and the target has inodes for {}: it may fill up",
            need.entries,
            room.free_inodes.unwrap_or(0)
        )
    };
    listener.event(Event::Warning(message));
}

/// Adds up a tree, deepest first, until the deadline.
fn count(root: OwnedFd, need: &mut Need, deadline: Instant) {
    let mut reader = dir::Reader::default();
    let mut open = vec![root];
    while let Some(fd) = open.pop() {
        let listed = reader.for_each(fd.as_fd(), |name, kind, _| {
            if Instant::now() > deadline {
                need.at_least = true;
                return;
            }
            need.entries += 1;
            match kind {
                // Few enough to stay open; what is deeper is not worth a descriptor.
                Kind::Dir if open.len() < 200 => {
                    open.extend(dir::open(fd.as_fd(), name, false));
                }
                Kind::Dir => need.at_least = true,
                _ => {
                    if let Ok(meta) = meta::of(fd.as_fd(), name, false) {
                        need.bytes += meta.allocated_bytes().min(meta.size.next_multiple_of(4096));
                    }
                }
            }
        });
        if listed.is_err() {
            need.at_least = true;
        }
        if need.at_least && Instant::now() > deadline {
            return;
        }
    }
}
