//! Sources and target on the command line of cp and mv, and the targets of directories.

use super::remote::{self, RemotePlaces};
use crate::objects::{is_s3, url};
use hakobu_core::error::{Fatal, quoted};
use hakobu_remote::ssh::RemoteHost;
use hakobu_transfer::location::{Location, Side, Sources};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The sources and the target of a cp-like command line, and whether the target must be a directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Operands {
    pub sources: Sources,
    pub target: Location,
    pub is_dir: bool,
    /// The side that is on another machine: its paths are there.
    pub far: Option<(Side, RemoteHost)>,
}

/// Splits paths into sources and target: `-t DIR` names the target, else it is the last path. It may be `null:` only
/// with `allows_null`.
pub fn operands(
    mut paths: &[OsString],
    listed: Vec<OsString>,
    target_dir: Option<&OsStr>,
    no_target_dir: bool,
    allows_null: bool,
) -> Result<Operands, String> {
    if no_target_dir && target_dir.is_some() {
        return Err("-t and -T cannot be used together".into());
    }
    let target = match target_dir {
        Some(dir) => dir,
        None => match paths.split_last() {
            Some((last, sources)) => {
                paths = sources;
                last
            }
            None => OsStr::new(""),
        },
    };
    let several = paths.len() + listed.len() > 1 || !listed.is_empty();
    let is_dir = several || target_dir.is_some();
    let far = remote::places(paths, target, "cp").map_err(message_of)?;
    if let Some(RemotePlaces { side, host, sources, target }) = far.filter(|_| !paths.is_empty()) {
        let listed: Vec<PathBuf> = listed.into_iter().map(PathBuf::from).collect();
        if !listed.is_empty() && side == Side::Source {
            return Err("sources are either all here or all on one other machine".into());
        }
        if no_target_dir && several {
            return Err("-T takes one source".into());
        }
        let sources = Sources::Paths([sources.paths(), &listed].concat());
        return Ok(Operands { sources, target, is_dir, far: Some((side, host)) });
    }
    let sources = paths.iter().map(|source| location(source, false));
    let mut sources = sources.collect::<Result<Vec<_>, Fatal>>().map_err(message_of)?;
    let target_location = location(target, allows_null).map_err(message_of)?;
    for name in listed {
        sources.push(Location::parse_listed(&name).map_err(message_of)?);
    }
    if sources.is_empty() {
        return Err(if target.is_empty() {
            "missing source and destination".into()
        } else {
            format!("missing destination after {}", quoted(target))
        });
    }
    if no_target_dir && several {
        return Err("-T takes one source".into());
    }
    Ok(Operands {
        sources: Sources::of(sources).map_err(message_of)?,
        target: target_location,
        is_dir,
        far: None,
    })
}

/// Returns the paths with the sources' slashes at their ends removed (`--strip-trailing-slashes`). `has_target`: `-t`
/// names the target, so that all paths are sources.
pub fn without_slashes(paths: &[OsString], has_target: bool) -> Vec<OsString> {
    let sources = paths.len() - usize::from(!has_target && !paths.is_empty());
    let strip = |(at, path): (usize, &OsString)| {
        let bytes = path.as_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(1, |last| last + 1);
        match at < sources {
            true => OsStr::from_bytes(bytes.get(..end).unwrap_or(bytes)).to_owned(),
            false => path.clone(),
        }
    };
    paths.iter().enumerate().map(strip).collect()
}

fn message_of(fatal: Fatal) -> String {
    fatal.message
}

/// Parses an argument. An empty one fails later, together with the others.
fn location(typed: &OsStr, allows_null: bool) -> Result<Location, Fatal> {
    if typed.is_empty() {
        return Ok(Location::Local(PathBuf::new()));
    }
    match Location::parse(typed)? {
        Location::Null if !allows_null => Location::parse_local(typed).map(Location::Local),
        location => Ok(location),
    }
}

// Printed by `cp -r` and `sync` when work begins, and determined by the command line alone.

/// Maximum number of folders mentioned.
const FOLDERS_MAX: usize = 3;

/// Returns a sentence for each of the first folders: `'d/' -> 's3://bkt/p/'`, `'d' -> 's3://bkt/p/d/'`.
/// `into`: whether folders are created inside the target, if its name does not say so.
pub fn folder_targets(sources: &Sources, target: &Location, into: Option<bool>) -> Vec<String> {
    let target = target.as_typed();
    let shown = target.as_os_str().as_bytes();
    let bucket = is_bucket(&target);
    let ends = matches!(shown.rsplit(|byte| *byte == b'/').next(), Some(b"" | b"." | b".."));
    let into = into.unwrap_or(bucket || ends);
    let sources = sources.locations().map(|source| source.as_typed());
    let folders = sources.filter(|source| is_folder(source)).take(FOLDERS_MAX);
    folders.map(|source| folder_target(&source, shown, into)).collect()
}

