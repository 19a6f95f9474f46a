//! Base names as target names, for transfers that flatten folders.

use super::planned::{PlannedSource, What};
use crate::object::Root;
use crate::object::list::Pattern;
use hakobu_s3::AccessPoint;
use std::collections::HashSet;

/// Target names that sources of a transfer have taken. Grows with their number.
pub struct BaseNames {
    taken: HashSet<Box<[u8]>>,
    sources: Vec<Source>,
}

/// Objects that are sources: a bucket and the start of their keys.
struct Source {
    bucket: String,
    prefix: Vec<u8>,
    rest: Rest,
}

/// The rest of the keys of sources.
enum Rest {
    One(Vec<u8>),
    Any,
    Matching(Pattern),
}

impl BaseNames {
    /// Starts without names.
    pub fn of(planned_sources: &[PlannedSource]) -> BaseNames {
        let source = |planned: &PlannedSource| {
            let Root::Store { bucket, prefix } = &planned.pair.source else { return None };
            let rest = match &planned.what {
                What::One { entry, .. } => Rest::One(entry.name.to_vec()),
                What::Tree { pattern: Some(pattern) } => Rest::Matching(pattern.clone()),
                What::Tree { pattern: None } | What::Names(_) => Rest::Any,
            };
            Some(Source { bucket: bucket.clone(), prefix: prefix.clone(), rest })
        };
        let sources = planned_sources.iter().filter_map(source).collect();
        BaseNames { taken: HashSet::new(), sources }
    }

    /// Takes a name; returns `false` if another source has it.
    pub fn take(&mut self, name: &[u8]) -> bool {
        self.taken.insert(name.into())
    }

    /// Returns whether an object of the target would be a source if it exists: writing it would destroy that source.
    pub fn may_be_source(&self, target: &Root, name: &[u8]) -> bool {
        let Root::Store { bucket, .. } = target else { return false };
        let key = target.key(name);
        let may_be_one = |source: &&Source| {
            source.bucket == *bucket
                || AccessPoint::may_name(bucket)
                || AccessPoint::may_name(&source.bucket)
        };
        self.sources.iter().filter(may_be_one).any(|source| {
            key.strip_prefix(&*source.prefix).is_some_and(|rest| match &source.rest {
                Rest::One(name) => name == rest,
                Rest::Any => true,
                Rest::Matching(pattern) => pattern.matches(rest),
            })
        })
    }
}

/// Returns the part of a name after its last slash.
pub fn base(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Pair;
    use std::sync::Arc;

    fn root(prefix: &str) -> Root {
        Root::Store { bucket: "b".to_owned(), prefix: prefix.as_bytes().to_vec() }
    }

    #[test]
    fn names_are_taken_once() {
        let mut names = BaseNames::of(&[]);
        assert!(names.take(b"a") && names.take(b"b") && !names.take(b"a"));
        for (name, expected) in [("a", "a"), ("a/b", "b"), ("a//", ""), ("", "")] {
            assert_eq!(base(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn a_target_may_be_a_source() {
        let planned = |pattern: Option<&str>| {
            let pair = Pair { source: root("p/"), target: root("p/"), lead: Vec::new() };
            let pattern = pattern.and_then(|text| Pattern::parse(text.as_bytes()));
            let what = What::Tree { pattern };
            BaseNames::of(&[PlannedSource { pair: Arc::new(pair), what, target_is_new: false }])
        };
        let all = planned(None);
        assert!(all.may_be_source(&root("p/"), b"x") && all.may_be_source(&root("p/d/"), b"x"));
        assert!(!all.may_be_source(&root("q/"), b"x") && !all.may_be_source(&Root::Null, b"x"));
        let some = planned(Some("*.txt"));
        assert!(some.may_be_source(&root("p/"), b"a.txt"));
        assert!(!some.may_be_source(&root("p/"), b"a.gz"));
    }
}
