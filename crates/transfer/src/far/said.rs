//! Events of the other end: an agent's listener sends them, the near end's listener gets them.

use super::LinkSample;
use crate::journal::{bytes, text};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem, foreign};
use hakobu_core::event::{Change, Event, Item, Listener, Remark, Skip};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_remote::link::Outgoing;
use hakobu_remote::message::Message;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An event as it is sent. Paths are encoded by `journal::text`.
#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    Problem {
        operation: usize,
        source: Option<String>,
        target: Option<String>,
        /// An errno, or a text.
        cause: Result<i32, String>,
        class: u8,
    },
    Item(Box<SaidItem>),
    BackedUp {
        path: String,
        backup: String,
    },
    Made {
        path: String,
        dirs: Option<usize>,
    },
    Skipped {
        path: String,
        kind: u8,
        why: u8,
    },
    Warning(String),
    /// Of an agent, several times a second.
    Sample(LinkSample),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct SaidItem {
    /// The fields of [`Change`] in their order, as bits.
    change: u32,
    kind: u8,
    path: String,
    source: Option<String>,
    target: Option<String>,
    link: Option<String>,
    bytes: u64,
    bytes_moved: u64,
    start_s: f64,
    took_s: f64,
    mode: u32,
    mtime: (i64, u32),
    owner: (u32, u32),
    digest: Option<String>,
}

const OPERATIONS: [Operation; 19] = [
    Operation::Read,
    Operation::List,
    Operation::Stat,
    Operation::Create,
    Operation::MakeDir,
    Operation::Write,
    Operation::Rename,
    Operation::Link,
    Operation::SetMode,
    Operation::SetOwner,
    Operation::SetTimes,
    Operation::SetXattr,
    Operation::SetAcl,
    Operation::Remove,
    Operation::Sync,
    Operation::Compare,
    Operation::Filter,
    Operation::Move,
    Operation::Overwrite,
];
const CLASSES: [ErrorClass; 4] =
    [ErrorClass::Vanished, ErrorClass::Partial, ErrorClass::Fatal, ErrorClass::Notice];
const SKIPS: [Skip; 5] =
    [Skip::NotExisting, Skip::Existing, Skip::Newer, Skip::TooLarge, Skip::TooSmall];

fn number<T: PartialEq>(of: &T, all: &[T]) -> usize {
    all.iter().position(|one| one == of).unwrap_or(0)
}

fn path(path: &Path) -> String {
    text(path.as_os_str().as_bytes())
}

fn unpath(encoded: &str) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes(encoded)))
}

fn bits(change: &Change) -> u32 {
    fields(*change).iter().rev().fold(0, |bits, set| bits << 1 | u32::from(*set))
}

fn fields(change: Change) -> [bool; 17] {
    let Change { created, transferred, hard_link, to_name, deleted, checksum, size, time, .. } =
        change;
    let Change { time_now, mode, owner, group, atime, acl, xattr, beside, left_out, .. } = change;
    [
        created,
        transferred,
        hard_link,
        to_name,
        deleted,
        checksum,
        size,
        time,
        time_now,
        mode,
        owner,
        group,
        atime,
        acl,
        xattr,
        beside,
        left_out,
    ]
}

fn change_of(bits: u32) -> Change {
    let bit = |at: u32| bits >> at & 1 != 0;
    Change {
        created: bit(0),
        transferred: bit(1),
        hard_link: bit(2),
        to_name: bit(3),
        deleted: bit(4),
        checksum: bit(5),
        size: bit(6),
        time: bit(7),
        time_now: bit(8),
        mode: bit(9),
        owner: bit(10),
        group: bit(11),
        atime: bit(12),
        acl: bit(13),
        xattr: bit(14),
        beside: bit(15),
        left_out: bit(16),
    }
}

