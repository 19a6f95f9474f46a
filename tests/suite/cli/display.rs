//! The display of progress: terminals of several widths, and the keys of a user. The cases are in `display.py`.

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
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/cli/display.py"));
    python.arg(name).arg(program()).current_dir(area.join("work")).stdin(Stdio::null());
    python.env("XDG_STATE_HOME", area.join("state")).env("XDG_CACHE_HOME", area.join("cache"));
    for name in ["AWS_PROFILE", "AWS_ENDPOINT_URL", "NO_COLOR"] {
        python.env_remove(name);
    }
    Run::new(format!("display.py {name}"), python.output().unwrap()).ok();
}

#[test]
fn lines_fit_terminals_of_any_width_and_know_the_end() {
    scenario("widths");
}

#[test]
fn an_interruption_leaves_no_line_and_tells_of_the_unfinished_file() {
    scenario("interrupted");
}

#[test]
fn time_of_a_stop_does_not_count() {
    scenario("stopped");
}

#[test]
fn uploads_are_completed_and_interrupted() {
    scenario("objects");
}
