//! Whether a list of excludes and includes means something else in aws. There the last rule that matches a name counts, and
//! here, as in rsync, the first one: a rule that an earlier one of the other kind leaves nothing to is written for the
//! other order.

use hakobu_core::error::quoted;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// `--include` or `--exclude`: whether it includes, and its pattern.
pub type Pattern<'a> = (bool, &'a OsString);

/// Finds a rule without effect here that has one in aws. Returns a message with the ways to write what was meant.
///
/// An include is such a rule if an exclude before it matches some of its names, and takes all of them, or if no exclude
/// after it matches any. An exclude is, if an include before it takes all of its names. What follows may cancel the
/// difference.
pub fn confused(rules: &[Pattern<'_>]) -> Option<String> {
    // These are rules of rsync's, in words that aws does not have.
    let is_rsyncs = |(_, pattern): &Pattern<'_>| {
        let bytes = pattern.as_bytes();
        bytes.starts_with(b"- ") || bytes.starts_with(b"+ ") || bytes == b"!"
    };
    if rules.iter().any(is_rsyncs) {
        return None;
    }
    let (first, second) = (0..rules.len()).find_map(|at| {
        let (includes, pattern) = rules[at];
        let others = |rules: &'_ [Pattern<'_>]| {
            let others = rules.iter().filter(|(kind, _)| *kind != includes);
            others.map(|(_, other)| other.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        let (before, after) = (others(&rules[..at]), others(&rules[at + 1..]));
        let pattern = pattern.as_bytes();
        let covers = |other: &Vec<u8>| covers(other, pattern);
        let meets = |other: &Vec<u8>| meet(&tokens(other), &tokens(pattern));
        let met = before.iter().position(|other| meets(other) || covers(other))?;
        let covered = before.iter().any(covers);
        let is_idle = covered || (includes && !after.iter().any(meets));
        let of_kind = |rules: &[Pattern<'_>], count: usize| {
            rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.0 != includes)
                .nth(count)
                .map(|it| it.0)
        };
        (is_idle && !after.iter().any(covers)).then_some((of_kind(rules, met)?, at))
    })?;
    let spelled = |(includes, pattern): &Pattern<'_>| {
        format!("{} {}", if *includes { "--include" } else { "--exclude" }, quoted(pattern))
    };
    let typed: Vec<String> = rules.iter().map(spelled).collect();
    let mut turned: Vec<String> = typed.iter().rev().cloned().collect();
    // Folders that are excluded are not entered.
    let is_all = |(includes, pattern): &Pattern<'_>| !includes && *pattern == "*";
    if rules.iter().any(is_all) && rules.iter().any(|(includes, _)| *includes) {
        turned.insert(0, "--include '*/'".to_owned());
    }
    Some(format!(
        "{} changes nothing: the first rule that matches counts, and {} comes before it\n\
         hint: --filter-style=aws {} reads them as aws does; rsync's order is {}",
        typed[second],
        typed[first],
        typed.join(" "),
        turned.join(" ")
    ))
}

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// Any text.
    Star,
    /// Any character.
    Any,
    /// One of a set.
    Set(&'a [u8]),
    One(u8),
}

fn tokens(pattern: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        tokens.push(match first {
            b'*' => Token::Star,
            b'?' => Token::Any,
            // A closing bracket in first position belongs to the set.
            b'[' => match after.iter().skip(1).position(|byte| *byte == b']') {
                Some(end) => {
                    rest = &after[end + 2..];
                    Token::Set(&after[..end + 1])
                }
                None => Token::One(b'['),
            },
            other => Token::One(*other),
        });
    }
    tokens
}

/// Whether two patterns may match one name, as aws matches: over whole names, in which slashes are not special. A set is
/// taken for any character.
fn meet(a: &[Token<'_>], b: &[Token<'_>]) -> bool {
    fit(a, b, true, &|a, b| match (a, b) {
        (Token::One(a), Token::One(b)) => a == b,
        _ => true,
    })
}

