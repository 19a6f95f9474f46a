//! Processes and threads: counter files below `/proc`, kept open and read again from their start; affinity and state;
//! resource usage; TCP connections.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::thread::CpuSet;
use std::collections::HashSet;
use std::ffi::CStr;
use std::io::Result;
use std::path::Path;
use std::time::Duration;

/// Counters of the machine, proc(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineFile {
    /// CPU times, context switches, runnable tasks (proc_stat(5)).
    Stat,
    /// proc_meminfo(5).
    Memory,
    /// proc_vmstat(5).
    Paging,
    /// proc_diskstats(5).
    Disks,
    /// Network interfaces of this network namespace.
    Links,
    /// Protocol counters of this network namespace.
    Protocols,
    /// Pressure stall information: CPU.
    PressureCpu,
    /// Pressure stall information: I/O.
    PressureIo,
    /// Pressure stall information: memory.
    PressureMemory,
}

impl MachineFile {
    fn path(self) -> &'static str {
        match self {
            MachineFile::Stat => "/proc/stat",
            MachineFile::Memory => "/proc/meminfo",
            MachineFile::Paging => "/proc/vmstat",
            MachineFile::Disks => "/proc/diskstats",
            MachineFile::Links => "/proc/self/net/dev",
            MachineFile::Protocols => "/proc/self/net/snmp",
            MachineFile::PressureCpu => "/proc/pressure/cpu",
            MachineFile::PressureIo => "/proc/pressure/io",
            MachineFile::PressureMemory => "/proc/pressure/memory",
        }
    }
}

/// An open counter file.
#[derive(Debug)]
pub struct Counters {
    file: OwnedFd,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

impl Counters {
    /// Opens counters of the machine; `None` if this kernel or container does not provide them.
    pub fn machine(of: MachineFile) -> Option<Counters> {
        Counters::open(Path::new(of.path()))
    }

    /// Opens a counter file at any path (a cgroup's).
    pub fn open(path: &Path) -> Option<Counters> {
        Some(Counters { file: rustix::fs::open(path, READ, Mode::empty()).ok()? })
    }

    /// Reads the whole file into `buffer`, which grows as needed and should be reused. `None` if it cannot be
    /// read: the process has ended, or permission is denied.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let mut length = 0;
        loop {
            if buffer.len() < length + 4096 {
                buffer.resize((2 * buffer.len()).max(length + 8192), 0);
            }
            let room = buffer.get_mut(length..)?;
            match rustix::io::pread(&self.file, room, length as u64) {
                Ok(0) => return buffer.get(..length),
                Ok(more) => length += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// As [`Counters::read`], for texts of up to 2 KiB that the kernel returns in one piece: one call instead
    /// of two.
    pub fn read_short<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }
        let length = rustix::io::retry_on_intr(|| rustix::io::pread(&self.file, &mut **buffer, 0));
        buffer.get(..length.ok()?)
    }
}

/// Folder of a process or thread below `/proc`. It refers to the same process for ever: after its end nothing
/// can be read, even if its id is reused.
#[derive(Debug)]
pub struct ProcessDir {
    dir: OwnedFd,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ProcessDir {
    /// Opens the folder of a process; `None` if it does not exist.
    pub fn open(pid: u32) -> Option<ProcessDir> {
        let dir = rustix::fs::open(format!("/proc/{pid}"), FOLDER, Mode::empty()).ok()?;
        Some(ProcessDir { dir })
    }

    /// Opens the folder of this process.
    pub fn own() -> Option<ProcessDir> {
        Some(ProcessDir { dir: rustix::fs::open("/proc/self", FOLDER, Mode::empty()).ok()? })
    }

    /// Opens a file in it: `stat`, `io`, `task/7/schedstat`.
    pub fn open_file(&self, name: &CStr) -> Option<Counters> {
        let file = rustix::fs::openat(&self.dir, name, READ, Mode::empty()).ok()?;
        Some(Counters { file })
    }

    /// Calls `each` with the ids of all threads.
    pub fn each_thread(&self, mut each: impl FnMut(u32)) -> Option<()> {
        let flags = READ.union(OFlags::DIRECTORY);
        let dir = rustix::fs::openat(&self.dir, c"task", flags, Mode::empty()).ok()?;
        let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 2048];
        let mut entries = rustix::fs::RawDir::new(dir, &mut buffer);
        while let Some(entry) = entries.next() {
            if let Some(number) = number(entry.ok()?.file_name()) {
                each(number);
            }
        }
        Some(())
    }
}

fn number(name: &CStr) -> Option<u32> {
    name.to_str().ok()?.parse().ok()
}

/// Ids of all processes in this pid namespace.
pub fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.collect()
}

