//! The lines of `--list-only`: mode, size, time, name, in rsync's columns.

use super::escape::Escape;
use crate::number::Digits;
use hakobu_core::event::Item;
use hakobu_core::unit::Kind;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::os::unix::ffi::OsStrExt;

/// Format of the lines.
pub struct List {
    /// Format of numbers.
    pub digits: Digits,
    /// Escaping of names.
    pub escape: Escape,
    /// Whether symlinks are shown with their targets (`-l`).
    pub links: bool,
    /// Time zone of the times.
    pub zone: TimeZone,
}

impl List {
    /// Appends the line of one entry.
    pub fn push(&self, item: &Item<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(mode_text(item.kind, item.mode).as_bytes());
        let width = if self.digits == Digits::Plain { 11 } else { 14 };
        let size = self.digits.size(item.bytes);
        out.extend_from_slice(format!(" {size:>width$} ").as_bytes());
        out.extend_from_slice(time_text(item.mtime_s, &self.zone, TIME).as_bytes());
        out.push(b' ');
        let name = item.path.as_os_str().as_bytes();
        self.escape.push(if name.is_empty() { b"." } else { name }, out);
        if let Some(link) = item.link.as_deref().filter(|_| self.links) {
            out.extend_from_slice(b" -> ");
            self.escape.push(link.as_os_str().as_bytes(), out);
        }
        out.push(b'\n');
    }
}

/// Returns `-rwxr-sr-t` and similar, as in ls(1).
pub fn mode_text(kind: Kind, mode: u32) -> String {
    let mut out = String::with_capacity(10);
    out.push(match kind {
        Kind::File => '-',
        Kind::Dir => 'd',
        Kind::Symlink => 'l',
        Kind::Fifo => 'p',
        Kind::Socket => 's',
        Kind::CharDevice => 'c',
        Kind::BlockDevice => 'b',
        Kind::Unknown => '?',
    });
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        out.push(if bits & 4 != 0 { 'r' } else { '-' });
        out.push(if bits & 2 != 0 { 'w' } else { '-' });
        out.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    out
}

/// Form of times in lists and logs: `2026/01/31 12:00:00`.
pub const TIME: &str = "%Y/%m/%d %H:%M:%S";

/// Returns a time in a form of strftime(3); the number itself outside of the calendar's range.
pub fn time_text(s: i64, zone: &TimeZone, form: &str) -> String {
    match Timestamp::from_second(s) {
        Ok(time) => time.to_zoned(zone.clone()).strftime(form).to_string(),
        Err(_) => format!("@{s}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::itemize::tests::item;
    use super::*;
    use hakobu_core::event::Change;

    #[test]
    fn as_rsync() {
        for (digits, links, text) in [
            (Digits::Grouped, true, "-rw-r--r--          1,234 2026/09/21 14:13:20 l -> a\n"),
            (Digits::Plain, false, "-rw-r--r--        1234 2026/09/21 14:13:20 l\n"),
            (Digits::Thousands, false, "-rw-r--r--          1.23K 2026/09/21 14:13:20 l\n"),
        ] {
            let list = List { digits, escape: Escape::Utf8, links, zone: TimeZone::UTC };
            let mut out = Vec::new();
            list.push(&item(Change::default(), Kind::File, "l", Some("a")), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn modes() {
        for (kind, mode, text) in [
            (Kind::File, 0o4755, "-rwsr-xr-x"),
            (Kind::File, 0o4644, "-rwSr--r--"),
            (Kind::File, 0o2755, "-rwxr-sr-x"),
            (Kind::File, 0o2644, "-rw-r-Sr--"),
            (Kind::Dir, 0o1777, "drwxrwxrwt"),
            (Kind::File, 0o1776, "-rwxrwxrwT"),
            (Kind::CharDevice, 0, "c---------"),
        ] {
            assert_eq!(mode_text(kind, mode), text);
        }
    }

    #[test]
    fn times() {
        assert_eq!(time_text(-315_619_200, &TimeZone::UTC, TIME), "1960/01/01 00:00:00");
        assert_eq!(time_text(i64::MAX, &TimeZone::UTC, TIME), "@9223372036854775807");
    }
}
