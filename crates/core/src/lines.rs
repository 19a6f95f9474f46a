//! Files of lines and names from outside, read within bounds: what never ends a line (`/dev/zero`) is an error, not
//! memory.

use std::io::{BufRead, Error, Read, Result};

/// Longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Longest name, in bytes: `PATH_MAX` of Linux, limits.h.
pub const NAME_BYTES_MAX: usize = 4096;
/// Empty lines or names in a row.
const EMPTY_MAX: usize = 1 << 20;

/// Returns the rest of a file of lines, which end where `ends` says. `what` is a line in messages, and `bytes_max` the
/// length of one that begins with a byte.
///
/// # Errors
/// Those of reading; a line that is too long, or too many empty ones in a row.
pub fn whole(
    mut from: impl Read,
    ends: impl Fn(u8) -> bool,
    what: &str,
    bytes_max: impl Fn(u8) -> usize,
) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let (mut number, mut length, mut longest, mut empty) = (1_u64, 0, 0, 0);
    loop {
        let got = match from.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            got => got?,
        };
        let bytes = buffer.get(..got).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(content);
        }
        for byte in bytes {
            if ends(*byte) {
                empty = if length == 0 { empty + 1 } else { 0 };
                if empty > EMPTY_MAX {
                    let message = format!("more than {EMPTY_MAX} empty {what}s in a row");
                    return Err(Error::other(message));
                }
                (number, length) = (number + 1, 0);
                continue;
            }
            if length == 0 {
                longest = bytes_max(*byte);
            }
            length += 1;
            if length > longest {
                return Err(too_long(what, number, longest));
            }
        }
        content.extend_from_slice(bytes);
    }
}

/// As [`whole`], for a text of lines.
///
/// # Errors
/// Those of [`whole`]; `InvalidData` for bytes that are not UTF-8.
pub fn text(from: impl Read) -> Result<String> {
    let content = whole(from, |byte| byte == b'\n', "line", |_| LINE_BYTES_MAX)?;
    // The message of the standard library for the same.
    let invalid =
        |_| Error::new(std::io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(content).map_err(invalid)
}

/// Reads the next line without its end; `None` at the end. `number` is that of the line, for messages.
///
/// # Errors
/// Those of reading; a line that is too long.
pub fn next(from: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    let ended = line.pop_if(|byte| *byte == b'\n').is_some();
    if !ended && line.len() > LINE_BYTES_MAX {
        return Err(too_long("line", number, LINE_BYTES_MAX));
    }
    Ok((ended || !line.is_empty()).then_some(line))
}

fn too_long(what: &str, number: u64, bytes_max: usize) -> Error {
    Error::other(format!("{what} {number} is longer than {bytes_max} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(from: impl Read) -> std::result::Result<Vec<u8>, String> {
        let long = |first| if first == b'#' { 10 } else { 4 };
        whole(from, |byte| byte == 0, "name", long).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(names(&b"ab\0\0cdef"[..]), Ok(b"ab\0\0cdef".to_vec()));
        assert_eq!(names(&b"#comment\0a"[..]), Ok(b"#comment\0a".to_vec()));
        assert_eq!(names(&b""[..]), Ok(vec![]));
        let long = Err("name 2 is longer than 4 bytes".to_owned());
        assert_eq!(names(&b"a\0bcdef\0"[..]), long);
        let empty = Err("more than 1048576 empty names in a row".to_owned());
        assert_eq!(names(std::io::repeat(0)), empty);
        assert!(names(std::io::repeat(b'x')).is_err() && text(std::io::repeat(b'x')).is_err());
    }

    #[test]
    fn lines_are_bounded() {
        let mut from = &b"a\n\nb"[..];
        let mut read = || next(&mut from, 1).unwrap();
        assert_eq!(
            [read(), read(), read(), read()].map(|line| line.unwrap_or(b"-".to_vec())),
            [&b"a"[..], b"", b"b", b"-"]
        );
        let mut endless = std::io::BufReader::new(std::io::repeat(0));
        let error = next(&mut endless, 7).unwrap_err().to_string();
        assert_eq!(error, "line 7 is longer than 1048576 bytes");
        let mut longest = vec![b'x'; LINE_BYTES_MAX];
        longest.push(b'\n');
        assert_eq!(
            next(&mut &longest[..], 1).unwrap().map(|line| line.len()),
            Some(LINE_BYTES_MAX)
        );
    }
}
