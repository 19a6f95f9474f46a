//! Counters of this process: exact ones of getrusage(2), and for each thread the times running and waiting
//! for a CPU.

use crate::sample::{Process, Thread, parse};
use hakobu_sys::proc::{self, Counters, ProcessDir, ResourceUsage};
use std::ffi::CString;
use std::time::Duration;

/// Most threads whose files are kept open; others are opened for each sample.
const OPEN_MAX: usize = 256;

/// Open files of this process.
#[derive(Debug)]
pub struct OwnProcess {
    dir: Option<ProcessDir>,
    memory: Option<Counters>,
    io: Option<Counters>,
    threads: Vec<(u32, Counters)>,
    tids: Vec<u32>,
}

impl OwnProcess {
    /// Opens the files.
    pub fn new() -> OwnProcess {
        let dir = ProcessDir::own();
        let open = |name| dir.as_ref().and_then(|dir| dir.open_file(name));
        OwnProcess {
            memory: open(c"statm"),
            io: open(c"io"),
            dir,
            threads: Vec::new(),
            tids: Vec::new(),
        }
    }

    /// Reads the counters.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Process {
        let used = ResourceUsage::of_process();
        let short = |file: &Option<Counters>, buffer: &mut Vec<u8>| {
            Some(file.as_ref()?.read_short(buffer)?.to_owned())
        };
        let rss = short(&self.memory, buffer).and_then(|text| parse::resident_pages(&text));
        let io = short(&self.io, buffer).and_then(|text| parse::process_io(&text));
        let threads = self.threads(buffer);
        Process {
            user_ns: ns(used.user),
            system_ns: ns(used.sys),
            processes: 1,
            thread_count: self.tids.len() as u32,
            threads,
            rss_bytes: rss.unwrap_or(0).saturating_mul(proc::page_bytes()),
            device_read_bytes: io.map(|io| io.0),
            device_write_bytes: io.map(|io| io.1),
            major_faults: used.major_faults,
            minor_faults: used.minor_faults,
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            ..Process::default()
        }
    }

    fn threads(&mut self, buffer: &mut Vec<u8>) -> Vec<Thread> {
        let Some(dir) = &self.dir else { return Vec::new() };
        self.tids.clear();
        let tids = &mut self.tids;
        let _ = dir.each_thread(|tid| tids.push(tid));
        // The kernel lists them mostly in ascending order; the binary search needs it always.
        tids.sort_unstable();
        self.threads.retain(|(tid, _)| tids.binary_search(tid).is_ok());
        let mut found = Vec::with_capacity(tids.len());
        for tid in tids.iter() {
            let place = self.threads.binary_search_by_key(tid, |(tid, _)| *tid);
            if let Ok(place) = place {
                if let Some(thread) = thread(*tid, &self.threads[place].1, buffer) {
                    found.push(thread);
                    continue;
                }
                // The id was reused by another thread.
                self.threads.remove(place);
            }
            let Some(file) = open_thread(dir, *tid) else { continue };
            found.extend(thread(*tid, &file, buffer));
            if self.threads.len() < OPEN_MAX {
                let place = self.threads.partition_point(|(other, _)| other < tid);
                self.threads.insert(place, (*tid, file));
            }
        }
        found
    }
}

/// Nanoseconds of a CPU time.
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Opens the scheduler counters of a thread.
pub fn open_thread(dir: &ProcessDir, tid: u32) -> Option<Counters> {
    dir.open_file(&CString::new(format!("task/{tid}/schedstat")).ok()?)
}

/// Reads the scheduler counters of a thread.
pub fn thread(tid: u32, file: &Counters, buffer: &mut Vec<u8>) -> Option<Thread> {
    let (ran_ns, waited_ns) = parse::schedstat(file.read_short(buffer)?)?;
    Some(Thread { tid, ran_ns, waited_ns })
}

/// Most processes whose folders are kept open; others are counted once they were waited for.
const MEMBERS_MAX: usize = 4096;

/// Connections are checked in every n-th sample of sleeping processes.
const CONNECTIONS_EACH: u32 = 8;
/// Most processes checked for connections.
const CONNECTED_MAX: usize = 32;
/// Most sleeping threads of which a sample asks what they wait for.
const SLEEPERS_MAX: usize = 128;

/// Monotonic totals: own and of waited-for children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    user_ticks: u64,
    system_ticks: u64,
    minor_faults: u64,
    major_faults: u64,
    /// `None` without permission.
    io: Option<(u64, u64)>,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.user_ticks += other.user_ticks;
        self.system_ticks += other.system_ticks;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.io = match (self.io, other.io) {
            (Some(a), Some(b)) => Some((a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            _ => None,
        };
    }
}

