//! Lists of names from a file or standard input (`--files-from`), and whole small files.

use hakobu_core::error::cannot;
use hakobu_sys::dir;
use hakobu_sys::links::Links;
use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

/// Reads a whole file, through symlinks that `links` allows; `-` is standard input.
///
/// # Errors
/// A sentence for the user.
pub fn read_whole(file: &OsStr, links: &Links) -> Result<Vec<u8>, String> {
    read(file, links).map_err(|error| cannot("read", file, error))
}

/// As [`read_whole`], with the system's error.
///
/// # Errors
/// Error of opening or reading.
pub fn read(file: &OsStr, links: &Links) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if file == "-" {
        io::stdin().lock().read_to_end(&mut content)?;
    } else {
        let path = CString::new(file.as_bytes())?;
        let fd = links.open_read(dir::cwd(), &path, true)?;
        std::fs::File::from(fd).read_to_end(&mut content)?;
    }
    Ok(content)
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
        let message = read_whole(OsStr::new("/no/such/list"), &Links::Trusted).err();
        let expected = "cannot read '/no/such/list': No such file or directory";
        assert_eq!(message.as_deref(), Some(expected));
    }
}
