//! The long format: one line for an entry, columns as wide as their widest cell.

use super::entry::Entry;
use super::name;
use super::options::{Form, Plan};
use crate::number::ceiled;
use crate::show::list::mode_text;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::xattr::{self, Named};
use hakobu_sys::{BorrowedFd, dir, meta, user};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashMap;

/// Half of a mean Gregorian year: older or future times show their year instead of the time of day.
const RECENT_S: i64 = 31_556_952 / 2;

/// State shared by all lines, and the cached names of owners.
pub struct Long {
    plan: Plan,
    zone: TimeZone,
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

/// The cells of one line, without the name.
struct Row {
    mode: String,
    links: String,
    owner: String,
    group: String,
    major: String,
    size: String,
    time: String,
}

impl Long {
    /// Makes the state of one run of the command.
    pub fn new(plan: &Plan) -> Long {
        let wanted = plan.form == Form::Long;
        let zone = if wanted { TimeZone::system() } else { TimeZone::UTC };
        Long { plan: plan.clone(), zone, users: HashMap::new(), groups: HashMap::new() }
    }

    /// Appends the lines of entries of one directory. Columns are wide enough for those in `also`, too: as in
    /// coreutils, arguments that are directories count, although they are not printed here.
    pub fn push(
        &mut self,
        dir: BorrowedFd<'_>,
        entries: &[Entry],
        also: &[Entry],
        out: &mut Vec<u8>,
    ) {
        let now = Time::now();
        let all = entries.iter().chain(also);
        let rows: Vec<Row> = all.map(|entry| self.row(dir, entry, now)).collect();
        let widest = |cell: fn(&Row) -> &String| {
            rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0)
        };
        let mode = widest(|row| &row.mode);
        let links = widest(|row| &row.links);
        let (owner, group) = (widest(|row| &row.owner), widest(|row| &row.group));
        let (major, size) = (widest(|row| &row.major), widest(|row| &row.size));
        let time = widest(|row| &row.time);
        // A device has two numbers in place of a size; both are right-aligned.
        let size = if major > 0 { size.max(1) } else { size };
        let inode = name::inode_width(entries);
        for (row, entry) in rows.iter().zip(entries) {
            if self.plan.inode {
                name::push_inode(entry, inode, out);
            }
            let mut line = format!("{:<mode$} {:>links$}", row.mode, row.links);
            if self.plan.owner {
                line.push_str(&format!(" {}", aligned(&row.owner, owner)));
            }
            if self.plan.group {
                line.push_str(&format!(" {}", aligned(&row.group, group)));
            }
            let both = if major > 0 { major + 2 + size } else { size };
            let cell = match row.major.is_empty() {
                true => row.size.clone(),
                false => format!("{:>major$}, {:>size$}", row.major, row.size),
            };
            line.push_str(&format!(" {cell:>both$} {:>time$} ", row.time));
            out.extend_from_slice(line.as_bytes());
            self.push_name(dir, entry, out);
            out.push(self.plan.end);
        }
    }

    fn push_name(&self, dir: BorrowedFd<'_>, entry: &Entry, out: &mut Vec<u8>) {
        self.plan.names.push(entry.name.to_bytes(), out);
        let Some(meta) = entry.meta else { return };
        if meta.kind != Kind::Symlink {
            name::push_sign(meta.kind, meta.mode, self.plan.sign, out);
            return;
        }
        if let Ok(link) = dir::read_link(dir, &entry.name) {
            out.extend_from_slice(b" -> ");
            self.plan.names.push(link.to_bytes(), out);
            if let Ok(named) = meta::of(dir, &entry.name, true) {
                name::push_sign(named.kind, named.mode, self.plan.sign, out);
            }
        }
    }

    fn row(&mut self, dir: BorrowedFd<'_>, entry: &Entry, now: Time) -> Row {
        let Some(meta) = entry.meta else {
            let unknown = || "?".to_owned();
            let mode = format!("{}?????????", first_letter(entry.kind()));
            return Row {
                mode,
                links: unknown(),
                owner: unknown(),
                group: unknown(),
                major: String::new(),
                size: unknown(),
                time: unknown(),
            };
        };
        let mut mode = mode_text(meta.kind, meta.mode);
        if has_acl(dir, entry, &meta) {
            mode.push('+');
        }
        let numeric = self.plan.numeric;
        let known = |names: &mut HashMap<u32, String>, id: u32, look: fn(u32) -> Option<String>| {
            if numeric {
                return id.to_string();
            }
            names.entry(id).or_insert_with(|| look(id).unwrap_or_else(|| id.to_string())).clone()
        };
        let (major, size) = match meta.kind.is_device() {
            true => {
                let (major, minor) = meta::device_numbers(meta.rdev);
                (major.to_string(), minor.to_string())
            }
            false if self.plan.human => (String::new(), ceiled(meta.size)),
            false => (String::new(), meta.size.to_string()),
        };
        Row {
            mode,
            links: meta.nlink.to_string(),
            owner: known(&mut self.users, meta.uid, user::user_name),
            group: known(&mut self.groups, meta.gid, user::group_name),
            major,
            size,
            time: time_text(meta.mtime, now, &self.zone, self.plan.full_time),
        }
    }
}

/// Returns an owner in its column: names left-aligned, numbers right-aligned.
fn aligned(owner: &str, width: usize) -> String {
    match owner.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{owner:>width$}"),
        false => format!("{owner:<width$}"),
    }
}

fn first_letter(kind: Kind) -> char {
    mode_text(kind, 0).chars().next().unwrap_or('?')
}

/// Returns whether an entry has an ACL beyond its mode.
fn has_acl(dir: BorrowedFd<'_>, entry: &Entry, meta: &Meta) -> bool {
    if meta.kind == Kind::Symlink {
        return false;
    }
    let Ok(named) = Named::new(dir, &entry.name) else { return false };
    let mut buffer = Vec::new();
    named.get(xattr::ACL_ACCESS, &mut buffer).is_ok()
        || (meta.kind == Kind::Dir && named.get(xattr::ACL_DEFAULT, &mut buffer).is_ok())
}

/// Returns a time as in ls(1): with the time of day if it is recent, else the year.
fn time_text(time: Time, now: Time, zone: &TimeZone, full: bool) -> String {
    let Ok(stamp) = Timestamp::new(time.s, time.ns.try_into().unwrap_or(0)) else {
        return time.s.to_string();
    };
    let recent = time <= now && time.s > now.s.saturating_sub(RECENT_S);
    let form = match (full, recent) {
        (true, _) => "%Y-%m-%d %H:%M:%S.%9f %z",
        (false, true) => "%b %e %H:%M",
        (false, false) => "%b %e  %Y",
    };
    stamp.to_zoned(zone.clone()).strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_times_show_the_hour() {
        let now = Time { s: 1_800_000_000, ns: 0 };
        let text = |s, full| time_text(Time { s, ns: 7 }, now, &TimeZone::UTC, full);
        assert_eq!(text(now.s - 1, false), "Jan 15 07:59");
        assert_eq!(text(now.s + 1, false), "Jan 15  2027");
        assert_eq!(text(now.s - RECENT_S, false), "Jul 16  2026");
        assert_eq!(text(now.s - RECENT_S + 1, false), "Jul 16 17:05");
        assert_eq!(text(86_400, false), "Jan  2  1970");
        assert_eq!(text(0, true), "1970-01-01 00:00:00.000000007 +0000");
        assert_eq!(text(i64::MAX, false), i64::MAX.to_string());
    }
}
