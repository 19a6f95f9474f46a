//! The command-line options besides `--filter`.

use super::{BOTH, Decision, Files, HIDE, NEITHER, PROTECT, rules};
use crate::policy::filter::{Filter, FilterBuilder};

fn built(give: impl FnOnce(&mut FilterBuilder)) -> Filter {
    let mut builder = FilterBuilder::default();
    give(&mut builder);
    Files::default().build(builder)
}

fn ask(filter: &Filter, path: &str) -> Decision {
    Files::default().ask(filter, path)
}

#[test]
fn include_and_exclude_take_simple_rules() {
    for (pattern, path, expected) in [
        ("a", "a", BOTH),
        ("- a", "a", BOTH),
        ("+ a", "a", NEITHER),
        ("- - a", "- a", BOTH),
        ("-", "-", BOTH),
        ("+", "+", BOTH),
        ("-a", "-a", BOTH),
        ("-_a", "a", NEITHER),
        ("! ", "! ", BOTH),
        ("!x", "!x", BOTH),
        ("#a", "#a", BOTH),
        (";a", ";a", BOTH),
        ("clear", "clear", BOTH),
        ("", "a", NEITHER),
    ] {
        assert_eq!(
            ask(&built(|b| b.exclude(pattern.as_bytes()).unwrap()), path),
            expected,
            "{pattern:?}"
        );
    }
    for wrong in [&b"- "[..], b"+ "] {
        assert!(
            FilterBuilder::default().exclude(wrong).is_err()
                && FilterBuilder::default().include(wrong).is_err()
        );
    }
    let filter = built(|b| {
        b.exclude(b"a").unwrap();
        b.include(b"!").unwrap();
        b.include(b"- b").unwrap();
        b.include(b"c").unwrap();
        b.exclude(b"*").unwrap();
    });
    for (path, expected) in [("a", BOTH), ("b", BOTH), ("c", NEITHER)] {
        assert_eq!(ask(&filter, path), expected, "{path}");
    }
}

#[test]
fn files_of_patterns() {
    for (content, nul, hidden, shown) in [
        ("a\nb\n", false, "a b", "c"),
        ("a\r\nb\rc", false, "a b c", "d"),
        ("# x\n;y\n\na", false, "a", "# ;y"),
        ("- #x\n- ;y\n", false, "#x ;y", "x"),
        ("+ a\na\nb\n", false, "b", "a"),
        ("b\n!\na\n", false, "a", "b !"),
        ("-_a\nmerge x\n", false, "-_a", "a x"),
        ("a\0b\n", false, "a", "b"),
        ("a\0b\0", true, "a b", "c"),
        ("- a\0;y\0#x\0", true, "a", ";y #x"),
        ("a\nb\0", true, "a\nb", "a b"),
        ("!\0a", true, "a", "!"),
    ] {
        let filter = built(|b| b.exclude_from(content.as_bytes(), "list", nul).unwrap());
        let names = |list: &'static str| list.split(' ').collect::<Vec<_>>();
        names(hidden)
            .iter()
            .for_each(|name| assert_eq!(ask(&filter, name), BOTH, "{content:?} {name:?}"));
        names(shown)
            .iter()
            .for_each(|name| assert_eq!(ask(&filter, name), NEITHER, "{content:?} {name:?}"));
    }
    let filter = built(|b| {
        b.include_from(b"- a\nb\n", "list", false).unwrap();
        b.exclude(b"*").unwrap();
    });
    assert_eq!([ask(&filter, "a"), ask(&filter, "b"), ask(&filter, "c")], [BOTH, NEITHER, BOTH]);
}

