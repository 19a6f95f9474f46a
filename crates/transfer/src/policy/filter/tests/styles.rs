//! Patterns of aws and s5cmd against a simple implementation of their published rules.

use super::super::{FilterBuilder, Origin, Style};
use proptest::prelude::*;

/// Returns whether a filter of these patterns hides a name.
fn hides(style: Style, patterns: &[(bool, Vec<u8>)], name: &str) -> bool {
    let mut builder = FilterBuilder::default();
    builder.styled(style, patterns);
    let filter = builder.build(&mut |_| Ok(Vec::new())).unwrap();
    let origin = Origin { source: b"", target: b"", first: b"" };
    let rules = filter.root(&origin, &mut |_| Ok(None)).unwrap();
    filter.check(&rules, name.as_bytes(), false, false).hide
}

/// Python's fnmatch: `*`, `?`, `[seq]`, `[!seq]`; slashes are not special. s5cmd has no sets.
fn fnmatch(pattern: &[char], name: &[char], sets: bool) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return name.is_empty() };
    match first {
        '*' => (0..=name.len()).any(|at| fnmatch(rest, &name[at..], sets)),
        '?' => !name.is_empty() && fnmatch(rest, &name[1..], sets),
        '[' if sets => {
            let negated = rest.first() == Some(&'!');
            let from = usize::from(negated);
            // A closing bracket in first position belongs to the set.
            let Some(end) = (from + 1..rest.len()).find(|at| rest[*at] == ']') else {
                return name.first() == Some(&'[') && fnmatch(rest, &name[1..], sets);
            };
            let Some(character) = name.first() else { return false };
            let set = &rest[from..end];
            let (mut at, mut within) = (0, false);
            while at < set.len() {
                if at + 2 < set.len() && set[at + 1] == '-' {
                    within |= (set[at]..=set[at + 2]).contains(character);
                    at += 3;
                } else {
                    within |= set[at] == *character;
                    at += 1;
                }
            }
            within != negated && fnmatch(&rest[end + 1..], &name[1..], sets)
        }
        other => name.first() == Some(other) && fnmatch(rest, &name[1..], sets),
    }
}

fn matches(pattern: &[u8], name: &str, sets: bool) -> bool {
    let pattern: Vec<char> = String::from_utf8_lossy(pattern).chars().collect();
    let name: Vec<char> = name.chars().collect();
    fnmatch(&pattern, &name, sets)
}

fn patterns() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    let pattern = "[ab/*?\\[\\]!.é-]{1,6}".prop_map(String::into_bytes);
    proptest::collection::vec((any::<bool>(), pattern), 0..5)
}

proptest! {
    /// AWS CLI, "Use of Exclude and Include Filters": all files are included at first, and later filters override
    /// earlier ones.
    #[test]
    fn aws(patterns in patterns(), name in "[ab.é][ab/.é]{0,6}") {
        let last = patterns.iter().rev().find(|(_, pattern)| matches(pattern, &name, true));
        let expected = last.is_some_and(|(include, _)| !include);
        prop_assert_eq!(hides(Style::Aws, &patterns, &name), expected);
    }

    /// s5cmd's README: excluded names are out; if there are includes, names that none of them matches are out as
    /// well. A pattern is anchored at both ends.
    #[test]
    fn s5cmd(patterns in patterns(), name in "[ab.é][ab/.é]{0,6}") {
        let named = |kind: bool| {
            patterns.iter().any(|(include, pattern)| *include == kind && matches(pattern, &name, false))
        };
        let includes = patterns.iter().any(|(include, _)| *include);
        let expected = named(false) || includes && !named(true);
        prop_assert_eq!(hides(Style::S5cmd, &patterns, &name), expected);
    }
}

/// A `*` takes no part of a character.
#[test]
fn characters_stay_whole() {
    let hides_of = |pattern: &str, name| hides(Style::Aws, &[(false, pattern.into())], name);
    for (pattern, name, is_hidden) in [
        ("*[!é]", "aé", false),
        ("*[!é]", "éa", true),
        ("*?", "é", true),
        ("*[é]*", "aéb", true),
        ("*??", "é", false),
        ("*[!a]?", "é", false),
    ] {
        assert_eq!(hides_of(pattern, name), is_hidden, "{pattern} {name}");
    }
}

#[test]
fn folders_are_always_looked_into() {
    let mut builder = FilterBuilder::default();
    builder.styled(Style::Aws, &[(false, b"*".to_vec()), (true, b"*.txt".to_vec())]);
    let filter = builder.build(&mut |_| Ok(Vec::new())).unwrap();
    let origin = Origin { source: b"", target: b"", first: b"" };
    let rules = filter.root(&origin, &mut |_| Ok(None)).unwrap();
    assert!(!filter.check(&rules, b"d", true, false).hide);
    assert!(filter.check(&rules, b"d/x.py", false, false).hide);
    assert!(!filter.check(&rules, b"d/x.txt", false, false).hide);
}
