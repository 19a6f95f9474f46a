//! Files that options name: lists of names and rules from a file or standard input (`--files-from`, `--exclude-from`),
//! and the symlinks that may lead to them (`--insecure-links`, `--confine-root`).

use crate::cli::{Group, flag, parts, titled};
use crate::input;
use hakobu_core::error::cannot;
use hakobu_core::lines::{self, LINE_BYTES_MAX, NAME_BYTES_MAX};
use hakobu_sys::paths::Links;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Reads a list of names, through symlinks that `links` allows; `-` is standard input. `splits` makes the names of its
/// bytes: [`split`] or [`split_plain`], with NUL bytes between names (`nul`) or line ends.
///
/// # Errors
/// A sentence for the user; a name may not be longer than any path can be.
pub fn read_list(
    file: &OsStr,
    links: &Links,
    nul: bool,
    splits: fn(&[u8], bool) -> Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, String> {
    let ends = |byte| if nul { byte == 0 } else { matches!(byte, b'\n' | b'\r') };
    // Comments are lines.
    let longest = |first| match first {
        b'#' | b';' => LINE_BYTES_MAX,
        _ => NAME_BYTES_MAX,
    };
    let read = |from: &mut dyn Read| lines::whole(from, ends, "name", longest);
    let content = with(file, links, read).map_err(|error| cannot("read", file, error))?;
    Ok(splits(&content, nul))
}

/// Reads a whole file of rules, in lines or with NUL bytes between them (`nul`), through symlinks that `links` allows;
/// `-` is standard input.
///
/// # Errors
/// Error of opening or reading; a line that is too long.
pub fn read(file: &OsStr, links: &Links, nul: bool) -> io::Result<Vec<u8>> {
    let ends = |byte| byte == if nul { 0 } else { b'\n' };
    with(file, links, |from| lines::whole(from, ends, "line", |_| LINE_BYTES_MAX))
}

/// Reads a text of lines.
///
/// # Errors
/// A sentence for the user.
pub fn read_text(file: impl AsRef<OsStr>) -> Result<String, String> {
    let file = file.as_ref();
    let read = input::open(file, &Links::Any).and_then(lines::text);
    read.map_err(|error| cannot("read", file, error))
}

fn with<T>(
    file: &OsStr,
    links: &Links,
    read: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> io::Result<T> {
    match file == "-" {
        true => read(&mut *input::stdin()?),
        false => read(&mut input::open(file, links)?),
    }
}

/// Returns a path without trailing slashes; `/` stays.
pub fn strip_slashes(path: &[u8]) -> &[u8] {
    let mut rest = path;
    while let [start @ .., b'/'] = rest
        && !start.is_empty()
    {
        rest = start;
    }
    rest
}

/// Splits a list of names at newlines (a carriage return before one, or alone, ends a name, too) or, with `nul`, at
/// NUL bytes. Empty names and comments (`#` or `;` first) are skipped, as in rsync.
pub fn split(content: &[u8], nul: bool) -> Vec<Vec<u8>> {
    content
        .split(|byte| if nul { *byte == 0 } else { matches!(byte, b'\n' | b'\r') })
        .filter(|name| !matches!(name.first(), None | Some(b'#' | b';')))
        .map(<[u8]>::to_vec)
        .collect()
}

/// Splits a list of names as [`split`] does, but takes every name literally: there are no comments.
pub fn split_plain(content: &[u8], nul: bool) -> Vec<Vec<u8>> {
    content
        .split(|byte| *byte == if nul { 0 } else { b'\n' })
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns an environment variable as bytes; empty counts as unset.
pub fn variable(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(|value| value.as_bytes().to_vec()).filter(|value| !value.is_empty())
}

/// The options about symlinks that paths on the command line may contain, read so far.
#[derive(Clone, Debug, Default)]
pub struct LinkArgs {
    /// `--insecure-links`.
    pub insecure: bool,
    /// `--confine-root`.
    pub root: Option<PathBuf>,
}

/// Options about symlinks in paths on the command line.
pub static LINKS: Group<LinkArgs> = titled("Limits").with(&[flag(
    "insecure-links",
    None,
    "follow symlinks of other users in the paths of options",
)
.off(&["no-insecure-links"])
.sets(|args, on| args.insecure = on)]);

parts!(LinkArgs {});

impl LinkArgs {
    /// Returns the rule.
    ///
    /// # Errors
    /// A sentence: a root that is not absolute, or without effect.
    pub fn links(self) -> Result<Links, String> {
        match (self.root, self.insecure) {
            (Some(root), _) if !root.is_absolute() => {
                Err("--confine-root must be an absolute path".into())
            }
            (Some(_), true) => {
                Err("--insecure-links and --confine-root cannot be used together".into())
            }
            (Some(root), false) => Ok(Links::Within(root)),
            (None, true) => Ok(Links::Any),
            (None, false) => Ok(Links::Trusted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_rsync() {
        let names = |content: &[u8], nul| {
            split(content, nul).iter().map(|n| n.escape_ascii().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(b"#c\n;e\n\n a\na\r\n/d/b", false), [" a", "a", "/d/b"]);
        assert_eq!(names(b"#c\0;e\0a\nb\0\0\xff", true), ["a\\nb", "\\xff"]);
        assert_eq!(names(b"", false), [""; 0]);
    }

    #[test]
    fn plain() {
        assert_eq!(split_plain(b"#c\n\na\r\n", false), [b"#c".to_vec(), b"a\r".to_vec()]);
        assert_eq!(split_plain(b"#c\n\0b", true), [b"#c\n".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = read_list(OsStr::new("/no/such/list"), &Links::Trusted, false, split).err();
        let expected = "cannot read '/no/such/list': No such file or directory";
        assert_eq!(message.as_deref(), Some(expected));
    }

    #[test]
    fn meaning_of_options() {
        let links = |root: Option<&str>, insecure| {
            LinkArgs { insecure, root: root.map(PathBuf::from) }.links()
        };
        assert_eq!(links(None, false), Ok(Links::Trusted));
        assert_eq!(links(None, true), Ok(Links::Any));
        assert_eq!(links(Some("/a"), false), Ok(Links::Within("/a".into())));
        assert!(links(Some("a"), true).is_err_and(|why| why.contains("absolute")));
        assert!(links(Some("/a"), true).is_err_and(|why| why.contains("together")));
    }
}
