//! Counters of this process: exact ones of getrusage(2), and for each thread the times running and waiting
//! for a CPU.

use super::{Process, Thread, parse};
use hakobu_sys::counters::{self, Counters, ProcessDir};
use hakobu_sys::usage::Used;
use std::ffi::CString;
use std::time::Duration;

/// Most threads whose files are kept open; others are opened for each sample.
const OPEN_MAX: usize = 256;

/// Open files of this process.
#[derive(Debug)]
pub struct Own {
    dir: Option<ProcessDir>,
    memory: Option<Counters>,
    io: Option<Counters>,
    threads: Vec<(u32, Counters)>,
    tids: Vec<u32>,
}

impl Own {
    /// Opens the files.
    pub fn new() -> Own {
        let dir = ProcessDir::own();
        let open = |name| dir.as_ref().and_then(|dir| dir.open_file(name));
        Own { memory: open(c"statm"), io: open(c"io"), dir, threads: Vec::new(), tids: Vec::new() }
    }

    /// Reads the counters.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Process {
        let used = Used::of_process();
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
            rss_bytes: rss.unwrap_or(0).saturating_mul(counters::page_bytes()),
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
