//! Lines about entries: rsync's itemized form (`-i`), its plain names (`-v`), templates (`--out-format`), lists
//! (`--list-only`) and remarks (`--info`, `--debug`), cp's arrows, GNU parallel's job log.

use super::escape::{Escape, push_quoted};
use crate::number::Digits;
use hakobu_core::error::{ErrorClass, Problem};
use hakobu_core::event::{Change, Item, Remark, Skip};
use hakobu_core::unit::Kind;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns rsync's eleven letters `YXcstpoguax` (rsync(1), `--itemize-changes`); for a removal `*deleting` padded to
/// the same width.
pub fn letters(change: &Change, kind: Kind) -> [u8; 11] {
    if change.deleted {
        return *b"*deleting  ";
    }
    let is_plain = matches!(kind, Kind::File | Kind::Dir);
    let did = if change.hard_link {
        b'h'
    } else if change.transferred && kind == Kind::File {
        b'>'
    } else if change.beside
        || change.created
        || (!is_plain && (change.transferred || change.checksum))
    {
        b'c'
    } else {
        b'.'
    };
    let mut out = [b'.'; 11];
    (out[0], out[1]) = (did, letter(kind));
    if change.created && !change.beside {
        out[2..].fill(b'+');
        return out;
    }
    let mark = |on: bool, letter: u8| if on { letter } else { b'.' };
    out[2] = mark(change.checksum, b'c');
    out[3] = mark(change.size, b's');
    out[4] = mark(change.time_now, b'T');
    if change.time {
        out[4] = b't';
    }
    out[5] = mark(change.mode, b'p');
    out[6] = mark(change.owner, b'o');
    out[7] = mark(change.group, b'g');
    out[8] = mark(change.atime, b'u');
    out[9] = mark(change.acl, b'a');
    out[10] = mark(change.xattr, b'x');
    let blank = matches!(did, b'.' | b'h') || did == b'c' && change.beside;
    if blank && out[2..].iter().all(|mark| *mark == b'.') {
        out[2..].fill(b' ');
    }
    out
}

fn letter(kind: Kind) -> u8 {
    match kind {
        Kind::Dir => b'd',
        Kind::Symlink => b'L',
        Kind::CharDevice | Kind::BlockDevice => b'D',
        Kind::Fifo | Kind::Socket => b'S',
        Kind::File | Kind::Unknown => b'f',
    }
}

/// Appends the name as rsync prints it: a directory with a slash, the root of the transfer as `./`.
pub fn push_name(item: &Item<'_>, escape: Escape, out: &mut Vec<u8>) {
    let name = item.path.as_os_str().as_bytes();
    escape.push(if name.is_empty() { b"." } else { name }, out);
    if item.kind == Kind::Dir && !name.ends_with(b"/") {
        out.push(b'/');
    }
}

/// Appends the target of a link: ` -> TEXT` of a symlink, ` => NAME` of a hard link.
pub fn push_link(item: &Item<'_>, escape: Escape, out: &mut Vec<u8>) {
    if let Some(link) = item.link.as_deref().filter(|_| !item.change.deleted) {
        let arrow: &[u8] = if item.change.to_name { b" => " } else { b" -> " };
        out.extend_from_slice(arrow);
        escape.push(link.as_os_str().as_bytes(), out);
    }
}

/// Appends the line of `-i`.
pub fn push_itemized(item: &Item<'_>, escape: Escape, out: &mut Vec<u8>) {
    out.extend_from_slice(&letters(&item.change, item.kind));
    out.push(b' ');
    push_name(item, escape, out);
    push_link(item, escape, out);
    out.push(b'\n');
}

/// Appends the line of `-v`: the name, or nothing where rsync prints nothing (only attributes of a non-directory
/// changed). With `all` (`-vv`) it has a line, too, and unchanged entries are marked as such.
pub fn push_plain(item: &Item<'_>, all: bool, escape: Escape, out: &mut Vec<u8>) {
    let change = &item.change;
    if change.deleted {
        out.extend_from_slice(b"deleting ");
        push_name(item, escape, out);
    } else if change.is_as_beside() {
        if !all {
            return;
        }
        push_name(item, escape, out);
        out.extend_from_slice(b" is uptodate");
    } else if change.created
        || change.transferred
        || change.hard_link
        || ((all || item.kind == Kind::Dir) && change.any())
        || (item.kind == Kind::Symlink && change.checksum)
    {
        push_name(item, escape, out);
        push_link(item, escape, out);
    } else if all && !change.any() && item.kind != Kind::Dir {
        push_name(item, escape, out);
        out.extend_from_slice(b" is uptodate");
    } else {
        return;
    }
    out.push(b'\n');
}

