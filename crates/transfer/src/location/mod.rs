//! Where bytes live: what a source or target argument names.

mod s3url;

pub use s3url::S3Url;

use crate::error::{Fatal, quoted};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// How [`Location::Null`] is typed.
pub const NULL: &str = "null:";

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path of this machine.
    Local(PathBuf),
    /// `null:`: takes everything, keeps nothing; measures the source and the program itself.
    Null,
    /// `s3://BUCKET/KEY`.
    S3(S3Url),
}

impl Location {
    /// Parses an argument as typed. As in rsync a colon before the first slash names a host:
    /// `host:path`, `host::module`, `rsync://host/module`; `./host:path` is a local file.
    ///
    /// # Errors
    /// Code 1 for an empty argument and for kinds of locations that are not built, with the way to
    /// write a local file of that name.
    pub fn parse(text: &OsStr) -> Result<Location, Fatal> {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(Fatal::new(1, "an empty path names nothing"));
        }
        if text == NULL {
            return Ok(Location::Null);
        }
        let end = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
        let (scheme, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if !rest.starts_with(b":") {
            return Ok(Location::Local(text.into()));
        }
        if let Some(rest) = bytes.strip_prefix(b"s3://") {
            return S3Url::parse(rest).map(Location::S3);
        }
        let shown = quoted(text);
        Err(Fatal::new(
            1,
            match rest.starts_with(b"://") {
                true => format!("{shown}: {}:// locations are not built", scheme.escape_ascii()),
                false => format!(
                    "{shown}: remote locations are not built; for a local file write {}",
                    quoted(local(text))
                ),
            },
        ))
    }

    /// Parses an argument that has to be a path of this machine.
    ///
    /// # Errors
    /// As [`Location::parse`], and for `null:`.
    pub fn parse_local(text: &OsStr) -> Result<PathBuf, Fatal> {
        match Location::parse(text)? {
            Location::Local(path) => Ok(path),
            Location::S3(_) => Err(Fatal::new(
                1,
                format!("{} is an object, and a local path is needed here", quoted(text)),
            )),
            Location::Null => Err(Fatal::new(
                1,
                format!(
                    "{} is only a target of sync and cp; for a local file write {}",
                    quoted(text),
                    quoted(local(text))
                ),
            )),
        }
    }
}

/// How a local file is written whose name looks like something else.
fn local(text: &OsStr) -> PathBuf {
    PathBuf::from(".").join(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Location, String> {
        Location::parse(OsStr::new(text)).map_err(|fatal| fatal.message)
    }

    #[test]
    fn a_colon_before_the_first_slash_is_a_host() {
        for local in ["a", "a/b", "/a:b", "./a:b", "a/b:c", "../x:", "./null:"] {
            assert_eq!(parse(local), Ok(Location::Local(local.into())));
        }
        for remote in
            ["host:path", "me@host:", "host::module", "[::1]:x", "rsync://h/m", "gs://b", ".:/a/.."]
        {
            assert!(parse(remote).is_err(), "{remote}");
        }
        assert_eq!(
            parse("host:a\nb").err().as_deref(),
            Some(
                "'host:a\\#012b': remote locations are not built; for a local file write \
                 './host:a\\#012b'"
            )
        );
        assert_eq!(
            parse("gs://b/k").err().as_deref(),
            Some("'gs://b/k': gs:// locations are not built")
        );
        assert!(parse("").is_err());
    }

    #[test]
    fn null_is_a_target_only() {
        assert_eq!(parse("null:"), Ok(Location::Null));
        let local = |text: &str| Location::parse_local(OsStr::new(text));
        assert!(local("null:").is_err_and(|fatal| fatal.message.contains("'./null:'")));
        assert_eq!(local("./null:").ok(), Some("./null:".into()));
    }
}