/// Number of processes and threads started since boot, by all users (`processes` of proc_stat(5)).
pub fn started() -> Option<u64> {
    let mut buffer = Vec::new();
    let file = Counters::machine(MachineFile::Stat)?;
    let text = std::str::from_utf8(file.read(&mut buffer)?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("processes ")?.trim().parse().ok())
}

/// Ticks per second of the times in `stat` files, sysconf(3).
pub fn ticks_per_s() -> u64 {
    rustix::param::clock_ticks_per_second()
}

pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Monotonic clock, nanoseconds.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Bytes in a line of a file below /proc whose unit is kB: `VmHWM:`, `MemTotal:`.
pub(crate) fn kib_field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn pid(tid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(tid).ok()?)
}

/// CPUs that a thread may use, sched_getaffinity(2); 0 is the calling thread.
///
/// # Errors
/// ESRCH if the thread does not exist; EINVAL if the kernel supports more than 1024 CPUs.
pub fn affinity(tid: u32) -> Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(pid(tid))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Restricts a thread to these CPUs, sched_setaffinity(2); 0 is the calling thread. Threads that it creates
/// later inherit the setting.
///
/// # Errors
/// EINVAL if the cpuset allows none of them; EPERM for another user's thread.
pub fn set_affinity(tid: u32, cpus: &[u32]) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if (*cpu as usize) < CpuSet::MAX_CPU {
            set.set(*cpu as usize);
        }
    }
    Ok(rustix::thread::sched_setaffinity(pid(tid), &set)?)
}

/// Ids of the threads of this process.
pub fn own_threads() -> Vec<u32> {
    let mut tids = Vec::new();
    if let Some(own) = ProcessDir::own() {
        let _ = own.each_thread(|tid| tids.push(tid));
    }
    tids
}

/// Id of the calling thread.
pub fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// State of a thread of this process: `R` runnable, `S` sleeping, `D` in an uninterruptible wait (a disk, a
/// kernel lock); `None` if it has ended.
pub fn state(tid: u32) -> Option<char> {
    let stat = std::fs::read(format!("/proc/self/task/{tid}/stat")).ok()?;
    // The name, in parentheses, may contain any character.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).map(|byte| *byte as char)
}

/// Kernel function in which a thread of this process waits (`wchan`, proc_pid_wchan(5)); `None` if it does
/// not wait, or without permission. Newer kernels skip the lock functions themselves: a thread waiting for a
/// directory's lock is in `path_openat` (create) or `do_unlinkat`, with state `D`.
pub fn waiting_in(tid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/wchan")).ok()?;
    let name = name.trim();
    (!name.is_empty() && name != "0").then(|| name.to_owned())
}

/// Whether a sleeping thread of any process waits for nothing but a time: in a sleep function, or in select(2) or
/// poll(2) without a descriptor. False as well without permission.
pub fn is_asleep_for_a_time(pid: u32, tid: u32) -> bool {
    let read = |name| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}")).ok();
    let Some(function) = read("wchan") else { return false };
    if function.contains("nanosleep") {
        return true;
    }
    let polls = ["poll", "select"].iter().any(|name| function.contains(name));
    polls && read("syscall").is_some_and(|call| waits_for_no_descriptor(&call))
}

/// Whether `/proc/PID/syscall` (number and arguments, proc(5)) shows a select(2) or poll(2) of no descriptors.
fn waits_for_no_descriptor(call: &str) -> bool {
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse::<libc::c_long>().ok());
    let none = |word: Option<&str>| word == Some("0x0");
    match number {
        #[cfg(target_arch = "x86_64")]
        Some(libc::SYS_select) => none(words.next()),
        #[cfg(target_arch = "x86_64")]
        Some(libc::SYS_poll) => none(words.nth(1)),
        Some(libc::SYS_pselect6) => none(words.next()),
        Some(libc::SYS_ppoll) => none(words.nth(1)),
        _ => false,
    }
}

/// A process as proc_pid_stat(5) shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Name of its program, at most 15 bytes.
    pub name: Vec<u8>,
    pub parent: u32,
    /// CPU time of its threads.
    pub cpu: Duration,
}

