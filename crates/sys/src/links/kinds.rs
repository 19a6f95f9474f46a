//! Symlinks that a path may follow, and errors for refused ones.

use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// Symlinks that a path may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Those owned by root or the running user.
    #[default]
    Trusted,
    /// As `Trusted`, and the path has to end in this directory or below it.
    Within(PathBuf),
    /// All.
    Any,
}

/// Reason for refusing a path that the kernel would follow.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// A symlink of another user.
    Foreign {
        /// Its name.
        name: Vec<u8>,
        /// Its owner.
        uid: u32,
    },
    /// The path ends outside the directory.
    Outside(PathBuf),
}

impl Refused {
    /// True if an error is one of these.
    pub fn is(error: &Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Refused>())
    }

    /// True if an error is a symlink of another user.
    pub fn is_foreign(error: &Error) -> bool {
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>());
        matches!(refused, Some(Refused::Foreign { .. }))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Foreign { name, uid } => write!(
                f,
                "the symlink '{}' belongs to user {uid}, not to root or the running user\n\
                 hint: give the path that it leads to, or --insecure-links",
                name.escape_ascii()
            ),
            Refused::Outside(root) => write!(f, "it leads out of {}", root.display()),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        Error::new(ErrorKind::PermissionDenied, refused)
    }
}

impl Links {
    pub(super) fn check_owner(&self, name: &[u8], uid: u32) -> Result<()> {
        if *self == Links::Any || uid == 0 || uid == crate::process::euid() {
            return Ok(());
        }
        Err(Refused::Foreign { name: name.to_vec(), uid }.into())
    }
}

pub(super) fn os(code: i32) -> Error {
    Error::from_raw_os_error(code)
}
