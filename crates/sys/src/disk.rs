//! File systems (free space, type), and the block devices and network interfaces below them in `/sys`.

use crate::BorrowedFd;
use crate::meta::device_numbers;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Space on a file system, statvfs(3).
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Bytes available to ordinary users.
    pub free_bytes: u64,
    pub used_bytes: u64,
    /// Free inodes; `None` if the file system allocates them dynamically.
    pub free_inodes: Option<u64>,
    /// Inodes in use; `None` as above.
    pub used_inodes: Option<u64>,
    /// True if mounted read-only.
    pub read_only: bool,
}

/// Space on the file system of `fd`.
pub fn space(fd: BorrowedFd<'_>) -> Result<Space> {
    let fs = rustix::fs::fstatvfs(fd)?;
    let counted = fs.f_files != 0;
    Ok(Space {
        free_bytes: fs.f_bavail.saturating_mul(fs.f_frsize),
        used_bytes: fs.f_blocks.saturating_sub(fs.f_bfree).saturating_mul(fs.f_frsize),
        free_inodes: counted.then_some(fs.f_favail),
        used_inodes: counted.then_some(fs.f_files.saturating_sub(fs.f_ffree)),
        read_only: fs.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
    })
}

/// True if `fd` is on XFS (magic number in statfs(2)).
pub fn is_xfs(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == 0x5846_5342)
}

/// True if `fd` is on FAT, whose times have a resolution of 2 s (magic number in statfs(2)).
pub fn is_fat(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == 0x4d44)
}

/// True if the file system is in memory (tmpfs, ramfs; magic numbers in statfs(2)), so that reads never wait
/// for a device.
pub fn is_memory(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| matches!(fs.f_type, 0x0102_1994 | 0x8584_58f6))
}

/// True for network and FUSE file systems at `path` (NFS, SMB, FUSE, 9p, Ceph, Lustre, AFS; magic numbers in
/// statfs(2) and linux/magic.h).
pub fn is_foreign(path: &std::path::Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|fs| is_magic_foreign(fs.f_type as u32))
}

/// As [`is_foreign`], for the file system of `fd`.
pub fn is_foreign_fd(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| is_magic_foreign(fs.f_type as u32))
}

/// As [`is_foreign_fd`], for the file system `dev` of `fd`: looked at once a device.
pub fn is_foreign_on(dev: u64, fd: BorrowedFd<'_>) -> bool {
    static KNOWN: RwLock<Vec<(u64, bool)>> = RwLock::new(Vec::new());
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, is_foreign)) = known.iter().find(|(other, _)| *other == dev) {
        return *is_foreign;
    }
    drop(known);
    let is_foreign = is_foreign_fd(fd);
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).push((dev, is_foreign));
    is_foreign
}

fn is_magic_foreign(magic: u32) -> bool {
    const MAGIC: [u32; 8] = [
        0x0000_6969, // NFS
        0xFF53_4D42, // CIFS
        0xFE53_4D42, // SMB 2
        0x6573_5546, // FUSE, virtiofs
        0x0102_1997, // 9p
        0x00C3_6400, // Ceph
        0x0BD0_0BD0, // Lustre
        0x5346_414F, // AFS
    ];
    MAGIC.contains(&magic)
}

/// Preferred I/O size of the file system of `fd`, bytes (`st_blksize`, fstat(2)).
pub fn preferred_bytes(fd: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(fd).map_or(0, |stat| stat.st_blksize.try_into().unwrap_or(0))
}

/// Read-ahead window of the file system `dev`, bytes (`/sys/class/bdi`); `None` if unknown.
pub fn read_ahead_bytes(dev: u64) -> Option<u64> {
    let (major, minor) = crate::meta::device_numbers(dev);
    let text = std::fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
    text.ok()?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockDevice {
    /// Kernel name: `vda`, `loop3`, `dm-0`.
    pub name: String,
    /// Device number, major and minor.
    pub dev: (u32, u32),
}

/// Whole disk of a file system with device number `dev` (`st_dev`); for a partition the disk that contains
/// it. `None` for file systems without a disk (tmpfs, NFS, overlay).
pub fn below(dev: u64) -> Option<BlockDevice> {
    let dev = device_numbers(dev);
    match folder(dev) {
        Some(found) => device(&whole(found)),
        // Btrfs and other file systems over several disks have device numbers of their own.
        None => device(&whole(folder(device_numbers(mounted_from(dev)?))?)),
    }
}

/// Whole disk of the file system that holds a path (symlinks are followed).
pub fn below_path(path: &Path) -> Option<BlockDevice> {
    below(std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).ok()?))
}

/// Whole disks directly below a device (`dm`, `md`); empty for other devices.
pub fn made_of(dev: (u32, u32)) -> Vec<BlockDevice> {
    let Some(folder) = folder(dev) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(folder.join("slaves")) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
    paths.filter_map(|path| device(&whole(path))).collect()
}

