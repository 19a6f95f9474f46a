//! Work folders: on tmpfs always, and on ext4, XFS and btrfs images that are kept on tmpfs and mounted once
//! per test program. A keeper process unmounts them after the end of the test program.

use super::{have, is_root, must, remove_tree, skip};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fs {
    Tmpfs,
    Ext4,
    Xfs,
    Btrfs,
}

impl Fs {
    pub const ALL: [Fs; 4] = [Fs::Tmpfs, Fs::Ext4, Fs::Xfs, Fs::Btrfs];

    pub fn name(self) -> &'static str {
        match self {
            Fs::Tmpfs => "tmpfs",
            Fs::Ext4 => "ext4",
            Fs::Xfs => "xfs",
            Fs::Btrfs => "btrfs",
        }
    }

    /// The command that makes one; the image's name is appended.
    fn mkfs(self) -> &'static [&'static str] {
        match self {
            Fs::Tmpfs => &[],
            // 256-byte inodes carry nanoseconds and years beyond 2038 also on small images.
            Fs::Ext4 => &["mkfs.ext4", "-q", "-F", "-I", "256"],
            Fs::Xfs => &["mkfs.xfs", "-q", "-f"],
            Fs::Btrfs => &["mkfs.btrfs", "-q", "-f"],
        }
    }
}

/// A folder of its own for one test on one file system; removed when dropped.
#[derive(Debug)]
pub struct Area {
    pub fs: Fs,
    dir: PathBuf,
}

impl Area {
    /// A folder on the given file system, or `None` (said as skipped) where it cannot be had.
    pub fn new(fs: Fs, what: &str) -> Option<Area> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        match volume(fs) {
            Ok(root) => {
                let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
                let dir = root.join(name);
                std::fs::create_dir(&dir).unwrap();
                Some(Area { fs, dir })
            }
            Err(why) => {
                skip(&format!("{what} on {}: {why}", fs.name()));
                None
            }
        }
    }

    /// A folder on tmpfs (or what stands in for it), which is always to be had.
    pub fn tmpfs() -> Area {
        Area::new(Fs::Tmpfs, "").expect("tmpfs needs nothing")
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        remove_tree(&self.dir);
    }
}

/// A file system of its own for one test (a full one, a small one); unmounted when dropped.
#[derive(Debug)]
pub struct Volume {
    root: PathBuf,
    image: PathBuf,
}

impl Volume {
    /// Makes and mounts one with `size_mib` and further mkfs options, or says why not and skips.
    pub fn new(fs: Fs, size_mib: u64, options: &[&str], what: &str) -> Option<Volume> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", fs.name(), COUNT.fetch_add(1, Ordering::Relaxed));
        match mount(fs, &name, size_mib, options) {
            Ok((root, image)) => Some(Volume { root, image }),
            Err(why) => {
                skip(&format!("{what} on {}: {why}", fs.name()));
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Leaves at most `bytes` free, by a file that takes the rest.
    pub fn fill(&self, bytes: u64) -> PathBuf {
        let ballast = self.root.join("ballast");
        must(Command::new("sync").arg("-f").arg(&self.root));
        let room = rustix::fs::statvfs(&self.root).unwrap();
        let take = (room.f_bavail * room.f_frsize).saturating_sub(bytes);
        must(Command::new("fallocate").args(["-l", &take.to_string()]).arg(&ballast));
        ballast
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.root).status();
        let _ = std::fs::remove_dir(&self.root);
        let _ = std::fs::remove_file(&self.image);
    }
}

/// The shared volume of a kind: made at the first call.
fn volume(fs: Fs) -> Result<PathBuf, String> {
    static ROOTS: [OnceLock<Result<PathBuf, String>>; 4] = [const { OnceLock::new() }; 4];
    ROOTS[fs as usize]
        .get_or_init(|| match fs {
            Fs::Tmpfs => {
                let dir = base().join("tmpfs");
                std::fs::create_dir_all(&dir).unwrap();
                open_to_all(&dir);
                Ok(dir)
            }
            _ => mount(fs, fs.name(), 1024, &[]).map(|(root, _)| root),
        })
        .clone()
}

/// The folder of this test program on tmpfs, with the keeper watching over it.
fn base() -> &'static Path {
    static BASE: OnceLock<(PathBuf, Mutex<Child>)> = OnceLock::new();
    let (base, _) = BASE.get_or_init(|| {
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let dir = tempfile::Builder::new().prefix("hakobu-test-").tempdir_in(parent).unwrap();
        let base = dir.keep();
        open_to_all(&base);
        // The pipe closes when this process ends, even by SIGKILL. A session of its own keeps
        // ^C away from the keeper.
        let script = "trap '' INT TERM HUP; cat >/dev/null\n\
            for d in \"$1\"/*/; do umount -l \"$d\" 2>/dev/null; done\n\
            rm -rf --one-file-system -- \"$1\"";
        let mut keeper = Command::new("sh");
        keeper.args(["-c", script, "keeper"]).arg(&base).process_group(0);
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.spawn().unwrap();
        (base, Mutex::new(keeper))
    });
    base
}

/// A folder for the state of one command, not made yet.
pub fn state_home() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    base().join("state").join(COUNT.fetch_add(1, Ordering::Relaxed).to_string())
}

/// Ordinary users must get through to the folders of the tests that run as one.
fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn mount(
    fs: Fs,
    name: &str,
    size_mib: u64,
    options: &[&str],
) -> Result<(PathBuf, PathBuf), String> {
    // Finding a free loop device and taking it are two steps in mount(8).
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_root() {
        return Err("mounting needs the superuser".to_owned());
    }
    let mkfs = fs.mkfs();
    if !have(mkfs[0], "mounting an image") {
        return Err(format!("needs {}", mkfs[0]));
    }
    let (image, root) = (base().join(format!("{name}.img")), base().join(name));
    let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(size_mib << 20).map_err(|error| error.to_string())?;
    quiet(Command::new(mkfs[0]).args(&mkfs[1..]).args(options).arg(&image))?;
    std::fs::create_dir(&root).map_err(|error| error.to_string())?;
    quiet(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&root))?;
    open_to_all(&root);
    Ok((root, image))
}

fn quiet(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
