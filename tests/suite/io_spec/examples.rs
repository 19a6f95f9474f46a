//! fio's own example job files, where this machine has them: each is read as fio reads it, or is refused
//! by the name of what is not here.

use crate::io_spec::{fio, fio_takes, ours};
use std::path::{Path, PathBuf};

/// Folders of packages, besides `HAKOBU_FIO_EXAMPLES`.
const FOLDERS: [&str; 3] =
    ["/usr/share/doc/fio/examples", "/usr/share/fio/examples", "/usr/local/share/doc/fio/examples"];

/// Files that need an engine, a device or options that are not here. The rest has to be read.
const READ_AT_LEAST: usize = 40;

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("HAKOBU_FIO_EXAMPLES").map(PathBuf::from);
    named.into_iter().chain(FOLDERS.map(PathBuf::from)).find(|folder| folder.is_dir())
}

/// Whether a message names an engine or an option.
fn names_something(message: &str) -> bool {
    ["ioengine=", "supported by fio, not by hakobu", "no such option", "not set in the environment"]
        .iter()
        .any(|word| message.contains(word))
}

#[test]
fn example_files_are_read_or_refused_by_name() {
    // Many packages leave them out, so that their absence is not a failure of this machine.
    let Some(folder) = folder() else { return };
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "fio")).collect();
    files.sort();
    let dir = tempfile::tempdir().unwrap();
    let has_fio = fio_is_there(dir.path());
    let (mut read, mut wrong) = (0, Vec::new());
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        std::fs::copy(file, dir.path().join(name)).unwrap();
        match ours(dir.path(), name) {
            Ok(_) => read += 1,
            Err(message) if !names_something(&message) => wrong.push(format!("{name}: {message}")),
            Err(_) if has_fio && is_plain(file) && fio_takes(dir.path(), name).0 => {
                wrong.push(format!("{name}: fio takes it, and nothing in it is unknown here"));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read >= READ_AT_LEAST.min(files.len()), "{read} of {} are read", files.len());
}

fn fio_is_there(dir: &Path) -> bool {
    std::panic::catch_unwind(|| fio(dir, &["--version"]).status.success()).unwrap_or(false)
}

/// Whether a job file names options of sizes, times and blocks alone.
fn is_plain(file: &Path) -> bool {
    const PLAIN: [&str; 14] = [
        "rw",
        "readwrite",
        "bs",
        "size",
        "filename",
        "direct",
        "iodepth",
        "ioengine",
        "runtime",
        "bsrange",
        "bssplit",
        "numjobs",
        "time_based",
        "fallocate",
    ];
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with(['#', ';', '['])).all(|line| {
        let name = line.split('=').next().unwrap_or_default().trim();
        let engines = ["sync", "psync", "pvsync2", "libaio", "io_uring", "mmap", "null"];
        PLAIN.contains(&name) && (name != "ioengine" || engines.iter().any(|of| line.ends_with(of)))
    })
}
