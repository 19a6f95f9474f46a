//! Commands on a terminal of their own, by script(1).

use super::case::{Run, run_fed};
use std::ffi::OsString;
use std::process::Command;

/// Runs a command on a terminal of its own, with an input; everything that is written to it.
pub fn typed(command: &Command, input: &str) -> Run {
    let quoted = |word: OsString| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(word.to_owned())).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        script.current_dir(folder);
    }
    script.env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    run_fed(&mut script, input.as_bytes())
}

/// As [`typed`], with no input.
pub fn on_terminal(command: &Command) -> Run {
    typed(command, "")
}
