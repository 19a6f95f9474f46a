//! Installed files: completions, manual pages and the documentation, and archives of them.

use crate::common::area::Area;
use crate::common::case::{Run, run_command};
use crate::common::program;
use std::path::Path;
use std::process::Command;

/// Runs with a home of its own.
fn at_home(home: &Path, shell: &str, words: &[&str]) -> Run {
    let mut command = Command::new(program());
    command.args(words).env("HOME", home).env("SHELL", shell);
    for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    Run::new(words.join(" "), command.output().unwrap())
}

#[test]
fn completions_go_where_shells_look() {
    let home = Area::tmpfs();
    for (shell, place, text) in [
        ("bash", ".local/share/bash-completion/completions/hakobu", "complete -F _hakobu"),
        ("zsh", ".local/share/zsh/site-functions/_hakobu", "#compdef hakobu"),
        ("fish", ".config/fish/completions/hakobu.fish", "complete -c hakobu"),
        ("elvish", ".config/elvish/lib/hakobu.elv", "edit:completion"),
    ] {
        let named = at_home(home.path(), "", &["completions", "--install", shell]);
        let path = home.join(place);
        assert!(named.ok().out().starts_with(path.to_str().unwrap()), "{named}");
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.contains(text), "{shell}: {written}");
        let printed = at_home(home.path(), "", &["completions", shell]).ok().out();
        assert_eq!(written, printed, "{shell}");
        std::fs::remove_file(&path).unwrap();
        at_home(home.path(), &format!("/usr/bin/{shell}"), &["completions", "--install"]).ok();
        assert!(path.exists(), "the shell of $SHELL: {shell}");
        let folder = std::fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(folder.count(), 1, "{shell}: something else was left there");
    }
    let zsh = at_home(home.path(), "", &["completions", "--install", "zsh"]);
    assert!(zsh.out().contains("hint: ") && zsh.out().contains("fpath+=("), "{zsh}");
}

#[test]
fn completions_that_cannot_be_installed_are_refused() {
    let home = Area::tmpfs();
    let run = |shell, words: &[&str]| at_home(home.path(), shell, words);
    run("", &["completions", "--install"]).expect(2).says(&["SHELL is not set"]);
    run("/bin/tcsh", &["completions", "--install"]).expect(2).says(&["'tcsh'"]);
    run("", &["completions", "--install", "powershell"]).expect(2).says(&["powershell", "hint: "]);
    std::fs::write(home.join(".local"), "a file").unwrap();
    run("", &["completions", "--install", "bash"]).expect(1).says(&["cannot write", ".local"]);
}

#[test]
fn manual_pages_are_installed_for_man() {
    let area = Area::tmpfs();
    let root = area.join("man");
    run_command(&program(), &["man", "--install", root.to_str().unwrap()]).ok();
    let pages = std::fs::read_dir(root.join("man1")).unwrap().count();
    let listed = run_command(&program(), &["--help"]).ok().out();
    let commands = super::features::commands(&listed).len();
    // The program has one, too.
    assert_eq!(pages, commands + 1);
    let page = std::fs::read_to_string(root.join("man1/hakobu-sync.1")).unwrap();
    assert_eq!(page, run_command(&program(), &["man", "sync"]).ok().out());
    for title in ["SYNOPSIS", "EXIT STATUS", "EXAMPLES", "ENVIRONMENT", "FILES"] {
        assert!(page.contains(&format!(".SH \"{title}\"\n")), "{title}\n{page}");
    }
    let both = ["man", "--install", "x", "sync"];
    run_command(&program(), &both).expect(2).says(&["give no command"]);
}

#[test]
fn the_documentation_is_in_the_program() {
    let list = run_command(&program(), &["help", "topics"]).ok().out();
    let topics: Vec<&str> =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    for topic in ["tutorial", "s3", "tuning", "limits", "progress", "explain", "differences"] {
        assert!(topics.contains(&topic), "{topic}\n{list}");
    }
    // Lines are wrapped anywhere.
    let of = |topic: &str| {
        let text = run_command(&program(), &["help", topic]).ok().out();
        assert!(text.lines().count() > 20, "{topic}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for topic in &topics {
        let text = of(topic);
        for name in text.split("hakobu help ").skip(1).filter_map(|rest| rest.split(')').next()) {
            if name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
                run_command(&program(), &["help", name]).ok();
            }
        }
    }
    let limits = of("limits");
    assert!(
        limits.contains("--bwlimit RATE") && limits.contains("hakobu help explain"),
        "{limits}"
    );
    run_command(&program(), &["help", "nowhere"]).expect(2).says(&["nowhere", "help topics"]);
}

/// Writes what an archive holds beside the program, in an environment, and packs it. Returns the archive's bytes.
fn packed(area: &Area, place: &str, shell: &str, environment: &[(&str, &str)]) -> Vec<u8> {
    let folder = area.join(place);
    std::fs::create_dir(&folder).unwrap();
    let script = format!(
        "{shell}; mkdir -p package/man package/completions && \"$H\" man --install package/man && \
         for shell in bash fish zsh; do \"$H\" completions $shell >package/completions/$shell; done && \
         \"$PACK\" package hakobu-1-test && sha256sum -c --quiet hakobu-1-test.tar.gz.sha256"
    );
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/archive.sh");
    let mut command = Command::new("bash");
    command.args(["-ec", &script]).current_dir(&folder).env("H", program()).env("PACK", pack);
    command.env("HOME", &folder).env("SOURCE_DATE_EPOCH", "1700000000");
    command.envs(environment.iter().copied());
    Run::new(place.to_owned(), command.output().unwrap()).ok();
    std::fs::read(folder.join("hakobu-1-test.tar.gz")).unwrap()
}

#[test]
fn archives_are_the_same_wherever_and_whenever_they_are_made() {
    let area = Area::tmpfs();
    let first = packed(&area, "first", "umask 022", &[("TZ", "UTC"), ("COLUMNS", "60")]);
    // Another order of creation and other times, too.
    let other = "umask 077; mkdir package; touch -d 2001-02-03 package; mkdir package/completions";
    let environment = [("TZ", "Asia/Tokyo"), ("COLUMNS", "200"), ("LANG", "C.UTF-8")];
    assert_eq!(first, packed(&area, "the second", other, &environment));
    let later = [("SOURCE_DATE_EPOCH", "1700000001")];
    assert_ne!(first, packed(&area, "later", "umask 022", &later));
}
