//! Errors of one entry, and errors that stop a run: always the operation, the source,
//! the target and the cause.

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The operation that failed; the verb of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Opening or reading a source.
    Read,
    /// Listing a source directory.
    List,
    /// Looking at an entry's metadata.
    Stat,
    /// Creating a file, link or node.
    Create,
    /// Creating a directory.
    MakeDir,
    /// Writing content.
    Write,
    /// Moving a finished file to its name.
    Rename,
    /// Making a hard link.
    Link,
    /// Setting a mode.
    SetMode,
    /// Setting an owner or group.
    SetOwner,
    SetTimes,
    /// Setting extended attributes.
    SetXattr,
    /// Setting an ACL.
    SetAcl,
    /// Removing something extraneous or moved.
    Remove,
    /// Flushing to the device.
    Sync,
    /// Comparing two entries.
    Compare,
    /// Applying filter rules.
    Filter,
    /// Moving an entry to another name (`mv`).
    Move,
    /// Replacing an entry that the same run has made: refused.
    Overwrite,
}

impl Operation {
    /// The words after "cannot".
    pub fn words(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::List => "list directory",
            Operation::Stat => "access",
            Operation::Create => "create",
            Operation::MakeDir => "create directory",
            Operation::Write => "write",
            Operation::Rename => "rename into place",
            Operation::Link => "hard-link",
            Operation::SetMode => "set the mode of",
            Operation::SetOwner => "set the owner of",
            Operation::SetTimes => "set the times of",
            Operation::SetXattr => "set extended attributes of",
            Operation::SetAcl => "set the ACL of",
            Operation::Remove => "remove",
            Operation::Sync => "flush",
            Operation::Compare => "compare",
            Operation::Filter => "apply the filter of",
            Operation::Move => "move",
            Operation::Overwrite => "overwrite",
        }
    }
}

/// Class of a failure, for the exit code and for what may still be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// The source disappeared between being listed and being read (rsync's code 24).
    Vanished,
    /// This entry was not (wholly) transferred; the others go on (rsync's code 23).
    Partial,
    /// Nothing further can succeed: disk full, read-only, quota. The run stops (rsync's code 11).
    Fatal,
    /// Worth a line, no failure: a skipped device, a symlink that is unsafe.
    Notice,
}

/// One failure of one entry.
#[derive(Debug)]
pub struct Problem {
    pub operation: Operation,
    /// The entry that was read, as the user would type it.
    pub source: Option<PathBuf>,
    /// The entry that was written, as the user would type it.
    pub target: Option<PathBuf>,
    pub cause: Cause,
    pub class: ErrorClass,
}

/// Reason of cp and mv to leave a directory that has the name of another entry. Messages have the names in it, as
/// coreutils' have.
pub const DIRECTORY_STAYS: &str = "cannot overwrite directory with non-directory";
/// Reason of cp and mv to leave an entry that has the name of a directory.
pub const ENTRY_STAYS: &str = "cannot overwrite non-directory with directory";

/// Cause of a failed operation.
#[derive(Debug)]
pub enum Cause {
    /// An error of the system.
    System(io::Error),
    /// Our own reason: a constant part of a sentence.
    Reason(&'static str),
    /// Message of a server.
    Said(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::System(error) => f.write_str(&without_number(&error.to_string())),
            Cause::Reason(text) => f.write_str(text),
            Cause::Said(text) => f.write_str(text),
        }
    }
}

/// A text in which the standard library shows errors of the system, without their numbers: "Permission denied" in
/// place of "Permission denied (os error 13)".
pub fn without_number(text: &str) -> Cow<'_, str> {
    const START: &str = " (os error ";
    let mut pieces = text.split(START);
    let first = pieces.next().unwrap_or_default();
    let mut out = Cow::Borrowed(first);
    for piece in pieces {
        match piece.split_once(')') {
            Some((number, rest))
                if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') =>
            {
                out.to_mut().push_str(rest);
            }
            _ => out.to_mut().extend([START, piece]),
        }
    }
    out
}

/// A path or a name as messages show it: in quotes and on one line, with bytes that would do
/// something to a terminal as `\#012`, as rsync writes them.
pub fn quoted(name: impl AsRef<OsStr>) -> String {
    let mut text = String::from("'");
    for chunk in name.as_ref().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c.is_control() {
                true => push_octal(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
                false => text.push(c),
            }
        }
        push_octal(chunk.invalid(), &mut text);
    }
    text.push('\'');
    text
}

fn push_octal(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        text.push_str(&format!("\\#{byte:03o}"));
    }
}

/// A text of another machine as messages show it: on its lines, and without doing anything else to a terminal.
pub fn foreign(said: &str) -> String {
    let mut text = String::new();
    for c in said.chars() {
        match c.is_control() && c != '\n' {
            true => push_octal(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            false => text.push(c),
        }
    }
    text
}

/// The message of a failed system call on a path or name: `cannot read 'a/b': Permission denied`.
pub fn cannot(verb: &str, name: impl AsRef<OsStr>, error: io::Error) -> String {
    format!("cannot {verb} {}: {}", quoted(name), Cause::System(error))
}

/// A failed operation on a path, with the message of [`cannot`].
#[derive(Debug)]
pub struct PathError {
    /// What was to be done with it, in the words of the message.
    pub verb: &'static str,
    pub path: PathBuf,
    pub cause: Cause,
}

impl PathError {
    /// Returns a closure for `map_err`.
    pub fn of(verb: &'static str, path: impl AsRef<Path>) -> impl Fn(io::Error) -> PathError {
        move |error| PathError { verb, path: path.as_ref().to_owned(), cause: Cause::System(error) }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.verb, quoted(&self.path), self.cause)
    }
}

impl Error for PathError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::System(error) => Some(error),
            Cause::Reason(_) | Cause::Said(_) => None,
        }
    }
}

impl From<PathError> for String {
    fn from(error: PathError) -> String {
        error.to_string()
    }
}

/// Something that stops the run before or while it moves anything: bad input, an unusable target.
#[derive(Debug)]
pub struct Fatal {
    /// One sentence for the user: operation, names, cause, and what to do where that is known.
    pub message: String,
    /// rsync's exit code for this: 1 usage, 3 files selection, 11 file I/O, 23 partial.
    pub code: u8,
}

impl Fatal {
    /// A stop with rsync's exit code `code`.
    pub fn new(code: u8, message: impl Into<String>) -> Fatal {
        Fatal { message: message.into(), code }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fatal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_paths_have_the_message_and_the_cause() {
        let error = || io::Error::from(io::ErrorKind::PermissionDenied);
        let failed = PathError::of("read", "a b");
        assert_eq!(failed(error()).to_string(), cannot("read", "a b", error()));
        let cause = failed(error());
        let cause = cause.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn numbers_of_errors_are_left_out() {
        for (text, left) in [
            ("Permission denied (os error 13)", "Permission denied"),
            ("a (os error 2): b (os error 113), c", "a: b, c"),
            ("'x (os error file)' is missing", "'x (os error file)' is missing"),
            ("'x (os error ", "'x (os error "),
            ("", ""),
        ] {
            assert_eq!(without_number(text), left);
        }
    }

    #[test]
    fn a_name_stays_on_one_line() {
        for (name, text) in [
            (&b"a b"[..], "'a b'"),
            (b"a\nb\x1b[2J", "'a\\#012b\\#033[2J'"),
            (b"\xff\xc2\x85", "'\\#377\\#302\\#205'"),
            ("ä".as_bytes(), "'ä'"),
            (b"", "''"),
        ] {
            assert_eq!(quoted(OsStr::from_bytes(name)), text);
        }
    }
}