impl ProcessStat {
    /// Reads the state of a process; `None` if it does not exist.
    pub fn of(pid: u32) -> Option<ProcessStat> {
        ProcessStat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?, ticks_per_s())
    }

    /// Returns the nearest process above this one whose program's name begins so.
    pub fn above(begins: &[u8]) -> Option<u32> {
        let mut pid = std::os::unix::process::parent_id();
        // A session has few: a shell or two, and the server.
        for _ in 0..8 {
            let of = ProcessStat::of(pid)?;
            if of.name.starts_with(begins) {
                return Some(pid);
            }
            pid = of.parent;
        }
        None
    }

    fn parse(text: &[u8], ticks_per_s: u64) -> Option<ProcessStat> {
        // The name may hold anything, also parentheses.
        let start = text.iter().position(|byte| *byte == b'(')?;
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let name = text.get(start + 1..end)?.to_vec();
        let fields = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // The third field is the first one here.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = field(14)?.saturating_add(field(15)?);
        let cpu = Duration::from_secs_f64(ticks as f64 / ticks_per_s.max(1) as f64);
        Some(ProcessStat { name, parent: u32::try_from(field(4)?).ok()?, cpu })
    }
}

/// Inaccuracy of the kernel's counter of resident memory.
const RSS_SLACK_BYTES: u64 = 256 * 1024;

/// Resource usage of a thread, of a process, or of a child and all its waited-for descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub sys: Duration,
    /// Peak resident memory of the largest of these processes, bytes. It survives exec(2), so it is at least
    /// that of the process before it became the command.
    pub rss_bytes_max: u64,
    /// True if it equals the value before exec(2) and is an upper bound only.
    pub rss_is_bound: bool,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes read from devices (in units of 512).
    pub device_read_bytes: u64,
    /// Bytes made dirty, to be written to devices (in units of 512).
    pub device_write_bytes: u64,
}

impl ResourceUsage {
    /// Usage of all threads of this process so far, including ended ones.
    pub fn of_process() -> ResourceUsage {
        ResourceUsage::of(libc::RUSAGE_SELF)
    }

    /// As [`ResourceUsage::of_process`], with the peak memory of this program alone: that of getrusage(2) survives exec(2), and a
    /// large parent would inflate it.
    pub fn of_program() -> ResourceUsage {
        let used = ResourceUsage::of_process();
        let peak = kib_field("/proc/self/status", "VmHWM:");
        ResourceUsage { rss_bytes_max: peak.unwrap_or(used.rss_bytes_max), ..used }
    }

    /// Usage of the waited-for children of this process and their descendants so far.
    pub fn of_children() -> ResourceUsage {
        ResourceUsage::of(libc::RUSAGE_CHILDREN)
    }

    /// Usage of the calling thread so far.
    pub fn of_thread() -> ResourceUsage {
        ResourceUsage::of(libc::RUSAGE_THREAD)
    }

    fn of(whom: libc::c_int) -> ResourceUsage {
        // SAFETY: rusage consists of integers, so all zeros is valid; the call only fills it in.
        ResourceUsage::from(&unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(whom, &mut usage);
            usage
        })
    }

    /// CPU time in user space and the kernel.
    pub fn cpu(&self) -> Duration {
        self.user + self.sys
    }

    /// Usage since an earlier reading, taken before the process became the command.
    pub fn since(self, before: &ResourceUsage) -> ResourceUsage {
        ResourceUsage {
            user: self.user.saturating_sub(before.user),
            sys: self.sys.saturating_sub(before.sys),
            rss_bytes_max: self.rss_bytes_max,
            rss_is_bound: self.rss_bytes_max <= before.rss_bytes_max + RSS_SLACK_BYTES,
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            device_read_bytes: self.device_read_bytes.saturating_sub(before.device_read_bytes),
            device_write_bytes: self.device_write_bytes.saturating_sub(before.device_write_bytes),
        }
    }
}

impl From<&libc::rusage> for ResourceUsage {
    fn from(usage: &libc::rusage) -> ResourceUsage {
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        ResourceUsage {
            user: time(usage.ru_utime),
            sys: time(usage.ru_stime),
            rss_bytes_max: usage.ru_maxrss as u64 * 1024,
            rss_is_bound: false,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            device_read_bytes: usage.ru_inblock as u64 * 512,
            device_write_bytes: usage.ru_oublock as u64 * 512,
        }
    }
}

