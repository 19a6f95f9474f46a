//! Identity of this machine and boot for use in file names, and its kernel and CPU.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Id of this host and pid namespace, shared by processes that can see each other's pids.
pub fn host_id() -> u32 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/etc/machine-id").unwrap_or_default().hash(&mut hasher);
    rustix::system::uname().nodename().to_bytes().hash(&mut hasher);
    std::fs::read_link("/proc/self/ns/pid").unwrap_or_default().hash(&mut hasher);
    hasher.finish() as u32
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
