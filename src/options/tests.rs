//! Tables, and command lines parsed with them.

use super::*;

pub(super) fn table(command: &str) -> &'static dyn Syntax {
    crate::commands::find(crate::commands::COMMANDS, command).unwrap().table
}

fn parse(command: &str, line: &str) -> Result<Typed, Refused> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    table(command).parse(&arguments)
}

fn parsed(command: &str, line: &str) -> String {
    match parse(command, line) {
        Ok(typed) => {
            let options = typed.options.iter().map(|arg| {
                let sign = if arg.on { "" } else { "!" };
                let count = if arg.count > 1 { arg.count.to_string() } else { String::new() };
                format!("{sign}{}{count}{}", arg.name, arg.value.to_string_lossy())
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
    for command in crate::commands::COMMANDS {
        let mut clap = command.table.clap();
        clap.clone().debug_assert();
        let help = clap.render_help().to_string();
        assert!(help.contains(command.table.usage()), "{}", command.name);
    }
}

/// A state that records its settings, and a part of it that could be shared.
#[derive(Default)]
struct Probe {
    set: Vec<String>,
    part: Part,
}

#[derive(Default)]
struct Part(Option<u8>);

parts!(Part {});
parts!(Probe { part: Part });

const PROBED: Table<Probe> = Table {
    command: "probe",
    about: "",
    usage: "probe",
    after: "",
    options: &[&OWN, &SHARED],
    unbuilt: &[],
    abbreviates: false,
};

const OWN: &[Opt<Probe>] = &[
    flag("late", None, "").sets(|it, on| it.set.push(format!("late {on}"))),
    flag("early", None, "")
        .off(&["no-early"])
        .local("no such thing")
        .sets(|it, on| it.set.push(format!("early {on}"))),
];

const SHARED: Group<Part> = titled("Shared").with(&[value("level", Some('l'), "N", "how high")
    .stored()
    .reads(|part, arg| put(&mut part.0, Some(arg.number()?)))]);

#[test]
fn options_set_what_their_rows_say_in_the_order_of_the_command_line() {
    let typed = |line: &str| PROBED.parse_line(line).unwrap();
    let read = |line: &str| PROBED.read(&typed(line), Probe::default());
    let probe = read("--no-early --level=3 --late").unwrap();
    assert_eq!(probe.set, ["early false", "late true"]);
    assert_eq!(probe.part.0, Some(3));
    assert_eq!(read("-l x").err().as_deref(), Some("--level=x: is not a number"));
    let stray = OptArg { name: "other", on: true, count: 1, value: "".into() };
    let stray = Typed { options: vec![stray], ..Typed::default() };
    let message = PROBED.read(&stray, Probe::default()).err();
    assert_eq!(message.as_deref(), Some("--other is not an option of probe"));

    let checked = |line: &str, any| PROBED.check_places(&typed(line), any, any).err();
    let only = "--level is for s3:// locations, and none is given";
    assert_eq!(checked("-l1", false).as_deref(), Some(only));
    assert_eq!(checked("-l1", true), None);
    let refused = "--early is not supported for s3://: no such thing";
    assert_eq!(checked("--early", true).as_deref(), Some(refused));
    assert_eq!(checked("--no-early --late", true), None);
    assert_eq!(checked("--early", false), None);
    assert!(PROBED.help().contains("Shared:\n  -l, --level <N>"), "{}", PROBED.help());
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
        assert_eq!(parsed("sync", line), expected, "{line}");
    }
}

#[test]
fn several_words_are_one_value() {
    for (line, expected) in [
        (
            "-L jobs 1,4 -w 2 -L size a=b,c x",
            "parameter-listjobs=1,4 warmup2 parameter-listsize=a=b,c [x]",
        ),
        ("-P n -1 3 -D 2 x", "parameter-scann=-1=3 parameter-step-size2 [x]"),
        ("--repeat 3 -N x", "runs3 no-shell [x]"),
        ("--style full x", "stylefull [x]"),
    ] {
        assert_eq!(parsed("bench", line), expected, "{line}");
    }
    assert!(parsed("bench", "x -L jobs").contains("2 values required"));
}

#[test]
fn unbuilt_options_are_named() {
    for (line, expected) in [
        (
            "--copy-as=x a b",
            "--copy-as is not supported: run hakobu as that user: sudo -u USER hakobu sync ...",
        ),
        (
            "--copy-as x a b",
            "--copy-as is not supported: run hakobu as that user: sudo -u USER hakobu sync ...",
        ),
        (
            "-N a b",
            "-N is not supported: Linux cannot set birth times; rsync refuses it there as well",
        ),
        (
            "-e ssh a b",
            "-e is not supported: there is no remote shell and no daemon; SRC and DST are local paths (a \
             mounted file system is one) or s3://",
        ),
        ("--nosuch a b", "unexpected argument '--nosuch' found (hakobu sync --help)"),
        ("--exclude", "a value is required for '--exclude <PATTERN>' but none was supplied"),
    ] {
        assert_eq!(parsed("sync", line), expected, "{line}");
    }
}

#[test]
fn getopt_abbreviates() {
    assert_eq!(
        parsed("cp", "--rec --refl=never --preserve a b"),
        "recursive reflinknever preserve [a] [b]"
    );
    assert_eq!(parsed("cp", "--backup a b"), "backup [a] [b]");
    assert_eq!(parsed("mv", "-Z a b"), "-Z is not supported");
    // Not an abbreviation of --version-id.
    let version = "--version is not supported: it is an option of hakobu itself: hakobu --version";
    assert_eq!(parsed("cp", "--version a b"), version);
    assert_eq!(parsed("cp", "--version-id=x a b"), "version-idx [a] [b]");
}

#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(b"a\xff".to_vec());
    let mut joined = OsString::from("--exclude=");
    joined.push(&odd);
    let typed = table("sync").parse(&[joined, odd.clone()]);
    let typed = typed.unwrap_or_default();
    assert_eq!(typed.paths, std::slice::from_ref(&odd));
    assert_eq!(typed.options.first().map(|arg| arg.value.clone()), Some(odd));
}

proptest::proptest! {
    #[test]
    fn any_command_line_is_taken_or_refused(
        words in proptest::collection::vec("-{0,2}[a-zA-Z0-9@=./+%é-]{0,8}", 0..6),
    ) {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        for command in ["sync", "cp", "mv"] {
            if let Ok(typed) = table(command).parse(&arguments) {
                proptest::prop_assert!(typed.paths.len() <= words.len());
            }
        }
    }
}
