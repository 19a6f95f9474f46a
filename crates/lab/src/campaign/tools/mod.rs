//! Programs that campaigns run: known tools and their commands, lookup, versions, installation.

mod config;
mod hide;
mod quote;
mod table;
mod template;
#[cfg(test)]
mod tests;

pub use config::{SettingsFile, StoreAccess, settings_file};
pub use hide::{HIDDEN, ShownPlaceholders};
pub use quote::{line, quoted};
pub use table::{KNOWN, KnownProgram, KnownTool, OutputFormat, PROGRAMS, SettingsFormat};
pub use template::{PlaceholderValue, PlaceholderValues, Template};

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Name of the running program itself.
pub const OWN: &str = "hakobu";

/// Finds a known tool by name.
pub fn known_tool(name: &str) -> Option<&'static KnownTool> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Finds a known program by name.
pub fn known_program(name: &str) -> Option<&'static KnownProgram> {
    PROGRAMS.iter().find(|program| program.name == name)
}

/// Path of a program: a path is returned as it is, a name is looked up in `folders` in order.
pub fn find_program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
