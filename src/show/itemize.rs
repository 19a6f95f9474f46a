//! One line for one entry: rsync's itemized form (`-i`), its plain names (`-v`), cp's arrows.

use super::escape::{Escape, push_quoted};
use hakobu_core::event::{Change, Item};
use hakobu_core::unit::Kind;
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
        }
    }

    #[test]
    fn as_rsync() {
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
}