/// Whether the parts of two patterns fit each other one by one, where a star of the first one, and with `both` of the
/// second one as well, is any number of parts.
fn fit(
    a: &[Token<'_>],
    b: &[Token<'_>],
    both: bool,
    fits: &dyn Fn(Token<'_>, Token<'_>) -> bool,
) -> bool {
    let star = |tokens: &[Token<'_>], at: usize| tokens.get(at) == Some(&Token::Star);
    // Whether the rests of both fit, from the ends on: a row for each rest of the first one.
    let mut below = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let rest = |row: &[bool]| row.get(j + 1).copied().unwrap_or(false);
            row[j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                _ if star(a, i) && below[j] => true,
                _ if both && star(b, j) && rest(&row) => true,
                (Some(Token::Star), Some(_)) => rest(&row),
                (Some(_), Some(Token::Star)) if both => below[j],
                (Some(a), Some(b)) => fits(*a, *b) && rest(&below),
                (None, Some(_)) | (Some(_), None) => false,
            };
        }
        below = row;
    }
    below[0]
}

/// Whether a rule, as rsync reads it, certainly takes all names of another pattern: the whole tree, or a component of
/// these names, as folders that are excluded are not entered.
fn covers(rule: &[u8], pattern: &[u8]) -> bool {
    if matches!(rule, b"*" | b"**" | b"***" | b"/*" | b"/**" | b"/***") || rule == pattern {
        return true;
    }
    if rule.contains(&b'/') {
        return false;
    }
    let rule = tokens(rule);
    let parts = pattern.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    // A component with stars may be more than one.
    parts
        .filter(|part| !part.windows(2).any(|two| two == b"**"))
        .any(|part| takes(&rule, &tokens(part)))
}

/// Whether a pattern matches whatever another one of one component does.
fn takes(rule: &[Token<'_>], pattern: &[Token<'_>]) -> bool {
    fit(rule, pattern, false, &|rule, part| match (rule, part) {
        (Token::Any, Token::One(_) | Token::Any | Token::Set(_)) => true,
        (rule, part) => rule == part,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(line: &str) -> Vec<(bool, OsString)> {
        let rules = line.split_whitespace();
        rules.map(|rule| (rule.starts_with('+'), OsString::from(&rule[1..]))).collect()
    }

    fn said(line: &str) -> Option<String> {
        let rules = list(line);
        confused(&rules.iter().map(|(kind, pattern)| (*kind, pattern)).collect::<Vec<_>>())
    }

    #[test]
    fn lists_for_the_other_order_are_found() {
        for line in [
            "-* +*.txt",
            "-* +*.txt -secret*",
            "-* +a +b",
            "-*.tmp +keep.tmp",
            "-secret* +*.txt",
            "-d/* +*.txt",
            "-[ab]* +a.txt",
            "+*.txt -a.txt",
            "+* -*.tmp",
            "-*.o -* +main.c",
            "-logs +logs/keep",
        ] {
            assert!(said(line).is_some(), "{line}");
        }
        for line in [
            "",
            "+*.txt",
            "-*.tmp",
            "-*.tmp -*.bak",
            // rsync's own forms.
            "+*.txt -*",
            "+*/ +*.txt -*",
            "+d/*** -*",
            "-secret* +*.txt -*",
            "-*.o +*.c -*",
            // Nothing has both names.
            "-*.tmp +*.txt",
            // The last one takes all in both.
            "-* +*.txt -*",
            "+*.txt -*.txt.gz",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
        assert_eq!(
            said("-* +*.txt").unwrap(),
            "--include '*.txt' changes nothing: the first rule that matches counts, and --exclude '*' comes \
             before it\nhint: --filter-style=aws --exclude '*' --include '*.txt' reads them as aws does; rsync's \
             order is --include '*/' --include '*.txt' --exclude '*'"
        );
        let rules = [(false, OsString::from("- *")), (true, OsString::from("*.txt"))];
        let rules = rules.each_ref().map(|(kind, pattern)| (*kind, pattern));
        assert_eq!(confused(&rules), None);
    }

    /// Whether a list excludes a name of one component; `last`: the last rule that matches counts.
    fn excludes(rules: &[(bool, OsString)], name: &str, last: bool) -> bool {
        let name: Vec<Token<'_>> = name.bytes().map(Token::One).collect();
        let mut matching =
            rules.iter().filter(|(_, pattern)| takes(&tokens(pattern.as_bytes()), &name));
        let counts = if last { matching.next_back() } else { matching.next() };
        counts.is_some_and(|(includes, _)| !includes)
    }

    proptest::proptest! {
        /// What is refused differs for a name, or is at least without effect here; what an include ends that is not
        /// refused does not differ.
        #[test]
        fn an_include_at_the_end_is_refused_if_it_matters(
            rules in proptest::collection::vec((proptest::bool::ANY, "[ab*?]{1,3}"), 1..4),
            names in proptest::collection::vec("[ab]{1,3}", 30),
        ) {
            let mut rules: Vec<(bool, OsString)> =
                rules.into_iter().map(|(kind, pattern)| (kind, pattern.into())).collect();
            // One change from excludes to includes: aws' order.
            rules.sort_by_key(|(includes, _)| *includes);
            let refs: Vec<_> = rules.iter().map(|(kind, pattern)| (*kind, pattern)).collect();
            if confused(&refs).is_none() {
                for name in &names {
                    proptest::prop_assert_eq!(
                        excludes(&rules, name, true), excludes(&rules, name, false), "{:?} {}", rules, name
                    );
                }
            }
        }
    }
}
