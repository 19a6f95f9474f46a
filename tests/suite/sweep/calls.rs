//! System calls of a run, as listed by strace, and the positions at which each can fail.

use std::collections::{BTreeMap, BTreeSet};

/// The thread that shows progress: the end of the run does not wait for it, so that whether it reaches a call is
/// chance. Its calls are not counted.
const UNJOINED: &str = "prctl(PR_SET_NAME, \"progress\"";

/// Number of calls of each kind by each thread, threads in the order of their first call.
#[derive(Debug, Default)]
pub struct Calls {
    threads: Vec<BTreeMap<String, u64>>,
}

impl Calls {
    /// Reads the output of `strace -f`; `until` ends it at the first line that contains it.
    pub fn read(log: &str, until: Option<&str>) -> Calls {
        let (mut calls, mut known, mut unjoined) = (Calls::default(), Vec::new(), Vec::new());
        for line in log.lines() {
            if until.is_some_and(|end| line.contains(end)) {
                break;
            }
            let Some((thread, rest)) = line.split_once(' ') else { continue };
            let rest = rest.trim_start();
            // A call that another thread interrupted is listed twice: at its begin and at its end.
            let Some((name, _)) = rest.split_once('(') else { continue };
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                continue;
            }
            let at = known.iter().position(|each| *each == thread).unwrap_or_else(|| {
                known.push(thread);
                calls.threads.push(BTreeMap::new());
                known.len() - 1
            });
            if rest.starts_with(UNJOINED) {
                unjoined.push(at);
            }
            *calls.threads[at].entry(name.to_owned()).or_default() += 1;
        }
        unjoined.into_iter().for_each(|at| calls.threads[at].clear());
        calls
    }

    /// Returns the number of times the first thread makes a call.
    fn of_first(&self, call: &str) -> u64 {
        let first = self.threads.first();
        first.and_then(|thread| thread.get(call)).copied().unwrap_or(0)
    }

    /// For each call the times at which it can fail: the first, second, middle and last time in
    /// each thread. strace counts in each thread by itself, so that one number stands for all
    /// threads that come that far; numbers that the start of the process reaches are left out.
    pub fn moments(&self, start: &Calls) -> BTreeMap<String, BTreeSet<u64>> {
        let mut moments: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for (at, thread) in self.threads.iter().enumerate() {
            for (call, count) in thread {
                let before = start.of_first(call);
                let from = if at == 0 { before } else { 0 };
                let own = count.saturating_sub(from);
                let each = [1, 2, own.div_ceil(2), own].map(|number| from + number);
                let wanted = each.into_iter().filter(|when| *when > before && *when <= *count);
                moments.entry(call.clone()).or_default().extend(wanted);
            }
        }
        moments
    }
}

#[test]
fn moments_are_counted_in_each_thread() {
    let start = Calls::read("7 read(3) = 1\n7 read(3) = 1\n", None);
    let log = "7 read(3) = 1\n7 read(3) = 1\n7 read(3) = 1\n8 read(4 <unfinished ...>\n\
               7 read(3) = 1\n8 <... read resumed>) = 0\n7 --- SIGCHLD {} ---\n8 read(4) = 0\n\
               8 read(4) = 0\n8 read(4) = 0\n8 read(4) = 0\n8 close(4) = 0\n8 +++ exited +++\n";
    let moments = Calls::read(log, None).moments(&start);
    let of = |call: &str| moments[call].iter().copied().collect::<Vec<_>>();
    // The second thread's first two times would be the first thread's start.
    assert_eq!((of("read"), of("close")), (vec![3, 4, 5], vec![1]));
    let joined = Calls::read("8 prctl(PR_SET_NAME, \"progress\") = 0\n8 brk() = 0\n", None);
    assert!(joined.moments(&Calls::default()).is_empty(), "{joined:?}");
    let until = Calls::read("7 read(3) = 1\n7 write(1, \"x\")\n7 read(3) = 1\n", Some(" write(1,"));
    assert_eq!(until.of_first("read"), 1);
}
