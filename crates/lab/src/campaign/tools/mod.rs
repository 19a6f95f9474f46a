//! Programs that campaigns run: the known ones with their commands, where they are found, how they
//! say their version, and what installs them.

mod config;
mod quote;
mod table;
mod template;
#[cfg(test)]
mod tests;

pub use config::{Access, File, file};
pub use quote::{line, quoted};
pub use table::{Config, KNOWN, Known, Output, PROGRAMS, Program};
pub use template::{Fill, Template, Values};

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What stands for the running program itself.
pub const OWN: &str = "hakobu";

/// The known tool of a name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// What is known of a program.
fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

/// The command that installs a program, where there is one that usually does.
pub fn install(name: &str) -> Option<&'static str> {
    program(name).map(|program| program.install)
}

/// The arguments that make a program say its version.
pub fn version_arguments(name: &str) -> &'static [&'static str] {
    program(name).map_or(&["--version"], |program| program.version)
}

/// Where a program is: a path is itself, a name is looked for in `folders` in their order.
pub fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