#[derive(Debug)]
struct Member {
    pid: u32,
    dir: ProcessDir,
    stat: Counters,
    now: parse::ProcessStat,
    totals: Totals,
    /// Page faults of its children in the previous sample.
    waited_faults: u64,
    /// Last seen context switches of each thread, and their accumulated growth.
    switches: (u64, u64),
    threads: Vec<(u32, (u64, u64))>,
}

/// Counters of a tree to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeDetail {
    /// All of [`Process`].
    Everything,
    /// CPU times, and what comes with them in one file: faults, memory, numbers of processes and threads.
    CpuTime,
}

/// CPU time of a process and its descendants, living and ended, apart from the other counters of a sample: a few system
/// calls for each process.
#[derive(Debug)]
pub struct TreeCpuTime {
    tree: ProcessTree,
    buffer: Vec<u8>,
}

impl TreeCpuTime {
    /// Of the tree below a process.
    pub fn of(root: u32) -> TreeCpuTime {
        let tree = ProcessTree::new(Some(root), TreeDetail::CpuTime);
        TreeCpuTime { tree, buffer: Vec::new() }
    }

    /// Nanoseconds in user space and in the kernel. To include all, read after the process has ended and before
    /// it is waited for.
    pub fn read(&mut self) -> (u64, u64) {
        let process = self.tree.read(&mut self.buffer);
        (process.user_ns, process.system_ns)
    }
}

/// A tree of processes.
#[derive(Debug)]
pub struct ProcessTree {
    /// `None` for the children of this process.
    root: Option<u32>,
    detail: TreeDetail,
    /// Parents precede children that were found later.
    members: Vec<Member>,
    /// Totals of processes that no member of the tree waited for.
    gone: Totals,
    gone_switches: (u64, u64),
    /// Page faults of our own waited-for children in the previous sample.
    waited_faults: u64,
    /// True if the kernel lists the children of threads (CONFIG_PROC_CHILDREN).
    lists_children: bool,
    /// Number of samples that needed connections, and the last result.
    asked: u32,
    connected: bool,
}

impl ProcessTree {
    /// Tree below a process; `None` for the children of this process.
    pub fn new(root: Option<u32>, detail: TreeDetail) -> ProcessTree {
        let own = ProcessDir::own();
        let listed = |own: ProcessDir| children_of(&own, proc::own_thread());
        ProcessTree {
            root,
            detail,
            members: Vec::new(),
            gone: Totals { io: Some((0, 0)), ..Totals::default() },
            gone_switches: (0, 0),
            waited_faults: match root {
                Some(_) => 0,
                None => ResourceUsage::of_children().minor_faults,
            },
            lists_children: own.and_then(listed).is_some(),
            asked: 0,
            connected: false,
        }
    }

