//! Format of names: literal, with marks for unprintable characters, or quoted for a shell if necessary.

use super::entry::Entry;
use super::options::{Names, Plan, Sign};
use crate::show::escape::{Escape, push_quoted};
use hakobu_core::unit::Kind;

impl Names {
    /// Appends a name.
    pub fn push(self, name: &[u8], out: &mut Vec<u8>) {
        match self {
            Names::Literal => out.extend_from_slice(name),
            Names::Marked(escape) => push_marked(name, escape, out),
            Names::Quoted(escape) => {
                if is_plain(name, escape) {
                    out.extend_from_slice(name);
                } else {
                    push_quoted(name, out);
                }
            }
        }
    }
}

fn is_printable(c: char, escape: Escape) -> bool {
    if c.is_ascii() { !c.is_ascii_control() } else { escape != Escape::Ascii && !c.is_control() }
}

fn push_marked(name: &[u8], escape: Escape, out: &mut Vec<u8>) {
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_printable(c, escape) {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                // One mark for each byte in a locale without UTF-8.
                let marks = if escape == Escape::Ascii { c.len_utf8() } else { 1 };
                out.extend(std::iter::repeat_n(b'?', marks));
            }
        }
        out.extend(chunk.invalid().iter().map(|_| b'?'));
    }
}

/// Returns whether a shell reads the name unchanged.
fn is_plain(name: &[u8], escape: Escape) -> bool {
    let special = |c| " \t\n!\"$&'()*;<=>?[\\]^`{|}".contains(c);
    let Ok(text) = std::str::from_utf8(name) else { return false };
    !text.is_empty()
        && !text.starts_with(['~', '#'])
        && text.chars().all(|c| !special(c) && is_printable(c, escape))
}

/// Appends inode number, name and type indicator of an entry.
pub fn push(entry: &Entry, plan: &Plan, inode_width: usize, out: &mut Vec<u8>) {
    if plan.inode {
        push_inode(entry, inode_width, out);
    }
    plan.names.push(entry.name.to_bytes(), out);
    push_sign(entry.kind(), entry.meta.map_or(0, |meta| meta.mode), plan.sign, out);
}

/// Returns the number of characters of the widest inode number.
pub fn inode_width(entries: &[Entry]) -> usize {
    let inodes = entries.iter().filter_map(|entry| entry.meta).map(|meta| meta.ino);
    inodes.max().map_or(1, |inode| inode.to_string().len())
}

/// Appends the inode number of an entry and a space.
pub fn push_inode(entry: &Entry, width: usize, out: &mut Vec<u8>) {
    let inode = entry.meta.map_or("?".to_owned(), |meta| meta.ino.to_string());
    out.extend_from_slice(format!("{inode:>width$} ").as_bytes());
}

/// Appends the indicator of a type.
pub fn push_sign(kind: Kind, mode: u32, sign: Sign, out: &mut Vec<u8>) {
    match (sign, kind) {
        (Sign::None, _) => {}
        (_, Kind::Dir) => out.push(b'/'),
        (Sign::Slash, _) => {}
        (_, Kind::Symlink) => out.push(b'@'),
        (_, Kind::Fifo) => out.push(b'|'),
        (_, Kind::Socket) => out.push(b'='),
        (_, Kind::File) if mode & 0o111 != 0 => out.push(b'*'),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: Names, name: &[u8]) -> String {
        let mut out = Vec::new();
        names.push(name, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn hostile_names_do_nothing_to_a_terminal() {
        for (name, marked, quoted) in [
            (&b"plain"[..], "plain", "plain"),
            (b"two words", "two words", "'two words'"),
            (b"a\nb", "a?b", "'a'$'\\n''b'"),
            (b"\x1b[31m", "?[31m", "''$'\\033''[31m'"),
            (b"caf\xc3\xa9", "café", "café"),
            (b"bad\xff", "bad?", "'bad'$'\\377'"),
            (b"it's", "it's", "\"it's\""),
            (b"-l", "-l", "-l"),
            (b"", "", "''"),
        ] {
            assert_eq!(shown(Names::Marked(Escape::Utf8), name), marked);
            assert_eq!(shown(Names::Quoted(Escape::Utf8), name), quoted);
        }
        assert_eq!(shown(Names::Marked(Escape::Ascii), b"caf\xc3\xa9"), "caf??");
    }

    #[test]
    fn signs() {
        let sign = |kind, mode, sign| {
            let mut out = Vec::new();
            push_sign(kind, mode, sign, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        for (kind, mode, all, slash) in [
            (Kind::Dir, 0o755, "/", "/"),
            (Kind::File, 0o644, "", ""),
            (Kind::File, 0o010, "*", ""),
            (Kind::Symlink, 0o777, "@", ""),
            (Kind::Fifo, 0, "|", ""),
            (Kind::Socket, 0, "=", ""),
            (Kind::CharDevice, 0, "", ""),
        ] {
            assert_eq!(sign(kind, mode, Sign::All), all);
            assert_eq!(sign(kind, mode, Sign::Slash), slash);
            assert_eq!(sign(kind, mode, Sign::None), "");
        }
    }
}
