//! Interactive questions and output during a run: `cp -i`, `mv -i`, `-v`, progress on a terminal.

use crate::cli::arguments::{case, files};
use crate::common::case::{Case, Run, run_fed, typed};
use crate::common::{have, program};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// A line of a case with answers on standard input.
fn answered(c: &Case, line: &str, program: &Path, dst: &Path, answers: &str) -> Run {
    let mut words = c.words(line, dst);
    if program != crate::common::program() {
        words.remove(0);
    }
    let mut command = Command::new(program);
    command.args(words).env("LC_ALL", "C.UTF-8");
    run_fed(&mut command, answers.as_bytes())
}

/// A line of a case on a terminal of its own; everything that is written to it.
fn on_terminal(c: &Case, line: &str, answers: &str) -> Run {
    let mut command = Command::new(program());
    command.args(c.words(line, &c.dst()));
    typed(&command, answers)
}

fn content(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|_| "gone".to_owned())
}

#[test]
fn cp_and_mv_overwrite_what_the_answers_allow() {
    for command in ["cp", "mv"] {
        for (options, answers) in [
            ("-i", "y\n"),
            ("-i", "n\n"),
            ("-i", "yes, please\n"),
            ("-i", "\n"),
            ("-i", ""),
            ("-f -i", "n\n"),
            ("-i -f", ""),
            ("-n -i", "y\n"),
            ("-i -n", "y\n"),
            ("-i -n", ""),
        ] {
            // cp -f is about what cannot be opened, and no answer to -i.
            let line = format!("{command} {options} SRC/a SRC/new DST");
            case(&line, |c| {
                let mut left = Vec::new();
                let peer = Path::new(command);
                let program = program();
                for (program, dst) in [(program.as_path(), c.dst()), (peer, c.oracle_dst())] {
                    files(&c.src(), &["a", "new"]);
                    files(&dst, &["b"]);
                    std::fs::write(dst.join("a"), "old").unwrap();
                    let run = answered(c, &line, program, &dst, answers);
                    let asked = run.err().contains("overwrite");
                    let there = c.src().join("a").exists();
                    left.push((asked, content(&dst.join("a")), content(&dst.join("new")), there));
                    assert_eq!(run.out(), "", "{run}");
                }
                assert_eq!(left[0], left[1], "{answers:?}: ours, theirs");
            });
        }
    }
}

#[test]
fn each_existing_file_is_asked_about_once() {
    case("cp -ri SRC/. DST", |c| {
        let names = ["a", "b", "c", "d/e", "d/f"];
        files(&c.src(), &names);
        files(&c.dst(), &names);
        for name in names {
            std::fs::write(c.dst().join(name), "old").unwrap();
        }
        std::fs::write(c.src().join("new"), "new").unwrap();
        let run = answered(c, &c.line, &program(), &c.dst(), "y\nn\ny\nn\ny\n");
        assert_eq!(run.ok().err().matches("overwrite '").count(), 5, "{run}");
        for name in names {
            assert_eq!(run.err().matches(&format!("/{name}'")).count(), 1, "{name}: {run}");
        }
        let replaced = names.iter().filter(|name| content(&c.dst().join(name)) != "old").count();
        assert_eq!(replaced, 3, "as many as there were yeses");
        assert_eq!(content(&c.dst().join("new")), "new");
    });
}

#[test]
fn questions_on_a_terminal() {
    if !have("script", "a terminal") {
        return;
    }
    for command in ["cp", "mv"] {
        for (answer, expected) in [("y\n", "a"), ("n\n", "old")] {
            case(&format!("{command} -i SRC/a DST/a"), |c| {
                files(&c.src(), &["a"]);
                files(&c.dst(), &["b"]);
                std::fs::write(c.dst().join("a"), "old").unwrap();
                let run = on_terminal(c, &c.line, answer);
                assert!(run.out().contains("overwrite '"), "{run}");
                assert_eq!(content(&c.dst().join("a")), expected, "{run}");
            });
        }
    }
}