    /// Reads the counters of the tree.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Process {
        let mut ended = Vec::new();
        let mut waited = self.own_waited();
        // A process that is waited for between reading its parent and reading itself would be missed or
        // counted twice: retry until none ended meanwhile.
        for _ in 0..8 {
            let before = ended.len();
            self.refresh(&mut ended, buffer);
            if ended.len() == before {
                break;
            }
            waited = self.own_waited();
        }
        self.keep_usage(ended, waited.minor_faults);
        self.discover(buffer);
        self.sum(waited, buffer)
    }

    fn own_waited(&self) -> ResourceUsage {
        match self.root {
            None => ResourceUsage::of_children(),
            Some(_) => ResourceUsage::default(),
        }
    }

    /// Reads all members again; those that are gone move to `ended`.
    fn refresh(&mut self, ended: &mut Vec<Member>, buffer: &mut Vec<u8>) {
        for mut member in std::mem::take(&mut self.members) {
            if member.read(self.detail, buffer).is_some() {
                self.members.push(member);
            } else {
                ended.push(member);
            }
        }
    }

    /// Keeps the usage of ended processes that no member of the tree waited for.
    fn keep_usage(&mut self, ended: Vec<Member>, own_waited_faults: u64) {
        // Page faults that each survivor's waited-for children account for.
        let mut room: Vec<(u32, u64)> = Vec::new();
        for member in &mut self.members {
            let faults = member.now.minor_faults.1;
            room.push((member.pid, faults.saturating_sub(member.waited_faults)));
            member.waited_faults = faults;
        }
        let own = std::process::id();
        if self.root.is_none() {
            room.push((own, own_waited_faults.saturating_sub(self.waited_faults)));
            self.waited_faults = own_waited_faults;
        }
        for member in &ended {
            self.gone_switches.0 += member.switches.0;
            self.gone_switches.1 += member.switches.1;
            // A parent that has also ended passed on the usage of its children.
            let mut parent = member.now.parent;
            for _ in 0..ended.len() {
                match ended.iter().find(|other| other.pid == parent) {
                    Some(other) => parent = other.now.parent,
                    None => break,
                }
            }
            let faults = member.totals.minor_faults;
            match room.iter_mut().find(|(pid, left)| *pid == parent && *left >= faults) {
                Some((pid, left)) => {
                    *left -= faults;
                    // The I/O of our own waited-for children is mixed with ours.
                    if self.root.is_none() && *pid == own {
                        let used = Totals { io: member.totals.io, ..Totals::default() };
                        self.gone.add(&used);
                    }
                }
                None => self.gone.add(&member.totals),
            }
        }
    }

    /// Finds new processes of the tree.
    fn discover(&mut self, buffer: &mut Vec<u8>) {
        let all = if self.lists_children { Vec::new() } else { parents(buffer) };
        let children = |dir: &ProcessDir, pid: u32, threads: u32| {
            if !self.lists_children {
                let of = all.iter().filter(|(_, parent)| *parent == pid);
                return of.map(|(child, _)| *child).collect();
            }
            let mut found = Vec::new();
            if threads <= 1 {
                found.extend(children_of(dir, pid).unwrap_or_default());
            } else {
                let _ =
                    dir.each_thread(|tid| found.extend(children_of(dir, tid).unwrap_or_default()));
            }
            found
        };
        let mut members = std::mem::take(&mut self.members);
        let mut waiting = match self.root {
            Some(root) => vec![root],
            None => ProcessDir::own()
                .map(|own| children(&own, std::process::id(), u32::MAX))
                .unwrap_or_default(),
        };
        let mut at = 0;
        loop {
            for pid in waiting {
                let known = members.iter().any(|member| member.pid == pid);
                if !known && members.len() < MEMBERS_MAX {
                    members.extend(Member::open(pid, self.detail, buffer));
                }
            }
            let Some(member) = members.get(at) else { break };
            waiting = children(&member.dir, member.pid, member.now.threads);
            at += 1;
        }
        self.members = members;
    }

    /// True if one of the processes has a TCP connection. Checked rarely: the kernel's table of connections
    /// may be long.
    fn is_connected(&mut self) -> bool {
        if self.asked.is_multiple_of(CONNECTIONS_EACH) {
            let mut first = self.members.iter().take(CONNECTED_MAX);
            self.connected = first.any(|member| proc::is_connected(member.pid));
        }
        self.asked = self.asked.wrapping_add(1);
        self.connected
    }

    fn sum(&mut self, waited: ResourceUsage, buffer: &mut Vec<u8>) -> Process {
        let mut totals = self.gone;
        let mut switches = self.gone_switches;
        let mut process = Process::default();
        let mut asleep = true;
        let mut sleepers_left = SLEEPERS_MAX;
        for member in &mut self.members {
            totals.add(&member.totals);
            if self.detail == TreeDetail::Everything {
                let states = member.threads(buffer, &mut process.threads);
                process.runnable_threads += states.awake;
                process.blocked_threads += states.blocked;
                let asked = states.asleep.iter().take(sleepers_left);
                let timed = asked.filter(|tid| proc::is_asleep_for_a_time(member.pid, **tid));
                process.timed_sleepers.extend(timed);
                sleepers_left = sleepers_left.saturating_sub(states.asleep.len());
                asleep &= states.awake + states.blocked == 0;
                switches.0 += member.switches.0;
                switches.1 += member.switches.1;
            }
            if member.now.state != b'Z' {
                process.processes += 1;
                process.thread_count += member.now.threads;
                process.rss_bytes += member.now.rss_pages.saturating_mul(proc::page_bytes());
            }
        }
        let is_asked = self.detail == TreeDetail::Everything && process.processes > 0;
        process.awaits_peer = is_asked && asleep && self.is_connected();
        let tick_ns = 1_000_000_000 / proc::ticks_per_s().max(1);
        process.user_ns = totals.user_ticks.saturating_mul(tick_ns) + ns(waited.user);
        process.system_ns = totals.system_ticks.saturating_mul(tick_ns) + ns(waited.sys);
        process.minor_faults = totals.minor_faults + waited.minor_faults;
        process.major_faults = totals.major_faults + waited.major_faults;
        process.device_read_bytes = totals.io.map(|io| io.0);
        process.device_write_bytes = totals.io.map(|io| io.1);
        // Only our own children's context switches are known exactly; observed ones may be fewer.
        process.voluntary_switches = switches.0.max(waited.voluntary_switches);
        process.involuntary_switches = switches.1.max(waited.involuntary_switches);
        process
    }
}

