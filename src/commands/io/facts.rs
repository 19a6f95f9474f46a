//! Facts about a run besides its measurements.

use crate::ec2;
use hakobu_io::layout::Layout;
use hakobu_io::output::{Facts, disks::DiskUse};
use hakobu_io::spec::Request;
use hakobu_lab::campaign::run::fingerprint;
use hakobu_lab::results::Machine;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program as results name it.
pub const PROGRAM: &str = concat!("hakobu-", env!("CARGO_PKG_VERSION"));

/// The machine with the places where files lie.
pub fn machine(layout: &Layout) -> Machine {
    fingerprint::machine(&places(layout), ec2::kind())
}

/// Gathers it, of what has been measured until now.
pub fn facts(
    request: &Request,
    machine: &Machine,
    disks: Vec<DiskUse>,
    elapsed: Duration,
    stopped: bool,
) -> Facts {
    let now = jiff::Zoned::now();
    Facts {
        program: PROGRAM.into(),
        at_ms: u64::try_from(now.timestamp().as_millisecond()).unwrap_or(0),
        at_text: now.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        elapsed,
        pid: std::process::id(),
        globals: request.globals.clone(),
        warnings: request.warnings.clone(),
        machine: machine.clone(),
        disks,
        stopped,
    }
}

/// Returns the distinct folders of the files, each by a label.
pub fn places(layout: &Layout) -> BTreeMap<String, PathBuf> {
    let mut folders: Vec<&Path> = Vec::new();
    for file in &layout.files {
        let folder = if file.device { Some(file.path.as_path()) } else { file.path.parent() };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let is_only = folders.len() == 1;
    let label = |at: usize| if is_only { "files".into() } else { format!("files {}", at + 1) };
    folders.into_iter().enumerate().map(|(at, path)| (label(at), path.to_owned())).collect()
}
