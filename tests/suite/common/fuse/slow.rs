//! A file system in memory with latency and concurrency like a network file system; it counts operations, and
//! fails reads and writes of a range of a file.

use super::memory::{Faults, Memory};
use super::{Answers, Mount, Request, number, op, words};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const ASYNC_READ: u64 = 1;
const BIG_WRITES: u64 = 1 << 5;
const PARALLEL_DIROPS: u64 = 1 << 18;
const MAX_PAGES: u64 = 1 << 22;
const VALID_S: u64 = 3;
const LARGEST: u64 = 1 << 20;

/// State shared by all its threads and the test.
pub struct Slow {
    memory: Mutex<Memory>,
    delay_us: AtomicU64,
    /// Reads, writes, opens, and closes or looks at open files: under way, the most that there were, and all of them.
    now: [AtomicU64; 4],
    most: [AtomicU64; 4],
    seen: [AtomicU64; 4],
    /// Operations of any kind that a program waits for: under way, and the most.
    waiting: [AtomicU64; 2],
    /// Names looked up before the first file was opened.
    looked_up: AtomicU64,
    /// Threads that have read.
    readers: Mutex<HashSet<u64>>,
    /// From this offset on an operation fails.
    fails: Mutex<Option<(u64, u64, i32)>>,
    /// No answer comes.
    hangs: Mutex<bool>,
    answers: Condvar,
}

/// A file system that does not answer; it does when this is dropped.
pub struct Hang(Arc<Slow>);

impl Drop for Hang {
    fn drop(&mut self) {
        *self.0.hangs.lock().unwrap() = false;
        self.0.answers.notify_all();
    }
}

#[derive(Clone)]
struct Server(Arc<Slow>);

impl Slow {
    /// Mounts one whose operations take so long each, with so many threads.
    pub fn mount(
        root: PathBuf,
        delay: Duration,
        threads: usize,
    ) -> Result<(Mount, Arc<Slow>), String> {
        let mut memory = Memory::new(&Faults::default(), false, true);
        memory.valid_s = VALID_S;
        let slow = Arc::new(Slow {
            memory: Mutex::new(memory),
            delay_us: AtomicU64::default(),
            now: Default::default(),
            most: Default::default(),
            seen: Default::default(),
            waiting: Default::default(),
            looked_up: AtomicU64::default(),
            readers: Mutex::default(),
            fails: Mutex::default(),
            hangs: Mutex::default(),
            answers: Condvar::new(),
        });
        let servers = vec![Server(Arc::clone(&slow)); threads];
        let mount = Mount::with(root, "rw", servers)?;
        slow.set_delay(delay);
        Ok((mount, slow))
    }

    /// From now on each operation takes so long.
    pub fn set_delay(&self, delay: Duration) {
        self.delay_us.store(delay.as_micros() as u64, SeqCst);
    }

    /// From now on this operation fails from an offset on.
    pub fn fail_from(&self, op: u64, offset: u64, errno: i32) {
        *self.fails.lock().unwrap() = Some((op, offset, errno));
    }

    /// From now on no operation is answered that a program waits for, until the handle is dropped.
    pub fn hang(self: &Arc<Self>) -> Hang {
        *self.hangs.lock().unwrap() = true;
        Hang(Arc::clone(self))
    }

    /// From now on nothing fails.
    pub fn heal(&self) {
        *self.fails.lock().unwrap() = None;
    }

    /// The most reads and writes that were under way at once since the last call.
    pub fn most(&self) -> (u64, u64) {
        (self.most[0].swap(0, SeqCst), self.most[1].swap(0, SeqCst))
    }

    /// The most files that were being opened at once since the last call.
    pub fn most_opening(&self) -> u64 {
        self.most[2].swap(0, SeqCst)
    }

    /// The most files that were being closed or looked at at once since the last call.
    pub fn most_closing(&self) -> u64 {
        self.most[3].swap(0, SeqCst)
    }

    /// The most operations of any kind that were under way at once since the last call.
    pub fn most_waiting(&self) -> u64 {
        self.waiting[1].swap(0, SeqCst)
    }

    /// Reads and writes since the last call.
    pub fn seen(&self) -> (u64, u64) {
        (self.seen[0].swap(0, SeqCst), self.seen[1].swap(0, SeqCst))
    }

    /// The names that were looked up since the last call, before any file was opened.
    pub fn looked_up(&self) -> u64 {
        self.looked_up.swap(0, SeqCst)
    }

    /// How many threads have read since the last call.
    pub fn readers(&self) -> usize {
        std::mem::take(&mut *self.readers.lock().unwrap()).len()
    }

    fn fault(&self, request: &Request<'_>) -> Option<i32> {
        let (op, offset, errno) = (*self.fails.lock().unwrap())?;
        let is_past = || number(request.body, 8, 8) + number(request.body, 16, 4) > offset;
        (request.op == op && is_past()).then_some(errno)
    }
}

/// Returns the index of an operation's counter.
fn counter(op: u64) -> Option<usize> {
    match op {
        op::READ => Some(0),
        op::WRITE => Some(1),
        op::OPEN => Some(2),
        op::FLUSH | op::GETATTR => Some(3),
        _ => None,
    }
}

impl Answers for Server {
    fn answer(&mut self, request: &Request<'_>) -> Option<Result<Vec<u8>, i32>> {
        let slow = &self.0;
        if let Some(at) = counter(request.op) {
            let now = slow.now[at].fetch_add(1, SeqCst) + 1;
            slow.most[at].fetch_max(now, SeqCst);
            slow.seen[at].fetch_add(1, SeqCst);
        }
        if request.op == op::LOOKUP && slow.seen[2].load(SeqCst) == 0 {
            slow.looked_up.fetch_add(1, SeqCst);
        }
        if request.op == op::READ {
            slow.readers.lock().unwrap().insert(request.pid);
        }
        let waits = ![op::FORGET, op::BATCH_FORGET, op::INTERRUPT, op::INIT].contains(&request.op);
        if waits {
            // For these no program waits.
            let counts = u64::from(![op::RELEASE, op::RELEASEDIR].contains(&request.op));
            let now = slow.waiting[0].fetch_add(counts, SeqCst) + counts;
            slow.waiting[1].fetch_max(now, SeqCst);
            std::thread::sleep(Duration::from_micros(slow.delay_us.load(SeqCst)));
            drop(slow.answers.wait_while(slow.hangs.lock().unwrap(), |hangs| *hangs).unwrap());
            slow.waiting[0].fetch_sub(counts, SeqCst);
        }
        let answer = match slow.fault(request) {
            Some(errno) => Some(Err(errno)),
            None if request.op == op::INIT => Some(Ok(init(number(request.body, 8, 4)))),
            None => slow.memory.lock().unwrap().answer(request),
        };
        if let Some(at) = counter(request.op) {
            slow.now[at].fetch_sub(1, SeqCst);
        }
        answer
    }
}

/// The answer to INIT: reads ahead as far as the kernel would, with large requests, many at once.
fn init(read_ahead: u64) -> Vec<u8> {
    let flags = ASYNC_READ | BIG_WRITES | PARALLEL_DIROPS | MAX_PAGES;
    words(&[
        (7, 4),
        (31, 4),
        (read_ahead, 4),
        (flags, 4),
        (0, 4),
        (LARGEST, 4),
        (1, 4), // granularity of times, ns
        (LARGEST / 4096, 2),
        (0, 2 + 4 + 4 + 24),
    ])
}
