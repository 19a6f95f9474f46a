//! The display of progress: terminals of several widths, and the keys of a user. The cases are in `display.py`.

use crate::common::case::terminal_scenario;

#[track_caller]
fn scenario(name: &str) {
    terminal_scenario("cli/display.py", name);
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
