//! The user's folders, by the XDG Base Directory Specification.

use std::path::PathBuf;

/// Returns the folder of results: `$XDG_STATE_HOME/hakobu/results`, else `~/.local/state/hakobu/results`.
///
/// # Errors
/// A sentence: the user has no home.
pub fn results() -> Result<PathBuf, String> {
    Ok(folder("XDG_STATE_HOME", ".local/state")?.join("results"))
}

/// Returns the folder of reproducible files: `$XDG_CACHE_HOME/hakobu`, else `~/.cache/hakobu`.
///
/// # Errors
/// As [`results`].
pub fn cache() -> Result<PathBuf, String> {
    folder("XDG_CACHE_HOME", ".cache")
}

fn folder(name: &str, below_home: &str) -> Result<PathBuf, String> {
    Ok(base(name, below_home)?.join("hakobu"))
}

/// Returns the folder in a variable, else one below the user's home.
///
/// # Errors
/// As [`results`].
pub fn base(name: &str, below_home: &str) -> Result<PathBuf, String> {
    // Relative paths are ignored, as the specification says.
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute(name).or_else(|| absolute("HOME").map(|home| home.join(below_home)));
    base.ok_or_else(|| format!("neither {name} nor HOME says where to"))
}
