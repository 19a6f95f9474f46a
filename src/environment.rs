//! What the environment says: the user's folders, by the XDG Base Directory Specification, and the type of a cloud
//! machine.

use hakobu_sys::host;
use std::path::PathBuf;

/// Returns the folder of results: `$XDG_STATE_HOME/hakobu/results`, else `~/.local/state/hakobu/results`.
///
/// # Errors
/// A sentence: the user has no home.
pub fn results_folder() -> Result<PathBuf, String> {
    Ok(xdg_folder("XDG_STATE_HOME", ".local/state")?.join("hakobu/results"))
}

/// Returns the folder of reproducible files: `$XDG_CACHE_HOME/hakobu`, else `~/.cache/hakobu`.
///
/// # Errors
/// As [`results_folder`].
pub fn cache_folder() -> Result<PathBuf, String> {
    Ok(xdg_folder("XDG_CACHE_HOME", ".cache")?.join("hakobu"))
}

/// Returns the folder in a variable, else one below the user's home.
///
/// # Errors
/// As [`results_folder`].
pub fn xdg_folder(name: &str, below_home: &str) -> Result<PathBuf, String> {
    // Relative paths are ignored, as the specification says.
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute(name).or_else(|| absolute("HOME").map(|home| home.join(below_home)));
    base.ok_or_else(|| format!("neither {name} nor HOME says where to"))
}

/// Returns the instance type such as `m5.large`, from the firmware, else from the metadata service if the firmware
/// indicates Amazon or the service's address is set. Otherwise, and with `AWS_EC2_METADATA_DISABLED=true`, no network
/// request is made.
pub fn instance_type() -> Option<String> {
    host::instance_type().or_else(|| {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let is_off = variable("AWS_EC2_METADATA_DISABLED").eq_ignore_ascii_case("true");
        let is_given = !variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_empty();
        let asks = !is_off && (is_given || host::is_ec2());
        asks.then(hakobu_s3::instance_type).flatten()
    })
}
