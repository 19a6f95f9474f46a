//! Throttled disks: loop devices with ext4 under `blkio.throttle` of the root cgroup (version 1), where
//! buffered writes count as well, and `io_serviced` shows the throughput.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::is_root;
use crate::common::machine::Undo;
use crate::rig::{Trial, inside, names, real_s, run, tell, tool};
use std::path::PathBuf;

const BLKIO: &str = "/sys/fs/cgroup/blkio";
/// Limit of dirty pages: small, so that a run of seconds is affected by the disk.
const DIRTY_BYTES: u64 = 16 << 20;

/// A mounted loop device with ext4.
struct Disk {
    /// Device number, `7:3`.
    number: String,
    device: String,
    root: PathBuf,
    _undo: Undo,
    area: Area,
}

impl Disk {
    fn new(size_mib: u64) -> Result<Disk, String> {
        if !is_root() {
            return Err("needs the superuser".to_owned());
        }
        if !std::path::Path::new(BLKIO).join("blkio.throttle.io_serviced").exists() {
            return Err(format!("needs blkio.throttle (cgroup version 1) at {BLKIO}"));
        }
        let area = Area::tmpfs();
        let (image, root) = (area.join("image"), area.join("disk"));
        std::fs::create_dir(&root).unwrap();
        std::fs::File::create(&image).unwrap().set_len(size_mib << 20).unwrap();
        tool(&format!("mkfs.ext4 -q -F -I 256 -N 100000 {}", image.display()))?;
        let device = tool(&format!("losetup -f --show {}", image.display()))?;
        let name = device.trim_start_matches("/dev/");
        let number = std::fs::read_to_string(format!("/sys/class/block/{name}/dev"));
        let number = number.map_err(|error| error.to_string())?.trim().to_owned();
        let undo = Undo::new(&format!(
            "for file in {BLKIO}/blkio.throttle.*_device; do echo '{number} 0' >$file; done\n\
             echo 0 >/sys/class/bdi/{number}/strict_limit\n\
             echo 100 >/sys/class/bdi/{number}/max_ratio\n\
             umount -l {}; losetup -d {device}",
            root.display(),
        ));
        let disk = Disk { number, device, root, _undo: undo, area };
        disk.mount()?;
        Ok(disk)
    }

    fn mount(&self) -> Result<(), String> {
        tool(&format!("mount {} {}", self.device, self.root.display())).map(drop)
    }

    /// Evicts its pages from memory.
    fn cool(&self) -> Result<(), String> {
        tool(&format!("umount {}", self.root.display()))?;
        self.mount()
    }

    /// Sets a ceiling such as `write_iops`, without resetting counters.
    fn throttle(&self, what: &str, per_s: u64) -> Result<(), String> {
        let file = format!("{BLKIO}/blkio.throttle.{what}_device");
        tell(file, &format!("{} {per_s}", self.number))
    }

    /// Counter of a kind since its creation: `io_serviced`, `Write`.
    fn passed(&self, counter: &str, kind: &str) -> u64 {
        let text = std::fs::read_to_string(format!("{BLKIO}/blkio.throttle.{counter}")).unwrap();
        let start = format!("{} {kind} ", self.number);
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Limits the dirty pages of this disk.
    fn bound_own_dirty(&self) -> Result<(), String> {
        let folder = format!("/sys/class/bdi/{}", self.number);
        tell(format!("{folder}/max_bytes"), &DIRTY_BYTES.to_string())?;
        tell(format!("{folder}/strict_limit"), "1")
    }

    /// Runs a transfer, and measures how close to the ceiling it came.
    fn trial(
        &self,
        counter: &str,
        kind: &str,
        limit: u64,
        transfer: impl FnOnce() -> Run,
    ) -> Result<Trial, String> {
        let before = self.passed(counter, kind);
        let run = transfer();
        let passed = (self.passed(counter, kind) - before) as f64;
        let unit = if counter == "io_serviced" { "operations/s" } else { "bytes/s" };
        Trial::at(&run, passed / real_s(&run.summary()), limit as f64, unit)
    }

    fn sync(&self, from: &std::path::Path, to: &std::path::Path) -> Run {
        run(&[], &self.area, &["sync", "-rt", "--no-memory", &inside(from), &inside(to)])
    }
}

/// Limits the dirty pages of all disks.
fn bound_all_dirty() -> Result<Undo, String> {
    const VM: &str = "/proc/sys/vm";
    // Setting one of bytes and ratio clears the other: the one that is zero was not active.
    let mut script = String::new();
    for name in ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"] {
        let text = std::fs::read_to_string(format!("{VM}/{name}"));
        let value = text.map_err(|error| format!("{VM}/{name}: {error}"))?;
        if value.trim() != "0" {
            script += &format!("echo {} >{VM}/{name}\n", value.trim());
        }
    }
    let undo = Undo::new(&script);
    tell(format!("{VM}/dirty_background_bytes"), &(DIRTY_BYTES / 2).to_string())?;
    tell(format!("{VM}/dirty_bytes"), &(4 * DIRTY_BYTES).to_string())?;
    Ok(undo)
}

