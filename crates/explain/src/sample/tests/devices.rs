//! A loop device: known I/O against the counters, and a ceiling of a control group.

use crate::sample::tests::skip;
use crate::sample::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a file in memory, removed when dropped.
struct Loop {
    device: PathBuf,
    image: PathBuf,
}

impl Loop {
    fn new(name: &str) -> Option<Loop> {
        if hakobu_sys::process::euid() != 0 {
            skip("loop devices: need the superuser");
            return None;
        }
        let shm = Path::new("/dev/shm");
        let image = shm.join(format!("hakobu-loop-{name}-{}", std::process::id()));
        let file = std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20));
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        match (file, made) {
            (Ok(()), Ok(made)) if made.status.success() => {
                let device = String::from_utf8(made.stdout).unwrap().trim().into();
                Some(Loop { device, image })
            }
            (file, made) => {
                let _ = std::fs::remove_file(&image);
                skip(&format!("loop devices: {file:?} {made:?}"));
                None
            }
        }
    }

    fn dev(&self) -> (u32, u32) {
        use std::os::unix::fs::MetadataExt;
        hakobu_sys::meta::device_numbers(std::fs::metadata(&self.device).unwrap().rdev())
    }

    fn dd(&self, args: &[&str]) {
        let done = Command::new("dd").args(args).args(["bs=64k", "count=100"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn write(&self) {
        let to = format!("of={}", self.device.display());
        self.dd(&["if=/dev/zero", &to, "oflag=direct", "conv=notrunc"]);
    }

    fn read(&self) {
        let from = format!("if={}", self.device.display());
        self.dd(&[&from, "of=/dev/null", "iflag=direct"]);
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).output();
        let _ = std::fs::remove_file(&self.image);
    }
}

const BYTES: u64 = 100 * 64 * 1024;

#[test]
fn known_io_is_what_the_counters_say() {
    let Some(disk) = Loop::new("known") else { return };
    let mut sampler = Sampler::new(Watched::Machine);
    let before = sampler.read();
    disk.write();
    disk.read();
    let after = sampler.read();
    let of = |sample: &Sample| {
        sample.disks.iter().find(|found| found.dev == disk.dev()).cloned().unwrap_or_default()
    };
    let (from, to) = (of(&before), of(&after));
    assert_eq!(to.writes - from.writes, 100);
    assert_eq!(to.write_bytes - from.write_bytes, BYTES);
    // udev may read a new device as well.
    assert!((100..200).contains(&(to.reads - from.reads)), "{from:?} {to:?}");
    assert!(to.read_bytes - from.read_bytes >= BYTES);
    assert_eq!(Path::new("/dev").join(&to.name), disk.device);
    // Its file is in memory, not on another disk.
    assert!(!to.stacked);
}

/// Limits of this process's group for a device, removed when dropped.
struct Throttled(Vec<(PathBuf, (u32, u32))>);

impl Throttled {
    fn set(&mut self, file: PathBuf, dev: (u32, u32), limit: u64) -> bool {
        let done = std::fs::write(&file, format!("{}:{} {limit}", dev.0, dev.1)).is_ok();
        self.0.push((file, dev));
        done
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        for (file, dev) in &self.0 {
            let _ = std::fs::write(file, format!("{}:{} 0", dev.0, dev.1));
        }
    }
}

#[test]
fn a_ceiling_is_found_and_what_it_lets_through() {
    let groups = hakobu_sys::cgroup::hierarchies();
    let Some(blkio) = groups.iter().find(|found| found.controls("blkio")) else {
        return skip("blkio.throttle: no such controller of version 1");
    };
    let Some(disk) = Loop::new("ceiling") else { return };
    let dev = disk.dev();
    assert_eq!(Limits::read().io_ceilings(dev), []);
    let mut throttled = Throttled(Vec::new());
    let file = |name: &str| blkio.own.join(name);
    if !throttled.set(file("blkio.throttle.write_iops_device"), dev, 400)
        || !throttled.set(file("blkio.throttle.read_bps_device"), dev, 20_000_000)
    {
        return skip("blkio.throttle: cannot be set");
    }
    let limits = Limits::read();
    let ceilings = limits.io_ceilings(dev);
    let short: Vec<_> =
        ceilings.iter().map(|c| (c.operations, c.writes, c.per_s, c.from)).collect();
    let expected = [
        (true, true, 400, "blkio.throttle.write_iops_device"),
        (false, false, 20_000_000, "blkio.throttle.read_bps_device"),
    ];
    assert_eq!(short, expected);
    let served = |dev| limits.io_served_below(dev, &ceilings[0]);
    let before = served(dev).unwrap_or_default();
    let began = std::time::Instant::now();
    disk.write();
    disk.read();
    let took_s = began.elapsed().as_secs_f64();
    let after = served(dev).unwrap();
    assert_eq!(after.write_ops - before.write_ops, 100);
    assert_eq!(after.write_bytes - before.write_bytes, BYTES);
    assert!(after.read_ops - before.read_ops >= 100, "{before:?} {after:?}");
    assert!(after.read_bytes - before.read_bytes >= BYTES);
    // The ceilings apply: 100 of 400 per second, 6.5 of 20 MB per second.
    assert!(took_s > 0.4, "{took_s}");
    // An unknown disk.
    assert_eq!(served((4000, 4000)), None);
}

#[test]
fn the_disk_below_a_folder() {
    let here = hakobu_sys::disk::below_path(&std::env::temp_dir());
    if let Some(disk) = here {
        assert!(!hakobu_sys::disk::is_partition(disk.dev), "{disk:?}");
    }
    assert_eq!(hakobu_sys::disk::below_path(Path::new("/proc")), None);
    assert_eq!(hakobu_sys::disk::below_path(Path::new("/nowhere/at/all")), None);
}
