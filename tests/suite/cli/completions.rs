//! Completions, in each shell on a terminal. The lines are in `completions.py`.

use crate::common::case::terminal_scenario;
use crate::common::have;

#[track_caller]
fn completes(shell: &str) {
    if have(shell, "completions") {
        terminal_scenario("cli/completions.py", shell);
    }
}

#[test]
fn in_bash() {
    completes("bash");
}

#[test]
fn in_zsh() {
    completes("zsh");
}

#[test]
fn in_fish() {
    completes("fish");
}
