//! The merge against a model of sets, with problems.

use super::super::send_all;
use super::*;
use hakobu_core::error::{Cause, Class, Operation, Problem};
use hakobu_core::unit::{Kind, Meta, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Lists these items in the given order, which is checked as in every listing.
fn memory(items: Vec<Item>, encoded: bool) -> Listing {
    let (sender, listing) = Listing::channel(encoded, false);
    Listing::start(sender, "list-memory", move |sender| send_all(&sender, items.into_iter()));
    listing
}

fn entry(name: &str, size: u64) -> Item {
    let kind = if name.ends_with('/') { Kind::Dir } else { Kind::File };
    let meta = Meta::bare(kind, size, Time::default());
    Ok(Entry { name: name.as_bytes().into(), meta, etag: "".into() })
}

fn problem(name: &str) -> Item {
    let problem = Problem {
        operation: Operation::List,
        source: None,
        target: None,
        cause: Cause::Reason("it is a test"),
        class: Class::Partial,
    };
    Err(Trouble::Problem { name: name.as_bytes().into(), problem })
}

fn broken() -> Item {
    Err(Trouble::Failed(hakobu_s3::Error::new(
        hakobu_s3::ErrorKind::Server,
        "ListObjectsV2",
        "it is a test",
    )))
}

/// A side of a test: names with sizes, problems, and the position where it breaks off.
#[derive(Clone, Debug)]
struct World {
    names: BTreeMap<String, u64>,
    problems: BTreeSet<String>,
    broken_after: Option<usize>,
}

impl World {
    fn covers(problems: &BTreeSet<String>, name: &str) -> bool {
        problems.iter().any(|problem| {
            let folder = problem.trim_end_matches('/');
            name == problem || name.starts_with(&format!("{folder}/"))
        })
    }

    /// Returns a listing: names in order without those hidden by a problem, problems in between.
    fn items(&self) -> Vec<Item> {
        let mut all: BTreeMap<&str, Item> = BTreeMap::new();
        for (name, size) in &self.names {
            if !World::covers(&self.problems, name) {
                all.insert(name, entry(name, *size));
            }
        }
        all.extend(self.problems.iter().map(|name| (name.as_str(), problem(name))));
        let mut items: Vec<_> = all.into_values().collect();
        if let Some(at) = self.broken_after {
            items.truncate(at);
            items.push(broken());
        }
        items
    }
}

fn world() -> impl Strategy<Value = World> {
    let name = || "[ab]([-./]?[ab0]){0,3}";
    (
        prop::collection::btree_map(name(), 0..3_u64, 0..20),
        prop::collection::btree_set((name(), "/?").prop_map(|(name, end)| name + &end), 0..3),
        prop::option::weighted(0.3, 0..20_usize),
    )
        .prop_map(|(names, problems, broken_after)| World { names, problems, broken_after })
}

fn text(entry: &Entry) -> String {
    String::from_utf8(entry.name.to_vec()).unwrap()
}

proptest! {
    #[test]
    fn nothing_is_extraneous_that_the_source_has_or_may_have(source in world(), target in world()) {
        let sides = [&source, &target].map(|world| Some(memory(world.items(), false)));
        let [one, two] = sides;
        let mut merge = Merge::new(one, two);
        let (mut broke, mut both, mut only, mut last) = (false, 0, BTreeSet::new(), String::new());
        let mut extraneous = BTreeSet::new();
        for step in merge.by_ref() {
            prop_assert!(!broke, "something came after the break");
            let name = match &step {
                Merged::Both(a, b) => {
                    prop_assert_eq!(&a.name, &b.name);
                    prop_assert_eq!(source.names[&text(a)], a.meta.size);
                    prop_assert_eq!(target.names[&text(b)], b.meta.size);
                    both += 1;
                    text(a)
                }
                Merged::Source(entry) => {
                    let name = text(entry);
                    prop_assert!(!target.names.contains_key(&name), "{}", name);
                    prop_assert!(!World::covers(&target.problems, &name), "{}", name);
                    only.insert(name.clone());
                    name
                }
                Merged::Unknown(entry) => {
                    prop_assert!(World::covers(&target.problems, &text(entry)));
                    only.insert(text(entry));
                    text(entry)
                }
                Merged::Target(entry) => {
                    let name = text(entry);
                    // The source really lacks it, whether listed or not.
                    prop_assert!(!source.names.contains_key(&name), "{}", name);
                    prop_assert!(!World::covers(&source.problems, &name), "{}", name);
                    extraneous.insert(name.clone());
                    name
                }
                Merged::Trouble(_, trouble) => {
                    broke = matches!(trouble, Trouble::Failed(_));
                    continue;
                }
            };
            prop_assert!(last < name, "{} after {}", name, last);
            last = name;
        }
        if !broke {
            // Everything that could be examined was reported.
            let seen = |world: &World| -> BTreeSet<String> {
                let names = world.names.keys().filter(|name| !World::covers(&world.problems, name));
                names.cloned().collect()
            };
            let (seen_source, seen_target) = (seen(&source), seen(&target));
            prop_assert_eq!(both + only.len(), seen_source.len());
            let gone = seen_target.iter().filter(|name| {
                !seen_source.contains(*name) && !World::covers(&source.problems, name)
            });
            prop_assert_eq!(extraneous, gone.cloned().collect::<BTreeSet<_>>());
        }
    }
}

fn steps(source: Vec<Item>, target: Vec<Item>) -> Vec<String> {
    let merge = Merge::new(Some(memory(source, false)), Some(memory(target, false)));
    let shown = |step: Merged| match step {
        Merged::Both(a, _) => format!("={}", text(&a)),
        Merged::Source(a) => format!("+{}", text(&a)),
        Merged::Target(a) => format!("-{}", text(&a)),
        Merged::Unknown(a) => format!("?{}", text(&a)),
        Merged::Trouble(_, Trouble::Failed(error)) => format!("!{}", error.message),
        Merged::Trouble(_, Trouble::Problem { name, .. }) => {
            format!("!{}", String::from_utf8_lossy(&name))
        }
    };
    merge.map(shown).collect()
}

#[test]
fn a_folder_with_something_in_it_is_not_extraneous() {
    let target = || vec![entry("a/", 0), entry("a/old", 1), entry("b/", 0)];
    assert_eq!(steps(vec![entry("a/new", 1)], target()), ["+a/new", "-a/old", "-b/"]);
    assert_eq!(steps(vec![], target()), ["-a/", "-a/old", "-b/"]);
}

#[test]
fn a_listing_out_of_order_or_with_a_name_twice_is_not_trusted() {
    let target = || vec![entry("a", 1), entry("z", 1)];
    let source = vec![entry("a", 1), entry("c", 1), entry("b", 1), entry("x", 1)];
    let said = "!the listing is out of order ('b' comes after 'c'), so it cannot be trusted";
    assert_eq!(steps(source, target()), ["=a", "+c", said]);
    let source = vec![entry("a", 1), entry("c", 1), entry("c", 1)];
    let said = "!the listing names 'c' twice, so it cannot be trusted";
    assert_eq!(steps(source, target()), ["=a", "+c", said]);
}

#[test]
fn a_listing_whose_thread_is_gone_has_not_ended() {
    let (sender, listing) = Listing::channel(false, false);
    let _ = sender.try_send(super::super::Page::Items(vec![entry("a", 1)]));
    drop(sender);
    let steps: Vec<_> =
        Merge::new(Some(listing), Some(memory(vec![entry("b", 1)], false))).collect();
    assert!(matches!(
        &*steps,
        [Merged::Source(_), Merged::Trouble(Side::Source, Trouble::Failed(_))]
    ));
}

#[test]
fn encoded_names_meet_their_keys() {
    let local = |name: &[u8]| {
        let meta = Meta::bare(Kind::File, 1, Time::default());
        Ok(Entry { name: name.into(), meta, etag: "".into() })
    };
    let source = memory(vec![local(b"caf\xe9"), local(b"a")], true);
    let target = memory(vec![entry("%=caf%E9", 1), entry("a", 1)], false);
    let steps: Vec<_> = Merge::new(Some(source), Some(target)).collect();
    assert!(matches!(&*steps, [Merged::Both(..), Merged::Both(..)]), "{steps:?}");
}
