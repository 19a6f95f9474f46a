//! Targets of folders, determined by the command line alone: printed by `cp -r` before it begins.

use super::{is_s3, url};
use hakobu_core::error::quoted;
use hakobu_transfer::location::{Location, Sources};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum number of folders mentioned.
const FOLDERS_MAX: usize = 3;

/// Returns a sentence for each of the first folders: `'d/' fills 's3://bkt/p/'`, `'d' becomes 's3://bkt/p/d/'`.
/// `into`: whether folders are created inside the target, if its name does not say so.
pub fn sentences(sources: &Sources, target: &Location, into: Option<bool>) -> Vec<String> {
    let target = target.as_typed();
    let shown = target.as_os_str().as_bytes();
    let bucket = is_bucket(&target);
    let ends = matches!(shown.rsplit(|byte| *byte == b'/').next(), Some(b"" | b"." | b".."));
    let into = into.unwrap_or(bucket || ends);
    let sources = sources.locations().map(|source| source.as_typed());
    let folders = sources.filter(|source| is_folder(source)).take(FOLDERS_MAX);
    folders.map(|source| sentence(&source, shown, into)).collect()
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

fn sentence(source: &Path, target: &[u8], into: bool) -> String {
    let bytes = source.as_os_str().as_bytes();
    let slash = |path: &[u8]| match path.ends_with(b"/") {
        true => path.to_vec(),
        false => [path, b"/"].concat(),
    };
    let last = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let content = matches!(last, b"" | b"." | b"..") || is_bucket(source);
    let (verb, place) = match (content, into) {
        (true, _) => ("fills", slash(target)),
        (false, false) => ("becomes", slash(target)),
        (false, true) => ("becomes", [slash(target), slash(last)].concat()),
    };
    format!("{} {verb} {}", quoted(source), quoted(OsStr::from_bytes(&place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, target: &str, into: Option<bool>) -> Vec<String> {
        let location = |text: &str| Location::parse(OsStr::new(text)).unwrap();
        sentences(&Sources::of(vec![location(source)]).unwrap(), &location(target), into)
    }

    #[test]
    fn folder_targets_follow_from_the_command_line() {
        for (source, target, into, expected) in [
            ("s3://bkt/d/", "p/", None, "'s3://bkt/d/' fills 'p/'"),
            ("s3://bkt/d", "p/", None, "'s3://bkt/d' becomes 'p/d/'"),
            ("s3://bkt/d", "p", None, "'s3://bkt/d' becomes 'p/'"),
            ("s3://bkt/d", "p", Some(true), "'s3://bkt/d' becomes 'p/d/'"),
            ("s3://bkt", ".", None, "'s3://bkt' fills './'"),
            ("/", "s3://bkt", None, "'/' fills 's3://bkt/'"),
        ] {
            assert_eq!(texts(source, target, into), [expected]);
        }
        assert!(texts("s3://bkt/*", "p", None).is_empty());
        assert!(texts("/no/such", "s3://bkt", None).is_empty());
    }
}
