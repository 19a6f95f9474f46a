//! What a run knows of its own names: those that it has made where several of its sources meet, those that it still
//! reads, and those that no deletion may take.

use super::objects::{PlannedSource, SourceKind, Stores};
use super::paths::or_here;
use super::{Layout, Lines, Spec, objects as apart};
use crate::object::Root;
use crate::object::list::Pattern;
use crate::policy::Delete;
use hakobu_s3::AccessPoint;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;

/// Which of two sources a name of the target gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// The first one; the other is passed over (rsync).
    First,
    /// The first one; the other stays where it is and is reported (GNU mv).
    Stays,
    /// The later one, unless both were named (GNU cp).
    Later,
}

impl NameRule {
    /// Returns the rule of a transfer.
    pub fn of(spec: &Spec) -> NameRule {
        match spec.layout {
            Layout::Rsync { .. } => NameRule::First,
            Layout::Cp { .. } if spec.policy.remove_source_files => NameRule::Stays,
            Layout::Cp { .. } => NameRule::Later,
        }
    }
}

/// An earlier source of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// It was named on the command line, by itself, by a wildcard or in a list.
    pub named: bool,
    /// It is the same source.
    pub same: bool,
}

/// Names at targets that a run has made, as hashes of 128 bits with keys of this process. Only names are taken that
/// another source may get as well: it grows with the names of sources that meet, not with the tree.
#[derive(Default)]
pub struct Claims {
    taken: Mutex<HashMap<u128, (u64, bool)>>,
    keys: (RandomState, RandomState),
}

impl Claims {
    /// Takes a name for a source; returns its holder if it has one, which keeps it.
    pub fn take(&self, name: &[u8], source: &[u8], named: bool) -> Option<Holder> {
        let source = self.keys.0.hash_one(source);
        let mut taken = self.taken.lock();
        match taken.get(&self.hash(name)) {
            Some((holder, by_name)) => Some(Holder { named: *by_name, same: *holder == source }),
            None => {
                taken.insert(self.hash(name), (source, named));
                None
            }
        }
    }

    /// Records the source that a name goes to instead, if that was named on the command line.
    pub fn hold(&self, name: &[u8], source: &[u8]) {
        let source = self.keys.0.hash_one(source);
        self.taken.lock().insert(self.hash(name), (source, true));
    }

    fn hash(&self, name: &[u8]) -> u128 {
        u128::from(self.keys.0.hash_one(name)) << 64 | u128::from(self.keys.1.hash_one(name))
    }
}

/// Objects that are sources of a run whose target may be in the same store: a bucket and keys.
#[derive(Default)]
pub struct Covered<'a> {
    one: HashMap<Vec<u8>, Vec<&'a str>>,
    many: Vec<Many<'a>>,
}

/// Several objects: a bucket, the start of their keys, and which ones.
struct Many<'a> {
    bucket: &'a str,
    prefix: &'a [u8],
    rest: Rest<'a>,
}

