//! Samples of this machine, compared with other sources.

use crate::sample::*;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Ticks of all CPUs, from the first line of /proc/stat.
fn ticks() -> u64 {
    let text = std::fs::read_to_string(Path::new("/proc").join("stat")).unwrap();
    let first = text.lines().next().unwrap();
    // Guest time is included in user time.
    first.split_whitespace().skip(1).take(8).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn times_of_cpus_are_those_of_the_machine() {
    let before = ticks();
    let sample = Sampler::new(Watched::Machine).read();
    let after = ticks();
    let sum_ns = sample.cpus.iter().fold(0, |sum, (_, times)| {
        sum + times.user_ns + times.system_ns + times.iowait_ns + times.idle_ns + times.steal_ns
    });
    let tick_ns = 1_000_000_000 / hakobu_sys::proc::ticks_per_s();
    let found = sum_ns / tick_ns;
    // The kernel rounds each number down, and idle time may decrease by a tick.
    let slack = 8 * sample.cpus.len() as u64 + 2;
    assert!(found + slack >= before && found <= after + slack, "{before} {found} {after}");
    assert_eq!(sample.process, Process::default());
    assert!(sample.running >= 1);
    assert!(sample.switches > 0);
    let memory = sample.memory;
    assert!(memory.free_bytes <= memory.available_bytes.max(memory.free_bytes));
    assert!(memory.available_bytes <= memory.total_bytes && memory.total_bytes > 1 << 20);
}

/// Checks the rates over 0.3 s in which the thread `tid` of this process spins; returns the problem.
fn one_interval_with_a_spinning_thread(tid: u32) -> Option<String> {
    let mut sampler = Sampler::new(Watched::ThisProcess);
    let before = sampler.read();
    std::thread::sleep(Duration::from_millis(300));
    let after = sampler.read();
    let rates = Rates::between(&before, &after);
    let find = |sample: &Sample| *sample.process.threads.iter().find(|t| t.tid == tid).unwrap();
    let (from, to) = (find(&before), find(&after));
    // It ran or waited for a CPU throughout; a wait in progress is not counted yet.
    let could_s = (to.ran_ns + to.waited_ns - from.ran_ns - from.waited_ns) as f64 / 1e9;
    let ran = (to.ran_ns - from.ran_ns) as f64 / 1e9 / rates.span_s;
    let Some((_, most)) = rates.process.busiest else { return Some("no thread".to_string()) };
    let right = rates.span_s >= 0.3
        && (0.5..1.1).contains(&(could_s / rates.span_s))
        && most >= ran - 1e-9
        && most <= 1.0
        // The process includes at least this thread.
        && rates.process.cpu() > ran - 0.1
        && rates.process.run_delay.is_some()
        && rates.process.thread_count >= 2
        && rates.process.rss_bytes > 1 << 20;
    (!right).then(|| format!("{could_s} s, ran {ran}, of {} s: {:?}", rates.span_s, rates.process))
}

#[test]
fn a_spinning_thread_is_the_busiest() {
    let (stop, spinner) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            spinner.store(hakobu_sys::proc::own_thread(), Ordering::SeqCst);
            while !stop.load(Ordering::Relaxed) {
                std::hint::black_box(0);
            }
        });
        while spinner.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let tid = spinner.load(Ordering::SeqCst);
        // Other load may disturb a measurement: one good interval is enough.
        let mut complaints = Vec::new();
        let holds = (0..10).any(|_| {
            let complaint = one_interval_with_a_spinning_thread(tid);
            complaints.extend(complaint.clone());
            complaint.is_none()
        });
        stop.store(true, Ordering::Relaxed);
        assert!(holds, "{complaints:?}");
    });
    // An ended thread is dropped.
    let tid = spinner.load(Ordering::SeqCst);
    let mut sampler = Sampler::new(Watched::ThisProcess);
    let forgotten = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        sampler.read().process.threads.iter().all(|thread| thread.tid != tid)
    });
    assert!(forgotten);
}

#[test]
fn what_this_process_writes_is_counted() {
    let mut sampler = Sampler::new(Watched::ThisProcess);
    let before = sampler.read().process;
    let dir = std::env::temp_dir().join(format!("hakobu-sample-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("written");
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    let on_disk = hakobu_sys::disk::below_path(&file).is_some();
    let after = sampler.read().process;
    std::fs::remove_dir_all(&dir).unwrap();
    let (Some(from), Some(to)) = (before.device_write_bytes, after.device_write_bytes) else {
        return crate::sample::tests::skip("nobody shows this process' I/O");
    };
    if !on_disk {
        return crate::sample::tests::skip("temporary files are on no disk");
    }
    assert!(to - from >= 4 << 20, "{from} {to}");
}

#[test]
fn a_reading_is_cheap() {
    for watched in [Watched::Machine, Watched::ThisProcess] {
        let mut sampler = Sampler::new(watched);
        sampler.read();
        let mut times: Vec<Duration> = (0..100)
            .map(|_| {
                let began = Instant::now();
                std::hint::black_box(sampler.read());
                began.elapsed()
            })
            .collect();
        times.sort();
        if std::env::var_os("HAKOBU_SHOW_COST").is_some() {
            eprintln!("{watched:?}: best {:?}, median {:?}", times[0], times[50]);
        }
        // Ten times the target for release builds on an idle machine.
        assert!(times[0] < Duration::from_millis(5), "{watched:?}: {:?} at best", times[0]);
    }
}

/// Threads that create and remove names in one directory are seen waiting for its lock.
#[test]
fn waiting_for_a_directory_is_seen() {
    assert!(is_directory_lock("rwsem_down_write_slowpath"));
    assert!(is_directory_lock("open_last_lookups.isra.0"));
    assert!(!is_directory_lock("futex_wait_queue") && !is_directory_lock(""));
    let dir = std::env::temp_dir().join(format!("hakobu-lock-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let stop = AtomicBool::new(false);
    let (mut seen, mut places) = (false, std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        for name in 0..8 {
            let (stop, file) = (&stop, dir.join(name.to_string()));
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::fs::write(&file, "").unwrap();
                    std::fs::remove_file(&file).unwrap();
                }
            });
        }
        let began = Instant::now();
        while !seen && began.elapsed() < Duration::from_secs(10) {
            for tid in hakobu_sys::proc::own_threads() {
                let place = hakobu_sys::proc::waiting_in(tid);
                seen |= place.as_deref().is_some_and(is_directory_lock);
                places.extend(place);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    std::fs::remove_dir_all(&dir).unwrap();
    if places.is_empty() {
        return crate::sample::tests::skip("nobody says what threads wait for");
    }
    assert!(seen, "{places:?}");
}

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
    let cpu = proc::affinity(0).unwrap()[0];
    let mut idle = IdleTime { allowed: vec![cpu], ..IdleTime::open() };
    std::thread::spawn(move || {
        proc::set_affinity(0, &[cpu]).unwrap();
        let (began, first) = (Instant::now(), idle.read().unwrap());
        while began.elapsed() < Duration::from_millis(200) {
            std::hint::black_box(());
        }
        assert!(idle.read().unwrap() - first <= Duration::from_millis(20));
    })
    .join()
    .unwrap();
}
