//! Headroom for threads: limits of the kernel, the user and control groups, each with its name and the
//! remaining amount.

use crate::cgroup;
use crate::counters::kib_field;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// Resource of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Threads and processes.
    Threads,
    /// Bytes of memory.
    Memory,
    /// Bytes of address space.
    Addresses,
    /// Mappings of memory.
    Mappings,
    /// Open files.
    Files,
}

/// A limit with its headroom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its resource.
    pub of: Of,
    /// Its name: `kernel.threads-max`, `RLIMIT_NPROC`.
    pub name: &'static str,
    /// Remaining amount.
    pub left: u64,
}

/// All readable limits. Others show as errors of later calls.
pub fn left() -> Vec<Room> {
    let mut rooms = Vec::new();
    let mut add =
        |of, name, left: Option<u64>| rooms.extend(left.map(|left| Room { of, name, left }));
    let tasks = tasks().unwrap_or(0);
    for (name, path) in [
        ("kernel.threads-max", "/proc/sys/kernel/threads-max"),
        ("kernel.pid_max", "/proc/sys/kernel/pid_max"),
    ] {
        add(Of::Threads, name, number(path).map(|most| most.saturating_sub(tasks)));
    }
    // The limit does not apply to root.
    if crate::process::euid() != 0 {
        add(Of::Threads, "RLIMIT_NPROC", limit(Resource::Nproc));
    }
    add(Of::Files, "RLIMIT_NOFILE", Some(crate::process::raise_open_files_limit()));
    let maps = std::fs::read("/proc/self/maps").ok();
    let maps = maps.map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count() as u64);
    let most = number("/proc/sys/vm/max_map_count");
    add(Of::Mappings, "vm.max_map_count", most.map(|most| most.saturating_sub(maps)));
    let used = kib_field("/proc/self/status", "VmSize:").unwrap_or(0);
    let addresses = limit(Resource::As).map(|most| most.saturating_sub(used));
    add(Of::Addresses, "RLIMIT_AS", addresses);
    let available = kib_field("/proc/meminfo", "MemAvailable:");
    let swap = kib_field("/proc/meminfo", "SwapFree:").unwrap_or(0);
    add(Of::Memory, "MemAvailable", available.map(|bytes| bytes.saturating_add(swap)));
    for hierarchy in cgroup::hierarchies() {
        let unified = hierarchy.controllers.is_none();
        for group in hierarchy.upwards() {
            if unified || hierarchy.controls("pids") {
                let used = of_group(group, "pids.current").unwrap_or(0);
                let most = of_group(group, "pids.max");
                add(Of::Threads, "pids.max", most.map(|most| most.saturating_sub(used)));
            }
            if unified {
                add(Of::Memory, "memory.max", of_group(group, "memory.max"));
            } else if hierarchy.controls("memory") {
                add(Of::Memory, "memory.limit_in_bytes", of_group(group, "memory.limit_in_bytes"));
            }
        }
    }
    rooms
}

/// Soft limit; `None` if unlimited.
fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// Threads and processes of the machine: fourth field of /proc/loadavg.
fn tasks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Number in a file of a group; `None` for "max".
fn of_group(group: &Path, file: &str) -> Option<u64> {
    number(group.join(file).to_str()?)
}

/// Memory of the machine, bytes.
pub fn memory_bytes() -> Option<u64> {
    kib_field("/proc/meminfo", "MemTotal:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_this_machine() {
        let rooms = left();
        for (of, least) in [(Of::Threads, 10), (Of::Memory, 1 << 20), (Of::Mappings, 100)] {
            let of_kind: Vec<&Room> = rooms.iter().filter(|room| room.of == of).collect();
            assert!(
                !of_kind.is_empty() && of_kind.iter().all(|room| room.left > least),
                "{rooms:?}"
            );
        }
        assert_eq!(number("/no/such"), None);
        assert!(tasks().unwrap() > 1);
    }
}
