//! What people see who have not named a command yet: the first screen, and the suggestion for a word that is no command,
//! such as one of another program.

use crate::{COMMANDS, Command, OPTIONAL, find};

/// What the program does.
pub const DESCRIPTION: &str = "hakobu is a parallel rsync for local file systems, other machines (ssh) and S3. It takes the options of rsync, cp, mv, \
     rm, du, aws s3 and s5cmd, uses all CPUs, checks what it wrote, and reports what the bottleneck was. It also measures: \
     commands as hyperfine does, disks as fio does.";

/// The first lines of the first screen.
const OPENING: &str = "\
hakobu: a parallel rsync for local file systems, other machines and S3

Usage: hakobu COMMAND [OPTIONS] [PATHS]

  hakobu sync -a src/ /mnt/dst/           copy what is new (host:dst/ by ssh)
  hakobu cp -r photos s3://bucket/        upload with all CPUs
  hakobu watch -- tar cf src.tar src      run a command, say what limited it

";

/// The last lines of the first screen.
const CLOSING: &str = "
hakobu COMMAND --help shows examples and options, hakobu --version the version.
";

/// Commands of one line of the first screen, and what they do.
type OverviewLine = (&'static [&'static str], &'static str);

/// The first screen by subjects.
const SUBJECTS: &[(&str, &[OverviewLine])] = &[
    (
        "Move",
        &[
            (&["sync"], "copy what is new, with rsync's options"),
            (&["cp", "mv"], "copy, move or rename"),
            (&["verify"], "compare two trees"),
            (&["rm", "du"], "remove trees, sum up their size"),
            (&["run"], "run a file of these commands in parallel"),
        ],
    ),
    (
        "Objects",
        &[
            (&["ls"], "list buckets and objects"),
            (&["cat", "pipe"], "print objects, upload standard input"),
            (&["head", "stat"], "show the headers of objects"),
            (&["mb", "rb", "bucket-version"], "create and remove buckets, keep versions"),
            (&["presign", "mpu"], "URLs to share, unfinished uploads"),
        ],
    ),
    (
        "Measure",
        &[
            (&["watch"], "run a command and report its bottleneck"),
            (&["bench"], "measure commands, as hyperfine does"),
            (&["io"], "measure disks, as fio does"),
            (&["results", "report", "compare"], "show, publish and compare results"),
            (&["serve"], "serve S3 for tests"),
        ],
    ),
    (
        "Many machines",
        &[
            (&["cluster"], "spread one transfer over many machines"),
            (&["agent"], "be the other end of host:path, over ssh"),
        ],
    ),
    (
        "Learn",
        &[
            (&["demo"], "upload, download, verify generated files"),
            (&["help"], "help topics lists the guides"),
            (&["man", "completions"], "manual pages, shell completions"),
        ],
    ),
];

/// Returns the first screen, with the commands that this build has.
pub fn screen() -> String {
    let mut out = OPENING.to_owned();
    for (subject, lines) in SUBJECTS {
        let mut subject = *subject;
        for (names, purpose) in *lines {
            let names: Vec<&str> = names
                .iter()
                .copied()
                .filter(|name| *name == "help" || find(name).is_some())
                .collect();
            if names.is_empty() {
                continue;
            }
            out.push_str(&format!("{subject:<14} {:<24} {purpose}\n", names.join(", ")));
            subject = "";
        }
    }
    out.push_str(CLOSING);
    out
}