enum Rest<'a> {
    Any,
    Matching(&'a Pattern),
    Listed(HashSet<&'a [u8]>),
}

impl<'a> Covered<'a> {
    /// Returns the sources; none if no object of the target can be one.
    fn of(planned_sources: &'a [PlannedSource], stores: &Stores) -> Covered<'a> {
        let mut covered = Covered::default();
        let (Some(source), Some(target)) = (&stores.source, &stores.target) else { return covered };
        if !std::sync::Arc::ptr_eq(source, target) && !source.may_be_one(target) {
            return covered;
        }
        covered.add(planned_sources);
        covered
    }

    fn add(&mut self, planned_sources: &'a [PlannedSource]) {
        for planned in planned_sources {
            let Root::Store { bucket, prefix } = &planned.pair.source else { continue };
            let rest = match &planned.what {
                SourceKind::One { entry, .. } => {
                    let key = planned.pair.source.key(&entry.name);
                    self.one.entry(key).or_default().push(bucket);
                    continue;
                }
                SourceKind::Tree { pattern: Some(pattern) } => Rest::Matching(pattern),
                SourceKind::Tree { pattern: None } => Rest::Any,
                SourceKind::Names(names) => Rest::Listed(names.iter().map(Vec::as_slice).collect()),
            };
            self.many.push(Many { bucket, prefix, rest });
        }
    }

    /// Returns whether an object of the target is, or may be, one of the sources if it exists.
    pub fn has(&self, target: &Root, name: &[u8]) -> bool {
        let Root::Store { bucket, .. } = target else { return false };
        if self.one.is_empty() && self.many.is_empty() {
            return false;
        }
        let key = target.key(name);
        let may_be = |other: &str| {
            other == bucket || AccessPoint::may_name(bucket) || AccessPoint::may_name(other)
        };
        self.one.get(&key).is_some_and(|buckets| buckets.iter().any(|other| may_be(other)))
            || self.many.iter().any(|many| {
                key.strip_prefix(many.prefix).is_some_and(|rest| match &many.rest {
                    Rest::Any => true,
                    Rest::Matching(pattern) => pattern.matches(rest),
                    Rest::Listed(names) => names.contains(rest),
                }) && may_be(many.bucket)
            })
    }
}

/// What a transfer knows of its names; see the module.
pub struct KnownNames<'a> {
    /// Which source a name gets.
    pub rule: NameRule,
    /// The names it made.
    pub claims: &'a Claims,
    /// Its own sources, if an object of the target may be one.
    covered: Covered<'a>,
    /// Sources are removed once they are moved.
    moves: bool,
    /// Targets of single files, if something may be deleted.
    singles: HashSet<Vec<u8>>,
    /// The other lines of a run, and the number of this one.
    lines: Option<(&'a Lines, usize)>,
    meets: Vec<bool>,
}

impl<'a> KnownNames<'a> {
    /// Returns what is known before a transfer begins.
    pub fn of(
        spec: &Spec,
        planned_sources: &'a [PlannedSource],
        stores: &Stores,
        claims: &'a Claims,
        lines: Option<(&'a Lines, usize)>,
    ) -> KnownNames<'a> {
        // A name of --flatten is its own base name: what is made is not moved again (feed.rs looks at what is there).
        let moves = spec.policy.remove_source_files && !spec.objects.flatten;
        let deletes = spec.policy.delete != Delete::No;
        let covered = match moves || deletes {
            true => Covered::of(planned_sources, stores),
            false => Covered::default(),
        };
        let singles = planned_sources.iter().filter(|_| deletes);
        let singles = singles.filter_map(|planned| match &planned.what {
            SourceKind::One { name, .. } => {
                Some([&*place(&planned.pair.target, stores), name].concat())
            }
            _ => None,
        });
        let singles = singles.collect();
        let meets = match lines.is_some_and(|(lines, number)| lines.meets(number)) {
            true => vec![true; planned_sources.len()],
            false => apart::meets(planned_sources),
        };
        KnownNames { rule: NameRule::of(spec), claims, covered, moves, singles, lines, meets }
    }

    /// Returns whether the transfer has one source.
    pub fn is_alone(&self) -> bool {
        self.meets.len() == 1
    }

    /// Returns whether another source may get a target name of this one.
    pub fn meets(&self, number: usize) -> bool {
        self.meets.get(number).is_some_and(|meets| *meets)
    }

    /// Returns whether writing a name of the target may replace a source that is still to be moved. `place` is [`place`] of
    /// the target.
    pub fn is_source(&self, target: &Root, place: &[u8], name: &[u8]) -> bool {
        let of_line =
            |(lines, number): (&Lines, usize)| lines.has_source(target, place, name, number);
        self.moves && self.covered.has(target, name) || self.lines.is_some_and(of_line)
    }

    /// Returns whether an entry of the target is not extraneous, although its name is missing in the source that is
    /// compared with it: it lies in a source, or is the target of another one. `place` is [`place`] of the target.
    pub fn keeps(&self, target: &Root, place: &[u8], name: &[u8]) -> bool {
        self.covered.has(target, name)
            || !self.singles.is_empty() && self.singles.contains(&[place, name].concat())
    }
}

/// Returns the start of what identifies the names below a root in a run: the address of its store and its bucket, or
/// its canonical path.
pub fn place(root: &Root, stores: &Stores) -> Vec<u8> {
    match root {
        Root::Null => Vec::new(),
        Root::Store { bucket, prefix } => {
            let endpoint = stores.target.as_ref().map(|store| store.endpoint());
            let store = endpoint.unwrap_or_default();
            [store.as_bytes(), b"\0", bucket.as_bytes(), b"\0", prefix].concat()
        }
        Root::Local { shown, .. } => {
            let path = or_here(shown);
            let path = path.canonicalize().or_else(|_| std::path::absolute(path));
            let path = path.unwrap_or_else(|_| shown.clone());
            [path.as_os_str().as_bytes(), b"/"].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Entry, Pair};
    use hakobu_core::unit::{Kind, Meta, Time};
    use std::sync::Arc;

    #[test]
    fn a_name_is_taken_once() {
        let claims = Claims::default();
        assert_eq!(claims.take(b"a", b"x", false), None);
        assert_eq!(claims.take(b"b", b"x", true), None);
        assert_eq!(claims.take(b"a", b"y", true), Some(Holder { named: false, same: false }));
        assert_eq!(claims.take(b"b", b"x", true), Some(Holder { named: true, same: true }));
        claims.hold(b"a", b"y");
        assert_eq!(claims.take(b"a", b"x", true), Some(Holder { named: true, same: false }));
        assert_eq!(claims.take(b"a", b"y", true), Some(Holder { named: true, same: true }));
    }

    fn root(bucket: &str, prefix: &str) -> Root {
        Root::Store { bucket: bucket.to_owned(), prefix: prefix.as_bytes().to_vec() }
    }

    fn planned(prefix: &str, what: SourceKind) -> PlannedSource {
        let pair = Pair { source: root("b", prefix), target: Root::Null, lead: Vec::new() };
        PlannedSource { pair: Arc::new(pair), what, target_is_new: false }
    }

    #[test]
    fn sources_are_known_by_bucket_and_key() {
        let one = Entry {
            name: b"f"[..].into(),
            meta: Meta::bare(Kind::File, 1, Time::default()),
            etag: "".into(),
        };
        let sources = [
            planned("d/", SourceKind::Tree { pattern: None }),
            planned("w/", SourceKind::Tree { pattern: Pattern::parse(b"*.c") }),
            planned("l/", SourceKind::Names(vec![b"a/b".to_vec()])),
            planned("", SourceKind::One { entry: one, name: b"g".to_vec() }),
        ];
        let mut covered = Covered::default();
        covered.add(&sources);
        for (bucket, key, expected) in [
            ("b", "d/x", true),
            ("c", "d/x", false),
            ("x-s3alias", "d/x", true),
            ("b", "dx", false),
            ("b", "w/d/x.c", true),
            ("b", "w/x.o", false),
            ("b", "l/a/b", true),
            ("b", "l/a", false),
            ("b", "f", true),
            ("b", "g", false),
        ] {
            assert_eq!(covered.has(&root(bucket, ""), key.as_bytes()), expected, "{bucket} {key}");
        }
        assert!(!covered.has(&Root::Null, b"d/x"));
        assert!(!Covered::of(&sources, &Stores::default()).has(&root("b", "d/"), b"x"));
    }
}
