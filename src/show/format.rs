//! rsync's `--out-format` and `--log-file-format`: a line for each entry from a template (rsyncd.conf(5), log
//! format).

use super::escape::Escape;
use super::itemize::{self, letters, push_link, push_name};
use super::list::{TIME, mode_text, time_text};
use hakobu_core::event::Item;
use hakobu_core::unit::Kind;
use jiff::tz::TimeZone;
use std::os::unix::ffi::OsStrExt;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    /// A letter, and the minimum width of its value; negative: left-aligned.
    Field(u8, i32),
}

/// Supported letters.
const KNOWN: &[u8] = b"binLloftMBpcC%";

/// Maximum number of characters of a width; longer ones are text, as in rsync.
const WIDTH_CHARS_MAX: usize = 23;

/// Length of a checksum, which an entry without one leaves blank.
const DIGEST_CHARS: usize = 32;

impl Format {
    /// Parses a template; a letter unknown to rsync is kept as it is.
    ///
    /// # Errors
    /// A sentence: a letter that is not supported.
    pub fn parse(text: &[u8]) -> Result<Format, String> {
        let mut parts = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            let bare = |byte: &u8| !(byte.is_ascii_digit() || matches!(byte, b'-' | b'\''));
            let end = after.iter().position(bare).filter(|_| byte == b'%');
            let end = end.filter(|end| *end <= WIDTH_CHARS_MAX);
            let letter = end.and_then(|end| Some((end, *after.get(end)?)));
            match letter {
                Some((_, letter @ (b'U' | b'G' | b'a' | b'h' | b'P' | b'u' | b'm'))) => {
                    let why = match letter {
                        b'U' | b'G' => "ls -l shows owners",
                        _ => "it belongs to a daemon",
                    };
                    return Err(format!("%{} is not supported: {why}", char::from(letter)));
                }
                Some((end, letter)) if KNOWN.contains(&letter) => {
                    let width: String = after[..end]
                        .iter()
                        .filter(|b| **b != b'\'')
                        .map(|b| char::from(*b))
                        .collect();
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Field(letter, width.parse().unwrap_or(0)));
                    rest = &after[end + 1..];
                    continue;
                }
                _ => plain.push(byte),
            }
            rest = after;
        }
        parts.push(Part::Text(plain));
        parts.retain(|part| *part != Part::Text(Vec::new()));
        Ok(Format { parts })
    }

    /// Returns whether the template shows a letter.
    pub fn has(&self, letter: u8) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Field(found, _) if *found == letter))
    }

    /// Returns whether an entry has a line: with `%i` every change has one, else only transferred or removed entries.
    fn has_line(&self, item: &Item<'_>, escape: Escape) -> bool {
        if self.has(b'i') || item.change.deleted {
            return true;
        }
        let mut plain = Vec::new();
        itemize::push_plain(item, false, escape, &mut plain);
        !plain.is_empty()
    }

    /// Appends the line of an entry, if it has one. `now_s` is Unix time.
    pub fn push(
        &self,
        item: &Item<'_>,
        escape: Escape,
        (zone, now_s): (&TimeZone, f64),
        out: &mut Vec<u8>,
    ) {
        if item.change.deleted && !self.has(b'i') && !self.has(b'o') {
            return itemize::push_plain(item, false, escape, out);
        }
        if !self.has_line(item, escape) {
            return;
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Field(letter, width) => {
                    let mut field = Vec::new();
                    push_field(*letter, item, escape, (zone, now_s), &mut field);
                    // rsync does not widen the blanks in place of a checksum.
                    let is_blank = *letter == b'C' && item.digest.is_none();
                    let width = if is_blank { &0 } else { width };
                    let pad = (width.unsigned_abs() as usize).saturating_sub(field.len());
                    let spaces = std::iter::repeat_n(b' ', pad);
                    if *width > 0 {
                        out.extend(spaces);
                        out.extend_from_slice(&field);
                    } else {
                        out.extend_from_slice(&field);
                        out.extend(spaces);
                    }
                }
            }
        }
        out.push(b'\n');
    }
}