/// Returns whether a location is a bucket without a key or slash.
fn is_bucket(location: &Path) -> bool {
    is_s3(location) && url(location.as_os_str()).is_ok_and(|url| url.key.is_empty() && !url.slash)
}

/// Returns whether a source may be a folder: a key without a slash may be an object as well.
fn is_folder(source: &Path) -> bool {
    let wild = |bytes: &[u8]| bytes.iter().any(|byte| matches!(byte, b'*' | b'?'));
    match is_s3(source) {
        true => !wild(source.as_os_str().as_bytes()),
        false => source.is_dir(),
    }
}

fn folder_target(source: &Path, target: &[u8], into: bool) -> String {
    let bytes = source.as_os_str().as_bytes();
    let slash = |path: &[u8]| match path.ends_with(b"/") {
        true => path.to_vec(),
        false => [path, b"/"].concat(),
    };
    let last = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let content = matches!(last, b"" | b"." | b"..") || is_bucket(source);
    let place = match (content, into) {
        (true, _) | (false, false) => slash(target),
        (false, true) => [slash(target), slash(last)].concat(),
    };
    format!("{} -> {}", quoted(source), quoted(OsStr::from_bytes(&place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_target() {
        let sorted = |paths: &str, more: &str, t: Option<&str>, no_dir| {
            let list = |text: &str| -> Vec<OsString> {
                text.split_whitespace().map(OsString::from).collect()
            };
            match operands(&list(paths), list(more), t.map(OsStr::new), no_dir, false) {
                Ok(Operands { sources, target, is_dir, far }) => {
                    let (sources, target) = (sources.paths(), target.as_typed());
                    let far = far.map_or(String::new(), |(side, _)| format!(" {side:?} there"));
                    format!("{sources:?} {target:?}{}{far}", if is_dir { " dir" } else { "" })
                }
                Err(message) => message,
            }
        };
        for (paths, more, t, no_dir, expected) in [
            ("a b", "", None, false, r#"["a"] "b""#),
            ("a b", "", None, true, r#"["a"] "b""#),
            ("a b c", "", None, false, r#"["a", "b"] "c" dir"#),
            ("a", "", Some("d"), false, r#"["a"] "d" dir"#),
            ("d", "a b", None, false, r#"["a", "b"] "d" dir"#),
            ("d", "a", None, false, r#"["a"] "d" dir"#),
            ("", "", None, false, "missing source and destination"),
            ("a", "", None, false, "missing destination after 'a'"),
            ("a b c", "", None, true, "-T takes one source"),
            ("a", "", Some("d"), true, "-t and -T cannot be used together"),
            (
                "a null:",
                "",
                None,
                false,
                "'null:' is only a target of sync and cp; for a local file write './null:'",
            ),
            ("a h:b", "", None, false, r#"["a"] "b" Target there"#),
            ("h:a b", "", None, false, r#"["a"] "b" Source there"#),
            ("a", "", Some("h:d"), false, r#"["a"] "d" dir Target there"#),
            ("h:a h:b d", "", None, true, "-T takes one source"),
            ("h:a d", "b", None, false, "sources are either all here or all on one other machine"),
        ] {
            assert_eq!(sorted(paths, more, t, no_dir), expected);
        }
    }

    fn texts(source: &str, target: &str, into: Option<bool>) -> Vec<String> {
        let location = |text: &str| Location::parse(OsStr::new(text)).unwrap();
        folder_targets(&Sources::of(vec![location(source)]).unwrap(), &location(target), into)
    }

    #[test]
    fn folder_targets_follow_from_the_command_line() {
        for (source, target, into, expected) in [
            ("s3://bkt/d/", "p/", None, "'s3://bkt/d/' -> 'p/'"),
            ("s3://bkt/d", "p/", None, "'s3://bkt/d' -> 'p/d/'"),
            ("s3://bkt/d", "p", None, "'s3://bkt/d' -> 'p/'"),
            ("s3://bkt/d", "p", Some(true), "'s3://bkt/d' -> 'p/d/'"),
            ("s3://bkt", ".", None, "'s3://bkt' -> './'"),
            ("/", "s3://bkt", None, "'/' -> 's3://bkt/'"),
        ] {
            assert_eq!(texts(source, target, into), [expected]);
        }
        assert!(texts("s3://bkt/*", "p", None).is_empty());
        assert!(texts("/no/such", "s3://bkt", None).is_empty());
    }
}
