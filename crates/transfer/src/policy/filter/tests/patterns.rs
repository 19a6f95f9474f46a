//! PATTERN MATCHING RULES.

use super::hides;

/// Pattern, path (directories end in a slash), whether it matches.
const CASES: &[(&str, &str, bool)] = &[
    // Without a slash only the last component is matched.
    ("foo", "foo", true),
    ("foo", "a/b/foo/", true),
    ("foo", "foobar", false),
    ("foo", "a/xfoo", false),
    // With a slash the last components are matched, whole ones only.
    ("foo/bar", "foo/bar", true),
    ("foo/bar", "a/foo/bar", true),
    ("foo/bar", "a/xfoo/bar", false),
    ("foo/bar", "bar", false),
    ("f*/bar", "a/foo/bar", true),
    ("f*/bar", "foo/a/bar", false),
    // A trailing slash: directories only.
    ("foo/", "a/foo/", true),
    ("foo/", "a/foo", false),
    ("foo/bar/", "foo/bar/", true),
    ("foo/bar/", "foo/bar", false),
    ("*/", "a/b/", true),
    ("*/", "a/b", false),
    // A leading slash: from the top.
    ("/foo", "foo", true),
    ("/foo", "a/foo", false),
    ("/foo/bar", "foo/bar", true),
    ("/foo/bar", "a/foo/bar", false),
    ("/f*", "foo", true),
    ("/f*", "a/foo", false),
    ("/", "foo", false),
    ("//", "foo/", false),
    // `*` and `?` stop at slashes, and match hidden files.
    ("*.o", "a/x.o", true),
    ("*.o", ".o", true),
    ("*.o", "x.oo", false),
    ("foo*", "a/foobar", true),
    ("*", "a/.x", true),
    ("a*c", "abbc", true),
    ("a*c*e", "abcde", true),
    ("a*c*e", "abcd", false),
    ("/a*c", "ab/c", false),
    ("?", "a", true),
    ("?", "ab", false),
    ("/a?b", "a/b", false),
    ("foo/*/bar", "foo/x/bar", true),
    ("foo/*/bar", "foo/bar", false),
    ("foo/*/bar", "foo/x/y/bar", false),
    // `**` matches slashes, and makes the pattern apply to the whole path.
    ("/foo/**", "foo/a/b", true),
    ("/foo/**", "foo/", false),
    ("/foo/**/bar", "foo/x/y/bar", true),
    ("/foo/**/bar", "foo/bar", false),
    ("foo/**", "a/foo/b/c", true),
    ("foo/**", "a/xfoo/b", false),
    ("**/foo", "foo", true),
    ("**/foo", "a/b/foo", true),
    ("**/foo", "a/xfoo", false),
    ("***/foo", "foo", true),
    ("**/**/foo", "foo", false),
    ("**/**/foo", "a/foo", true),
    ("**/***", "foo", true),
    ("*/***", "foo", false),
    ("*/***", "foo/", true),
    ("/**/foo", "foo", false),
    ("/**/foo", "a/foo", true),
    ("a**b", "a/x/b", true),
    ("a**b", "x/ab", true),
    ("a**b", "xa/b", false),
    ("**", "a/b", true),
    ("**/", "a/b", false),
    ("**/", "a/b/", true),
    ("a**/c*d**e", "ax/y/cd/c/z/e", true),
    // `dir/***` is the directory and everything in it.
    ("foo/***", "foo/", true),
    ("foo/***", "foo", false),
    ("foo/***", "a/foo/b/c", true),
    ("/foo/***", "foo/", true),
    ("/foo/***", "a/foo/", false),
    ("/f*/***", "foo/", true),
    ("***", "a", true),
    // Classes.
    ("[abc]", "b", true),
    ("[abc]", "d", false),
    ("[a-c]x", "bx", true),
    ("[!a-c]", "b", false),
    ("[!a-c]", "d", true),
    ("[^a]", "b", true),
    ("[]]", "]", true),
    ("[!]]", "]", false),
    ("[]-a]", "^", true),
    ("[a-]", "-", true),
    ("[-a]", "-", true),
    ("[c-a]", "b", false),
    ("[\\]]", "]", true),
    ("[[:alpha:]]", "q", true),
    ("[[:alpha:]]", "1", false),
    ("[![:alpha:]]", "1", true),
    ("[[:digit:]a]", "a", true),
    ("[[:upper:][:digit:]]", "7", true),
    ("[[:foo:]]", "f", false),
    ("[[a]", "[", true),
    ("/a[!b]c", "a/c", false),
    ("/a[/]c", "a/c", false),
    // Unfinished classes match nothing.
    ("[a", "[a", false),
    ("[a", "a", false),
    ("[]", "]", false),
    ("a*\\", "a\\", false),
    // A backslash escapes only in a pattern with a wildcard.
    ("foo\\bar", "foo\\bar", true),
    ("foo\\bar", "foobar", false),
    ("foo\\bar*", "foobar", true),
    ("foo\\bar*", "foo\\bar", false),
    ("foo\\\\bar*", "foo\\bar", true),
    ("\\*", "*", true),
    ("\\*", "a", false),
    ("*\\*", "a*", true),
    ("*\\*", "ab", false),
    ("\\[a]", "[a]", true),
    // Spaces and underscores after the first separator belong to the pattern.
    (" a", " a", true),
    ("_a", "_a", true),
    ("a ", "a", false),
];

#[test]
fn patterns_match_as_documented() {
    for (pattern, path, expected) in CASES {
        let rule = format!("- {pattern}");
        assert_eq!(hides(&[&rule], path), *expected, "{pattern:?} on {path:?}");
        let negated = format!("-! {pattern}");
        assert_eq!(hides(&[&negated], path), !expected, "negated {pattern:?} on {path:?}");
    }
}

#[test]
fn absolute_patterns_see_the_whole_path_of_each_side() {
    use super::{BOTH, HIDE, NEITHER, PROTECT, decide};
    for (rule, path, expected) in [
        ("-/ /src/top/a", "a", HIDE),
        ("-/ /dst/a", "a", PROTECT),
        ("-/ top/a", "a", HIDE),
        ("-/ op/a", "a", NEITHER),
        ("-/ /src/**/b", "x/b", HIDE),
        ("-/ /src/top/x/***", "x/", HIDE),
        ("-/ a", "x/a", BOTH),
        ("H/ /dst/a", "a", NEITHER),
        ("P/ /dst/a", "a", PROTECT),
    ] {
        assert_eq!(decide(&[rule], path), expected, "{rule} on {path}");
    }
}

#[test]
fn shortcuts_stay_name_only() {
    use crate::policy::filter::pattern::RulePattern;
    for (text, name_only) in [
        ("a", true),
        ("*.o", true),
        ("a*", true),
        ("[a]", true),
        ("a/", true),
        ("/a", false),
        ("a**", false),
    ] {
        assert_eq!(RulePattern::new(text.as_bytes()).name_only(), name_only, "{text}");
    }
}

#[test]
fn many_wildcards_take_no_exponential_time() {
    let pattern = format!("- {}b", "*a**a".repeat(40));
    let path = "a".repeat(250);
    assert!(!hides(&[&pattern], &path));
}
