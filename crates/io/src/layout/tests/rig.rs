//! Real file systems and devices for these tests: images on loop devices, and a folder.

use parking_lot::Mutex;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Says that a test did not run, past the capture of test output; with `HAKOBU_REQUIRE_ALL=1` it
/// is a failure instead.
pub fn skip(why: &str) {
    let required = std::env::var_os("HAKOBU_REQUIRE_ALL");
    let required = required.is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "HAKOBU_REQUIRE_ALL is set, and: {why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs a command, its words apart by spaces; what it printed, or why it failed.
pub fn tool(command: &str) -> Result<String, String> {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn root(folder: &Path) -> Result<(), String> {
    let uid = std::fs::metadata(folder).unwrap().uid();
    if uid == 0 { Ok(()) } else { Err("needs the superuser".to_owned()) }
}

/// A loop device over a file of its own.
pub struct Loop {
    pub device: PathBuf,
    folder: TempDir,
}

impl Loop {
    /// Makes one, filled with `head` at its beginning, or says that `what` is skipped.
    pub fn new(mib: u64, head: &[u8], options: &str, what: &str) -> Option<Loop> {
        Loop::try_new(mib, head, options).map_err(|why| skip(&format!("{what}: {why}"))).ok()
    }

    fn try_new(mib: u64, head: &[u8], options: &str) -> Result<Loop, String> {
        // Finding a free device and taking it are two steps.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        // Prefer memory, so that the test does not wait for a disk.
        let memory = tempfile::tempdir_in("/dev/shm");
        let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
        root(folder.path())?;
        let image = folder.path().join("image");
        let mut file = std::fs::File::create(&image).unwrap();
        file.write_all(head).unwrap();
        file.set_len(mib << 20).unwrap();
        let device = tool(&format!("losetup -f --show {options} {}", image.display()))?;
        Ok(Loop { device: device.into(), folder })
    }

    /// Takes away what lies beyond so many MiB: from there on reads of the device fail with EIO.
    pub fn lose(&self, mib: u64) {
        let image = std::fs::File::options().write(true).open(self.folder.path().join("image"));
        image.unwrap().set_len(mib << 20).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool(&format!("losetup -d {}", self.device.display()));
    }
}

/// A mounted file system.
pub struct Mount {
    pub root: TempDir,
    pub device: Option<Loop>,
}

impl Mount {
    /// An ext4 of its own, or says that `what` is skipped.
    pub fn ext4(mib: u64, options: &str, what: &str) -> Option<Mount> {
        let device = Loop::new(mib, &[], options, what)?;
        let name = device.device.display().to_string();
        let made = tool(&format!("mkfs.ext4 -q -F -I 256 {name}"));
        made.and_then(|_| Mount::try_new(&format!("mount {name}"), Some(device)))
            .map_err(|why| skip(&format!("{what}: {why}")))
            .ok()
    }

    /// Files in memory that know no O_DIRECT.
    pub fn ramfs(what: &str) -> Option<Mount> {
        let made = Mount::try_new("mount -t ramfs none", None);
        made.map_err(|why| skip(&format!("{what}: {why}"))).ok()
    }

    /// Mounts what is there already.
    pub fn of(device: &Path) -> Result<Mount, String> {
        Mount::try_new(&format!("mount {}", device.display()), None)
    }

    fn try_new(command: &str, device: Option<Loop>) -> Result<Mount, String> {
        let root = tempfile::tempdir().unwrap();
        self::root(root.path())?;
        tool(&format!("{command} {}", root.path().display()))?;
        Ok(Mount { root, device })
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = tool(&format!("umount -l {}", self.root.path().display()));
    }
}
