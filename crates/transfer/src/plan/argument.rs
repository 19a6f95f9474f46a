//! What one source argument means: a folder's content, or a name in a folder.

use super::Layout;
use crate::error::{Fatal, quoted};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One source argument, taken apart. Nothing has been looked at yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The argument as typed, for messages.
    pub typed: PathBuf,
    /// The folder in which names are looked up, as the user would spell it.
    pub folder: PathBuf,
    /// Names from there, outermost first; empty: the folder's content itself.
    pub names: Vec<Vec<u8>>,
    /// The names before the last one are made at the target as well (`--relative`).
    pub relative: bool,
    /// The folder itself gets its attributes at the target, without its content: a relative path
    /// that was typed with `./` in front.
    pub dot: bool,
    /// The last name may be a symlink that is looked through (it was typed with a slash).
    pub follow: bool,
}

impl Argument {
    /// The whole path, for looking at what it names.
    pub fn path(&self) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(self.names.iter().map(|name| OsStr::from_bytes(name)));
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }

    /// Whether the content of a folder is meant, not the folder.
    pub fn is_content(&self) -> bool {
        self.names.is_empty()
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Takes one source argument apart by the layout's rule.
///
/// # Errors
/// Code 1 for an empty argument, and for `..` where the path is to be made at the target.
pub fn argument(typed: &Path, layout: Layout) -> Result<Argument, Fatal> {
    let bytes = typed.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Fatal::new(1, "an empty source path names nothing"));
    }
    match layout {
        Layout::Rsync { relative: true } | Layout::Cp { parents: true, .. } => {
            relative(typed, bytes, matches!(layout, Layout::Rsync { .. }))
        }
        Layout::Rsync { relative: false } => Ok(plain(typed, bytes, true)),
        Layout::Cp { .. } => Ok(plain(typed, bytes, false)),
    }
}

/// `a/b` is the name `b` in `a`; `a/b/` (rsync only), `a/.`, `..` and `/` are contents.
fn plain(typed: &Path, bytes: &[u8], slash_is_content: bool) -> Argument {
    let slash = bytes.ends_with(b"/");
    let trimmed = trim_end(bytes);
    let (folder, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&trimmed[..at + 1], &trimmed[at + 1..]),
        None => (&b"."[..], trimmed),
    };
    let content = name.is_empty() || name == b"." || name == b".." || (slash && slash_is_content);
    let argument = Argument {
        typed: typed.to_owned(),
        folder: path(bytes),
        names: Vec::new(),
        relative: false,
        dot: false,
        follow: slash,
    };
    if content {
        return argument;
    }
    // "." is not shown where it was not typed.
    let folder = if folder == b"." { PathBuf::new() } else { path(folder) };
    Argument { folder, names: vec![name.to_vec()], ..argument }
}

fn relative(typed: &Path, bytes: &[u8], slash_dot: bool) -> Result<Argument, Fatal> {
    let marker = bytes.windows(3).position(|part| part == b"/./").filter(|_| slash_dot);
    let (folder, rest) = match marker {
        Some(0) => (&b"/"[..], bytes.get(3..).unwrap_or_default()),
        Some(at) => (&bytes[..at], bytes.get(at + 3..).unwrap_or_default()),
        None if bytes.starts_with(b"./") => (&b""[..], bytes.get(2..).unwrap_or_default()),
        None if bytes.starts_with(b"/") => (&b"/"[..], bytes),
        None => (&b""[..], bytes),
    };
    let parts = rest.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let names: Vec<Vec<u8>> = parts.map(<[u8]>::to_vec).collect();
    if names.iter().any(|name| name == b"..") {
        let message = format!(
            "{}: a path with '..' cannot be kept at the target; write FOLDER/./PATH to say where it begins",
            quoted(typed)
        );
        return Err(Fatal::new(1, message));
    }
    let follow = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
    // After the marker of a list's entry its own `./` counts.
    let dot = bytes.starts_with(b"./") && marker.is_none() || rest.starts_with(b"./");
    let dot = dot && !names.is_empty() && slash_dot;
    let folder = path(folder);
    Ok(Argument { typed: typed.to_owned(), folder, names, relative: true, dot, follow })
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

/// Takes all source arguments apart.
///
/// # Errors
/// As [`argument`].
pub fn arguments(sources: &[PathBuf], layout: Layout) -> Result<Vec<Argument>, Fatal> {
    sources.iter().map(|typed| argument(typed, layout)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, layout: Layout) -> (String, Vec<String>, bool) {
        let argument = argument(Path::new(text), layout).expect("a fine argument");
        let names = argument.names.iter().map(|n| String::from_utf8_lossy(n).into_owned());
        (argument.folder.display().to_string(), names.collect(), argument.follow)
    }

    #[test]
    fn rsync_arguments() {
        let plain = Layout::Rsync { relative: false };
        let cases = [
            ("a", "", vec!["a"], false),
            ("a/b", "a/", vec!["b"], false),
            ("/a", "/", vec!["a"], false),
            ("a/", "a/", vec![], true),
            ("a/b//", "a/b//", vec![], true),
            (".", ".", vec![], false),
            ("a/.", "a/.", vec![], false),
            ("..", "..", vec![], false),
            ("/", "/", vec![], true),
        ];
        for (text, folder, names, follow) in cases {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            assert_eq!(taken(text, plain), (folder.to_string(), names, follow), "{text}");
        }
    }

    #[test]
    fn relative_arguments() {
        let relative = Layout::Rsync { relative: true };
        let cases = [
            ("a/b/c", "", vec!["a", "b", "c"], false),
            ("/a/b", "/", vec!["a", "b"], false),
            ("/x/./a/b", "/x", vec!["a", "b"], false),
            ("x/./a/", "x", vec!["a"], true),
            ("x/./", "x", vec![], true),
            ("./a", "", vec!["a"], false),
        ];
        for (text, folder, names, follow) in cases {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            assert_eq!(taken(text, relative), (folder.to_string(), names, follow), "{text}");
        }
        assert!(argument(Path::new("../a"), relative).is_err());
    }

    #[test]
    fn cp_arguments() {
        let cp = Layout::Cp { no_target_dir: false, target_is_dir: false, parents: false };
        assert_eq!(taken("a/", cp), (String::new(), vec!["a".to_string()], true));
        assert_eq!(taken("a/.", cp), ("a/.".to_string(), vec![], false));
    }
}
