//! Locations that source and target arguments name. Arguments are parsed once, by the commands; all other code uses
//! these types.

use hakobu_core::error::{Fatal, quoted};
use hakobu_remote::ssh::RemoteHost;
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
                    let hint = match scheme {
                        b"rsync" => "; with a login there, write HOST:PATH",
                        _ => "",
                    };
                    let scheme = scheme.escape_ascii();
                    format!("{shown}: {scheme}:// locations are not supported{hint}")
                }
                false => format!(
                    "{shown}: another machine is not supported here (ssh {} hakobu ... works there); for a local file \
                     write {}",
                    scheme.escape_ascii(),
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

// `[USER@]HOST:PATH`: a path on another machine.

/// A path on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePath {
    pub host: RemoteHost,
    /// As typed; empty: the home directory there.
    pub path: PathBuf,
}

/// Prefix of URLs of paths on other machines.
const SSH: &[u8] = b"ssh://";

impl RemotePath {
    /// Parses `[USER@]HOST:PATH`, `[USER@][ADDRESS]:PATH` or `ssh://[USER@]HOST[:PORT]/PATH`; `None` for another
    /// location.
    ///
    /// # Errors
    /// Code 1: no host; a port that is none; `HOST::MODULE`.
    pub fn parse(text: &OsStr) -> Result<Option<RemotePath>, Fatal> {
        let bytes = text.as_bytes();
        let refused = |why: &str| Err(Fatal::new(1, format!("{}: {why}", quoted(text))));
        if let Some(rest) = bytes.strip_prefix(SSH) {
            let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let (login, path) = rest.split_at(slash);
            let (user, host) = split_user(login);
            let (host, port) = match host {
                [b'[', inner @ ..] => match inner.iter().position(|byte| *byte == b']') {
                    Some(end) => (&inner[..end], &inner[end + 1..]),
                    None => return refused("an address has no ']'"),
                },
                _ => {
                    host.split_at(host.iter().position(|byte| *byte == b':').unwrap_or(host.len()))
                }
            };
            let port = match port.strip_prefix(b":") {
                None if port.is_empty() => None,
                Some(digits) => match str::from_utf8(digits).ok().and_then(|it| it.parse().ok()) {
                    Some(port) => Some(port),
                    None => return refused("a port is a number"),
                },
                None => return refused("a port is a number"),
            };
            return RemotePath::of(text, user, host, (port, path)).map(Some);
        }
        let (user, rest) = split_user(bytes);
        let (host, path) = match rest {
            [b'[', inner @ ..] if inner.contains(&b']') => {
                let end = inner.iter().position(|byte| *byte == b']').unwrap_or_default();
                match inner[end + 1..].strip_prefix(b":") {
                    Some(path) => (&inner[..end], path),
                    None => return Ok(None),
                }
            }
            _ => {
                let end = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
                let Some(end) = end.filter(|end| bytes.get(*end) == Some(&b':')) else {
                    return Ok(None);
                };
                let end = end - (bytes.len() - rest.len());
                (&rest[..end], &rest[end + 1..])
            }
        };
        let is_other = text == NULL || path.starts_with(b"//");
        if is_other {
            return Ok(None);
        }
        if path.starts_with(b":") {
            let message =
                "modules of an rsync daemon are not supported: with a login there, write HOST:PATH";
            return refused(message);
        }
        RemotePath::of(text, user, host, (None, path)).map(Some)
    }

    fn of(
        text: &OsStr,
        user: Option<&[u8]>,
        host: &[u8],
        (port, path): (Option<u16>, &[u8]),
    ) -> Result<RemotePath, Fatal> {
        // ssh would take them for options.
        let is_option = |word: &[u8]| word.starts_with(b"-");
        if host.is_empty()
            || is_option(host)
            || user.is_some_and(|user| user.is_empty() || is_option(user))
        {
            return Err(Fatal::new(1, format!("{}: a host or user has no name", quoted(text))));
        }
        let own = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let host = RemoteHost { user: user.map(own), host: own(host), port };
        Ok(RemotePath { host, path: own(path).into() })
    }
}

/// Splits `USER@` off.
fn split_user(login: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let end = login.iter().position(|byte| matches!(byte, b'@' | b'/' | b':'));
    match end.filter(|end| login.get(*end) == Some(&b'@')) {
        Some(at) => (login.get(..at), login.get(at + 1..).unwrap_or_default()),
        None => (None, login),
    }
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
    fn paths_on_other_machines() {
        let of = |text: &str| match RemotePath::parse(OsStr::new(text)) {
            Ok(None) => "none".to_owned(),
            Ok(Some(RemotePath { host, path })) => {
                let shown = |word: &OsStr| word.to_str().unwrap().to_owned();
                let user = host.user.as_deref().map_or("-".to_owned(), shown);
                let port = host.port.map_or("-".to_owned(), |port| port.to_string());
                format!("{user} {} {port} {}", shown(&host.host), path.display())
            }
            Err(fatal) => format!("{} {}", fatal.code, fatal.message),
        };
        for (text, expected) in [
            ("host:path", "- host - path"),
            ("host:", "- host - "),
            ("user@host:/a b/c", "user host - /a b/c"),
            ("[::1]:x", "- ::1 - x"),
            ("u@[fe80::1%eth0]:x", "u fe80::1%eth0 - x"),
            ("ssh://host/a", "- host - /a"),
            ("ssh://u@host:2222/~/a", "u host 2222 /~/a"),
            ("ssh://[::1]:22/a", "- ::1 22 /a"),
            ("ssh://host", "- host - "),
            ("./host:path", "none"),
            ("/a:b", "none"),
            ("a/b:c", "none"),
            ("path", "none"),
            ("null:", "none"),
            ("s3://bucket/key", "none"),
            ("rsync://host/m", "none"),
            ("a@b/c:d", "none"),
            ("[x]", "none"),
            ("ssh://host:x/a", "1 'ssh://host:x/a': a port is a number"),
            ("ssh://[::1/a", "1 'ssh://[::1/a': an address has no ']'"),
            (":path", "1 ':path': a host or user has no name"),
            ("@host:path", "1 '@host:path': a host or user has no name"),
            ("-oProxyCommand=x:path", "1 '-oProxyCommand=x:path': a host or user has no name"),
            ("ssh://-x/a", "1 'ssh://-x/a': a host or user has no name"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert!(of("host::module").contains("modules of an rsync daemon are not supported"));
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
                "'host:a\\#012b': another machine is not supported here (ssh host hakobu ... works \
                 there); for a local file write './host:a\\#012b'"
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