impl Said {
    /// Returns an event as it is sent; `None` for those that stay.
    fn of(event: &Event<'_>) -> Option<Said> {
        Some(match event {
            Event::Begins(_) | Event::Limited(_) | Event::Planned(_) => return None,
            Event::Problem(problem) => Said::Problem {
                operation: number(&problem.operation, &OPERATIONS),
                source: problem.source.as_deref().map(path),
                target: problem.target.as_deref().map(path),
                cause: match &problem.cause {
                    Cause::System(error) => {
                        error.raw_os_error().ok_or_else(|| problem.cause.to_string())
                    }
                    other => Err(other.to_string()),
                },
                class: number(&problem.class, &CLASSES) as u8,
            },
            Event::Item(item) => Said::Item(Box::new(SaidItem {
                change: bits(&item.change),
                kind: item.kind.number(),
                path: path(item.path),
                source: item.source.as_deref().map(path),
                target: item.target.as_deref().map(path),
                link: item.link.as_deref().map(path),
                bytes: item.bytes,
                bytes_moved: item.bytes_moved,
                start_s: item.start_s,
                took_s: item.took.as_secs_f64(),
                mode: item.mode,
                mtime: (item.meta.mtime.s, item.meta.mtime.ns),
                owner: (item.meta.uid, item.meta.gid),
                digest: item.digest.clone(),
            })),
            Event::Remark(Remark::BackedUp { path: of, backup }) => {
                Said::BackedUp { path: path(of), backup: path(backup) }
            }
            Event::Remark(Remark::Made { path: of, dirs }) => {
                Said::Made { path: path(of), dirs: *dirs }
            }
            Event::Remark(Remark::Skipped { path: of, kind, why }) => Said::Skipped {
                path: path(of),
                kind: kind.number(),
                why: number(why, &SKIPS) as u8,
            },
            Event::Remark(Remark::Filtered { .. }) => return None,
            Event::Warning(text) => Said::Warning(text.clone()),
        })
    }

    /// Passes an event of the other end on.
    fn tell(self, to: &dyn Listener) {
        match self {
            Said::Problem { operation, source, target, cause, class } => {
                let operation = OPERATIONS.get(operation).copied().unwrap_or(Operation::Read);
                let class = CLASSES.get(usize::from(class)).copied();
                let cause = match cause {
                    Ok(errno) => Cause::System(io::Error::from_raw_os_error(errno)),
                    Err(text) => Cause::Said(foreign(&text)),
                };
                to.event(Event::Problem(&Problem {
                    operation,
                    source: source.as_deref().map(unpath),
                    target: target.as_deref().map(unpath),
                    cause,
                    class: class.unwrap_or(ErrorClass::Partial),
                }));
            }
            Said::Item(item) => {
                let kind = Kind::of_number(item.kind).unwrap_or(Kind::Unknown);
                let (s, ns) = item.mtime;
                let (uid, gid) = item.owner;
                let bare = Meta::bare(kind, item.bytes, Time { s, ns });
                let meta = Meta { mode: item.mode, uid, gid, ..bare };
                to.event(Event::Item(&Item {
                    change: change_of(item.change),
                    kind,
                    path: &unpath(&item.path),
                    source: item.source.as_deref().map(unpath),
                    target: item.target.as_deref().map(unpath),
                    version: None,
                    link: item.link.as_deref().map(unpath),
                    bytes: item.bytes,
                    bytes_moved: item.bytes_moved,
                    start_s: item.start_s,
                    took: Duration::try_from_secs_f64(item.took_s).unwrap_or_default(),
                    mode: item.mode,
                    mtime_s: s,
                    meta: &meta,
                    digest: item.digest,
                    checksum: None,
                }));
            }
            Said::BackedUp { path, backup } => {
                let (path, backup) = (unpath(&path), unpath(&backup));
                to.event(Event::Remark(&Remark::BackedUp { path: &path, backup }));
            }
            Said::Made { path, dirs } => {
                to.event(Event::Remark(&Remark::Made { path: &unpath(&path), dirs }));
            }
            Said::Skipped { path, kind, why } => {
                let kind = Kind::of_number(kind).unwrap_or(Kind::Unknown);
                let why = SKIPS.get(usize::from(why)).copied().unwrap_or(Skip::Existing);
                to.event(Event::Remark(&Remark::Skipped { path: &unpath(&path), kind, why }));
            }
            Said::Warning(text) => to.event(Event::Warning(foreign(&text))),
            Said::Sample(_) => {}
        }
    }
}

/// Passes an event of the other end on, and returns a sample; what cannot be read is left out.
pub fn told(json: &[u8], to: &dyn Listener) -> Option<LinkSample> {
    match serde_json::from_slice::<Said>(json).ok()? {
        Said::Sample(sample) => Some(sample),
        event => {
            event.tell(to);
            None
        }
    }
}

/// Sends events to the other end.
pub struct Relay(pub Outgoing);

impl Listener for Relay {
    fn event(&self, event: Event<'_>) {
        if let Some(said) = Said::of(&event)
            && let Ok(json) = serde_json::to_vec(&said)
        {
            // A lost end is noticed by the reader.
            let _ = self.0.send(Message::Said(json));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive() {
        for at in 0..16 {
            let change = change_of(1 << at);
            assert_eq!(bits(&change), 1 << at);
            assert_eq!(fields(change).iter().filter(|set| **set).count(), 1);
        }
    }
}
