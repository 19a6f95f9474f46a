//! On a terminal: commands that use job control, the keys of a user, the line of progress. The cases are in `terminal.py`,
//! beside the same for `watch`, `io` and `run`.

use crate::common::case::terminal_scenario;

#[track_caller]
fn scenario(name: &str) {
    terminal_scenario("bench/terminal.py", name);
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
