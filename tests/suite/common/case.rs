//! A case is a command line: `case("sync -aHAX SRC/ DST", |c| …)`. `SRC`, `DST`, `OLD` and `LIST`
//! stand for places of the case's own; `oracle` runs rsync, cp, mv or rm with the same words, and
//! a second target in place of `DST`. A failure shows the command, its output and both trees.

use super::area::{Area, Fs};
use super::diff::{Fields, diff};
use super::snapshot::Snapshot;
use super::{have, program};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Result of a command.
#[derive(Clone, Debug)]
pub struct Run {
    pub line: String,
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Run {
    /// Takes a finished command; a signal counts as code 128 + its number, as in the shell.
    pub fn new(line: String, output: Output) -> Run {
        let code = output.status.code();
        let code = code.unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
        Run { line, code, stdout: output.stdout, stderr: output.stderr }
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Lines of the output, sorted: parallel programs report in any order.
    pub fn sorted(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.stdout.split(|b| *b == b'\n').map(|l| l.escape_ascii().to_string()).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    }

    /// The itemized lines of the output alone, sorted.
    pub fn items(&self) -> Vec<String> {
        let mut lines = self.sorted();
        lines.retain(|line| {
            let line = line.as_bytes();
            let item = |bytes: &[u8]| b"<>ch.".contains(&bytes[0]) && b"fdLDS".contains(&bytes[1]);
            line.starts_with(b"*deleting ") || line.len() > 12 && line[11] == b' ' && item(line)
        });
        lines
    }

    /// The last line of the output as JSON.
    #[track_caller]
    pub fn summary(&self) -> serde_json::Value {
        let text = self.out();
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in the end of {self}"))
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Run {
        assert_eq!(self.code, code, "exit code (left) of {self}");
        self
    }

    #[track_caller]
    pub fn ok(&self) -> &Run {
        self.expect(0)
    }

    /// Checks that the error output has all of these words.
    #[track_caller]
    pub fn says(&self, words: &[&str]) -> &Run {
        let text = self.err();
        for word in words {
            assert!(text.contains(word), "standard error of {self} lacks {word:?}");
        }
        self
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cut = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let lines: Vec<_> = text.lines().take(60).collect();
            lines.join("\n    ")
        };
        writeln!(f, "{}", self.line)?;
        writeln!(f, "  exit code {}", self.code)?;
        writeln!(f, "  stdout:\n    {}", cut(&self.stdout))?;
        writeln!(f, "  stderr:\n    {}", cut(&self.stderr))
    }
}

/// Places and words of one case.
#[derive(Debug)]
pub struct Case {
    pub line: String,
    from: Area,
    to: Area,
    /// Working directory of the commands; the tests' own folder by default.
    pub cwd: Option<PathBuf>,
    last: RefCell<Vec<Run>>,
}

/// A case on tmpfs.
pub fn case(line: &str, body: impl FnOnce(&Case)) {
    body(&Case::new(line, Area::tmpfs(), Area::tmpfs()));
}

/// A case with its source on one file system and its targets on another; skipped where one of
/// them cannot be had.
pub fn case_on(from: Fs, to: Fs, line: &str, body: impl FnOnce(&Case)) {
    if let (Some(from), Some(to)) = (Area::new(from, line), Area::new(to, line)) {
        body(&Case::new(line, from, to));
    }
}

impl Case {
    pub fn new(line: &str, from: Area, to: Area) -> Case {
        Case { line: line.to_owned(), from, to, cwd: None, last: Vec::new().into() }
    }

    /// The same places under another command line.
    pub fn relabel(&mut self, line: &str) {
        line.clone_into(&mut self.line);
    }

    pub fn src(&self) -> PathBuf {
        self.from.join("src")
    }

    pub fn dst(&self) -> PathBuf {
        self.to.join("dst")
    }

    /// The oracle's target.
    pub fn oracle_dst(&self) -> PathBuf {
        self.to.join("ora")
    }

    /// A third tree on the target's file system, the same for both: `OLD`.
    pub fn old(&self) -> PathBuf {
        self.to.join("old")
    }

    /// A file outside all trees: `LIST`.
    pub fn list(&self) -> PathBuf {
        self.from.join("list")
    }

    /// Any further place on the target's file system.
    pub fn place(&self, name: &str) -> PathBuf {
        self.to.join(name)
    }

    /// Runs the program under test with this case's words.
    pub fn run(&self) -> Run {
        self.run_line(&self.line)
    }

    /// Runs the program under test with other words at the same places.
    pub fn run_line(&self, line: &str) -> Run {
        let words = self.words(line, &self.dst());
        self.note(run_in(self.cwd.as_deref(), &program(), &words))
    }

    /// Runs the peer that the first word stands for, with the second target.
    pub fn oracle(&self) -> Run {
        self.oracle_line(&self.line)
    }

    pub fn oracle_line(&self, line: &str) -> Run {
        let words = self.words(line, &self.oracle_dst());
        let peer = match words[0].to_str() {
            Some("sync") => "rsync",
            Some(name @ ("cp" | "mv" | "rm")) => name,
            other => panic!("no oracle for {other:?}"),
        };
        self.note(run_in(self.cwd.as_deref(), Path::new(peer), &words[1..]))
    }

    /// The command line as words, places filled in. Quotes `'…'` keep spaces together.
    pub fn words(&self, line: &str, dst: &Path) -> Vec<OsString> {
        let places = [
            (&b"SRC"[..], self.src()),
            (b"DST", dst.to_owned()),
            (b"OLD", self.old()),
            (b"LIST", self.list()),
        ];
        let words = split(line).into_iter().map(|word| {
            let mut bytes = word.into_bytes();
            for (name, path) in &places {
                bytes = replace(&bytes, name, path.as_os_str().as_bytes());
            }
            OsString::from_vec(bytes)
        });
        words.collect()
    }

    fn note(&self, run: Run) -> Run {
        self.last.borrow_mut().push(run.clone());
        run
    }

    /// Checks that two trees are the same.
    #[track_caller]
    pub fn same(&self, what: &str, left: &Path, right: &Path, fields: &Fields) {
        let lines = diff(&Snapshot::of(left), &Snapshot::of(right), fields, 20);
        assert!(lines.is_empty(), "{what}: {}\n  {}", self.line, lines.join("\n  "));
    }

    /// Checks that the target is the same as the source.
    #[track_caller]
    pub fn target_is_source(&self, fields: &Fields) {
        self.same("the target is not the source", &self.src(), &self.dst(), fields);
    }

    /// Checks that the target is the same as the oracle's.
    #[track_caller]
    pub fn target_is_oracles(&self, fields: &Fields) {
        self.same("the target is not the oracle's", &self.oracle_dst(), &self.dst(), fields);
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("case: {} ({} to {})", self.line, self.from.fs.name(), self.to.fs.name());
            let runs = self.last.borrow();
            for run in runs.iter().rev().take(2).rev() {
                eprintln!("ran: {run}");
            }
            for (name, path) in [("SRC", self.src()), ("DST", self.dst())] {
                let listing = Snapshot::try_of(&path).map(|tree| tree.listing(80));
                eprintln!("{name}:\n{}", listing.unwrap_or_else(|error| error.to_string()));
            }
        }
    }
}

/// Runs a program to its end under a time limit: a program that hangs must not hang the tests.
pub fn run_command<S: AsRef<OsStr>>(program: &Path, words: &[S]) -> Run {
    run_in(None, program, words)
}

fn run_in<S: AsRef<OsStr>>(cwd: Option<&Path>, program: &Path, words: &[S]) -> Run {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120"]).arg(program).args(words);
    command.env("LC_ALL", "C.UTF-8");
    // Numbers remembered by one test must not influence another one or the user's next run.
    command.env("XDG_STATE_HOME", super::area::state_home());
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    run_fed(&mut command, b"")
}

/// Runs a command with something on its standard input.
pub fn run_fed(command: &mut Command, input: &[u8]) -> Run {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for word in command.get_args() {
        line.push(' ');
        line.push_str(&word.as_bytes().escape_ascii().to_string());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    // A command that needs no input may end before it is written.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    Run::new(line, child.wait_with_output().unwrap())
}

/// Splits a command line at spaces, except inside `'…'`.
pub fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            _ => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// The text with every `name` in it replaced.
pub fn replace(text: &[u8], name: &[u8], with: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if text[at..].starts_with(name) {
            out.extend(with);
            at += name.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

// Commands on a terminal of their own, by script(1).

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

/// Runs a scenario of a Python script that plays the user of a terminal: the script, below `tests/suite`, gets its name
/// and the program, and an empty directory to work in.
#[track_caller]
pub fn terminal_scenario(script: &str, name: &str) {
    terminal_scenario_with(script, name, &[]);
}

/// As [`terminal_scenario`], with variables of its environment.
#[track_caller]
pub fn terminal_scenario_with(script: &str, name: &str, variables: &[(&str, &Path)]) {
    if !have("python3", "commands on a terminal") || !have("bash", "commands on a terminal") {
        return;
    }
    let area = Area::tmpfs();
    std::fs::create_dir(area.join("work")).unwrap();
    let mut python = Command::new("python3");
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    python.env("PYTHONPATH", suite.join("common")).env("PYTHONDONTWRITEBYTECODE", "1");
    python
        .arg(suite.join(script))
        .arg(name)
        .arg(program())
        .current_dir(area.join("work"))
        .stdin(Stdio::null());
    python.env("XDG_STATE_HOME", area.join("state")).env("XDG_CACHE_HOME", area.join("cache"));
    for name in ["AWS_PROFILE", "AWS_ENDPOINT_URL", "NO_COLOR"] {
        python.env_remove(name);
    }
    python.envs(variables.iter().copied());
    Run::new(format!("{script} {name}"), python.output().unwrap()).ok();
}