/// True if a process has an established TCP connection. False as well if that cannot be read.
pub fn is_connected(pid: u32) -> bool {
    let Ok(links) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let sockets: Vec<u64> = links
        .filter_map(|link| socket(std::fs::read_link(link.ok()?.path()).ok()?.to_str()?))
        .collect();
    if sockets.is_empty() {
        return false;
    }
    let connections = ["tcp", "tcp6"].map(|table| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}"));
        established(&text.unwrap_or_default())
    });
    sockets.iter().any(|socket| connections.iter().any(|all| all.contains(socket)))
}

/// Inode in `socket:[4711]`.
fn socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Inodes of sockets with state 01, ESTABLISHED, in a table (proc_pid_net(5)).
fn established(table: &str) -> HashSet<u64> {
    let lines = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let state = fields.next()?;
        (state == "01").then(|| fields.nth(5)?.parse().ok())?
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_those_above_them() {
        let text = b"7 (a) b (c) S 3 7 7 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 1 0";
        let of = ProcessStat::parse(text, 100).unwrap();
        let expected = (&b"a) b (c"[..], 3, Duration::from_secs(2));
        assert_eq!((&*of.name, of.parent, of.cpu), expected);
        assert_eq!(ProcessStat::parse(b"7 (a) S", 100), None);
        let parent = std::os::unix::process::parent_id();
        assert_eq!(ProcessStat::of(std::process::id()).unwrap().parent, parent);
        let name = ProcessStat::of(parent).unwrap().name;
        assert_eq!(ProcessStat::above(&name), Some(parent));
        assert_eq!(ProcessStat::above(b"no such program"), None);
    }

    #[test]
    fn threads_can_be_looked_at_and_bound() {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(own_thread()).unwrap();
            let _ = stopped.recv();
            affinity(0).unwrap()
        });
        let tid = told.recv().unwrap();
        assert!(own_threads().contains(&tid));
        let all = affinity(tid).unwrap();
        let last = *all.last().unwrap();
        set_affinity(tid, &[last]).unwrap();
        assert_eq!(affinity(tid).unwrap(), [last]);
        // It sleeps until told to stop.
        let sleeping = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            state(tid) == Some('S')
        });
        assert!(sleeping, "{:?}", state(tid));
        if let Some(place) = waiting_in(tid) {
            assert!(place.contains("futex"), "{place}");
        }
        drop(stop);
        assert_eq!(thread.join().unwrap(), [last]);
        assert_eq!(state(u32::MAX), None);
        assert_eq!(waiting_in(u32::MAX), None);
        assert!(set_affinity(0, &[]).is_err());
        assert!(affinity(u32::MAX >> 1).is_err());
    }

    #[test]
    fn sleep_for_a_time_is_told_from_waiting() {
        let asleep = |program: &str, words: &[&str]| {
            let stdin = std::process::Stdio::piped();
            let child = std::process::Command::new(program).args(words).stdin(stdin).spawn();
            let mut child = child.unwrap();
            let seen = (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                is_asleep_for_a_time(child.id(), child.id())
            });
            child.kill().unwrap();
            child.wait().unwrap();
            seen
        };
        let own = std::fs::read_to_string("/proc/self/task/self/wchan");
        // Without permission nothing is seen: then there is nothing to compare.
        if own.is_ok() || std::path::Path::new("/proc/self/wchan").exists() {
            assert!(asleep("sleep", &["5"]));
            assert!(!asleep("cat", &[]));
        }
        assert!(waits_for_no_descriptor(&format!("{} 0x0 0x0 0x0", libc::SYS_pselect6)));
        assert!(!waits_for_no_descriptor(&format!("{} 0x4 0x0 0x0", libc::SYS_pselect6)));
        assert!(waits_for_no_descriptor(&format!("{} 0x7f00 0x0 0x0", libc::SYS_ppoll)));
        assert!(!waits_for_no_descriptor(&format!("{} 0x0 0x2 0x0", libc::SYS_ppoll)));
        assert!(!waits_for_no_descriptor("running"));
    }

    #[test]
    fn the_calling_thread_runs() {
        assert_eq!(state(own_thread()), Some('R'));
    }

    #[test]
    fn tables_and_links() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
         0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0 100 0\n\
         1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 42 1 0 20 4\n\
         2: odd\n";
        assert_eq!(established(table), HashSet::from([42]));
        assert_eq!(socket("socket:[4711]"), Some(4711));
        assert_eq!((socket("pipe:[4711]"), socket("/dev/null")), (None, None));
    }

    #[test]
    fn a_connection_is_seen_while_it_is_there() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(is_connected(std::process::id()));
        drop(stream);
        assert!(!is_connected(u32::MAX));
    }
}
