//! One source or target argument.

use super::s3url::{S3Url, SCHEME};
use hakobu_core::error::{Fatal, quoted};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Spelling of [`Location::Null`].
const NULL: &str = "null:";

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path on this machine.
    Local(PathBuf),
    /// `null:`: discards everything; measures the source and the program itself.
    Null,
    /// `s3://BUCKET/KEY`.
    S3(S3Url),
}

impl Location {
    /// Parses an argument as typed. As in rsync a colon before the first slash names a host: `host:path`,
    /// `host::module`, `rsync://host/module`; `./host:path` is a local file.
    ///
    /// # Errors
    /// Code 1 for an empty argument and for unsupported kinds of locations, with the spelling of a local file of that
    /// name.
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
        if let Some(rest) = bytes.strip_prefix(SCHEME) {
            return S3Url::parse(rest).map(Location::S3);
        }
        let shown = quoted(text);
        Err(Fatal::new(
            1,
            match rest.starts_with(b"://") {
                _ if scheme.eq_ignore_ascii_case(b"s3") => {
                    format!("{shown}: an object is written s3://BUCKET/KEY")
                }
                true => {
                    format!("{shown}: {}:// locations are not supported", scheme.escape_ascii())
                }
                false => format!(
                    "{shown}: remote locations are not supported; for a local file write {}",
                    quoted(as_local(text))
                ),
            },
        ))
    }

    /// Parses a name from a list: in S3 if it begins with `s3://`, otherwise always a local path.
    ///
    /// # Errors
    /// As [`S3Url::parse`].
    pub fn parse_listed(name: &OsStr) -> Result<Location, Fatal> {
        match name.as_bytes().strip_prefix(SCHEME) {
            Some(rest) => S3Url::parse(rest).map(Location::S3),
            None => Ok(Location::Local(name.into())),
        }
    }

    /// Returns the argument as typed.
    pub fn as_typed(&self) -> PathBuf {
        match self {
            Location::Local(path) => path.clone(),
            Location::Null => NULL.into(),
            Location::S3(url) => url.as_typed(),
        }
    }

    /// Returns whether it is in S3.
    pub fn is_s3(&self) -> bool {
        matches!(self, Location::S3(_))
    }

    /// Returns the local path; `None` for other kinds.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Location::Local(path) => Some(path),
            Location::Null | Location::S3(_) => None,
        }
    }

    /// Returns a folder `name` in this one.
    pub fn join(&self, name: &[u8]) -> Location {
        match self {
            Location::Local(path) => Location::Local(path.join(OsStr::from_bytes(name))),
            Location::Null => Location::Null,
            Location::S3(url) => Location::S3(url.join(name)),
        }
    }

    /// Parses an argument that must be a local path.
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
                    quoted(as_local(text))
                ),
            )),
        }
    }
}

/// Returns the spelling of a local file whose name looks like another kind of location.
fn as_local(text: &OsStr) -> PathBuf {
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
                "'host:a\\#012b': remote locations are not supported; for a local file write \
                 './host:a\\#012b'"
            )
        );
        assert_eq!(
            parse("gs://b/k").err().as_deref(),
            Some("'gs://b/k': gs:// locations are not supported")
        );
        for mistyped in ["s3:/b/k", "S3://b/k", "s3:b/k"] {
            let message = format!("'{mistyped}': an object is written s3://BUCKET/KEY");
            assert_eq!(parse(mistyped), Err(message));
        }
        assert!(parse("").is_err());
    }

    #[test]
    fn arguments_are_spelled_as_they_were_typed() {
        for typed in ["a//b/", "null:", "s3://", "s3://abc", "s3://abc/", "s3://abc//x/../ y"] {
            let location = parse(typed).unwrap();
            assert_eq!(location.as_typed().to_str(), Some(typed));
        }
    }

    #[test]
    fn folders_in_folders() {
        for (typed, joined) in [
            ("a", "a/x/"),
            ("s3://abc", "s3://abc/x/"),
            ("s3://abc/", "s3://abc/x/"),
            ("s3://abc/p", "s3://abc/p/x/"),
            ("s3://abc/p/", "s3://abc/p/x/"),
        ] {
            let location = parse(typed).unwrap().join(b"x/");
            assert_eq!(location.as_typed().to_str(), Some(joined));
        }
    }

    #[test]
    fn names_of_a_list() {
        let listed = |text: &str| Location::parse_listed(OsStr::new(text)).ok();
        for path in ["host:path", "null:", "gs://b/k", "a"] {
            assert_eq!(listed(path), Some(Location::Local(path.into())));
        }
        assert_eq!(listed("s3://abc/k"), parse("s3://abc/k").ok());
        assert_eq!(listed("s3://a b"), None);
    }

    #[test]
    fn null_is_a_target_only() {
        assert_eq!(parse("null:"), Ok(Location::Null));
        let local = |text: &str| Location::parse_local(OsStr::new(text));
        assert!(local("null:").is_err_and(|fatal| fatal.message.contains("'./null:'")));
        assert_eq!(local("./null:").ok(), Some("./null:".into()));
    }
}
