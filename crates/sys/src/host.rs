//! This machine: identity of machine and boot for use in file names, kernel, CPU, instance type, mounts, disks. What reports
//! show identifies neither the machine nor its users.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Id of this host and pid namespace, shared by processes that can see each other's pids.
pub fn host_id() -> u32 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/etc/machine-id").unwrap_or_default().hash(&mut hasher);
    rustix::system::uname().nodename().to_bytes().hash(&mut hasher);
    std::fs::read_link("/proc/self/ns/pid").unwrap_or_default().hash(&mut hasher);
    hasher.finish() as u32
}

/// Random bytes of the kernel, getrandom(2): for secrets, and for names that no other process may have. A generator that
/// is seeded by the clock gives two processes the same ones that start in the same nanosecond since the boot.
///
/// # Errors
/// The kernel is older than 3.17, or a filter of system calls refuses it.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    use rustix::rand::{GetRandomFlags, getrandom};
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// The random name of this boot of the kernel, by which processes know that devices and inodes have the same numbers for both; empty if
/// it is not known.
pub fn boot_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Id of this boot of the kernel.
pub fn boot_id() -> u32 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    hasher.finish() as u32
}

/// Boot time, seconds since 1970 by the machine's own clock.
pub fn booted_s() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::Realtime).tv_sec - clock_gettime(ClockId::Boottime).tv_sec
}

/// Milliseconds since boot, including suspend.
pub fn boot_ms() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// Host name, uname(2).
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// System and architecture, as `uname -sm` prints them: `Linux x86_64`.
pub fn system() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.machine().to_string_lossy())
}

/// Kernel release and architecture, uname(2): `6.12.1`, `x86_64`.
pub fn kernel() -> (String, String) {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    (text(name.release()), text(name.machine()))
}

/// Model name of the first CPU (/proc/cpuinfo); `None` if not listed (arm64).
pub fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start().strip_prefix(':')?.trim().to_owned())
}

/// True if this CPU computes AES in hardware, with the multiplication that GCM needs.
pub fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// Instance type from the firmware (DMI: Amazon's `m5.large`); `None` elsewhere.
pub fn instance_type() -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/sys/class/dmi/id/{name}")).ok();
    instance_type_of(read("sys_vendor")?.trim(), read("product_name")?.trim())
}

/// True on Amazon EC2, which has a metadata service: by firmware, or by hypervisor (older instances have
/// Xen's firmware).
pub fn is_ec2() -> bool {
    let begins = |path: &str, with: &str| {
        std::fs::read_to_string(path).is_ok_and(|text| text.trim_start().starts_with(with))
    };
    begins("/sys/class/dmi/id/sys_vendor", "Amazon") || begins("/sys/hypervisor/uuid", "ec2")
}

fn instance_type_of(vendor: &str, product: &str) -> Option<String> {
    // Others have the product name of the hypervisor or mainboard there.
    let is_type = product.contains('.') && !product.contains(' ');
    (vendor.starts_with("Amazon") && is_type).then(|| product.to_owned())
}

/// The file system that holds a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Type: `ext4`.
    pub kind: String,
    /// Mount options that affect behaviour (proc_pid_mountinfo(5)), without paths, addresses and users.
    pub options: Vec<String>,
}

/// Looks up the file system that holds a path; `None` if it is not in the table of mounts.
pub fn mount(path: &Path) -> Option<Mount> {
    let dev = crate::meta::device_numbers(std::fs::metadata(path).ok()?.dev());
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mount_of(&table, dev).or_else(|| {
        // Device numbers of btrfs and overlays match no mount: use the longest mount point above the path.
        let path = path.canonicalize().ok()?;
        let lines = table
            .lines()
            .filter(|line| line.split(' ').nth(4).is_some_and(|place| path.starts_with(place)));
        let line = lines.max_by_key(|line| line.split(' ').nth(4).map_or(0, str::len))?;
        parse(line)
    })
}

fn mount_of(table: &str, dev: (u32, u32)) -> Option<Mount> {
    let number = format!("{}:{}", dev.0, dev.1);
    parse(table.lines().rfind(|line| line.split(' ').nth(2) == Some(&number))?)
}

fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, _source, of_system) = (after.next()?, after.next()?, after.next().unwrap_or(""));
    let of_mount = before.split(' ').nth(5)?;
    let mut options: Vec<String> = Vec::new();
    for option in of_mount.split(',').chain(of_system.split(',')) {
        if is_publishable(option) && !options.iter().any(|known| known == option) {
            options.push(option.to_owned());
        }
    }
    Some(Mount { kind: kind.to_owned(), options })
}

/// True for options that may be published: those with values only if these are numbers or modes.
fn is_publishable(option: &str) -> bool {
    const WITH_VALUE: [&str; 22] = [
        "barrier",
        "commit",
        "compress",
        "compress-force",
        "data",
        "discard",
        "errors",
        "logbsize",
        "logbufs",
        "nconnect",
        "nr_inodes",
        "proto",
        "rsize",
        "size",
        "stripe",
        "sunit",
        "swidth",
        "vers",
        "wsize",
        "huge",
        "cache",
        "allocsize",
    ];
    match option.split_once('=') {
        Some((name, value)) => WITH_VALUE.contains(&name) && !value.contains('/'),
        None => {
            !option.is_empty()
                && option.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
        }
    }
}

/// Identity of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskKind {
    /// Kernel name: `nvme0n1`.
    pub name: String,
    pub model: Option<String>,
    /// Active I/O scheduler: `none`, `mq-deadline`.
    pub scheduler: Option<String>,
    /// True for a spinning disk; `None` if unknown.
    pub rotational: Option<bool>,
}

/// Looks up the disk of the file system that holds a path; `None` for file systems without a disk (tmpfs,
/// NFS, overlay).
pub fn disk(path: &Path) -> Option<DiskKind> {
    let dev = std::fs::metadata(path).ok()?.dev();
    let disk = crate::disk::below(dev)?;
    let folder = format!("/sys/dev/block/{}:{}", disk.dev.0, disk.dev.1);
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    };
    Some(DiskKind {
        model: read("device/model"),
        scheduler: read("queue/scheduler").map(|list| chosen(&list).to_owned()),
        rotational: crate::disk::is_rotational(dev),
        name: disk.name,
    })
}

/// Item in brackets of `none [mq-deadline] bfq`, else the whole text.
fn chosen(list: &str) -> &str {
    let inside = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(list, |(name, _)| name)
}

/// Opens the program that runs, also after its file was replaced or removed (proc_pid_exe(5)).
///
/// # Errors
/// Those of open(2).
pub fn open_program() -> std::io::Result<std::fs::File> {
    std::fs::File::open("/proc/self/exe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_types() {
        assert_eq!(instance_type_of("Amazon EC2", "m5.large").as_deref(), Some("m5.large"));
        for (vendor, product) in
            [("Amazon EC2", "HVM domU"), ("Google", "Google Compute Engine"), ("QEMU", "q.35")]
        {
            assert_eq!(instance_type_of(vendor, product), None, "{vendor} {product}");
        }
    }

    #[test]
    fn mounts_tell_how_they_work_and_not_whose_they_are() {
        let table = "29 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw,discard,commit=30\n\
        36 29 0:31 /alice /home rw,nosuid - nfs4 10.0.0.9:/x rw,vers=4.2,addr=10.0.0.9,clientaddr=10.0.0.5\n\
        40 29 0:40 / /c rw - overlay overlay rw,lowerdir=/var/a,upperdir=/var/b,workdir=/var/c,uid=7\n";
        let told = |dev| {
            let mount = mount_of(table, dev).unwrap();
            format!("{} {}", mount.kind, mount.options.join(","))
        };
        assert_eq!(told((259, 1)), "ext4 rw,relatime,discard,commit=30");
        assert_eq!(told((0, 31)), "nfs4 rw,nosuid,vers=4.2");
        assert_eq!(told((0, 40)), "overlay rw");
        assert_eq!(mount_of(table, (8, 1)), None);
        assert_eq!(mount_of("odd\n", (0, 0)), None);
    }

    #[test]
    fn schedulers() {
        assert_eq!(chosen("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn something_is_mounted_at_the_root() {
        if Path::new("/proc/self/mountinfo").exists() {
            assert!(!mount(Path::new("/")).unwrap().kind.is_empty());
        }
        // Must not panic, whatever the result.
        let _ = (disk(Path::new("/")), disk(Path::new("/no/such")), instance_type());
    }
}
