//! Trees of processes, compared with `times` of sh(1).

use crate::sample::*;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shell code that uses CPU time.
const BURN: &str = "i=0; while [ $i -lt 120000 ]; do i=$((i+1)); done";

fn shell(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Samples until the tree has ended; returns the last reading.
fn watch(sampler: &mut Sampler) -> Process {
    let began = Instant::now();
    let mut most = 0;
    let mut last = 0;
    loop {
        let process = sampler.read().process;
        let used_ns = process.user_ns + process.system_ns;
        assert!(used_ns >= last, "went back from {last} to {used_ns}");
        last = used_ns;
        most = most.max(process.processes);
        if most > 0 && process.processes == 0 {
            return process;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "never ended: {process:?}");
        std::thread::sleep(Duration::from_millis(7));
    }
}

/// Seconds in the output of `times`: `0m1.250s`.
fn seconds(text: &str) -> f64 {
    let values = text.split_whitespace().map(|value| {
        let (minutes, seconds) = value.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    });
    values.sum()
}

fn used_s(process: &Process) -> f64 {
    (process.user_ns + process.system_ns) as f64 / 1e9
}

#[test]
fn descendants_that_ended_count_once() {
    // In sequence, in parallel, and nested.
    let script = format!("({BURN}); ({BURN}) & ({BURN}; ({BURN}); true); wait; {BURN}; times");
    let child = shell(&script);
    let mut sampler = Sampler::new(Watched::Tree(child.id()));
    // The same without the other counters.
    let mut times = TreeCpuTime::of(child.id());
    let ended = Arc::new(AtomicBool::new(false));
    let has_ended = ended.clone();
    let reading = std::thread::spawn(move || {
        let mut last = 0;
        loop {
            let is_last = has_ended.load(Ordering::Relaxed);
            let (user_ns, system_ns) = times.read();
            assert!(user_ns + system_ns >= last);
            last = user_ns + system_ns;
            if is_last {
                return last as f64 / 1e9;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let last = watch(&mut sampler);
    ended.store(true, Ordering::Relaxed);
    let alone = reading.join().unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let (found, expected) = (used_s(&last), seconds(&said));
    assert!(expected > 0.05, "{said}");
    assert!((found - expected).abs() < 0.1 + 0.1 * expected, "{found} {expected}");
    assert!((alone - expected).abs() < 0.1 + 0.1 * expected, "{alone} {expected}");
    assert!(last.minor_faults > 100 && last.rss_bytes == 0, "{last:?}");
    // Its usage is still known after it was waited for.
    assert_eq!(used_s(&sampler.read().process), found);
}

#[test]
fn orphans_stay_in_the_tree() {
    let file = std::env::temp_dir().join(format!("hakobu-orphan-{}", std::process::id()));
    let script = format!(
        "(sh -c '{BURN}; {BURN}; times > {}' & sleep 0.1); sleep 0.1",
        file.to_str().unwrap()
    );
    let mut child = shell(&script);
    let mut sampler = Sampler::new(Watched::Tree(child.id()));
    let reading = std::thread::spawn(move || {
        let last = watch(&mut sampler);
        (sampler, last)
    });
    let (mut sampler, last) = reading.join().unwrap();
    child.wait().unwrap();
    let expected = seconds(&std::fs::read_to_string(&file).unwrap());
    std::fs::remove_file(&file).unwrap();
    assert!(used_s(&last) + 0.1 > expected, "{} {expected}", used_s(&last));
    assert!(used_s(&sampler.read().process) + 0.1 > expected);
}

#[test]
fn threads_of_a_tree_are_seen() {
    let mut child = shell("sleep 0.5");
    let mut sampler = Sampler::new(Watched::Tree(child.id()));
    let process = sampler.read().process;
    assert!(process.processes >= 1 && process.threads.len() >= process.processes as usize);
    assert!(process.threads.iter().any(|thread| thread.tid == child.id()), "{process:?}");
    // The kernel updates resident pages with a delay: a young process may have none yet.
    let seen = (0..20).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        sampler.read().process.rss_bytes > 0
    });
    assert!(seen);
    child.wait().unwrap();
    assert_eq!(sampler.read().process.processes, 0);
}

#[test]
fn nobody_of_that_number() {
    // Above the largest process id (2^22).
    let mut sampler = Sampler::new(Watched::Tree(u32::MAX));
    let process = sampler.read().process;
    assert_eq!((process.processes, process.user_ns, process.threads.len()), (0, 0, 0));
}

#[test]
fn children_of_this_process_are_a_tree() {
    let mut sampler = Sampler::new(Watched::Children);
    let before = used_s(&sampler.read().process);
    let child = shell(&format!("({BURN}); {BURN}; times"));
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let after = used_s(&sampler.read().process);
    // Other tests may have children at the same time, so this is a lower bound.
    assert!(after - before + 0.05 > seconds(&said), "{before} {after} {said}");
}

/// Daemons of a watched command leave its process tree. The test runs in a process of its own, because the subreaper
/// adopts the orphans of all tests.
#[test]
fn adopted_orphans_are_counted() {
    const OWN: &str = "HAKOBU_TEST_ADOPTS";
    if std::env::var_os(OWN).is_none() {
        let name = "sample::tests::trees::adopted_orphans_are_counted";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let output = alone.args([name, "--exact", "--nocapture"]).env(OWN, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        return;
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let mut sampler = Sampler::new(Watched::Children);
    sampler.read();
    // The intermediate shell ends at once, so the daemon is only visible through adoption.
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let mut child =
        Command::new("sh").args(["-c", &format!("(sh -c '{burn}' & )")]).spawn().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    let process = loop {
        let process = sampler.read().process;
        if process.processes == 0 {
            break process;
        }
        assert_eq!(process.processes, 1, "{process:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{process:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    let used = Duration::from_nanos(process.user_ns + process.system_ns);
    // A few milliseconds would be the shells alone.
    assert!(used > Duration::from_millis(40), "{used:?}");
}
