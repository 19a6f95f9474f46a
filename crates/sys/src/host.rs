//! This machine and its boot, as far as a name can carry them, and what it is made of.

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

/// The kernel's release and the machine's architecture, uname(2): `6.12.1`, `x86_64`.
pub fn kernel() -> (String, String) {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    (text(name.release()), text(name.machine()))
}

/// What the first CPU calls itself (/proc/cpuinfo); `None` where it does not say (arm64).
pub fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start().strip_prefix(':')?.trim().to_owned())
}
