//! Commands with placeholders and hostile values; the tables of known tools.

use super::*;
use std::process::Command;

const HOSTILE: &[&str] = &[
    "plain",
    "with space",
    "it's",
    "\"quoted\"",
    "$(touch injected)",
    "`touch injected`",
    "; touch injected;",
    "a\nb",
    "a\\b\\",
    "*",
    "~root",
    "-rf",
    "&& touch injected",
    "{}",
    "é 漢",
    "'\"'\"'",
    "#",
    "$HOME",
    "!x",
];

fn values(pairs: &[(&str, &str)]) -> PlaceholderValues {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), PlaceholderValue::Word((*value).to_owned())))
        .collect()
}

fn argv(template: &str, pairs: &[(&str, &str)]) -> Vec<String> {
    Template::parse(template).unwrap().argv(&values(pairs), false).unwrap()
}

#[test]
fn simple_commands_need_no_shell() {
    let pairs = [("src", "/a b"), ("dst", "/c"), ("jobs", "4")];
    for (template, words) in [
        ("cp -a {src}/. {dst}/", vec!["cp", "-a", "/a b/.", "/c/"]),
        ("x '{src}' \"{dst}\"", vec!["x", "/a b", "/c"]),
        ("x 'a b'c\"d e\" f\\ g", vec!["x", "a bcd e", "f g"]),
        ("x '' \"\" y", vec!["x", "", "", "y"]),
        ("x \"a\\\"b\\c\" '\\'", vec!["x", "a\"b\\c", "\\"]),
        ("parallel -j {jobs} rsync {} {dst!q}/", vec!["parallel", "-j", "4", "rsync", "{}", "/c/"]),
        ("x {src!q}", vec!["x", "'/a b'"]),
        ("x {{src}} {/} {/.} {a b}", vec!["x", "{src}", "{/}", "{/.}", "{a", "b}"]),
        ("x --n={jobs}%", vec!["x", "--n=4%"]),
        ("x a#b a~b", vec!["x", "a#b", "a~b"]),
        ("  x \t y\n", vec!["x", "y"]),
    ] {
        assert_eq!(argv(template, &pairs), words, "{template}");
    }
}

#[test]
fn what_needs_a_shell_gets_one() {
    for template in [
        "a | b", "a && b", "a; b", "a > b", "a < b", "a $x", "a `b`", "a *", "a ?", "a [b]",
        "a # b", "a ~/b", "cd /x", "X=1 a", "a \"$x\"", "a & b", "(a)", "a\nb", "if true",
        "exec a",
    ] {
        assert!(Template::parse(template).unwrap().needs_shell(), "{template}");
    }
    for template in ["a 'b | c'", "a \"b > c\"", "a \\; b", "a '$x'", "a b=c", "a {}", "a +%s !x"] {
        assert!(!Template::parse(template).unwrap().needs_shell(), "{template}");
    }
    for (template, why) in [("a 'b", "'"), ("a \"b", "\""), ("", "empty"), ("a \"b\\\"", "\"")] {
        assert!(Template::parse(template).unwrap_err().contains(why), "{template}");
    }
}

#[test]
fn words_in_a_row_stay_words() {
    let template = Template::parse("a {options} b --x={options}").unwrap();
    let mut given = PlaceholderValues::new();
    let mut with = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        given.insert("options".into(), PlaceholderValue::Words(words));
        (template.argv(&given, false).unwrap(), template.script(&given).unwrap())
    };
    assert_eq!(with(&[]).0, ["a", "b", "--x="]);
    let (words, script) = with(&["c d", "e"]);
    assert_eq!(words, ["a", "c d", "e", "b", "--x=c d e"]);
    assert_eq!(script, "a 'c d' e b --x='c d' e");
    assert!(template.argv(&PlaceholderValues::new(), false).unwrap_err().contains("{options}"));
}

/// Runs a command that prints its arguments, and returns them.
fn echoed(argv: &[String]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(&argv[0]).args(&argv[1..]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{argv:?}: {output:?}");
    assert!(!dir.path().join("injected").exists(), "{argv:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\u{1}').map(str::to_owned).collect()
}

#[test]
fn hostile_names_stay_one_word_everywhere() {
    for name in HOSTILE {
        for template in [
            "printf '%s\\001' {src} end",
            "printf '%s\\001' '{src}' end",
            "printf '%s\\001' \"{src}\" end",
            "printf '%s\\001' {src} end; true",
            "printf '%s\\001' '{src}' end; true",
            "printf '%s\\001' \"{src}\" end; true",
            "eval printf \"'%s\\\\001'\" {src!q} end",
        ] {
            let words = argv(template, &[("src", name)]);
            assert_eq!(echoed(&words), [*name, "end"], "{template}: {words:?}");
            let forced = Template::parse(template).unwrap();
            let forced = forced.argv(&values(&[("src", name)]), true).unwrap();
            assert_eq!(forced[0], "sh");
            assert_eq!(echoed(&forced), [*name, "end"], "{template}: {forced:?}");
        }
    }
}

#[test]
fn texts_are_filled_as_they_are() {
    let plain = Template::plain("it's {src} {{src}} ${x}");
    assert_eq!(plain.text(&values(&[("src", "a b"), ("x", "y")])).unwrap(), "it's a b {src} $y");
    assert_eq!(plain.names().collect::<Vec<_>>(), ["src", "x"]);
}

#[test]
fn the_program_of_a_command_is_its_first_word() {
    for (template, program) in [
        ("cp {src} {dst}", Some("cp")),
        ("/usr/bin/x y | z", Some("/usr/bin/x")),
        ("{own} sync", None),
        ("cd /x && y", None),
        ("X=1 y", None),
        ("'x' y", None),
        ("tool-{jobs}", None),
        ("only", Some("only")),
    ] {
        let found = Template::parse(template).unwrap().program();
        assert_eq!(found.as_deref(), program, "{template}");
    }
}

proptest::proptest! {
    #[test]
    fn any_value_stays_one_word(value in "[^\u{0}]{0,20}") {
        let words = argv("x {src} y", &[("src", &value)]);
        proptest::prop_assert_eq!(words, ["x", value.as_str(), "y"]);
    }

    #[test]
    fn any_command_is_taken_or_refused(text: String) {
        if let Ok(template) = Template::parse(&text) {
            let names: Vec<String> = template.names().map(str::to_owned).collect();
            let filled = names.into_iter().map(|name| (name, PlaceholderValue::Word("v".into()))).collect();
            proptest::prop_assert!(template.argv(&filled, false).is_ok());
            proptest::prop_assert!(template.script(&filled).is_ok());
        }
    }
}