/// Appends the line of cp's `-v`: `'a' -> 'b'`, or mv's with a verb before it: `copied 'a' -> 'b'`.
fn push_arrow(verb: &str, from: &Path, to: &Path, out: &mut Vec<u8>) {
    out.extend_from_slice(verb.as_bytes());
    if !verb.is_empty() {
        out.push(b' ');
    }
    push_quoted(from.as_os_str().as_bytes(), out);
    out.extend_from_slice(b" -> ");
    push_quoted(to.as_os_str().as_bytes(), out);
    out.push(b'\n');
}

/// Appends the line of cp's and mv's `-v` for a copy: mv (the one with a verb) says that it creates directories
/// instead.
pub fn push_copied(verb: &str, kind: Kind, from: &Path, to: &Path, out: &mut Vec<u8>) {
    if kind == Kind::Dir && !verb.is_empty() {
        out.extend_from_slice(b"created directory ");
        push_quoted(to.as_os_str().as_bytes(), out);
        out.push(b'\n');
    } else {
        push_arrow(verb, from, to, out);
    }
}

/// Appends the line of mv's `-v` for a rename.
pub fn push_renamed(from: &Path, to: &Path, backup: Option<&Path>, out: &mut Vec<u8>) {
    push_arrow("renamed", from, to, out);
    if let Some(backup) = backup {
        out.truncate(out.len() - 1);
        out.extend_from_slice(b" (backup: ");
        push_quoted(backup.as_os_str().as_bytes(), out);
        out.extend_from_slice(b")\n");
    }
}

/// Appends rm's line of a removed entry.
pub fn push_removed(item: &Item<'_>, out: &mut Vec<u8>) {
    if let Some(path) = item.target.as_deref().filter(|_| item.change.deleted) {
        out.extend_from_slice(b"removed ");
        push_quoted(path.as_os_str().as_bytes(), out);
        if let Some(version) = item.version {
            out.extend_from_slice(b" (version ");
            push_quoted(version.as_bytes(), out);
            out.push(b')');
        }
        out.push(b'\n');
    }
}

/// Appends the change of an entry as a line for `hakobu run`, which does this and nothing else.
pub fn push_mapping(verb: &str, item: &Item<'_>, out: &mut Vec<u8>) {
    let change = &item.change;
    let is_dir = item.kind == Kind::Dir;
    let target = item.target.as_deref().map(|path| path.as_os_str().as_bytes());
    let is_local = target.is_some_and(|target| !target.starts_with(b"s3://"));
    let word = match (change.deleted, change.created || change.transferred) {
        // Not what is in it: that has lines of its own, or stays.
        (true, _) if is_dir && is_local => "rmdir",
        (true, _) => "rm",
        // A line with a folder would copy all that is in it; for the content it is created anyway.
        (false, true) if is_dir => return,
        (false, true) => verb,
        (false, false) => return,
    };
    out.extend_from_slice(word.as_bytes());
    if let Some(version) = item.version {
        out.extend_from_slice(b" --version-id ");
        push_quoted(version.as_bytes(), out);
    }
    let from = item.source.as_deref().filter(|_| !change.deleted);
    let from = from.map(|path| path.as_os_str().as_bytes());
    push_literally(&from.into_iter().chain(target).collect::<Vec<_>>(), out);
    out.push(b'\n');
}

/// Appends the line for `hakobu run` that removes a local entry.
pub fn push_local_removal(path: &[u8], kind: Kind, out: &mut Vec<u8>) {
    out.extend_from_slice(if kind == Kind::Dir { b"rmdir" } else { b"rm" });
    push_literally(&[path], out);
    out.push(b'\n');
}

/// Appends names so that `hakobu run` takes them as they are: not for patterns, options or standard streams.
pub fn push_literally(paths: &[&[u8]], out: &mut Vec<u8>) {
    if paths.iter().any(|path| path.iter().any(|byte| matches!(byte, b'*' | b'?'))) {
        out.extend_from_slice(b" --raw");
    }
    for path in paths {
        out.push(b' ');
        match path.starts_with(b"-") {
            true => push_quoted(&[b"./", *path].concat(), out),
            false => push_quoted(path, out),
        }
    }
}

