//! The room of the local target of a download: what is queued is counted, and a warning is given once it is more than the
//! file system had free at the first file.

use super::{How, Root, Task, Work};
use hakobu_core::event::{Event, Listener};
use hakobu_core::number;
use hakobu_sys::{AsFd, disk};
use parking_lot::Mutex;

/// Returns the warning that a target has less room than a run needs; both with their units.
pub(crate) fn room_warning(needed: &str, free: &str) -> String {
    format!("warning: {needed} to copy, but only {free} free on the target")
}

/// Room of one target.
#[derive(Default)]
pub(super) struct TargetRoom(Mutex<RoomState>);

#[derive(Default)]
enum RoomState {
    /// Nothing was queued for a local target.
    #[default]
    Unknown,
    /// What was free at the first file, and the need of all files so far.
    Counted { free_bytes: u64, need_bytes: u64 },
    /// Nothing more can be said: the warning was given, or the file system does not tell.
    Done,
}

impl TargetRoom {
    /// Counts tasks that are queued. A file that replaces another one needs the difference only.
    pub fn count(&self, tasks: &[Task], listener: &dyn Listener) {
        let mut state = self.0.lock();
        for Task { pair, work } in tasks {
            let (Root::Local { dir, .. }, Work::Move { entry, existing, how: How::Transfer, .. }) =
                (&pair.target, work)
            else {
                continue;
            };
            if matches!(*state, RoomState::Unknown) {
                *state = match disk::space(dir.as_fd()) {
                    Ok(space) => RoomState::Counted { free_bytes: space.free_bytes, need_bytes: 0 },
                    Err(_) => RoomState::Done,
                };
            }
            let RoomState::Counted { free_bytes, need_bytes } = &mut *state else { return };
            let has_bytes = existing.as_ref().map_or(0, |existing| existing.meta.size);
            *need_bytes += entry.meta.size.saturating_sub(has_bytes);
            if *need_bytes > *free_bytes {
                let needed = format!("at least {}", number::bytes(*need_bytes));
                let text = room_warning(&needed, &number::bytes(*free_bytes));
                listener.event(Event::Warning(text));
                *state = RoomState::Done;
            }
        }
    }
}
