//! Differences between two snapshots as readable lines.

use super::snapshot::{Entry, Snapshot, show};
use rustix::fs::FileType;
use std::collections::BTreeSet;

/// Aspects that count as differences.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    pub mode: bool,
    pub owner: bool,
    pub times: bool,
    pub dir_times: bool,
    pub link_times: bool,
    pub xattrs: bool,
    pub groups: bool,
    /// Times from this second on are all "during the test" and count as equal.
    pub recent_s: i64,
    /// The right-hand file must not take much more room than the left-hand one.
    pub holes: bool,
}

impl Fields {
    /// Everything that `-aHAX` keeps.
    pub const ALL: Fields = Fields {
        mode: true,
        owner: true,
        times: true,
        dir_times: true,
        link_times: true,
        xattrs: true,
        groups: true,
        recent_s: i64::MAX,
        holes: false,
    };
    /// Everything, and holes.
    pub const HOLES: Fields = Fields { holes: true, ..Fields::ALL };
    /// Names, types, contents and symlink texts only.
    pub const CONTENT: Fields = Fields {
        mode: false,
        owner: false,
        times: false,
        dir_times: false,
        link_times: false,
        xattrs: false,
        groups: false,
        recent_s: i64::MAX,
        holes: false,
    };
    /// Everything but the times, for options that leave times to the moment of the copy.
    pub const NO_TIMES: Fields =
        Fields { times: false, dir_times: false, link_times: false, ..Fields::ALL };
}

/// The differences of `right` against `left`, at most `limit` lines; empty when they are the same.
pub fn diff(left: &Snapshot, right: &Snapshot, fields: &Fields, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut paths: Vec<_> = left.entries.keys().chain(right.entries.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        match (left.entries.get(path), right.entries.get(path)) {
            (Some(_), None) => lines.push(format!("{}: missing", show(path))),
            (None, Some(_)) => lines.push(format!("{}: too much", show(path))),
            (Some(a), Some(b)) => {
                for what in entry_diff(a, b, fields) {
                    lines.push(format!("{}: {what}", show(path)));
                }
            }
            (None, None) => {}
        }
        if lines.len() >= limit {
            lines.push("…".to_owned());
            break;
        }
    }
    lines
}

fn entry_diff(a: &Entry, b: &Entry, fields: &Fields) -> Vec<String> {
    if a.kind != b.kind {
        return vec![format!("type {:?} became {:?}", a.kind, b.kind)];
    }
    let mut lines = Vec::new();
    let mut differs = |on: bool, what: &str, left: String, right: String| {
        if on && left != right {
            lines.push(format!("{what} {left} became {right}"));
        }
    };
    let symlink = a.kind == FileType::Symlink;
    let times = match a.kind {
        FileType::Directory => fields.dir_times,
        FileType::Symlink => fields.link_times,
        _ => fields.times,
    };
    differs(true, "size", a.size.to_string(), b.size.to_string());
    differs(a.size == b.size, "content", format!("{:x}", a.hash), format!("{:x}", b.hash));
    differs(true, "link", show(&a.link), show(&b.link));
    differs(true, "rdev", format!("{:x}", a.rdev), format!("{:x}", b.rdev));
    differs(fields.mode && !symlink, "mode", format!("{:04o}", a.mode), format!("{:04o}", b.mode));
    differs(fields.owner, "owner", format!("{}:{}", a.uid, a.gid), format!("{}:{}", b.uid, b.gid));
    differs(times, "mtime", mtime(a, fields), mtime(b, fields));
    differs(fields.groups, "hard links with", group(a), group(b));
    if fields.xattrs {
        lines.extend(xattr_diff(a, b));
    }
    // File systems round up in their own ways; a hole that was filled is more than that.
    if fields.holes && b.allocated > a.allocated + a.allocated / 4 + (256 << 10) {
        lines.push(format!("takes {} bytes instead of {}", b.allocated, a.allocated));
    }
    lines
}

fn mtime(entry: &Entry, fields: &Fields) -> String {
    // A year covers the longest test; trees have times far in the future, too.
    if (fields.recent_s..fields.recent_s.saturating_add(31_536_000)).contains(&entry.mtime_s) {
        return "now".to_owned();
    }
    format!("{}.{:09}", entry.mtime_s, entry.mtime_ns)
}

fn group(entry: &Entry) -> String {
    entry.group.as_deref().map_or_else(|| "nobody".to_owned(), show)
}

fn xattr_diff(a: &Entry, b: &Entry) -> Vec<String> {
    let names: BTreeSet<_> = a.xattrs.keys().chain(b.xattrs.keys()).collect();
    let value = |entry: &Entry, name: &Vec<u8>| {
        entry.xattrs.get(name).map_or_else(|| "none".to_owned(), |value| readable(name, value))
    };
    let differs = names.into_iter().filter(|name| a.xattrs.get(*name) != b.xattrs.get(*name));
    differs.map(|n| format!("{} {} became {}", show(n), value(a, n), value(b, n))).collect()
}

/// ACLs as `tag:id:permissions`, other values escaped.
fn readable(name: &[u8], value: &[u8]) -> String {
    if !name.starts_with(b"system.posix_acl") || value.len() < 4 {
        return format!("{:?}", show(value));
    }
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_i64, |n, byte| n << 8 | i64::from(*byte));
    let entries = value[4..].chunks(8).map(|entry| {
        format!("{:x}:{}:{}", word(&entry[..2]), word(&entry[4..]) as i32, word(&entry[2..4]))
    });
    entries.collect::<Vec<_>>().join(",")
}
