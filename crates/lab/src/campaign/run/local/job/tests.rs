//! Real commands: how they end, what they use, and whether their children end with them.

use super::*;
use hakobu_sys::proc::ProcessDir;
use std::os::unix::process::CommandExt;
use std::sync::atomic::AtomicU32;

fn file() -> std::path::PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("hakobu-running-{}-{number}", std::process::id()))
}

/// File of running process groups.
fn running() -> RunningSessions {
    RunningSessions::new(Some(file()))
}

fn launch(script: &str) -> Launch {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    Launch { argv, ..Launch::default() }
}

fn run(launch: &Launch) -> Measurement {
    CommandJob { launch, sampled: true }.run(&AtomicBool::new(false), &running()).unwrap()
}

#[test]
fn ends_and_outputs() {
    for (script, ending, out, err) in [
        ("echo out; echo err >&2", CommandEnding::Exited(0), "out\n", "err\n"),
        ("exit 7", CommandEnding::Exited(7), "", ""),
        ("kill -TERM $$", CommandEnding::Killed(15), "", ""),
    ] {
        let measured = run(&launch(script));
        assert_eq!(measured.ending, ending, "{script}");
        assert_eq!(String::from_utf8_lossy(&measured.stdout), out);
        assert_eq!(String::from_utf8_lossy(&measured.stderr), err);
    }
    let none = Launch { argv: vec!["/no/such/program".into()], ..Launch::default() };
    let why = CommandJob { launch: &none, sampled: true }
        .run(&AtomicBool::new(false), &running())
        .unwrap_err();
    assert_eq!(why, "cannot run '/no/such/program': No such file or directory");
}

#[test]
fn numbers_of_a_busy_command() {
    let script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.25; true & wait";
    let measured = run(&launch(script));
    assert!(measured.costs.wall_s >= 0.25, "{measured:?}");
    assert!(
        measured.costs.user_s > 0.002 && measured.costs.user_s <= measured.costs.wall_s,
        "{measured:?}"
    );
    assert!(
        measured.costs.rss_bytes_max > 100_000 && measured.costs.voluntary_switches > 0,
        "{measured:?}"
    );
    // sleep and true; other processes on this machine are counted as well.
    assert!(measured.costs.started >= 2, "{measured:?}");
    let (times, curves) = &measured.curves;
    assert!(times.len() >= 2 && curves.values().all(|curve| curve.len() == times.len()));
    // The last sample is taken when the command ends, by a thread that has to wait for a CPU.
    assert!((times.last().unwrap() - measured.costs.wall_s).abs() < 1.0, "{times:?}");
    assert!(measured.costs.load.contains_key("cpu_percent"), "{:?}", measured.costs.load);
    // Other tests of this process are counted as well, on each CPU.
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    assert!(measured.lab_cpu_s < (measured.costs.wall_s + 1.0) * cpus, "{}", measured.lab_cpu_s);
}

#[test]
fn a_hanging_command_is_ended_with_its_children() {
    let mut hanging = launch("sleep 100 & echo $!; sleep 100");
    hanging.timeout = Some(Duration::from_millis(250));
    let measured = run(&hanging);
    assert_eq!(measured.ending, CommandEnding::TimedOut);
    assert!((0.25..5.0).contains(&measured.costs.wall_s), "{}", measured.costs.wall_s);
    let pid: u32 = String::from_utf8_lossy(&measured.stdout).trim().parse().unwrap();
    let gone = || {
        let stat = ProcessDir::open(pid).and_then(|dir| dir.open_file(c"stat"));
        let mut buffer = Vec::new();
        let text = stat.as_ref().and_then(|stat| stat.read(&mut buffer)).unwrap_or_default();
        text.is_empty() || text.windows(4).any(|four| four == b") Z ")
    };
    let until = Instant::now() + Duration::from_secs(5);
    while !gone() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone());
}

#[test]
fn a_stop_ends_it_politely_first() {
    let stop = AtomicBool::new(false);
    let script = "trap 'echo told; exit 3' TERM; while :; do sleep 0.02; done";
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        CommandJob { launch: &launch(script), sampled: false }.run(&stop, &running()).unwrap()
    });
    assert_eq!((measured.ending, measured.stdout), (CommandEnding::Exited(3), b"told\n".to_vec()));
}

#[test]
fn few_cpus_for_it_and_all_for_us() {
    let before = proc::affinity(0).unwrap();
    let mut bound = launch("grep Cpus_allowed_list /proc/self/status");
    bound.cpus = Some(1);
    let measured = run(&bound);
    let said = String::from_utf8_lossy(&measured.stdout).into_owned();
    assert_eq!(said.split_whitespace().nth(1), Some(before[0].to_string().as_str()), "{said}");
    assert_eq!(proc::affinity(0).unwrap(), before);
}

#[test]
fn streams_variables_and_folders() {
    let mut here = launch("cat; echo $COLOR; pwd");
    here.env.insert("COLOR".into(), "red".into());
    here.dir = Some("/".into());
    let input = file();
    std::fs::write(&input, "in\n").unwrap();
    here.stdin = Some(input.clone());
    assert_eq!(String::from_utf8_lossy(&run(&here).stdout), "in\nred\n/\n");
    std::fs::remove_file(&input).unwrap();
    here.stdin = Some("/no/such".into());
    let why = CommandJob { launch: &here, sampled: true }
        .run(&AtomicBool::new(false), &running())
        .unwrap_err();
    assert!(why.starts_with("cannot read '/no/such'"), "{why}");
}

#[test]
fn what_a_killed_lab_left_is_ended() {
    let path = file();
    let running = RunningSessions::new(Some(path.clone()));
    let mut left = std::process::Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
    running.add(left.id());
    running.end_what_is_left();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(left.wait().unwrap().signal(), Some(KILL));
    assert!(!path.exists());
    // A process id reused by another process is left alone.
    let mut other =
        std::process::Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
    let line = format!("{} 1 {}\n", other.id(), hakobu_sys::host::boot_id());
    std::fs::write(&path, line).unwrap();
    running.end_what_is_left();
    assert_eq!(other.try_wait().unwrap(), None);
    other.kill().unwrap();
    other.wait().unwrap();
}
