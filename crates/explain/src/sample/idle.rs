//! Idle time of the CPUs that this process may use, without the rest of a sample.

use super::parse;
use hakobu_sys::counters::{self, Counters, Machine};
use hakobu_sys::task;
use std::time::Duration;

/// Reads idle times; the file stays open in between.
#[derive(Debug)]
pub struct IdleTime {
    stat: Option<Counters>,
    /// The CPUs that this process may use, by number; empty if unknown.
    allowed: Vec<u32>,
    buffer: Vec<u8>,
}

impl IdleTime {
    /// Opens the file. Never fails: [`IdleTime::read`] then returns `None`.
    pub fn open() -> IdleTime {
        IdleTime {
            stat: Counters::machine(Machine::Stat),
            allowed: task::affinity(0).unwrap_or_default(),
            buffer: Vec::new(),
        }
    }

    /// Returns the mean time that these CPUs were idle since boot, with or without I/O in flight; proc_stat(5). Its
    /// resolution is a tick (10 ms) per CPU. Time that a hypervisor took away is not idle.
    pub fn read(&mut self) -> Option<Duration> {
        let text = self.stat.as_ref()?.read(&mut self.buffer)?;
        let ticks_per_s = counters::ticks_per_s();
        let idle_ns: Vec<u64> = parse::lines(text)
            .filter_map(|line| parse::cpu(line, ticks_per_s))
            .filter(|(cpu, _)| self.allowed.is_empty() || self.allowed.contains(cpu))
            .map(|(_, times)| times.idle_ns.saturating_add(times.iowait_ns))
            .collect();
        let sum_ns = idle_ns.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        Some(Duration::from_nanos(sum_ns.checked_div(idle_ns.len() as u64)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn idle_time_passes_no_faster_than_time() {
        let mut idle = IdleTime::open();
        let (began, first) = (Instant::now(), idle.read().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let (took, last) = (began.elapsed(), idle.read().unwrap());
        assert!(last >= first);
        // A tick at each end.
        assert!(last - first <= took + Duration::from_millis(20), "{:?} of {took:?}", last - first);
    }

    #[test]
    fn a_busy_cpu_is_not_idle() {
        let cpu = task::affinity(0).unwrap()[0];
        let mut idle = IdleTime { allowed: vec![cpu], ..IdleTime::open() };
        std::thread::spawn(move || {
            task::set_affinity(0, &[cpu]).unwrap();
            let (began, first) = (Instant::now(), idle.read().unwrap());
            while began.elapsed() < Duration::from_millis(200) {
                std::hint::black_box(());
            }
            assert!(idle.read().unwrap() - first <= Duration::from_millis(20));
        })
        .join()
        .unwrap();
    }
}