fn push_field(
    letter: u8,
    item: &Item<'_>,
    escape: Escape,
    (zone, now_s): (&TimeZone, f64),
    out: &mut Vec<u8>,
) {
    match letter {
        b'i' => out.extend_from_slice(&letters(&item.change, item.kind)),
        b'n' => push_name(item, escape, out),
        b'L' => push_link(item, escape, out),
        b'l' => out.extend_from_slice(item.bytes.to_string().as_bytes()),
        b'b' => out.extend_from_slice(item.bytes_moved.to_string().as_bytes()),
        // Bytes of checksums received: there are none.
        b'c' => out.push(b'0'),
        b'o' => out.extend_from_slice(if item.change.deleted { b"del." } else { b"send" }),
        b'f' => {
            let path = item.source.as_deref().unwrap_or(item.path).as_os_str().as_bytes();
            escape.push(path.strip_prefix(b"/").unwrap_or(path), out);
            if item.path.as_os_str().is_empty() && item.kind == Kind::Dir && !path.ends_with(b"/.")
            {
                out.extend_from_slice(if path.ends_with(b"/") { b"." } else { b"/." });
            }
        }
        b'C' => match &item.digest {
            Some(digest) => out.extend_from_slice(digest.as_bytes()),
            None => out.extend_from_slice(&[b' '; DIGEST_CHARS]),
        },
        b'M' => {
            out.extend_from_slice(time_text(item.mtime_s, zone, "%Y/%m/%d-%H:%M:%S").as_bytes())
        }
        b't' => out.extend_from_slice(time_text(now_s as i64, zone, TIME).as_bytes()),
        b'B' => out.extend_from_slice(&mode_text(item.kind, item.mode).as_bytes()[1..]),
        b'p' => out.extend_from_slice(std::process::id().to_string().as_bytes()),
        _ => out.push(b'%'),
    }
}

#[cfg(test)]
mod tests {
    use super::super::itemize::tests::item;
    use super::*;
    use hakobu_core::event::Change;

    fn line(format: &str, change: Change, kind: Kind, path: &str, link: Option<&str>) -> String {
        let mut out = Vec::new();
        let format = Format::parse(format.as_bytes()).unwrap();
        let item = item(change, kind, path, link);
        format.push(&item, Escape::of_locale(), (&TimeZone::UTC, 1_790_000_000.5), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_rsync() {
        let none = Change::default();
        let file = Change { created: true, transferred: true, ..none };
        let link = Change { created: true, ..none };
        let gone = Change { deleted: true, ..none };
        let mode = Change { mode: true, ..none };
        for (format, change, kind, path, target, expected) in [
            ("%i %n%L", file, Kind::File, "d/f", None, ">f+++++++++ d/f\n"),
            ("%n%L", link, Kind::Symlink, "l", Some("f"), "l -> f\n"),
            ("%o %f", file, Kind::File, "d/f", None, "send s/d/f\n"),
            ("%o %n", gone, Kind::File, "f", None, "del. f\n"),
            ("%n", gone, Kind::Dir, "d", None, "deleting d/\n"),
            ("%n", mode, Kind::File, "f", None, ""),
            ("%o %n", mode, Kind::File, "f", None, ""),
            ("%i %n", mode, Kind::File, "f", None, ".f...p..... f\n"),
            ("[%6l|%-6n|%'l]", file, Kind::File, "f", None, "[  1234|f     |1234]\n"),
            ("%B %M", file, Kind::File, "f", None, "rw-r--r-- 2026/09/21-14:13:20\n"),
            ("100%% %q%", file, Kind::File, "f", None, "100% %q%\n"),
            ("%t", file, Kind::File, "f", None, "2026/09/21 14:13:20\n"),
        ] {
            assert_eq!(line(format, change, kind, path, target), expected, "{format}");
        }
        let blank = format!("[{:32}] f\n", "");
        assert_eq!(line("[%C] %n", file, Kind::File, "f", None), blank);
        let digest = Some("0123abc".to_owned());
        let item = Item { digest, ..item(file, Kind::File, "f", None) };
        for (format, expected) in [
            ("%C|%9C|%-9C|", "0123abc|  0123abc|0123abc  |\n".to_owned()),
            ("%%C", "%C\n".to_owned()),
            (&format!("%{:030}%C", 0), format!("%{:030}0123abc\n", 0)),
        ] {
            let mut out = Vec::new();
            let format = Format::parse(format.as_bytes()).unwrap();
            format.push(&item, Escape::Utf8, (&TimeZone::UTC, 1_790_000_000.5), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        assert!(Format::parse(b"%i %U").unwrap_err().contains("%U is not supported"));
        assert!(Format::parse(b"%h").unwrap_err().contains("daemon"));
    }
}
