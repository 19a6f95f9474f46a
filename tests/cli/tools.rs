//! The small tools: `ls`, `du`, `rm`, against coreutils where those have an opinion.

use crate::arguments::{case, files};
use crate::common::case::Run;
use std::path::Path;

fn peer(name: &str, words: &[&str], dir: &Path) -> Run {
    let words: Vec<String> =
        words.iter().map(|word| word.replace("SRC", &dir.display().to_string())).collect();
    crate::common::case::run_command(Path::new(name), &words)
}

fn tree(root: &Path) {
    files(root, &["b", "a", "d/inside", "d/deep/er", ".hidden"]);
    std::fs::write(root.join("d/large"), vec![1; 300_000]).unwrap();
    std::fs::hard_link(root.join("d/large"), root.join("again")).unwrap();
    std::fs::File::create(root.join("d/hole")).unwrap().set_len(1 << 20).unwrap();
    std::os::unix::fs::symlink("d", root.join("link")).unwrap();
}

#[test]
fn du_counts_as_du_does() {
    for words in ["-s", "-sb", "-a", "-b", "-s --apparent-size", "--max-depth=1", "-h -s", "-ab"] {
        case(&format!("du {words} SRC"), |c| {
            tree(&c.src());
            let mut line: Vec<&str> = words.split(' ').collect();
            line.push("SRC");
            let theirs = peer("du", &line, &c.src());
            assert_eq!(c.run().ok().sorted(), theirs.ok().sorted(), "{words}");
        });
    }
}

#[test]
fn ls_lists_names() {
    case("ls SRC", |c| {
        tree(&c.src());
        let run = c.run();
        let text = run.ok().out();
        for name in ["a", "b", "d", "again", "link"] {
            assert!(text.lines().any(|line| line.trim_end_matches('/').ends_with(name)), "{run}");
        }
        assert!(!text.contains("inside"), "ls does not descend: {run}");
        let run = c.run_line("ls -l SRC");
        let text = run.ok().out();
        assert!(text.contains("300000") && text.contains("rw-"), "{run}");
    });
}

#[test]
fn rm_verbose_names_what_goes() {
    case("rm -rv SRC/d", |c| {
        tree(&c.src());
        let run = c.run();
        for name in ["d/inside", "d/deep/er", "d/large"] {
            assert!(run.ok().out().contains(name), "{run}");
        }
        assert!(!c.src().join("d").exists() && c.src().join("again").exists());
    });
}

#[test]
fn rm_refuses_dot_and_dot_dot() {
    for line in ["rm -r SRC/.", "rm -r SRC/d/..", "rm -rf SRC/d/."] {
        case(line, |c| {
            tree(&c.src());
            assert_eq!(c.run().code, 1);
            assert!(c.src().join("d/inside").exists(), "{line}");
        });
    }
}

/// A check of all that was copied, by the program itself, as the README shows it.
#[test]
fn copy_verify_and_change() {
    case("verify SRC DST", |c| {
        tree(&c.src());
        c.run_line("sync -aHAX SRC/ DST").ok();
        c.run().ok();
        // Each attribute that is lost is found.
        std::fs::remove_file(c.dst().join("again")).unwrap();
        std::fs::copy(c.dst().join("d/large"), c.dst().join("again")).unwrap();
        let time = std::fs::metadata(c.src().join("again")).unwrap().modified().unwrap();
        std::fs::File::open(c.dst().join("again")).unwrap().set_modified(time).unwrap();
        c.run_line("verify SRC DST").expect(1);
    });
}