/// Both programs with the same words at the same tree; lines of the target look alike.
fn same_lines(line: &str, names: &[&str]) {
    case(line, |c| {
        let place = c.dst().parent().unwrap().to_owned();
        let clean = |run: &Run| {
            let text = run.ok().out().replace(&place.join("ora").display().to_string(), "DST");
            let text = text.replace(&place.join("dst").display().to_string(), "DST");
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let make = || {
            crate::common::remove_tree(&c.src());
            crate::common::remove_tree(&c.old());
            files(&c.src(), names);
            std::fs::create_dir(c.old()).unwrap();
        };
        make();
        let theirs = clean(&c.oracle());
        make();
        assert_eq!(clean(&c.run()), theirs);
    });
}

#[test]
fn verbose_lines_of_cp_and_mv_are_those_of_coreutils() {
    for line in [
        "cp -rv SRC DST",
        "cp -v SRC/a DST",
        "cp -rvT SRC DST",
        "cp -av SRC DST",
        "mv -v SRC DST",
        "mv -v SRC/a DST",
        "mv -v SRC/a SRC/d SRC/quo\"te OLD",
        "cp -rv SRC/a SRC/d SRC/quo\"te OLD",
    ] {
        same_lines(line, &["a", "d/inside", "d/deep/er", "quo\"te", "it's", "with space", "$x"]);
    }
}

#[test]
fn verbose_lines_escape_as_coreutils_do() {
    let names = [
        "esc\x1b[31m",
        "line\nbreak",
        "tab\t",
        "bell\x07",
        "return\r",
        "v\x0bf\x0cb\x08",
        "end\x7f",
        "\u{e9}",
        "\u{200b}",
    ];
    same_lines("cp -rv SRC DST", &names);
}

#[test]
fn progress_is_drawn_on_a_terminal_and_cleared() {
    if !have("script", "a terminal") {
        return;
    }
    for line in [
        "sync -a --progress --bwlimit=4m SRC/ DST",
        "sync -a --info=progress2 --bwlimit=4m SRC/ DST",
        "sync -aP --bwlimit=4m SRC/ DST",
        "cp -r --progress --bwlimit=4m SRC DST",
    ] {
        case(line, |c| {
            files(&c.src(), &["a", "b"]);
            std::fs::write(c.src().join("large"), vec![b'x'; 5 << 20]).unwrap();
            let run = on_terminal(c, line, "");
            let text = run.ok().out();
            assert!(text.matches('\r').count() >= 5, "nothing moves: {run}");
            for word in ["MB", "files", "/s"] {
                assert!(text.contains(word), "no {word:?}: {run}");
            }
            // The last bar is gone: a terminal would show what comes after the last erasure.
            let last = text.rsplit("\x1b[2K").next().unwrap_or_default();
            assert!(!last.contains(" left"), "a bar stays: {run}");
            assert_eq!(std::fs::metadata(c.dst().join("large")).unwrap().len(), 5 << 20);
        });
    }
    // Not wanted: no bar.
    for line in
        ["sync -a --no-progress --bwlimit=4m SRC/ DST", "cp -r --no-progress --bwlimit=4m SRC DST"]
    {
        case(line, |c| {
            files(&c.src(), &["a"]);
            std::fs::write(c.src().join("large"), vec![b'x'; 3 << 20]).unwrap();
            let run = on_terminal(c, line, "");
            assert!(!run.ok().out().contains('\x1b'), "{run}");
        });
    }
}

/// Escapes in names must not reach the terminal by way of a question.
#[test]
fn questions_show_names_without_their_escapes() {
    case("cp -ri SRC/. DST", |c| {
        let name = std::ffi::OsStr::from_bytes(b"esc\x1b[31m");
        for root in [c.src(), c.dst()] {
            std::fs::create_dir(&root).unwrap();
            std::fs::write(root.join(name), "old").unwrap();
        }
        std::fs::write(c.src().join(name), "new").unwrap();
        let run = answered(c, &c.line, &program(), &c.dst(), "y\n");
        assert!(run.err().contains("overwrite") && !run.err().contains('\x1b'), "{run}");
        assert_eq!(content(&c.dst().join(name)), "new");
    });
}
