//! Difficult arguments: invalid UTF-8, names like options, empty words, help and version, closed pipes.

pub use crate::common::case::case;
use crate::common::case::run_command;
use crate::common::diff::Fields;
use crate::common::program;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Files that contain their own names.
pub fn files(root: &Path, names: &[&str]) {
    std::fs::create_dir_all(root).unwrap();
    for name in names {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
}

const COMMANDS: &[&str] = &["sync", "cp", "mv", "rm", "ls", "du", "verify"];

#[test]
fn version_and_help() {
    let run = run_command(&program(), &["--version"]);
    assert_eq!(run.ok().out().trim(), format!("hakobu {}", env!("CARGO_PKG_VERSION")));
    for command in COMMANDS {
        let one = run_command(&program(), &[command, "--version"]);
        assert_eq!(one.ok().out(), run.out());
    }
    let run = run_command(&program(), &["--help"]);
    for command in COMMANDS {
        assert!(run.ok().out().contains(command), "--help lacks {command}");
        let help = run_command(&program(), &[command, "--help"]);
        assert!(help.ok().out().contains("Usage"), "{help}");
        assert_eq!(help.err(), "");
    }
    assert!(run_command(&program(), &["sync", "--help"]).out().contains("--delete-excluded"));
}

#[test]
fn no_command_and_unknown_commands() {
    let run = run_command::<&str>(&program(), &[]);
    assert_ne!(run.code, 0);
    assert!(!run.stderr.is_empty());
    let run = run_command(&program(), &["snyc"]);
    assert_ne!(run.code, 0);
    assert!(run.err().contains("snyc"), "{run}");
}

#[test]
fn arguments_that_are_not_utf8() {
    case("sync -a", |c| {
        let odd = OsStr::from_bytes(b"\xff odd \xfe\n");
        files(&c.src(), &[]);
        std::fs::create_dir(c.src().join(odd)).unwrap();
        std::fs::write(c.src().join(odd).join(odd), "x").unwrap();
        let target = c.dst().join(odd);
        std::fs::create_dir(c.dst()).unwrap();
        let (source, target) = (c.src().join(odd), target.into_os_string());
        let word = |text: &str| OsString::from(text);
        let words = [word("sync"), word("-a"), source.clone().into_os_string(), target.clone()];
        run_command(&program(), &words).ok();
        assert!(Path::new(&target).join(odd).join(odd).exists());
        let mut exclude = b"--exclude=".to_vec();
        exclude.extend(odd.as_bytes());
        let exclude = OsStr::from_bytes(&exclude).to_owned();
        let to = c.dst().join("second").into_os_string();
        let words = [word("sync"), word("-a"), exclude, source.join("").into(), to.clone()];
        run_command(&program(), &words).ok();
        assert_eq!(std::fs::read_dir(to).unwrap().count(), 0);
        let link = c.dst().join("third").into_os_string();
        let words = [word("cp"), word("-r"), source.into_os_string(), link.clone()];
        run_command(&program(), &words).ok();
        assert!(Path::new(&link).join(odd).exists());
        // A missing source with such a name is an error that can be read.
        let words = [word("sync"), word("-a"), odd.to_owned(), link];
        run_command(&program(), &words).expect(23).says(&["No such file"]);
    });
}

#[test]
fn names_that_look_like_options_or_hosts() {
    case("sync -a -- -r DST", |c| {
        files(&c.src(), &["-r", "a:b", "--delete"]);
        std::fs::create_dir(c.dst()).unwrap();
        let inside = |words: &[&str]| {
            let mut command = Command::new(program());
            command.args(words).arg(c.dst()).current_dir(c.src());
            command.output().unwrap().status.code()
        };
        assert_eq!(inside(&["sync", "-a", "--", "-r"]), Some(0));
        assert_eq!(inside(&["sync", "-a", "./a:b"]), Some(0));
        assert_eq!(inside(&["cp", "--", "--delete"]), Some(0));
        for name in ["-r", "a:b", "--delete"] {
            assert!(c.dst().join(name).exists(), "{name}");
        }
    });
}

#[test]
fn empty_words_are_not_the_working_directory() {
    for words in [&["sync", "-a", "", "DST"][..], &["cp", "-r", "", "DST"], &["rm", "-rf", ""]] {
        case("empty word", |c| {
            files(&c.src(), &["a"]);
            let words: Vec<OsString> = words
                .iter()
                .map(|word| match *word {
                    "DST" => c.dst().into_os_string(),
                    other => other.into(),
                })
                .collect();
            let output =
                Command::new(program()).args(&words).current_dir(c.src()).output().unwrap();
            assert!(c.src().join("a").exists(), "{words:?}");
            assert!(!c.dst().exists(), "{words:?} copied the working directory");
            // rm -f passes over what does not exist; a move of nothing is a failure.
            let said = String::from_utf8_lossy(&output.stderr);
            let forced = words[0] == "rm";
            assert_eq!(output.status.code() == Some(0), forced, "{words:?}: {said}");
            assert_eq!(said.is_empty(), forced, "{words:?}: {said}");
        });
    }
}

/// `hakobu … | head -1`: a reader that goes away is neither a failure of the move nor a panic.
#[test]
fn a_closed_pipe() {
    case("sync -av SRC/ DST", |c| {
        files(&c.src(), &[]);
        for n in 0..3000 {
            std::fs::write(c.src().join(format!("file-{n:05}")), "x").unwrap();
        }
        for line in ["sync -ai SRC/ DST", "sync -a --json -v SRC/ DST", "du -a SRC", "sync --help"]
        {
            let mut command = Command::new(program());
            command.args(c.words(line, &c.dst())).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            drop(child.stdout.take());
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!said.contains("panicked"), "{line}: {said}");
            // As cp and du in a pipe: done, an error that is told, or the end by the signal.
            let code = output.status.code().unwrap_or_else(|| {
                let signal = output.status.signal();
                assert_eq!(signal, Some(Signal::PIPE.as_raw()), "{line}: {said}");
                128
            });
            assert!([0, 1, 2, 11, 12, 20, 23, 128].contains(&code), "{line}: {code} {said}");
            if line.starts_with("sync -") && code == 0 && !line.contains("--help") {
                c.target_is_source(&Fields::ALL);
            }
            crate::common::remove_tree(&c.dst());
        }
    });
}

/// Nothing on standard output unless asked for; everything that is wrong on standard error.
#[test]
fn quiet_by_default() {
    for line in ["cp -a SRC/. DST", "mv SRC/a SRC/b", "rm SRC/a", "sync -aq SRC/ DST"] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
        });
    }
}

#[test]
fn jobs_are_spelled_as_in_gnu_parallel() {
    for jobs in ["-j1", "-j 3", "-j +1", "-j +0", "-j -1", "-j 200%", "-j 0", "-j auto", "--jobs=2"]
    {
        case(&format!("sync -a {jobs} SRC/ DST"), |c| {
            files(&c.src(), &["a", "b/c"]);
            c.run().ok();
            assert!(c.dst().join("b/c").exists());
        });
    }
}
