//! Folders of the user's own, by the XDG Base Directory Specification.

use std::path::PathBuf;

/// Where results are kept: `$XDG_STATE_HOME/hakobu/results`, else `~/.local/state/hakobu/results`.
///
/// # Errors
/// A sentence: the user has no home.
pub fn results() -> Result<PathBuf, String> {
    Ok(folder("XDG_STATE_HOME", ".local/state")?.join("results"))
}

/// What can be made again: `$XDG_CACHE_HOME/hakobu`, else `~/.cache/hakobu`.
///
/// # Errors
/// As [`results`].
pub fn cache() -> Result<PathBuf, String> {
    folder("XDG_CACHE_HOME", ".cache")
}

fn folder(name: &str, below_home: &str) -> Result<PathBuf, String> {
    // What is not absolute is to be ignored, as the specification says.
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute(name).or_else(|| absolute("HOME").map(|home| home.join(below_home)));
    let base = base.ok_or_else(|| format!("neither {name} nor HOME says where to"))?;
    Ok(base.join("hakobu"))
}
