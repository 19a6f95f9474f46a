//! Tables and what is typed against them.

use super::*;

fn parse(table: &Table, line: &str) -> Result<Typed, Refused> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    table.parse(&arguments)
}

fn spelled(table: &Table, line: &str) -> String {
    match parse(table, line) {
        Ok(typed) => {
            let options = typed.options.iter().map(|given| {
                let sign = if given.on { "" } else { "!" };
                let count = if given.count > 1 { given.count.to_string() } else { String::new() };
                format!("{sign}{}{count}{}", given.name, given.value.to_string_lossy())
            });
            let paths = typed.paths.iter().map(|path| format!("[{}]", path.to_string_lossy()));
            options.chain(paths).collect::<Vec<_>>().join(" ")
        }
        Err(Refused::Help(_)) => "help".to_owned(),
        Err(Refused::Usage(message) | Refused::Failed { message, .. }) => {
            message.lines().next().unwrap_or("").to_owned()
        }
    }
}

#[test]
fn tables_are_sound() {
    for table in crate::commands::tables() {
        table.clap().debug_assert();
        assert!(table.help().contains(table.usage), "{}", table.command);
    }
}

#[test]
fn order_is_kept() {
    for (line, expected) in [
        ("-avR s d", "archive verbose relative [s] [d]"),
        ("-a --no-o s d", "archive !owner [s] [d]"),
        ("--no-o -a s d", "!owner archive [s] [d]"),
        ("-o --no-owner -o s d", "owner [s] [d]"),
        ("-vv --no-v -v s", "verbose [s]"),
        ("-vvi s -i d", "verbose2 itemize-changes2 [s] [d]"),
        (
            "--include a --exclude=b -f -_c -F --include d -F",
            "includea excludeb filter-_c F included F",
        ),
        ("-F --exclude -x -FF", "F exclude-x F F"),
        ("--modify-window=-1 -@-1", "modify-window-1"),
        ("-j -2 -j+3", "jobs+3"),
        ("--bwlimit 1m --bwlimit 2m", "bwlimit2m"),
        ("-- -a --delete", "[-a] [--delete]"),
        ("s -a d --del", "archive delete-during [s] [d]"),
        ("--help", "help"),
    ] {
        assert_eq!(spelled(&sync::TABLE, line), expected, "{line}");
    }
}

#[test]
fn unbuilt_options_are_named() {
    for (line, expected) in [
        ("--append a b", "--append is not built"),
        ("--backup-dir=x a b", "--backup-dir is not built"),
        ("--backup-dir x a b", "--backup-dir is not built"),
        (
            "-avz a b",
            "-z is not built: nothing leaves this machine, so there is nothing to compress",
        ),
        (
            "--no-compress a b",
            "--no-compress is not built: nothing leaves this machine, so there is nothing to compress",
        ),
        ("-e ssh a b", "-e is not built: there are no remote locations"),
        ("--nosuch a b", "unexpected argument '--nosuch' found"),
        ("--exclude", "a value is required for '--exclude <PATTERN>' but none was supplied"),
    ] {
        assert_eq!(spelled(&sync::TABLE, line), expected, "{line}");
    }
}

#[test]
fn getopt_abbreviates() {
    assert_eq!(
        spelled(&cp::TABLE, "--rec --refl=never --preserve a b"),
        "recursive reflinknever preserve [a] [b]"
    );
    assert_eq!(spelled(&cp::TABLE, "--backup a b"), "--backup is not built");
    assert_eq!(spelled(&mv::TABLE, "-Z a b"), "-Z is not built");
    // Not taken for the beginning of --version-id.
    let version = "--version is not built: it is an option of hakobu itself: hakobu --version";
    assert_eq!(spelled(&cp::TABLE, "--version a b"), version);
    assert_eq!(spelled(&cp::TABLE, "--version-id=x a b"), "version-idx [a] [b]");
}

#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(b"a\xff".to_vec());
    let mut joined = OsString::from("--exclude=");
    joined.push(&odd);
    let typed = sync::TABLE.parse(&[joined, odd.clone()]);
    let typed = typed.unwrap_or_default();
    assert_eq!(typed.paths, std::slice::from_ref(&odd));
    assert_eq!(typed.options.first().map(|given| given.value.clone()), Some(odd));
}

proptest::proptest! {
    #[test]
    fn any_command_line_is_taken_or_refused(
        words in proptest::collection::vec("-{0,2}[a-zA-Z0-9@=./+%é-]{0,8}", 0..6),
    ) {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        for table in [&sync::TABLE, &cp::TABLE, &mv::TABLE] {
            if let Ok(typed) = table.parse(&arguments) {
                proptest::prop_assert!(typed.paths.len() <= words.len());
            }
        }
    }
}
