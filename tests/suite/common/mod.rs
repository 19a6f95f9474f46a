//! Common parts of the tests: work folders, trees to copy, a tree reader independent of the program under
//! test, and cases given as command lines.

#![allow(dead_code, reason = "every test program uses its own part")]

pub mod area;
pub mod case;
pub mod clock;
pub mod diff;
pub mod fuse;
pub mod grow;
pub mod machine;
pub mod mutate;
pub mod running;
pub mod snapshot;
pub mod xattr;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// The program under test. `HAKOBU_BIN` names another one, such as an installed release.
pub fn program() -> PathBuf {
    static SIGNALS: Once = Once::new();
    SIGNALS.call_once(hear_keys);
    std::env::var_os("HAKOBU_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_hakobu")), PathBuf::from)
}

/// Programs that tests start end by SIGINT, SIGQUIT and SIGHUP, also where a script started the tests in its background or
/// under nohup(1): sh(1) lets such a command ignore the first two, nohup the third, and execve(2) keeps that, but not a
/// handler.
fn hear_keys() {
    for signal in [SIGINT, SIGQUIT] {
        let is_default = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_default(signal, is_default).unwrap();
    }
    // proc_pid_status(5). The tests themselves go on when the terminal is closed, as nohup means.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 << (SIGHUP - 1) != 0 {
        signal_hook::flag::register(SIGHUP, Arc::default()).unwrap();
    }
}

/// Runs cases side by side: for those that mostly wait. Fails if one of them does.
pub fn side_by_side<T: Send>(cases: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    let run = &run;
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || run(case));
        }
    });
}

/// Runs cases one after another: for those of which one may run at a time, which would take a thread of the tests each to
/// wait for that. All of them run; fails if one of them does. See `in_turn!`.
pub fn run_in_turn(cases: &[(&str, fn())]) {
    let fails = |(name, case): &&(&str, fn())| {
        let thread = std::thread::Builder::new().name((*name).to_owned());
        thread.spawn(*case).unwrap().join().is_err()
    };
    let failed: Vec<&str> = cases.iter().filter(fails).map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}

/// [`run_in_turn`] for functions without arguments, whose names are those of the cases.
#[allow(unused_macros, reason = "every test program uses its own part")]
macro_rules! in_turn {
    ($($case:ident),+ $(,)?) => {
        $crate::common::run_in_turn(&[$((stringify!($case), $case)),+])
    };
}
#[allow(unused_imports, reason = "every test program uses its own part")]
pub(crate) use in_turn;

/// Says that a test (a part of one) did not run, past the capture of test output. With
/// `HAKOBU_REQUIRE_ALL=1` it is a failure instead: the machine was meant to have everything.
pub fn skip(why: &str) {
    for name in ["HAKOBU_REQUIRE_ALL", "HAKOBU_REQUIRE_PEERS"] {
        assert!(!is_set(name), "{name} is set, and: {why}");
    }
    // eprintln! would be captured; a reader of a green run must still see this.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Whether an environment variable is set to something other than nothing or `0`.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.find_map(|dir| Some(dir.join(tool)).filter(|path| path.is_file()))
}

/// The path of a program of the machine, for commands with an environment of their own: named without a path, the standard
/// library starts those with fork(2), which copies the page tables of all tests, and not with posix_spawn(3).
pub fn tool_path(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| name.into())
}

/// Whether a program of the machine is there; if not, says that `what` was skipped.
pub fn have(tool: &str, what: &str) -> bool {
    let found = find(tool).is_some();
    if !found {
        skip(&format!("{what}: needs {tool}"));
    }
    found
}

/// Whether the tests run as the superuser; if not, says that `what` was skipped.
pub fn have_root(what: &str) -> bool {
    let root = is_root();
    if !root {
        skip(&format!("{what}: needs the superuser"));
    }
    root
}

/// Whether the tests run as the superuser.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a helper program that must succeed.
///
/// # Panics
/// When it does not, with what it printed.
pub fn must(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Waits until something holds, for five minutes at most; whether it does.
pub fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Removes a tree of any depth, whatever its modes.
pub fn remove_tree(path: &Path) {
    let _ = Command::new("rm").arg("-rf").arg("--").arg(path).status();
}

/// Number of rounds of a randomised test: `HAKOBU_ROUNDS` multiplies the usual number.
pub fn rounds(usual: u64) -> u64 {
    let factor = std::env::var("HAKOBU_ROUNDS").ok().and_then(|text| text.parse().ok());
    usual * factor.unwrap_or(1)
}

/// The first seed of a randomised test: `HAKOBU_SEED` repeats a failure that named it.
pub fn first_seed(usual: u64) -> u64 {
    std::env::var("HAKOBU_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
