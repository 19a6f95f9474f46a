//! Completions, in each shell on a terminal. The lines are in `completions.py`.

use crate::common::case::terminal_scenario;
use crate::common::{have, side_by_side};

/// They wait for what shells draw.
#[test]
fn in_each_shell() {
    side_by_side(["bash", "zsh", "fish"], |shell| {
        if have(shell, "completions") {
            terminal_scenario("cli/completions.py", shell);
        }
    });
}
