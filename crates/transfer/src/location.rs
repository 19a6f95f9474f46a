//! Locations that source and target arguments name. Arguments are parsed once, by the commands; all other code uses
//! these types.

use hakobu_core::error::{Fatal, quoted};
use hakobu_s3::AccessPoint;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub use hakobu_core::unit::Side;

// One source or target argument.

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

// `s3://BUCKET/KEY`: a bucket, and a key or key prefix, as bytes.

/// Prefix of arguments in S3.
pub(super) const SCHEME: &[u8] = b"s3://";

/// A location in S3. The bucket may be the ARN of an access point. Nothing of the key is decoded or normalised: `//`,
/// `.` and `..` in a key are ordinary characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Url {
    /// The bucket; empty for `s3://` alone, which names all buckets.
    pub bucket: String,
    /// The part after the bucket's slash, possibly empty.
    pub key: Vec<u8>,
    /// Whether there was a slash after the bucket.
    pub slash: bool,
}

impl S3Url {
    /// Parses the text after `s3://`.
    ///
    /// # Errors
    /// Code 1 for an invalid bucket name: it must have 3 to 63 letters, digits, dots, hyphens (and, as in old
    /// buckets, capitals and underscores).
    pub fn parse(rest: &[u8]) -> Result<S3Url, Fatal> {
        let shown = || quoted(OsStr::from_bytes(&[SCHEME, rest].concat()));
        if let Some(split) = AccessPoint::split(rest) {
            let (arn, after) = split.map_err(|why| Fatal::new(1, format!("{}: {why}", shown())))?;
            let key = after.strip_prefix(b"/").unwrap_or_default().to_vec();
            return Ok(S3Url { bucket: arn.to_owned(), key, slash: !after.is_empty() });
        }
        let (bucket, key, slash) = match rest.iter().position(|byte| *byte == b'/') {
            Some(at) => (&rest[..at], &rest[at + 1..], true),
            None => (rest, &b""[..], false),
        };
        let fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        let name = String::from_utf8(bucket.to_vec()).ok();
        let length = if bucket.is_empty() && key.is_empty() { 0..=0 } else { 3..=63 };
        match name.filter(|_| bucket.iter().all(fine) && length.contains(&bucket.len())) {
            Some(bucket) => Ok(S3Url { bucket, key: key.to_vec(), slash }),
            None => Err(Fatal::new(
                1,
                format!(
                    "{}: a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens",
                    shown()
                ),
            )),
        }
    }

    /// Returns the argument as typed.
    pub fn as_typed(&self) -> PathBuf {
        let slash: &[u8] = if self.slash { b"/" } else { b"" };
        path(&[SCHEME, self.bucket.as_bytes(), slash, &self.key])
    }

    /// Returns the prefix `name` below this one.
    pub fn join(&self, name: &[u8]) -> S3Url {
        let apart = self.key.is_empty() || self.key.ends_with(b"/");
        let slash: &[u8] = if apart { b"" } else { b"/" };
        let key = [&self.key, slash, name].concat();
        S3Url { bucket: self.bucket.clone(), key, slash: true }
    }
}

/// Returns the URL of a key, for messages; the key may come in parts.
pub fn s3_path(bucket: &str, key: &[&[u8]]) -> PathBuf {
    path(&[&[SCHEME, bucket.as_bytes(), b"/"], key].concat())
}

fn path(parts: &[&[u8]]) -> PathBuf {
    PathBuf::from(OsString::from_vec(parts.concat()))
}

// The sources of a transfer.

/// The sources of a transfer, all of one kind, because the two kinds are listed differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Local paths as typed; a trailing slash is significant.
    Paths(Vec<PathBuf>),
    /// Objects and prefixes.
    Objects(Vec<S3Url>),
}

impl Sources {
    /// Collects arguments of one kind.
    ///
    /// # Errors
    /// Code 1 for arguments of both kinds, and for `null:`.
    pub fn of(locations: Vec<Location>) -> Result<Sources, Fatal> {
        let (mut paths, mut objects) = (Vec::new(), Vec::new());
        for location in locations {
            match location {
                Location::Local(path) => paths.push(path),
                Location::S3(url) => objects.push(url),
                Location::Null => return Err(Fatal::new(1, "null: cannot be a source")),
            }
        }
        match (paths.is_empty(), objects.is_empty()) {
            (_, true) => Ok(Sources::Paths(paths)),
            (true, false) => Ok(Sources::Objects(objects)),
            (false, false) => Err(Fatal::new(1, "sources are either all local or all in s3://")),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Sources::Paths(paths) => paths.len(),
            Sources::Objects(urls) => urls.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether they are in S3.
    pub fn are_s3(&self) -> bool {
        matches!(self, Sources::Objects(_))
    }

    /// Returns the paths; empty if the sources are in S3.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Sources::Paths(paths) => paths,
            Sources::Objects(_) => &[],
        }
    }

    /// Returns an iterator over the sources.
    pub fn locations(&self) -> impl Iterator<Item = Location> {
        let objects = match self {
            Sources::Paths(_) => &[],
            Sources::Objects(urls) => urls.as_slice(),
        };
        let paths = self.paths().iter().cloned().map(Location::Local);
        paths.chain(objects.iter().cloned().map(Location::S3))
    }
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

    #[test]
    fn urls() {
        let url = |text: &str| {
            let url = S3Url::parse(text.as_bytes()).ok()?;
            Some((url.bucket, String::from_utf8(url.key).ok()?, url.slash))
        };
        let some = |bucket: &str, key: &str, slash| Some((bucket.into(), key.into(), slash));
        assert_eq!(url("abc"), some("abc", "", false));
        assert_eq!(url("abc/"), some("abc", "", true));
        assert_eq!(url("abc//x/../ y"), some("abc", "/x/../ y", true));
        assert_eq!(url(""), some("", "", false));
        let arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint/point";
        assert_eq!(url(arn), some(arn, "", false));
        assert_eq!(url(&format!("{arn}/")), some(arn, "", true));
        assert_eq!(url(&format!("{arn}/a//b")), some(arn, "a//b", true));
        let odd = S3Url::parse(&[arn.as_bytes(), b"/\xff"].concat()).unwrap();
        assert_eq!((odd.bucket.as_str(), odd.key), (arn, b"\xff".to_vec()));
        assert!(S3Url::parse(&[arn.as_bytes(), b"\xffkey"].concat()).is_err());
        for bad in
            ["arn:aws:s3-outposts:r:1:x", "arn:", "ab", "a b c", "/key", "äöü", &"x".repeat(64)]
        {
            assert_eq!(url(bad), None, "{bad}");
        }
    }
    use std::ffi::OsStr;

    #[test]
    fn sources_are_of_one_kind() {
        let of = |typed: &[&str]| {
            let parse = |text: &&str| Location::parse(OsStr::new(text)).unwrap();
            Sources::of(typed.iter().map(parse).collect()).map_err(|fatal| fatal.message)
        };
        assert_eq!(of(&["a", "b/"]), Ok(Sources::Paths(vec!["a".into(), "b/".into()])));
        assert!(of(&["s3://abc/x"]).is_ok_and(|sources| sources.are_s3() && sources.len() == 1));
        assert!(of(&["a", "s3://abc/x"]).is_err());
        assert!(of(&["null:"]).is_err());
    }
}
