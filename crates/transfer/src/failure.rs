//! Failed operations without the entry that they belong to.

use crate::location::Side;
use hakobu_core::error::{Cause, Operation};
use hakobu_sys::stdio;
use std::ffi::CString;
use std::path::PathBuf;
use std::{fmt, io};

/// A failed operation without the names of its entry.
#[derive(Debug)]
pub struct Failure {
    pub operation: Operation,
    /// The error of the system.
    pub error: io::Error,
}

impl Failure {
    /// Returns a closure for `map_err`.
    pub fn of(operation: Operation) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure { operation, error }
    }

    /// Returns a failure known only by its errno.
    pub fn code(operation: Operation, errno: i32) -> Failure {
        Failure { operation, error: io::Error::from_raw_os_error(errno) }
    }

    /// Returns a failure that no system call reported.
    pub fn reason(operation: Operation, reason: &'static str) -> Failure {
        Failure { operation, error: io::Error::other(Reason(reason)) }
    }

    /// Names the path at the target that the operation failed for, where the report would name another one: a directory
    /// above the entry.
    #[must_use]
    pub fn at(self, target: PathBuf) -> Failure {
        let Failure { operation, error } = self;
        let kind = error.kind();
        Failure { operation, error: io::Error::new(kind, AtTarget { target, error }) }
    }

    /// Returns the failure without the path that [`Failure::at`] names, and this path.
    pub fn split(self) -> (Failure, Option<PathBuf>) {
        let Failure { operation, error } = self;
        match error.downcast::<AtTarget>() {
            Ok(AtTarget { target, error }) => (Failure { operation, error }, Some(target)),
            Err(error) => (Failure { operation, error }, None),
        }
    }

    /// Returns the cause for reports.
    pub fn cause(error: io::Error) -> Cause {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Reason>()) {
            Some(Reason(text)) => Cause::Reason(text),
            None => Cause::System(error),
        }
    }
}

/// A reason of our own inside an error.
#[derive(Debug)]
struct Reason(&'static str);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Reason {}

/// An error with the path at the target that it is about.
#[derive(Debug)]
struct AtTarget {
    target: PathBuf,
    error: io::Error,
}

impl fmt::Display for AtTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for AtTarget {}

/// Reason that work on an entry stopped early.
#[derive(Debug)]
pub enum Stop {
    /// A call failed.
    Failed(Failure),
    /// The source is shorter than when it was opened.
    Changed,
    /// The run was asked to stop.
    Asked,
    /// The other end cannot read the source, and has reported it.
    Reported,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        match stdio::is_stopped(&failure.error) {
            true => Stop::Asked,
            false => Stop::Failed(failure),
        }
    }
}

pub(crate) fn reading(error: io::Error) -> Stop {
    Failure { operation: Operation::Read, error }.into()
}

pub(crate) fn writing(error: io::Error) -> Stop {
    Failure { operation: Operation::Write, error }.into()
}

/// Makes a C string of bytes from the command line.
///
/// # Errors
/// EINVAL if there is a NUL inside.
pub fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(hakobu_sys::errno::EINVAL))
}

impl From<(Side, io::Error)> for Stop {
    fn from((side, error): (Side, io::Error)) -> Stop {
        match side {
            Side::Source => reading(error),
            Side::Target => Failure { operation: Operation::Compare, error }.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_with_a_failure() {
        let code = hakobu_sys::errno::EROFS;
        let (failure, path) = Failure::code(Operation::MakeDir, code).at("/t/a".into()).split();
        assert_eq!((failure.error.raw_os_error(), path), (Some(code), Some("/t/a".into())));
        let (failure, path) = Failure::reason(Operation::MakeDir, "why").at("/t".into()).split();
        assert!(matches!(Failure::cause(failure.error), Cause::Reason("why")));
        assert_eq!(path, Some("/t".into()));
        let (failure, path) = Failure::reason(Operation::Read, "why").split();
        assert!(matches!(Failure::cause(failure.error), Cause::Reason("why")));
        assert_eq!(path, None);
    }
}
