//! Disks that the kernel throttles: loop devices with ext4 under `blkio.throttle` of the root cgroup
//! (version 1), where also buffered writes count, and where `io_serviced` tells what was let through.

use crate::common::area::Area;
use crate::common::{case::Run, is_root};
use crate::rig::{Trial, inside, names, real_s, run, tell, tool};
use crate::undo::Undo;
use std::path::PathBuf;

const BLKIO: &str = "/sys/fs/cgroup/blkio";
/// What may wait for the disk: small, so that a run of seconds feels the disk.
const DIRTY_BYTES: u64 = 16 << 20;

/// A loop device with ext4 on it, mounted.
struct Disk {
    /// `7:3`
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

    /// Nothing of it is in memory any more.
    fn cool(&self) -> Result<(), String> {
        tool(&format!("umount {}", self.root.display()))?;
        self.mount()
    }

    /// Sets a ceiling, `write_iops` say, and forgets nothing that was counted.
    fn throttle(&self, what: &str, per_s: u64) -> Result<(), String> {
        let file = format!("{BLKIO}/blkio.throttle.{what}_device");
        tell(file, &format!("{} {per_s}", self.number))
    }

    /// What was let through since it was made, by kind: `io_serviced`, `Write`.
    fn passed(&self, counter: &str, kind: &str) -> u64 {
        let text = std::fs::read_to_string(format!("{BLKIO}/blkio.throttle.{counter}")).unwrap();
        let start = format!("{} {kind} ", self.number);
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Only so much may wait to be written to this disk.
    fn bound_own_dirty(&self) -> Result<(), String> {
        let folder = format!("/sys/class/bdi/{}", self.number);
        tell(format!("{folder}/max_bytes"), &DIRTY_BYTES.to_string())?;
        tell(format!("{folder}/strict_limit"), "1")
    }

    /// Runs a transfer and looks how near to the ceiling it came.
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

/// Only so much may wait to be written to all disks.
fn bound_all_dirty() -> Result<Undo, String> {
    const VM: &str = "/proc/sys/vm";
    // Setting one of bytes and ratio clears the other: what is zero was not in force.
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

/// Small files that are nowhere in memory, from a disk with a ceiling of read operations.
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
