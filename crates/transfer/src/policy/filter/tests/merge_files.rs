//! MERGE-FILE FILTER RULES, LIST-CLEARING FILTER RULE and ANCHORING INCLUDE/EXCLUDE PATTERNS.

use std::sync::Arc;

use super::{BOTH, Files, HIDE, NEITHER, Origin, PROTECT, TOP, rules};

/// Rules, per-directory files below the source, hidden paths, other paths.
type Case =
    (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str, &'static str);

const PER_DIRECTORY: &[Case] = &[
    (&[": .r"], &[(".r", "- a\n"), ("p/.r", "- b\n")], "a p/a p/b p/s/a p/s/b", "b"),
    (&[": .r"], &[(".r", "- a\n"), ("p/.r", "+ a\n")], "a", "p/a p/s/a"),
    (&[": .r"], &[(".r", "- a\n"), ("p/.r", "- b\n!\n- c\n")], "a p/c p/s/c", "p/a p/b"),
    (&[":n .r"], &[(".r", "- a\n"), ("p/.r", "- b\n")], "a p/b", "p/a p/s/b"),
    (&[":n .r"], &[(".r", "- a\n")], "a", "p/a"),
    (&[": .r"], &[("p/s/.r", "!\n"), (".r", "- a")], "a p/a", "p/s/a p/s/t/a"),
    // Anchored in their directory; other patterns match the path from the transfer's top.
    (
        &[": .r"],
        &[("p/.r", "- /a\n- /s/b\n- s/c\n- p/d\n- q/p/b")],
        "p/a p/s/b p/s/c p/d",
        "p/s/a p/b p/c",
    ),
    (&[": .r"], &[("p/.r", "- p/**/c\n")], "p/s/c p/s/t/c", "p/c"),
    (&[": .r"], &[("[x]/.r", "- /a*\n")], "[x]/a", "x/a"),
    (&[": .r"], &[("p/.r", "-! a\n")], "p/b p/s/", "p/a b"),
    // The rules of the files take the position of the rule.
    (&["+ a", ": .r", "- b"], &[(".r", "- a\n+ b\n- c")], "c", "a b"),
    (&[": .r", "!"], &[(".r", "- a\n")], "", "a"),
    // Only the file's name counts; its directory says where to start above the source.
    (&[": s/x"], &[("p/x", "- a\n")], "p/a", "a"),
    (&[": ./x"], &[("p/x", "- a\n")], "p/a", "a"),
    (&[":e .r"], &[(".r", "- a\n+ .r")], "a .r p/.r", "b"),
    (&[":en .r"], &[(".r", "- a\n")], "a .r p/.r", "p/a"),
    (&["+ .r", ":e .r"], &[], "", ".r"),
    (&[":- .r"], &[(".r", "a\n- b\n!\n#c\n;d\n")], "a !", "b #c ;d"),
    (&[":+ .r", "- *"], &[(".r", "a\n- b\n")], "b", "a"),
    (&[":w- .r"], &[(".r", "a b\n#c\td")], "a b #c d", "e"),
    (&[":w .r"], &[(".r", "- a + b -_c")], "a c", "b"),
    (&[":C"], &[(".cvsignore", "b ! a"), ("p/.cvsignore", "c")], "a p/c", "b c p/a"),
    (&[":C x", ":C"], &[("x", "b"), (".cvsignore", "a")], "a b", "p/a"),
    (&[":-/ .r"], &[(".r", "/src/top/a\n/b\n")], "a", "b"),
    // Merge files in per-directory files.
    (&[": .r"], &[("p/.r", ". sub/x\n- b"), ("p/sub/x", "- a\n- /c")], "p/a p/b p/sub/c", "a p/c"),
    (&[": .r"], &[("p/.r", ". ../x\n"), ("x", "- a\n- /c")], "p/a", "a"),
    (&[": .r"], &[("p/.r", ".C x\n- c"), ("p/x", "a b")], "p/a p/b p/c", "a"),
    (&[": .r"], &[("p/.r", "- b\n. x\n- c"), ("p/x", "- a\n!\n")], "p/c", "p/a p/b"),
    (
        &[": .r"],
        &[("p/.r", ": .y\n- b\n"), ("p/.y", "- a\n+ b"), ("p/s/.y", "- c"), (".y", "- d")],
        "p/a p/s/c",
        "p/b p/d a",
    ),
    (
        &[": .r"],
        &[("p/.r", ": .y\n"), ("p/.y", "- a"), ("p/s/.r", "!\n"), ("p/s/.y", "- c")],
        "p/a",
        "p/s/a p/s/c",
    ),
    (&[": .r"], &[("p/.r", ":n .y\n"), ("p/.y", "- a")], "p/a", "p/s/a"),
    (&[":n .r"], &[("p/.r", ": .y\n"), ("p/.y", "- a")], "p/a", "p/s/a"),
    (&[": .r"], &[("p/.r", ":e .y\n")], "p/.y p/s/.y", ".y"),
    (&[": .r"], &[(".r", ": .r\n- a")], "a p/a", "b"),
    (&[": .r"], &[(".r", "-C\n")], "x.o p/x.o", "a"),
    // A second rule with the same file name is ignored, until the list is cleared.
    (&[":r .r", ":s .r"], &[(".r", "- a")], "", "a"),
    (&[":r .r", "!", ":s .r"], &[(".r", "- a")], "a", "b"),
];

#[test]
fn per_directory_files() {
    for (rules_text, files, hidden, shown) in PER_DIRECTORY {
        let placed: Vec<_> =
            files.iter().map(|(path, text)| (format!("/src/top/{path}"), *text)).collect();
        let placed: Vec<_> = placed.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let files = Files::new(&placed);
        let filter = files.build(rules(rules_text));
        for path in hidden.split(' ').filter(|path| !path.is_empty()) {
            assert!(files.ask(&filter, path).hide, "{rules_text:?} {placed:?} should hide {path}");
        }
        for path in shown.split(' ') {
            assert!(
                !files.ask(&filter, path).hide,
                "{rules_text:?} {placed:?} should not hide {path}"
            );
        }
    }
}

#[test]
fn merge_files_are_read_once_in_place() {
    for (rule, content, hidden, shown) in [
        (". f", "- a\r\n\n# c\n;d\n-_b", "a b", "c ;d"),
        (". f", "- a \n", "a ", "a"),
        (". f", "- c\n!\n- a\n", "a", "b"),
        (".- f", "a\n- b\n!\n", "a !", "b"),
        (".w- f", "- a\tb\n#c", "- a b #c", "c"),
        (".C f", "b ! a", "a", "b !"),
        (".e f", "- a", "a f d/f", "b"),
        (".s f", "- a", "a", "b"),
        (". f", "+ b\n- /a\nmerge g", "a d", "d/a b"),
    ] {
        let files = Files::new(&[("f", content), ("g", "- /d\n- b")]);
        let filter = files.build(rules(&[rule]));
        let split =
            |list: &'static str| if list == "a " { vec![list] } else { list.split(' ').collect() };
        split(hidden)
            .iter()
            .for_each(|path| assert!(files.ask(&filter, path).hide, "{rule} {content:?} {path:?}"));
        split(shown).iter().for_each(|path| {
            assert!(!files.ask(&filter, path).hide, "{rule} {content:?} {path:?}")
        });
    }
    let files = Files::new(&[("f", "- a\0- b\n\0#c\0")]);
    let mut builder = rules(&[". f"]);
    builder.from0(true);
    let filter = files.build(builder);
    assert_eq!(
        [files.ask(&filter, "a"), files.ask(&filter, "b"), files.ask(&filter, "b\n")],
        [BOTH, NEITHER, BOTH]
    );
}

#[test]
fn sides_of_a_merge_rule_hold_for_its_rules() {
    for (rule, content, expected) in [
        (":s .r", "- a", Ok(HIDE)),
        (":r .r", "- a", Ok(PROTECT)),
        (":sr .r", "- a", Ok(BOTH)),
        (":s .r", ". x", Ok(HIDE)),
        (":r .r", ": x", Ok(PROTECT)),
        (":s .r", "-s a", Err(())),
        (":s .r", "H a", Err(())),
        (":sr .r", "P a", Err(())),
        (":s .r", ".s x", Err(())),
    ] {
        let files = Files::new(&[("/src/top/.r", content), ("/src/top/x", "- a")]);
        let filter = files.build(rules(&[rule]));
        assert_eq!(files.try_ask(&filter, &TOP, "a").map_err(drop), expected, "{rule} {content}");
    }
}

#[test]
fn files_above_the_source() {
    let files = Files::new(&[
        ("/.f", "- r\n"),
        ("/src/.f", "- a\n- /top/b\n- /c\n- top/d/e\n- top\n"),
        ("/src/top/.f", "- t\n"),
    ]);
    let whole = Origin { source: b"/src", first: b"top", ..TOP };
    for (rule, origin, hidden, shown) in [
        (": /.f", TOP, "r a b t", "c d/e"),
        (": /src/.f", TOP, "a b t", "r c"),
        (": ../.f", TOP, "a b t", "r c"),
        (": ../../.f", TOP, "r a b t", "c"),
        (": /src/top/.f", TOP, "t", "r a b"),
        (": .f", TOP, "t", "r a b"),
        (": /other/.f", TOP, "t", "r a b"),
        (":n /.f", TOP, "t", "r a b d/t"),
        // A source argument itself is only checked against the filter's own rules.
        (": /.f", whole, "top/r top/a top/b top/t top/d/e", "top/ top/c"),
        (": ../.f", whole, "top/a top/b top/t", "top/ top/r"),
    ] {
        let filter = files.build(rules(&[rule]));
        for path in hidden.split(' ') {
            assert!(
                files.try_ask(&filter, &origin, path).unwrap().hide,
                "{rule} should hide {path}"
            );
        }
        for path in shown.split(' ') {
            assert!(
                !files.try_ask(&filter, &origin, path).unwrap().hide,
                "{rule} should not hide {path}"
            );
        }
    }
}

#[test]
fn wrong_files_are_named() {
    let files = Files::new(&[("/src/top/d/.r", "- a\n\nbogus\n"), ("self", ". self")]);
    let filter = files.build(rules(&[": .r"]));
    let error = files.try_ask(&filter, &TOP, "d/x").unwrap_err();
    assert_eq!(error, "filter rule at d/.r line 3: it starts with no known rule name");
    let error = files.try_build(rules(&[". none"])).unwrap_err();
    assert!(error.starts_with(r#"filter rule ". none" (--filter): cannot read none: "#), "{error}");
    let error = files.try_build(rules(&[". self"])).unwrap_err();
    assert_eq!(
        error,
        "filter rule at line 1 of a file named at self line 1 (a file read earlier): \
         merge-file include depth limit of 32 reached"
    );
    // Neither lines of files nor the paths in them are shown.
    let files =
        Files::new(&[("/src/top/.r", ": secret"), ("/src/top/secret", "word"), ("a", ". b")]);
    let error = files.try_ask(&files.build(rules(&[": .r"])), &TOP, "x").unwrap_err();
    assert!(!error.contains("word") && !error.contains("secret"), "{error}");
    let error = files.try_build(rules(&[". a"])).unwrap_err();
    assert!(
        error.starts_with("filter rule at a line 1: cannot read the file that it names: "),
        "{error}"
    );
}

#[test]
fn files_that_name_each_other_come_to_an_end() {
    // Every file merges the next one twice, or reads the next one per directory.
    for (rule, line) in [(". f0", ". f{}\n. f{}\n"), (": f0", ": f{}\n- a\n")] {
        let text = |next: usize| line.replace("{}", &next.to_string());
        let chain: Vec<_> = (0..100).map(|n| (format!("f{n}"), text(n + 1))).collect();
        let mut files = Files::default();
        for (name, text) in chain {
            files.0.insert(format!("/src/top/{name}"), text.clone());
            files.0.insert(name, text);
        }
        let error = match files.try_build(rules(&[rule])) {
            Ok(filter) => files.try_ask(&filter, &TOP, "a").unwrap_err(),
            Err(error) => error,
        };
        assert!(error.ends_with("limit of 32 reached"), "{error}");
    }
    let mut files = Files::new(&[("end", "- a")]);
    for n in 0..20 {
        let next = if n == 19 { "end".to_owned() } else { format!("f{}", n + 1) };
        files.0.insert(format!("f{n}"), format!(". {next}\n. {next}\n"));
    }
    let error = files.try_build(rules(&[". f0"])).unwrap_err();
    assert!(error.ends_with("too many merge files"), "{error}");
}

#[test]
fn entering_without_files_keeps_the_same_state() {
    let files = Files::new(&[("/src/top/p/.r", "- a")]);
    let filter = files.build(rules(&[": .r", "- b"]));
    let root = filter.root(&TOP, &mut |_| Ok(None)).unwrap();
    let top = files.enter(&filter, &root, &TOP, "").unwrap();
    assert!(Arc::ptr_eq(&root, &top));
    let p = files.enter(&filter, &top, &TOP, "p").unwrap();
    assert!(!Arc::ptr_eq(&top, &p));
    assert!(Arc::ptr_eq(&p, &files.enter(&filter, &p, &TOP, "p/s").unwrap()));
}
