//! Which source arguments have nothing to do with each other.

use super::planned::{PlannedSource, What};
use crate::object::Root;
use crate::plan::meeting::meeting;

/// Returns whether sources may be worked on in any order, and at once: none of them writes where another one writes,
/// and none can write what another one reads, because only one side is a store.
pub fn are_apart(found: &[PlannedSource]) -> bool {
    let within = |planned: &PlannedSource| {
        matches!(
            (&planned.pair.source, &planned.pair.target),
            (Root::Store { .. }, Root::Store { .. })
        )
    };
    !found.iter().any(within) && have_own_targets(found.iter())
}

/// Returns whether no source writes at or below the target of another one.
pub(super) fn have_own_targets<'a>(found: impl Iterator<Item = &'a PlannedSource>) -> bool {
    let places: Vec<_> = found.map(target).zip(0..).collect();
    let count = places.len();
    !meeting(places, count).contains(&true)
}

/// Returns which sources write at, above or below the target of another one.
pub(super) fn meets(found: &[PlannedSource]) -> Vec<bool> {
    meeting(found.iter().map(target).zip(0..).collect(), found.len())
}

fn target(planned: &PlannedSource) -> Vec<&[u8]> {
    match &planned.what {
        What::One { name, .. } => place(&planned.pair.lead, name),
        What::Tree { .. } | What::Names(_) => place(&planned.pair.lead, b""),
    }
}

/// Returns the components of a name below the common target.
fn place<'a>(lead: &'a [u8], name: &'a [u8]) -> Vec<&'a [u8]> {
    let components =
        |path: &'a [u8]| path.split(|byte| *byte == b'/').filter(|one| !one.is_empty());
    components(lead).chain(components(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Entry, Pair};
    use hakobu_core::unit::{Kind, Meta, Time};
    use std::sync::Arc;

    fn source(lead: &str, name: Option<&str>, both_stores: bool) -> PlannedSource {
        let store = || Root::Store { bucket: "b".into(), prefix: Vec::new() };
        let source = if both_stores { store() } else { Root::Null };
        let meta = Meta::bare(Kind::File, 1, Time::default());
        let what = match name {
            Some(name) => What::One {
                entry: Entry { name: name.as_bytes().into(), meta, etag: "".into() },
                name: name.into(),
            },
            None => What::Tree { pattern: None },
        };
        let pair = Pair { source, target: store(), lead: lead.into() };
        PlannedSource { pair: Arc::new(pair), what, target_is_new: false }
    }

    #[test]
    fn sources_are_apart_if_no_target_is_at_or_below_another_one() {
        for (sources, apart) in [
            (&[][..], true),
            (&[("a/", None)], true),
            (&[("", None)], true),
            (&[("a/", None), ("b/", None)], true),
            (&[("a/", None), ("ab/", None), ("a b/", None)], true),
            (&[("a/", None), ("a!/", None), ("a/", None)], false),
            (&[("", None), ("b/", None)], false),
            (&[("a/", None), ("a/b/", None)], false),
            (&[("", Some("f")), ("", Some("f.txt")), ("f-/", None)], true),
            (&[("", Some("f")), ("", Some("f-")), ("f/", None)], false),
            (&[("", Some("f")), ("", Some("f"))], false),
            (&[("", None), ("", Some("f"))], false),
        ] {
            let all: Vec<_> =
                sources.iter().map(|(lead, name)| source(lead, *name, false)).collect();
            assert_eq!(are_apart(&all), apart, "{sources:?}");
            let mut turned = all;
            turned.reverse();
            assert_eq!(are_apart(&turned), apart, "{sources:?}, turned");
        }
    }

    #[test]
    fn copies_from_store_to_store_go_in_turn() {
        assert!(!are_apart(&[source("a/", None, true), source("b/", None, true)]));
    }
}
