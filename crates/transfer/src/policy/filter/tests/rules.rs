//! FILTER RULES IN DEPTH and FILTER RULE MODIFIERS.

use super::{BOTH, Files, HIDE, NEITHER, PROTECT, decide, hides, rules};
use crate::policy::filter::FilterBuilder;

#[test]
fn names_and_separators() {
    for (rule, expected) in [
        ("- a", BOTH),
        ("-_a", BOTH),
        ("-, a", BOTH),
        ("exclude a", BOTH),
        ("exclude_a", BOTH),
        ("exclude, a", BOTH),
        ("+ a", NEITHER),
        ("include a", NEITHER),
        ("H a", HIDE),
        ("hide a", HIDE),
        ("-s a", HIDE),
        ("-,s a", HIDE),
        ("exclude,s a", HIDE),
        ("P a", PROTECT),
        ("protect a", PROTECT),
        ("-r a", PROTECT),
        ("-sr a", BOTH),
        ("S a", NEITHER),
        ("show a", NEITHER),
        ("R a", NEITHER),
        ("risk a", NEITHER),
        ("-pp a", BOTH),
        ("-  a", NEITHER),
        ("- C a", NEITHER),
    ] {
        assert_eq!(decide(&[rule], "a"), expected, "{rule:?}");
    }
}

#[test]
fn refused_rules() {
    for rule in [
        "-a",
        "-,a",
        "-/a",
        "-,,a",
        "-/,! a",
        "- ",
        "-",
        "+",
        "-_",
        "exclude",
        "exclude! a",
        "excludea",
        "bogus a",
        " ",
        " - a",
        "-\ta",
        "-e a",
        "-n a",
        "-w a",
        "-- a",
        "-+ a",
        "H,s a",
        "Hr a",
        "HC",
        "hide,C",
        "SC",
        "! ",
        "! a",
        "!a",
        "clear a",
        "clear,/",
        "!_",
        "H",
        "S_",
        ":",
        ": ",
        ".",
        ". ",
        ".-",
        ":! x",
        ":-+ x",
        ":-- x",
        ":C- x",
        ":-C x",
        ":CC x",
        ":C,foo",
        "dir-mergex",
        "dir-merge- x",
        "dir-merge_",
        "merge",
        "merge,",
        "# a",
        ";x",
        "a",
        "Exclude a",
    ] {
        let error = FilterBuilder::default().rule(rule.as_bytes()).expect_err(rule);
        assert_eq!(error.rule, rule.as_bytes());
        assert_eq!(error.origin, "--filter");
    }
    for rule in [
        "", "!", "!,", "clear", "clear,", "-C", "-C a", "-,C", "+C", "-Cp", ":C", ":C foo",
        ":nn x", ":x x",
    ] {
        assert!(FilterBuilder::default().rule(rule.as_bytes()).is_ok(), "{rule:?}");
    }
}

#[test]
fn messages_name_rule_origin_and_reason() {
    let message = FilterBuilder::default().rule(b"-q \xff").unwrap_err().to_string();
    assert_eq!(
        message,
        r#"filter rule "-q \xff" (--filter): the modifier 'q' is not one of this rule's"#
    );
    let message =
        FilterBuilder::default().exclude_from(b"a\n- \n", "list", false).unwrap_err().to_string();
    assert_eq!(message, "filter rule at list line 2: it ends before its pattern or file name");
}

#[test]
fn first_match_wins_for_each_side() {
    assert!(!hides(&["+ a", "- a"], "a"));
    assert!(hides(&["- a", "+ a"], "a"));
    assert_eq!(decide(&["S a", "- a"], "a"), PROTECT);
    assert_eq!(decide(&["R a", "- a"], "a"), HIDE);
    assert_eq!(decide(&["P a", "H a"], "a"), BOTH);
    assert_eq!(decide(&["R a", "S a", "- *"], "a"), NEITHER);
    assert!(hides(&["+ */", "+ *.c", "- *"], "a/b"));
    assert!(!hides(&["+ */", "+ *.c", "- *"], "a/b.c"));
    assert!(!hides(&["+ foo/", "+ foo/bar.c", "- *"], "foo/"));
    assert!(!hides(&["+ foo/", "+ foo/bar.c", "- *"], "foo/bar.c"));
    assert!(hides(&["+ foo/", "+ foo/bar.c", "- *"], "foo/baz.c"));
    assert!(hides(&["-! */"], "a") && !hides(&["-! */"], "a/"));
}

#[test]
fn clearing_drops_what_came_before() {
    assert!(!hides(&["- a", "!"], "a"));
    assert!(hides(&["+ a", "clear", "- a"], "a"));
    assert!(Files::default().build(rules(&["- a", ": .r", "!"])).is_empty());
}

#[test]
fn perishable_rules_do_not_count_in_deleted_directories() {
    let filter = Files::default().build(rules(&["-p a", "P,p b", "- c", "-rp d"]));
    let top = filter.root(&super::TOP, &mut |_| Ok(None)).unwrap();
    for (path, kept, kept_in_deleted) in
        [("x/a", true, false), ("x/b", true, false), ("x/c", true, true), ("x/d", true, false)]
    {
        assert_eq!(filter.check(&top, path.as_bytes(), false, false).protect, kept, "{path}");
        assert_eq!(
            filter.check(&top, path.as_bytes(), false, true).protect,
            kept_in_deleted,
            "{path}"
        );
    }
}

#[test]
fn xattr_rules_decide_about_attributes_alone() {
    let filter =
        Files::default().build(rules(&["+x user.a*", "-xr user.b", "-xs user.c", "-x user.a?"]));
    assert!(!filter.is_empty());
    let xattrs = filter.xattrs();
    assert!(xattrs.any());
    for (name, copied, removed) in [
        ("user.a1", true, true),
        ("user.b", false, false),
        ("user.c", false, true),
        ("user.d", true, true),
        ("system.x", true, true),
    ] {
        let name = name.as_bytes();
        assert_eq!((xattrs.copies(name), xattrs.removes(name)), (copied, removed), "{name:?}");
    }
    assert_eq!(decide(&["-x a"], "a"), NEITHER);
    let cleared = Files::default().build(rules(&["-x a", "!", "- b"]));
    assert!(!cleared.xattrs().any() && !cleared.is_empty());
}

#[test]
fn no_rules_no_work() {
    let filter = Files::default().build(FilterBuilder::default());
    assert!(filter.is_empty() && !filter.has_merge_files());
    assert_eq!(decide(&[], "a"), NEITHER);
    let filter = Files::default().build(rules(&["- a"]));
    assert!(!filter.is_empty() && !filter.has_merge_files());
    assert!(Files::default().build(rules(&[": .r"])).has_merge_files());
}