/// Number of threads of a process that are runnable, and in uninterruptible waits; ids of those that sleep.
#[derive(Clone, Debug, Default)]
struct States {
    awake: u32,
    blocked: u32,
    asleep: Vec<u32>,
}

impl Member {
    fn open(pid: u32, detail: TreeDetail, buffer: &mut Vec<u8>) -> Option<Member> {
        let dir = ProcessDir::open(pid)?;
        let stat = dir.open_file(c"stat")?;
        let mut member = Member {
            pid,
            dir,
            stat,
            now: parse::ProcessStat::default(),
            totals: Totals::default(),
            waited_faults: 0,
            switches: (0, 0),
            threads: Vec::new(),
        };
        member.read(detail, buffer)?;
        member.waited_faults = member.now.minor_faults.1;
        Some(member)
    }

    /// `None` if it has ended and was waited for.
    fn read(&mut self, detail: TreeDetail, buffer: &mut Vec<u8>) -> Option<()> {
        let now = parse::process_stat(self.stat.read_short(buffer)?)?;
        let io = match detail {
            TreeDetail::Everything => self.dir.open_file(c"io"),
            TreeDetail::CpuTime => None,
        };
        let io = io.and_then(|io| parse::process_io(io.read_short(buffer)?));
        self.now = now;
        self.totals = Totals {
            user_ticks: now.user.0 + now.user.1,
            system_ticks: now.system.0 + now.system.1,
            minor_faults: now.minor_faults.0 + now.minor_faults.1,
            major_faults: now.major_faults.0 + now.major_faults.1,
            io,
        };
        Some(())
    }

    /// Adds the threads to `found`, and their new context switches to the totals.
    fn threads(&mut self, buffer: &mut Vec<u8>, found: &mut Vec<Thread>) -> States {
        let mut states = States::default();
        let mut tids = Vec::new();
        if self.now.threads <= 1 {
            tids.push(self.pid);
        } else {
            let _ = self.dir.each_thread(|tid| tids.push(tid));
        }
        let mut seen = Vec::with_capacity(tids.len());
        for tid in tids {
            let file = open_thread(&self.dir, tid);
            found.extend(file.and_then(|file| thread(tid, &file, buffer)));
            let name = CString::new(format!("task/{tid}/status")).ok();
            let status = name.and_then(|name| self.dir.open_file(&name));
            let Some(text) = status.as_ref().and_then(|file| file.read_short(buffer)) else {
                continue;
            };
            match parse::state(text) {
                Some(b'R') => states.awake += 1,
                Some(b'D') => states.blocked += 1,
                Some(b'S') => states.asleep.push(tid),
                _ => {}
            }
            let Some(now) = parse::switches(text) else { continue };
            let known = self.threads.iter().find(|(other, _)| *other == tid);
            let before = known.map_or((0, 0), |(_, before)| *before);
            self.switches.0 += now.0.saturating_sub(before.0);
            self.switches.1 += now.1.saturating_sub(before.1);
            seen.push((tid, now));
        }
        self.threads = seen;
        states
    }
}

/// Children created by a thread.
fn children_of(dir: &ProcessDir, tid: u32) -> Option<Vec<u32>> {
    let file = dir.open_file(&CString::new(format!("task/{tid}/children")).ok()?)?;
    let mut buffer = Vec::new();
    let numbers = parse::fields(file.read(&mut buffer)?).filter_map(parse::number);
    Some(numbers.filter_map(|pid| u32::try_from(pid).ok()).collect())
}

/// All processes with their parents, for kernels without lists of children.
fn parents(buffer: &mut Vec<u8>) -> Vec<(u32, u32)> {
    let parent = |pid: u32| {
        let stat = ProcessDir::open(pid)?.open_file(c"stat")?;
        Some((pid, parse::process_stat(stat.read_short(buffer)?)?.parent))
    };
    proc::processes().into_iter().filter_map(parent).collect()
}