/// A parsed template of `--out-format` or `--log-file-format`: a line for each entry (rsyncd.conf(5), log format).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFormat {
    parts: Vec<FormatPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FormatPart {
    Text(Vec<u8>),
    /// A letter, and the minimum width of its value; negative: left-aligned.
    Field(u8, i32),
}

/// Supported letters.
const FORMAT_LETTERS: &[u8] = b"binLloftMBpcC%";

/// Maximum number of characters of a width; longer ones are text, as in rsync.
const WIDTH_CHARS_MAX: usize = 23;

/// Length of a checksum, which an entry without one leaves blank.
const DIGEST_CHARS: usize = 32;

impl OutFormat {
    /// Parses a template; a letter unknown to rsync is kept as it is.
    ///
    /// # Errors
    /// A sentence: a letter that is not supported.
    pub fn parse(text: &[u8]) -> Result<OutFormat, String> {
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
                Some((end, letter)) if FORMAT_LETTERS.contains(&letter) => {
                    let width: String = after[..end]
                        .iter()
                        .filter(|b| **b != b'\'')
                        .map(|b| char::from(*b))
                        .collect();
                    parts.push(FormatPart::Text(std::mem::take(&mut plain)));
                    parts.push(FormatPart::Field(letter, width.parse().unwrap_or(0)));
                    rest = &after[end + 1..];
                    continue;
                }
                _ => plain.push(byte),
            }
            rest = after;
        }
        parts.push(FormatPart::Text(plain));
        parts.retain(|part| *part != FormatPart::Text(Vec::new()));
        Ok(OutFormat { parts })
    }

    /// Returns whether the template shows a letter.
    pub fn has(&self, letter: u8) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, FormatPart::Field(found, _) if *found == letter))
    }

    /// Returns whether an entry has a line: with `%i` every change has one, else only transferred or removed entries.
    fn has_line(&self, item: &Item<'_>, escape: Escape) -> bool {
        if self.has(b'i') || item.change.deleted {
            return true;
        }
        let mut plain = Vec::new();
        push_plain(item, false, escape, &mut plain);
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
            return push_plain(item, false, escape, out);
        }
        if !self.has_line(item, escape) {
            return;
        }
        for part in &self.parts {
            match part {
                FormatPart::Text(text) => out.extend_from_slice(text),
                FormatPart::Field(letter, width) => {
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

/// The lines of `--list-only`: mode, size, time, name, in rsync's columns.
pub struct ListFormat {
    /// Format of numbers.
    pub digits: Digits,
    /// Escaping of names.
    pub escape: Escape,
    /// Whether symlinks are shown with their targets (`-l`).
    pub links: bool,
    /// Time zone of the times.
    pub zone: TimeZone,
}

impl ListFormat {
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

/// Appends a message about an entry besides its line, in rsync's words (`--info=backup`, `--info=skip`,
/// `--debug=filter`).
pub fn push_remark(remark: &Remark<'_>, escape: Escape, out: &mut Vec<u8>) {
    match remark {
        Remark::BackedUp { path, backup } => {
            out.extend_from_slice(b"backed up ");
            escape.push(path.as_os_str().as_bytes(), out);
            out.extend_from_slice(b" to ");
            escape.push(backup.as_os_str().as_bytes(), out);
        }
        Remark::Made { path, dirs } => {
            let words = match dirs {
                None => "created directory ".to_owned(),
                Some(1) => "created 1 directory for ".to_owned(),
                Some(dirs) => format!("created {dirs} directories for "),
            };
            out.extend_from_slice(words.as_bytes());
            let path = path.as_os_str().as_bytes();
            escape.push(path.strip_suffix(b"/").unwrap_or(path), out);
        }
        Remark::Skipped { path, kind, why: Skip::NotExisting } => {
            let kind = if *kind == Kind::Dir { "directory" } else { "file" };
            out.extend_from_slice(format!("not creating new {kind} \"").as_bytes());
            escape.push(path.as_os_str().as_bytes(), out);
            out.push(b'"');
        }
        Remark::Filtered { path, is_dir, at_target, include, pattern, list } => {
            let done = match (at_target, include) {
                (false, false) => "[sender] hiding",
                (false, true) => "[sender] showing",
                (true, false) => "[generator] protecting",
                (true, true) => "[generator] risking",
            };
            let kind = if *is_dir { "directory" } else { "file" };
            out.extend_from_slice(format!("{done} {kind} ").as_bytes());
            escape.push(path.as_os_str().as_bytes(), out);
            out.extend_from_slice(b" because of pattern ");
            match pattern {
                Some(pattern) => escape.push(pattern, out),
                None => out.extend_from_slice(b"<rule from a file read earlier>"),
            }
            if let Some(list) = list {
                out.extend_from_slice(b" [");
                escape.push(list, out);
                out.push(b']');
            }
        }
        Remark::Skipped { path, why, .. } => {
            escape.push(path.as_os_str().as_bytes(), out);
            let words = match why {
                Skip::NotExisting | Skip::Existing => " exists",
                Skip::Newer => " is newer",
                Skip::TooLarge => " is over max-size",
                Skip::TooSmall => " is under min-size",
            };
            out.extend_from_slice(words.as_bytes());
        }
    }
    out.push(b'\n');
}

/// The header of `--joblog`: one line per file in the columns of GNU parallel's job log, so that tools for it can read
/// it.
pub const JOBLOG_HEADER: &[u8] =
    b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// Returns whether an entry has a line: every created or updated one, except directories.
pub fn has_job_line(item: &Item<'_>) -> bool {
    item.kind != Kind::Dir && !item.change.deleted && item.change.any()
}

/// Appends the line of an entry, number `seq`. `Send` is bytes of content moved.
pub fn push_job(command: &str, seq: u64, item: &Item<'_>, out: &mut Vec<u8>) {
    let paths = [item.source.as_deref(), item.target.as_deref()];
    let took = item.took.as_secs_f64();
    push_columns(command, seq, item.start_s, took, item.bytes_moved, 0, paths, out);
}

/// Returns whether a problem has a line: if it means that a file has not arrived.
pub fn has_failed_job(problem: &Problem) -> bool {
    matches!(problem.class, ErrorClass::Partial | ErrorClass::Vanished | ErrorClass::Fatal)
}

/// Appends the line of a file that failed at `now_s`.
pub fn push_failed_job(command: &str, seq: u64, now_s: f64, problem: &Problem, out: &mut Vec<u8>) {
    let code = match problem.class {
        ErrorClass::Vanished => crate::exit::SYNC_VANISHED,
        ErrorClass::Fatal => crate::exit::SYNC_IO,
        _ => crate::exit::SYNC_PARTIAL,
    };
    let paths = [problem.source.as_deref(), problem.target.as_deref()];
    push_columns(command, seq, now_s, 0.0, 0, code, paths, out);
}

#[expect(clippy::too_many_arguments, reason = "the columns of one line")]
fn push_columns(
    command: &str,
    seq: u64,
    start_s: f64,
    took_s: f64,
    sent: u64,
    exit: u8,
    paths: [Option<&Path>; 2],
    out: &mut Vec<u8>,
) {
    let columns = format!("{seq}\t:\t{start_s:.3}\t{took_s:10.3}\t{sent}\t0\t{exit}\t0\t{command}");
    out.extend_from_slice(columns.as_bytes());
    for path in paths.into_iter().flatten() {
        out.push(b' ');
        push_quoted(path.as_os_str().as_bytes(), out);
    }
    out.push(b'\n');
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hakobu_core::unit::{Meta, Time};
    use std::path::PathBuf;
    use std::time::Duration;

    const AT: Time = Time { s: 1_790_000_000, ns: 0 };
    const META: Meta = Meta { mode: 0o644, ..Meta::bare(Kind::File, 1234, AT) };

    pub fn item<'a>(change: Change, kind: Kind, path: &'a str, link: Option<&str>) -> Item<'a> {
        Item {
            change,
            kind,
            path: Path::new(path),
            source: Some(PathBuf::from("/s").join(path)),
            target: Some(PathBuf::from("/t").join(path)),
            version: None,
            link: link.map(PathBuf::from),
            bytes: 1234,
            bytes_moved: 1234,
            start_s: 1_790_000_000.25,
            took: Duration::from_millis(5),
            mode: 0o644,
            mtime_s: 1_790_000_000,
            meta: &META,
            digest: None,
            checksum: None,
        }
    }

    #[test]
    fn itemized_as_rsync() {
        let none = Change::default();
        let new = Change { created: true, ..none };
        let file = Change { created: true, transferred: true, ..none };
        let time = Change { time: true, ..none };
        for (change, kind, path, link, itemized, plain) in [
            (file, Kind::File, "s/a", None, ">f+++++++++ s/a\n", "s/a\n"),
            (new, Kind::Dir, "s", None, "cd+++++++++ s/\n", "s/\n"),
            (new, Kind::Symlink, "l", Some("a"), "cL+++++++++ l -> a\n", "l -> a\n"),
            (new, Kind::Fifo, "p", None, "cS+++++++++ p\n", "p\n"),
            (new, Kind::CharDevice, "n", None, "cD+++++++++ n\n", "n\n"),
            (
                Change { hard_link: true, to_name: true, created: true, ..none },
                Kind::File,
                "b",
                Some("a"),
                "hf+++++++++ b => a\n",
                "b => a\n",
            ),
            (Change { hard_link: true, ..none }, Kind::File, "b", None, "hf          b\n", "b\n"),
            (time, Kind::Dir, "", None, ".d..t...... ./\n", "./\n"),
            (time, Kind::Dir, ".", None, ".d..t...... ./\n", "./\n"),
            (
                Change { checksum: true, ..time },
                Kind::Symlink,
                "l",
                Some("a"),
                "cLc.t...... l -> a\n",
                "l -> a\n",
            ),
            (time, Kind::Symlink, "l", Some("a"), ".L..t...... l -> a\n", ""),
            (Change { mode: true, ..none }, Kind::File, "a", None, ".f...p..... a\n", ""),
            (
                Change { transferred: true, size: true, ..time },
                Kind::File,
                "a",
                None,
                ">f.st...... a\n",
                "a\n",
            ),
            (Change { transferred: true, ..none }, Kind::File, "a", None, ">f......... a\n", "a\n"),
            (
                Change {
                    transferred: true,
                    checksum: true,
                    size: true,
                    time_now: true,
                    mode: true,
                    owner: true,
                    group: true,
                    acl: true,
                    xattr: true,
                    ..none
                },
                Kind::File,
                "a",
                None,
                ">fcsTpog.ax a\n",
                "a\n",
            ),
            (none, Kind::File, "a", None, ".f          a\n", "a is uptodate\n"),
            (none, Kind::Dir, "d", None, ".d          d/\n", ""),
            (none, Kind::Symlink, "l", Some("a"), ".L          l -> a\n", "l is uptodate\n"),
            (
                Change { deleted: true, ..none },
                Kind::Dir,
                "d",
                None,
                "*deleting   d/\n",
                "deleting d/\n",
            ),
            (
                Change { deleted: true, ..none },
                Kind::File,
                "x\n",
                None,
                "*deleting   x\\#012\n",
                "deleting x\\#012\n",
            ),
        ] {
            let item = item(change, kind, path, link);
            let (mut lines, mut names) = (Vec::new(), Vec::new());
            push_itemized(&item, Escape::Utf8, &mut lines);
            push_plain(&item, !change.any(), Escape::Utf8, &mut names);
            assert_eq!(String::from_utf8_lossy(&lines), itemized);
            assert_eq!(String::from_utf8_lossy(&names), plain);
        }
    }

    #[test]
    fn removed_versions() {
        let change = Change { deleted: true, ..Change::default() };
        let item = Item { version: Some("a b"), ..item(change, Kind::File, "k", None) };
        let (mut removed, mut line) = (Vec::new(), Vec::new());
        push_removed(&item, &mut removed);
        push_mapping("rm", &item, &mut line);
        assert_eq!(String::from_utf8_lossy(&removed), "removed '/t/k' (version 'a b')\n");
        assert_eq!(String::from_utf8_lossy(&line), "rm --version-id 'a b' '/t/k'\n");
        let item = super::tests::item(change, Kind::File, "k*", None);
        let mut line = Vec::new();
        push_mapping("rm", &item, &mut line);
        assert_eq!(String::from_utf8_lossy(&line), "rm --raw '/t/k*'\n");
    }

    #[test]
    fn twice_verbose() {
        let change = Change { mode: true, ..Change::default() };
        let mut out = Vec::new();
        push_plain(&item(change, Kind::File, "a", None), true, Escape::Utf8, &mut out);
        push_plain(&item(Change::default(), Kind::File, "b", None), false, Escape::Utf8, &mut out);
        assert_eq!(out, b"a\n");
    }

    #[test]
    fn arrows() {
        let mut out = Vec::new();
        push_copied("", Kind::Dir, Path::new("a"), Path::new("it's"), &mut out);
        push_copied("copied", Kind::Dir, Path::new("a"), Path::new("d"), &mut out);
        push_copied("copied", Kind::File, Path::new("a"), Path::new("b"), &mut out);
        push_renamed(Path::new("a"), Path::new("b"), None, &mut out);
        push_renamed(Path::new("a"), Path::new("b"), Some(Path::new("b~")), &mut out);
        let text = "'a' -> \"it's\"\ncreated directory 'd'\ncopied 'a' -> 'b'\n\
                    renamed 'a' -> 'b'\nrenamed 'a' -> 'b' (backup: 'b~')\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }
    use hakobu_core::event::Change;

    fn line(format: &str, change: Change, kind: Kind, path: &str, link: Option<&str>) -> String {
        let mut out = Vec::new();
        let format = OutFormat::parse(format.as_bytes()).unwrap();
        let item = item(change, kind, path, link);
        format.push(&item, Escape::of_locale(), (&TimeZone::UTC, 1_790_000_000.5), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn formatted_as_rsync() {
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
            let format = OutFormat::parse(format.as_bytes()).unwrap();
            format.push(&item, Escape::Utf8, (&TimeZone::UTC, 1_790_000_000.5), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        assert!(OutFormat::parse(b"%i %U").unwrap_err().contains("%U is not supported"));
        assert!(OutFormat::parse(b"%h").unwrap_err().contains("daemon"));
    }

    #[test]
    fn listed_as_rsync() {
        for (digits, links, text) in [
            (Digits::Grouped, true, "-rw-r--r--          1,234 2026/09/21 14:13:20 l -> a\n"),
            (Digits::Plain, false, "-rw-r--r--        1234 2026/09/21 14:13:20 l\n"),
            (Digits::Thousands, false, "-rw-r--r--          1.23K 2026/09/21 14:13:20 l\n"),
        ] {
            let list = ListFormat { digits, escape: Escape::Utf8, links, zone: TimeZone::UTC };
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
    use std::path::Path;

    #[test]
    fn remarks() {
        let path = Path::new("d/a");
        let mut out = Vec::new();
        for remark in [
            Remark::Made { path: Path::new("x/d/"), dirs: None },
            Remark::Made { path: Path::new("d"), dirs: Some(1) },
            Remark::Made { path: Path::new("x/d"), dirs: Some(2) },
            Remark::BackedUp { path, backup: "../old/d/a~".into() },
            Remark::Skipped { path, kind: Kind::Dir, why: Skip::NotExisting },
            Remark::Skipped { path, kind: Kind::File, why: Skip::NotExisting },
            Remark::Skipped { path, kind: Kind::File, why: Skip::Existing },
            Remark::Skipped { path, kind: Kind::File, why: Skip::Newer },
            Remark::Skipped { path, kind: Kind::File, why: Skip::TooLarge },
            Remark::Skipped { path: Path::new("x\n"), kind: Kind::File, why: Skip::TooSmall },
            Remark::Filtered {
                path,
                is_dir: false,
                at_target: false,
                include: false,
                pattern: Some(b"a\x01"),
                list: None,
            },
            Remark::Filtered {
                path: Path::new("d"),
                is_dir: true,
                at_target: true,
                include: true,
                pattern: None,
                list: Some(b"per-dir .rules"),
            },
        ] {
            push_remark(&remark, Escape::Utf8, &mut out);
        }
        let text = "created directory x/d\ncreated 1 directory for d\ncreated 2 directories for x/d\n\
                    backed up d/a to ../old/d/a~\nnot creating new directory \"d/a\"\n\
                    not creating new file \"d/a\"\nd/a exists\nd/a is newer\nd/a is over max-size\n\
                    x\\#012 is under min-size\n\
                    [sender] hiding file d/a because of pattern a\\#001\n\
                    [generator] risking directory d because of pattern <rule from a file read earlier> [per-dir .rules]\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }

    #[test]
    fn nine_columns() {
        let change = Change { created: true, transferred: true, ..Change::default() };
        let item = item(change, Kind::File, "a\tb", None);
        let mut out = Vec::new();
        assert!(has_job_line(&item));
        push_job("hakobu sync", 7, &item, &mut out);
        let line = String::from_utf8_lossy(&out);
        assert_eq!(
            line,
            "7\t:\t1790000000.250\t     0.005\t1234\t0\t0\t0\thakobu sync \
             '/s/a'$'\\t''b' '/t/a'$'\\t''b'\n"
        );
        let columns = |line: &str| line.split('\t').count();
        assert_eq!(columns(&line), columns(&String::from_utf8_lossy(JOBLOG_HEADER)));
    }
}
