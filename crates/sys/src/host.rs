//! This machine and its boot, as far as a name can carry them.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A number for this host and pid namespace: processes that can see each other by pid share it.
pub fn host_id() -> u32 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/etc/machine-id").unwrap_or_default().hash(&mut hasher);
    rustix::system::uname().nodename().to_bytes().hash(&mut hasher);
    std::fs::read_link("/proc/self/ns/pid").unwrap_or_default().hash(&mut hasher);
    hasher.finish() as u32
}

/// A number for this boot of the kernel.
pub fn boot_id() -> u32 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    hasher.finish() as u32
}

/// The host's name, as uname(2) has it.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
