//! Where bytes live: what a source or target argument names.

use crate::error::Fatal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path of this machine.
    Local(PathBuf),
    /// `null:`: takes everything, keeps nothing; measures the source and the program itself.
    Null,
}

impl Location {
    /// Parses an argument as typed.
    ///
    /// # Errors
    /// Code 1 for an empty argument and for kinds of locations that are not built.
    pub fn parse(text: &Path) -> Result<Location, Fatal> {
        let bytes = text.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(Fatal::new(1, "an empty path names nothing"));
        }
        if bytes == b"null:" {
            return Ok(Location::Null);
        }
        if bytes.starts_with(b"s3://") {
            let message = format!("{}: s3:// locations are not built", text.display());
            return Err(Fatal::new(1, message));
        }
        Ok(Location::Local(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let local = |text: &str| Location::Local(PathBuf::from(text));
        assert_eq!(Location::parse(Path::new("a/b")).ok(), Some(local("a/b")));
        assert_eq!(Location::parse(Path::new("./null:")).ok(), Some(local("./null:")));
        assert_eq!(Location::parse(Path::new("null:")).ok(), Some(Location::Null));
        assert!(Location::parse(Path::new("")).is_err());
        assert!(Location::parse(Path::new("s3://b/k")).is_err());
    }
}