/// True if a device is a partition, whose I/O is also counted for the disk.
pub fn is_partition(dev: (u32, u32)) -> bool {
    folder(dev).is_some_and(|folder| folder.join("partition").exists())
}

/// True if a device passes its I/O on to other disks, which count it again: `dm`, `md`, and a loop device
/// over a file on a disk.
pub fn is_stacked(dev: (u32, u32)) -> bool {
    if !made_of(dev).is_empty() {
        return true;
    }
    folder(dev).and_then(|folder| below_path(&backing_file(&folder)?)).is_some()
}

/// File below a loop device.
fn backing_file(folder: &Path) -> Option<PathBuf> {
    let file = std::fs::read_to_string(folder.join("loop/backing_file")).ok()?;
    Some(file.trim_end().into())
}

/// True if a device number belongs to a spinning disk; `None` if unknown: file systems without a disk (tmpfs,
/// NFS, overlay) and virtual disks, which report as rotational regardless of their backing. For a loop
/// device, the disk of its file counts.
pub fn is_rotational(dev: u64) -> Option<bool> {
    let mut dev = dev;
    // Most nested loop devices that are followed.
    for _ in 0..4 {
        let folder = folder(device_numbers(dev))?;
        let Some(file) = backing_file(&folder) else {
            // The queue of a partition is in the folder of its disk.
            let disk = whole(folder);
            let text = std::fs::read_to_string(disk.join("queue/rotational")).ok()?;
            let name = disk.file_name()?.to_str()?;
            let is_virtual = ["vd", "xvd", "nbd"].iter().any(|prefix| name.starts_with(prefix));
            return match text.trim() {
                "0" => Some(false),
                "1" if !is_virtual => Some(true),
                _ => None,
            };
        };
        dev = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(file).ok()?);
    }
    None
}

/// Users of a block device with number `dev` (`st_rdev`): `mounted at /x`, `swap`; also of its partitions,
/// its parent disk, and devices built on these (`dm`, `md`). Limited to this mount namespace; opening with
/// O_EXCL detects the rest.
///
/// # Errors
/// The list of mounts cannot be read, so any device may be mounted.
pub fn users(dev: u64) -> std::io::Result<Vec<String>> {
    let family = family(device_numbers(dev));
    let is_one = |dev: Option<(u32, u32)>| dev.is_some_and(|dev| family.contains(&dev));
    let named = |path: &str| {
        let entry = path.starts_with("/dev/").then(|| std::fs::metadata(path).ok())??;
        Some(device_numbers(std::os::unix::fs::MetadataExt::rdev(&entry)))
    };
    let mut users = Vec::new();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(2);
        let number = fields.next().and_then(|text| text.split_once(':'));
        let number = number.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let source = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1));
        if is_one(number) || is_one(source.and_then(named)) {
            users.push(format!("mounted at {}", fields.nth(1).unwrap_or("?")));
        }
    }
    // The file does not exist without swap support.
    let swaps = match std::fs::read_to_string("/proc/swaps") {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        text => text.unwrap_or_default(),
    };
    if swaps.lines().any(|line| is_one(line.split_whitespace().next().and_then(named))) {
        users.push("swap".to_owned());
    }
    Ok(users)
}

/// A device, its partitions, its parent disk, and everything built on them.
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

/// A partition's folder is inside that of its disk.
fn whole(folder: PathBuf) -> PathBuf {
    match folder.parent() {
        Some(disk) if folder.join("partition").exists() => disk.to_owned(),
        _ => folder,
    }
}

fn device(folder: &Path) -> Option<BlockDevice> {
    let text = std::fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    // sysfs replaces `/` in names by `!`.
    let name = folder.file_name()?.to_str()?.replace('!', "/");
    Some(BlockDevice { name, dev: (major.parse().ok()?, minor.parse().ok()?) })
}

/// Number of the device that a file system with a virtual device number was mounted from.
fn mounted_from(dev: (u32, u32)) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let number = format!("{}:{}", dev.0, dev.1);
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    let source = line.split_once(" - ")?.1.split(' ').nth(1)?;
    let source = source.starts_with("/dev/").then_some(source)?;
    let entry = std::fs::metadata(source).ok()?;
    Some(std::os::unix::fs::MetadataExt::rdev(&entry))
}

/// Facts about a network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// True if it is up.
    pub up: bool,
    /// Link speed, bits per second; `None` if unknown (mostly virtual interfaces).
    pub bits_per_s: Option<u64>,
}

/// Reads the state of a network interface in this network namespace.
pub fn interface(name: &str) -> Interface {
    if name.contains('/') {
        return Interface::default();
    }
    let read = |file: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
    // IFF_UP of netdevice(7).
    let flags = read("flags")
        .and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    // -1 means unknown.
    let mbits = read("speed").and_then(|text| text.trim().parse::<u64>().ok());
    Interface {
        up: flags.is_some_and(|flags| flags & 1 != 0),
        bits_per_s: mbits.filter(|mbits| *mbits > 0).map(|mbits| mbits.saturating_mul(1_000_000)),
    }
}
