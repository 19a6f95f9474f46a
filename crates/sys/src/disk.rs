//! Block devices and network interfaces below `/sys`: which disk holds a file system, what is a
//! part of what, what an interface can carry.

use std::path::{Path, PathBuf};

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockDevice {
    /// As the kernel calls it: `vda`, `loop3`, `dm-0`.
    pub name: String,
    /// Its number, major and minor.
    pub dev: (u32, u32),
}

/// Takes a device number (`st_dev`) apart.
pub fn numbers(dev: u64) -> (u32, u32) {
    (rustix::fs::major(dev), rustix::fs::minor(dev))
}

/// The whole disk below a file system of device number `dev` (`st_dev`): of a partition the disk
/// that it is on. `None` for file systems without a disk (tmpfs, NFS, overlay).
pub fn below(dev: u64) -> Option<BlockDevice> {
    let dev = numbers(dev);
    match folder(dev) {
        Some(found) => device(&whole(found)),
        // Btrfs and other file systems over several disks have numbers of their own.
        None => device(&whole(folder(numbers(mounted_from(dev)?))?)),
    }
}

/// The whole disk below the file system that holds a path (symlinks are followed).
pub fn below_path(path: &Path) -> Option<BlockDevice> {
    below(std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).ok()?))
}

/// The disks that a device is made of (`dm`, `md`), whole ones, one level down; empty where it is
/// not made of others.
pub fn made_of(dev: (u32, u32)) -> Vec<BlockDevice> {
    let Some(folder) = folder(dev) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(folder.join("slaves")) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
    paths.filter_map(|path| device(&whole(path))).collect()
}

/// Whether a device is a part of another: its I/O is counted there as well.
pub fn is_partition(dev: (u32, u32)) -> bool {
    folder(dev).is_some_and(|folder| folder.join("partition").exists())
}

/// Whether a device passes its I/O on to other disks, which count it again: `dm` and `md`, and a
/// loop device whose file is on a disk.
pub fn is_stacked(dev: (u32, u32)) -> bool {
    if !made_of(dev).is_empty() {
        return true;
    }
    let Some(folder) = folder(dev) else { return false };
    let Ok(file) = std::fs::read_to_string(folder.join("loop/backing_file")) else { return false };
    below_path(Path::new(file.trim_end())).is_some()
}

/// Who uses a block device of number `dev` (`st_rdev`): `mounted at /x`, `swap`. Also through its
/// partitions, the disk that it is a partition of, and devices that are made of these (`dm`, `md`).
/// Only what this mount namespace shows; a claim by O_EXCL finds the rest.
pub fn users(dev: u64) -> Vec<String> {
    let family = family(numbers(dev));
    let is_one = |dev: Option<(u32, u32)>| dev.is_some_and(|dev| family.contains(&dev));
    let named = |path: &str| {
        let entry = path.starts_with("/dev/").then(|| std::fs::metadata(path).ok())??;
        Some(numbers(std::os::unix::fs::MetadataExt::rdev(&entry)))
    };
    let mut users = Vec::new();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(2);
        let number = fields.next().and_then(|text| text.split_once(':'));
        let number = number.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let source = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1));
        if is_one(number) || is_one(source.and_then(named)) {
            users.push(format!("mounted at {}", fields.nth(1).unwrap_or("?")));
        }
    }
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().any(|line| is_one(line.split_whitespace().next().and_then(named))) {
        users.push("swap".to_owned());
    }
    users
}

/// A device, its partitions, the disk that it is a partition of, and all that is made of them.
fn family(dev: (u32, u32)) -> Vec<(u32, u32)> {
    let Some(own) = folder(dev) else { return vec![dev] };
    let inside = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut folders = inside(&own);
    folders.retain(|folder| folder.join("partition").exists());
    folders.extend([whole(own.clone()), own]);
    let mut at = 0;
    while let Some(folder) = folders.get(at) {
        let holders = inside(&folder.join("holders")).into_iter();
        let holders: Vec<PathBuf> = holders.filter_map(|path| path.canonicalize().ok()).collect();
        let fresh: Vec<_> = holders.into_iter().filter(|path| !folders.contains(path)).collect();
        folders.extend(fresh);
        at += 1;
    }
    folders.iter().filter_map(|folder| Some(device(folder)?.dev)).collect()
}

fn folder(dev: (u32, u32)) -> Option<PathBuf> {
    std::fs::canonicalize(format!("/sys/dev/block/{}:{}", dev.0, dev.1)).ok()
}

/// A partition's folder is inside its disk's.
fn whole(folder: PathBuf) -> PathBuf {
    match folder.parent() {
        Some(disk) if folder.join("partition").exists() => disk.to_owned(),
        _ => folder,
    }
}

fn device(folder: &Path) -> Option<BlockDevice> {
    let text = std::fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    // A `/` in a name is a `!` here.
    let name = folder.file_name()?.to_str()?.replace('!', "/");
    Some(BlockDevice { name, dev: (major.parse().ok()?, minor.parse().ok()?) })
}

/// The number of the device that a file system without one was mounted from.
fn mounted_from(dev: (u32, u32)) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let number = format!("{}:{}", dev.0, dev.1);
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    let source = line.split_once(" - ")?.1.split(' ').nth(1)?;
    let source = source.starts_with("/dev/").then_some(source)?;
    let entry = std::fs::metadata(source).ok()?;
    Some(std::os::unix::fs::MetadataExt::rdev(&entry))
}

/// What is known of a network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// It was brought up.
    pub up: bool,
    /// What it can carry, bits a second; `None` where it does not say (virtual ones, mostly).
    pub bits_per_s: Option<u64>,
}

/// Looks at a network interface of this network namespace.
pub fn interface(name: &str) -> Interface {
    if name.contains('/') {
        return Interface::default();
    }
    let read = |file: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
    // IFF_UP of netdevice(7).
    let flags = read("flags")
        .and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    // -1 where the driver does not know.
    let mbits = read("speed").and_then(|text| text.trim().parse::<u64>().ok());
    Interface {
        up: flags.is_some_and(|flags| flags & 1 != 0),
        bits_per_s: mbits.filter(|mbits| *mbits > 0).map(|mbits| mbits.saturating_mul(1_000_000)),
    }
}