/// Small files to a disk with a ceiling of write operations.
pub fn small_files(per_s: u64) -> Result<Trial, String> {
    let disk = Disk::new(1024)?;
    let source = names(&disk.area.join("src"), per_s as usize * 6, 4096);
    disk.bound_own_dirty()?;
    disk.throttle("write_iops", per_s)?;
    disk.trial("io_serviced", "Write", per_s, || disk.sync(&source, &disk.root.join("dst")))
}

/// Large files to a disk with a ceiling of bytes.
pub fn large_files(bytes_per_s: u64) -> Result<Trial, String> {
    const FILE: usize = 25_000_000;
    let disk = Disk::new(1024)?;
    let source = names(&disk.area.join("src"), bytes_per_s as usize * 6 / FILE, FILE);
    disk.throttle("write_bps", bytes_per_s)?;
    let _undo = bound_all_dirty()?;
    disk.trial("io_service_bytes", "Write", bytes_per_s, || {
        disk.sync(&source, &disk.root.join("dst"))
    })
}

/// Small uncached files, from a disk with a ceiling of read operations.
pub fn cold_reads(per_s: u64) -> Result<Trial, String> {
    let disk = Disk::new(512)?;
    let source = disk.root.join("src");
    std::fs::create_dir(&source).unwrap();
    for number in 0..per_s * 6 {
        std::fs::write(source.join(format!("f{number:05}")), [7; 4096]).unwrap();
    }
    disk.cool()?;
    disk.throttle("read_iops", per_s)?;
    disk.trial("io_serviced", "Read", per_s, || disk.sync(&source, &disk.area.join("dst")))
}

impl Disk {
    /// Runs a command under watch for seconds, and measures how close to the ceiling it came.
    fn watched(
        &self,
        counter: &str,
        kind: &str,
        limit: u64,
        script: &str,
    ) -> Result<Trial, String> {
        let before = self.passed(counter, kind);
        let (trial, real_s) = crate::commands::watch(script);
        let reached = (self.passed(counter, kind) - before) as f64 / real_s;
        let note = format!("{reached:.0} of {limit} a second, {real_s:.1} s");
        match reached >= 0.85 * limit as f64 {
            true => Ok(Trial { note, ..trial }),
            false => Err(format!("the limit was not reached: {note}")),
        }
    }
}

/// A program that copies a folder of small files to a disk with a ceiling of write operations.
pub fn watched_small_files(program: &str, per_s: u64) -> Result<Trial, String> {
    let disk = Disk::new(1024)?;
    let source = names(&disk.area.join("src"), per_s as usize * 6, 4096);
    disk.bound_own_dirty()?;
    disk.throttle("write_iops", per_s)?;
    let script = format!("{program} {}/ {}", source.display(), disk.root.join("dst").display());
    disk.watched("io_serviced", "Write", per_s, &script)
}

/// dd of one large file to a disk with a ceiling of bytes.
pub fn watched_large_file(bytes_per_s: u64) -> Result<Trial, String> {
    let disk = Disk::new(1024)?;
    disk.throttle("write_bps", bytes_per_s)?;
    let _undo = bound_all_dirty()?;
    let file = disk.root.join("file");
    let count = bytes_per_s * 6 / 1_000_000;
    let script = format!("dd if=/dev/zero of={} bs=1M count={count} status=none", file.display());
    disk.watched("io_service_bytes", "Write", bytes_per_s, &script)
}

/// fio's random reads of blocks, in four processes, from a disk with a ceiling of read operations.
pub fn watched_reads(per_s: u64) -> Result<Trial, String> {
    tool("fio --version")?;
    let disk = Disk::new(512)?;
    let file = disk.root.join("file");
    std::fs::write(&file, vec![7; 256 << 20]).unwrap();
    disk.cool()?;
    disk.throttle("read_iops", per_s)?;
    let script = format!(
        "fio --name=a --filename={} --rw=randread --bs=4k --size=256M --direct=1 --ioengine=psync \
         --numjobs=4 --time_based --runtime=5 --output=/dev/null",
        file.display()
    );
    disk.watched("io_serviced", "Read", per_s, &script)
}
