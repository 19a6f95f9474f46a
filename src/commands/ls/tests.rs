//! Evaluation of `ls` command lines.

use super::*;

fn planned(line: &str) -> Result<Plan, String> {
    plan(TABLE.parse_line(line)?, false)
}

#[test]
fn the_last_form_counts() {
    for (line, form) in [
        ("", Form::Lines),
        ("-C", Form::Columns),
        ("-C1", Form::Lines),
        ("-l1", Form::Long),
        ("-lC", Form::Columns),
        ("-1n", Form::Long),
        ("-C --zero", Form::Lines),
        ("-l --json", Form::Json),
    ] {
        assert_eq!(planned(line).unwrap().form, form, "{line}");
    }
}

#[test]
fn unbuilt_options_are_named() {
    for (line, start) in [
        ("--color=auto", "--color is not supported"),
        ("-Z", "-Z is not supported"),
        ("--nosuch", "unexpected argument"),
    ] {
        assert!(planned(line).unwrap_err().starts_with(start), "{line}");
    }
}

#[test]
fn paths_are_joined_with_one_slash() {
    assert_eq!(join(b"", b"a"), b"a");
    assert_eq!(join(b"/", b"a"), b"/a");
    assert_eq!(join(b"d/e", b"a"), b"d/e/a");
}