/// Words that other programs have for commands, and what to type here.
const WORDS: &[(&str, &str)] = &[
    ("copy", "hakobu cp copies, with cp's options"),
    ("copyto", "hakobu cp copies, with cp's options"),
    ("move", "hakobu mv moves and renames"),
    ("moveto", "hakobu mv moves and renames"),
    ("rename", "hakobu mv moves and renames"),
    ("mirror", "hakobu sync -a --delete SRC/ DST/ mirrors a tree"),
    ("bisync", "hakobu sync copies in one direction: run it once for each"),
    ("check", "hakobu verify compares two trees"),
    ("diff", "hakobu verify compares two trees"),
    ("cmp", "hakobu verify compares two trees"),
    ("s3", "drop the word s3: hakobu cp, not hakobu s3 cp"),
    ("s3api", "hakobu head, mpu, presign and bucket-version do what these calls do"),
    ("s5cmd", "drop the word s5cmd: hakobu cp, not hakobu s5cmd cp"),
    ("delete", "hakobu rm removes files and objects"),
    ("deletefile", "hakobu rm removes files and objects"),
    ("purge", "hakobu rm -r removes a tree"),
    ("remove", "hakobu rm removes files and objects"),
    ("list", "hakobu ls lists buckets and objects"),
    ("lsl", "hakobu ls lists buckets and objects"),
    ("lsd", "hakobu ls without an argument lists the buckets"),
    ("lsf", "hakobu ls lists buckets and objects"),
    ("tree", "hakobu ls -R lists everything below a prefix"),
    ("find", "hakobu ls -R --include=PATTERN --exclude='*' lists what matches"),
    ("size", "hakobu du -s sums up a tree or a prefix"),
    ("ncdu", "hakobu du sums up trees and prefixes"),
    ("mkdir", "hakobu mb creates buckets; directories are created with what they hold"),
    ("make-bucket", "hakobu mb creates buckets"),
    ("rmdir", "hakobu rm -d removes empty directories, hakobu rb buckets"),
    ("rcat", "hakobu pipe uploads standard input"),
    ("put", "hakobu cp uploads: hakobu cp FILE s3://BUCKET/"),
    ("get", "hakobu cp downloads: hakobu cp s3://BUCKET/KEY ."),
    ("upload", "hakobu cp uploads: hakobu cp FILE s3://BUCKET/"),
    ("download", "hakobu cp downloads: hakobu cp s3://BUCKET/KEY ."),
    ("link", "hakobu presign creates URLs"),
    ("share", "hakobu presign creates URLs"),
    ("select", "hakobu cat reads whole objects"),
    ("fio", "hakobu io takes fio's options and job files"),
    ("hyperfine", "hakobu bench takes hyperfine's options"),
    ("benchmark", "hakobu bench measures commands"),
    ("time", "hakobu watch -- COMMAND measures one command"),
    ("completion", "hakobu completions SHELL prints them"),
    ("config", "settings are those of aws: ~/.aws/config, or options such as --endpoint-url"),
    ("configure", "settings are those of aws: ~/.aws/config, or options such as --endpoint-url"),
];

/// Returns the message about a word that is no command, with a hint.
pub fn unknown(name: &str) -> String {
    if let Some((_, features)) = OPTIONAL.iter().find(|(command, _)| *command == name) {
        return format!(
            "this build has no '{name}'\nhint: build hakobu with --features {features}"
        );
    }
    let known = WORDS.iter().find(|(word, _)| *word == name).map(|(_, hint)| (*hint).to_owned());
    let near = || nearest(name).map(|near| format!("did you mean '{near}'?"));
    let hint = known.or_else(|| of_option(name)).or_else(near).unwrap_or_else(|| {
        "hakobu --help lists the commands, hakobu help topics the guides".to_owned()
    });
    format!("there is no command '{name}'\nhint: {hint}")
}

/// Returns where an option is explained, if the word is one.
fn of_option(word: &str) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let name = word.trim_start_matches('-');
    let has = |command: &&Command| name.len() > 1 && command.has(name);
    let with: Vec<&str> = COMMANDS.iter().filter(has).map(|command| command.name).collect();
    let first = with.first()?;
    let named = with.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if with.len() > NAMED_MAX { ", ..." } else { "" };
    Some(format!("--{name} is an option of {named}{more} (hakobu {first} --help)"))
}

/// Returns the command within two typing errors of a name.
fn nearest(name: &str) -> Option<&'static str> {
    let near =
        COMMANDS.iter().map(|command| (strsim::levenshtein(name, command.name), command.name));
    near.min().filter(|(far, best)| *far <= 2 && *far < best.len()).map(|(_, best)| best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors() {
        for (typed, meant) in [
            ("snyc", Some("sync")),
            ("sunc", Some("sync")),
            ("rsync", Some("sync")),
            ("c", Some("cp")),
            ("mvv", Some("mv")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
    }

    #[test]
    fn the_first_screen_is_one_screen_with_every_command_once() {
        let screen = screen();
        assert!(screen.lines().count() <= 30, "{screen}");
        assert!(screen.lines().all(|line| line.len() <= 80), "{screen}");
        let listed = SUBJECTS.iter().flat_map(|(_, lines)| lines.iter());
        let listed: Vec<&str> = listed.flat_map(|(names, _)| names.iter().copied()).collect();
        for command in COMMANDS {
            let count = listed.iter().filter(|name| **name == command.name).count();
            assert_eq!(count, 1, "{}", command.name);
        }
        for name in listed {
            let is_known = name == "help" || find(name).is_some();
            assert!(is_known || OPTIONAL.iter().any(|(other, _)| *other == name), "{name}");
        }
    }

    #[test]
    fn options_are_found_too() {
        let hint = "hint: --bwlimit is an option of sync, cp, mv, ... (hakobu sync --help)";
        for word in ["bwlimit", "--bwlimit"] {
            assert!(unknown(word).ends_with(hint), "{}", unknown(word));
        }
        assert!(!unknown("frobnicate").contains("is an option"));
    }

    #[test]
    fn words_of_other_programs_lead_home() {
        for (word, hint) in WORDS {
            assert!(find(word).is_none(), "{word} is a command");
            assert!(unknown(word).ends_with(&format!("hint: {hint}")), "{word}");
        }
    }
}