#[test]
fn delete_excluded_leaves_only_sided_rules_protecting() {
    for (rule, expected) in
        [("- a", HIDE), ("-s a", HIDE), ("-r a", PROTECT), ("-sr a", BOTH), ("P a", PROTECT)]
    {
        let filter = built(|b| {
            b.rule(rule.as_bytes()).unwrap();
            b.delete_excluded(true);
        });
        assert_eq!(ask(&filter, "a"), expected, "{rule}");
    }
    let files = Files::new(&[("/src/top/.r", "- a\nP b\n")]);
    for (rule, a, b) in [(": .r", HIDE, PROTECT), (":n .r", HIDE, PROTECT)] {
        let mut builder = rules(&[rule]);
        builder.delete_excluded(true);
        let filter = files.build(builder);
        assert_eq!([files.ask(&filter, "a"), files.ask(&filter, "b")], [a, b]);
    }
}

#[test]
fn cvs_rules_come_last_and_its_own_list_is_perishable() {
    let files = Files::new(&[("/src/top/d/.cvsignore", "a b\n!keep #c")]);
    let mut builder = FilterBuilder::default();
    builder.cvs_exclude();
    builder.cvs_ignores(Some(b"home-*"), Some(b"env"));
    builder.include(b"a").unwrap();
    builder.rule(b"!").unwrap();
    builder.include(b"*.o").unwrap();
    let filter = files.build(builder);
    for (path, hidden) in [
        ("x.o", false),
        ("x.a", true),
        ("CVS/", true),
        (".git/", true),
        (".git", false),
        ("core", true),
        ("home-1", true),
        ("env", true),
        ("a", false),
        ("d/a", true),
        ("d/b", true),
        ("d/#c", true),
        ("d/e/a", false),
    ] {
        assert_eq!(files.ask(&filter, path).hide, hidden, "{path}");
    }
    let top = filter.root(&super::TOP, &mut |_| Ok(None)).unwrap();
    assert!(!filter.check(&top, b"x/x.a", false, true).protect);
    assert!(filter.check(&top, b"x/env", false, true).protect);
}

#[test]
fn cvs_rule_stands_where_it_is_written() {
    for (rules_text, path, expected) in [
        (&["-C"][..], "x.o", BOTH),
        (&["-sC"], "x.o", HIDE),
        (&["+C", "- *.o"], "x.o", NEITHER),
        (&["-C", "+ x.o"], "x.o", BOTH),
        (&["+ x.o", "-C"], "x.o", NEITHER),
        (&[":C", "+ a"], "d/a", BOTH),
        (&["+ a", ":C"], "d/a", NEITHER),
        (&[":C other"], "d/o", BOTH),
        (&[":sC"], "d/a", HIDE),
    ] {
        let files = Files::new(&[("/src/top/d/.cvsignore", "a"), ("/src/top/d/other", "o")]);
        assert_eq!(files.ask(&files.build(rules(rules_text)), path), expected, "{rules_text:?}");
    }
    // A lone "!" in the user's list only drops the default list.
    let mut builder = rules(&["- a", "-C"]);
    builder.cvs_ignores(Some(b"! b"), Some(b"c"));
    let filter = Files::default().build(builder);
    for (path, expected) in [("a", BOTH), ("b", BOTH), ("c", BOTH), ("x.o", NEITHER)] {
        assert_eq!(ask(&filter, path), expected, "{path}");
    }
}

#[test]
fn f_option_reads_from_the_root_down_and_twice_hides_the_files() {
    let files = Files::new(&[
        ("/.rsync-filter", "- a\n- /src/top/deep\n"),
        ("/src/.rsync-filter", "- b\n+ a\n- /top/d/x\n- /x\n- src/top/y\n"),
        ("/src/top/d/.rsync-filter", "- c"),
    ]);
    let mut builder = FilterBuilder::default();
    builder.per_directory().unwrap();
    let filter = files.build(builder);
    for (path, hidden) in [
        ("a", false),
        ("b", true),
        ("c", false),
        ("d/c", true),
        ("deep", true),
        ("d/deep", false),
        ("d/x", true),
        ("x", false),
        ("y", false),
        (".rsync-filter", false),
    ] {
        assert_eq!(files.ask(&filter, path).hide, hidden, "{path}");
    }
    let mut builder = FilterBuilder::default();
    (0..3).for_each(|_| builder.per_directory().unwrap());
    assert!(files.ask(&files.build(builder), ".rsync-filter").hide);
}
