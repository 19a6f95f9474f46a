//! The compiled patterns against a literal implementation of the manual page, and parsing of arbitrary bytes.

use proptest::prelude::*;

use super::{Files, TOP};
use crate::policy::filter::FilterBuilder;
use crate::policy::filter::pattern::{RulePattern, Text};

/// Returns whether `pattern` matches all of `text`, by backtracking over every choice.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => {
            let rest = &rest[rest.iter().take_while(|b| **b == b'*').count()..];
            (0..=text.len()).any(|from| glob(rest, &text[from..]))
        }
        [b'*', rest @ ..] => (0..=text.len())
            .take_while(|end| *end == 0 || text[end - 1] != b'/')
            .any(|from| glob(rest, &text[from..])),
        [b'?', rest @ ..] => text.first().is_some_and(|b| *b != b'/') && glob(rest, &text[1..]),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
            text.first() == Some(byte) && glob(rest, &text[1..])
        }
    }
}

/// The rules of the manual page, in its order. Patterns here have no classes and no trailing backslash.
fn obvious(pattern: &str, path: &str, is_dir: bool) -> bool {
    let (pattern, dir_only) = pattern.strip_suffix('/').map_or((pattern, false), |p| (p, true));
    if dir_only && !is_dir {
        return false;
    }
    let wild = pattern.contains(['*', '?']);
    let matches = |pattern: &str, text: &str| {
        if wild { glob(pattern.as_bytes(), text.as_bytes()) } else { pattern == text }
    };
    // "dir_name/***" is "dir_name/" and "dir_name/**".
    let whole = |pattern: &str, text: &str| {
        matches(pattern, text)
            || (pattern.ends_with("/***") && is_dir && matches(pattern, &format!("{text}/")))
    };
    if let Some(anchored) = pattern.strip_prefix('/') {
        return !anchored.is_empty() && whole(anchored, path);
    }
    if pattern.is_empty() {
        return false;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if !pattern.contains('/') && !pattern.contains("**") {
        return matches(pattern, name);
    }
    // Unanchored: any start of a component; a leading "**/" may also match the very top.
    let starts = path.match_indices('/').map(|(at, _)| at + 1).chain([0]);
    let slashed = format!("/{path}");
    let leading = pattern.starts_with("**") && whole(pattern, &slashed);
    leading || starts.map(|at| &path[at..]).any(|tail| whole(pattern, tail))
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[ab.*\\\\]{1,3}", 1..5).prop_map(|parts| parts.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compiled_patterns_equal_the_obvious_matcher(
        pattern in "[ab./?*\\\\]{0,8}|/?([ab]|\\*|\\?|\\*\\*|/){1,9}|(\\*\\*/)?[ab*]{1,3}/\\*{1,3}/?",
        path in path(),
        is_dir in any::<bool>(),
    ) {
        prop_assume!(!(pattern.contains(['*', '?']) && pattern.trim_end_matches('/').ends_with('\\')));
        let name = path.rsplit('/').next().unwrap_or(&path);
        let ours = RulePattern::new(pattern.as_bytes()).matches(Text::of(path.as_bytes()), name.as_bytes(), is_dir);
        prop_assert_eq!(ours, obvious(&pattern, &path, is_dir));
    }

    #[test]
    fn a_path_seen_in_two_pieces_is_the_same_path(
        pattern in "/?[ab/?*\\[\\]!-]{1,8}",
        path in path(),
        is_dir in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at + 1).chain([0]).collect();
        let (head, tail) = path.split_at(slashes[cut.index(slashes.len())]);
        let name = path.rsplit('/').next().unwrap_or(&path).as_bytes();
        let pattern = RulePattern::new(pattern.as_bytes());
        let pieces = Text { head: head.as_bytes(), ..Text::of(tail.as_bytes()) };
        prop_assert_eq!(
            pattern.matches(pieces, name, is_dir),
            pattern.matches(Text::of(path.as_bytes()), name, is_dir)
        );
    }

    #[test]
    fn any_bytes_parse_or_are_refused(
        rule in proptest::collection::vec(any::<u8>(), 0..24),
        prefix in "(-|\\+|H|P|:|\\.|:C|:w|:e)?( |_)?",
        file in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b' '), Just(b'-'), Just(b'[')], 0..48),
        path in proptest::collection::vec(any::<u8>(), 0..24),
    ) {
        let mut builder = FilterBuilder::default();
        let _ = builder.rule(&[prefix.as_bytes(), &rule].concat());
        let _ = builder.exclude(&rule);
        let _ = builder.include_from(&file, "file", rule.len() % 2 == 0);
        let _ = builder.rule(b": .r");
        if let Ok(filter) = builder.build(&mut |_| Ok(file.clone())) {
            let root = filter.root(&TOP, &mut |_| Ok(Some(file.clone())));
            let top = root.and_then(|root| filter.enter(&root, &path, &mut |_| Ok(Some(file.clone()))));
            if let Ok(top) = top {
                let _ = filter.check(&top, &path, rule.len() % 3 == 0, false);
            }
        }
        let _ = Files::default();
    }
}
