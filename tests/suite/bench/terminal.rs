//! On a terminal: commands that use job control, the keys of a user, the line of progress. The cases are in `terminal.py`,
//! beside the same for `watch`, `io` and `run`.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::{have, program};
use std::process::{Command, Stdio};

#[track_caller]
fn scenario(name: &str) {
    if !have("python3", "commands on a terminal") || !have("bash", "commands on a terminal") {
        return;
    }
    let area = Area::tmpfs();
    std::fs::create_dir(area.join("work")).unwrap();
    let mut python = Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/bench/terminal.py"));
    python.arg(name).arg(program()).current_dir(area.join("work")).stdin(Stdio::null());
    python.env("XDG_STATE_HOME", area.join("state")).env("XDG_CACHE_HOME", area.join("cache"));
    for name in ["AWS_PROFILE", "AWS_ENDPOINT_URL", "NO_COLOR"] {
        python.env_remove(name);
    }
    let run = Run::new(format!("terminal.py {name}"), python.output().unwrap());
    run.ok();
}

#[test]
fn commands_may_use_job_control() {
    scenario("job_control");
}

#[test]
fn who_reads_from_the_terminal_fails_instead_of_waiting() {
    scenario("reading");
}

#[test]
fn keys_that_end_it_end_all_that_it_started() {
    scenario("interrupted");
}

#[test]
fn a_key_that_stops_it_stops_the_command() {
    scenario("stopped");
}

#[test]
fn the_line_says_how_long_the_run_under_way_takes() {
    scenario("status");
}

#[test]
fn a_watched_command_stays_with_the_terminal() {
    scenario("watch");
}

#[test]
fn lines_of_a_run_file_read_from_the_terminal() {
    scenario("lines");
}
