//! Limits that workers reached, from the verdicts on their shards: of one worker, and of all of them.

use hakobu_explain::verdict::{Resource, Verdict, sentence};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Share of the time that a resource has to be named for to be the verdict.
const SHARE_MIN: f64 = 0.5;

/// The verdict on one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Name of the limiting resource, as in the summary of a transfer: `disk-iops`, `none`.
    pub resource: String,
    /// Certainty: `consistent`.
    pub level: String,
    /// The verdict with its evidence.
    pub sentence: String,
}

impl Judged {
    /// The verdict of a transfer.
    pub fn of(verdict: &Verdict) -> Judged {
        Judged {
            resource: verdict.resource.name().to_owned(),
            level: verdict.level.name().to_owned(),
            sentence: sentence(verdict),
        }
    }
}

/// The verdict on several shards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summed {
    /// The resource that limited for most of the time: `disk-iops`; `none` where no resource was
    /// named for half of it.
    pub resource: &'static str,
    /// The same in a sentence: `the CPU`.
    pub named: &'static str,
    /// Share of the time of all shards for which it was named.
    pub share: f64,
    /// The certainty that it was named with for most of that time.
    pub level: String,
    /// The verdict on the longest of these shards, with its evidence.
    pub sentence: String,
    #[serde(skip)]
    of: Resource,
}

/// Sums up verdicts of shards, each with the seconds that it took. Shards without a verdict count as
/// time in which nothing was named. `None` where no shard has one.
pub fn sum<'a>(shards: impl Iterator<Item = (Option<&'a Judged>, f64)>) -> Option<Summed> {
    /// Seconds for which a resource was named.
    #[derive(Default)]
    struct Named<'a> {
        took_s: f64,
        levels: BTreeMap<&'a str, f64>,
        longest: Option<(&'a Judged, f64)>,
    }
    let (mut all_s, mut judged) = (0.0, false);
    let mut named: BTreeMap<&str, Named<'_>> = BTreeMap::new();
    for (verdict, took_s) in shards {
        all_s += took_s;
        let Some(verdict) = verdict else { continue };
        judged = true;
        let one = named.entry(&verdict.resource).or_default();
        one.took_s += took_s;
        *one.levels.entry(&verdict.level).or_default() += took_s;
        if one.longest.is_none_or(|(_, known_s)| known_s < took_s) {
            one.longest = Some((verdict, took_s));
        }
    }
    if !judged {
        return None;
    }
    let nothing = Resource::None;
    let most = named
        .iter()
        .filter(|(name, one)| **name != nothing.name() && one.took_s >= SHARE_MIN * all_s)
        .max_by(|a, b| a.1.took_s.total_cmp(&b.1.took_s));
    let known = most.and_then(|(name, one)| {
        let of = Resource::ALL.into_iter().find(|resource| resource.name() == *name)?;
        Some((of, one))
    });
    let (of, one) = match known {
        Some((of, one)) => (of, Some(one)),
        None => (nothing, named.get(nothing.name())),
    };
    let level = one.and_then(|one| one.levels.iter().max_by(|a, b| a.1.total_cmp(b.1)));
    let longest = one.and_then(|one| one.longest);
    Some(Summed {
        resource: of.name(),
        named: of.words(),
        share: one.map_or(0.0, |one| one.took_s / all_s.max(f64::MIN_POSITIVE)),
        level: level.map_or_else(String::new, |(level, _)| (*level).to_owned()),
        sentence: longest.map_or_else(String::new, |(judged, _)| judged.sentence.clone()),
        of,
    })
}

impl Summed {
    /// Whether it names a resource.
    pub fn is_known(&self) -> bool {
        self.of != Resource::None
    }

    /// Reason why more machines would not help, where what limited is one for all of them.
    pub fn shared(&self) -> Option<&'static str> {
        match self.of {
            Resource::Server | Resource::Peer => Some("all of them waited for the same server"),
            Resource::Source => Some("all of them waited for the same source"),
            Resource::Target => Some("all of them waited for the same target"),
            Resource::UserLimit => Some("a limit that was set is divided among them"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(resource: &str) -> Judged {
        let text = |text: &str| text.to_owned();
        Judged { resource: text(resource), level: text("consistent"), sentence: text("...") }
    }

    #[test]
    fn the_resource_of_most_of_the_time_is_the_verdict() {
        let (cpu, server) = (judged("cpu"), judged("server"));
        let of = |shards: &[(Option<&Judged>, f64)]| sum(shards.iter().copied());
        let found = of(&[(Some(&cpu), 6.0), (Some(&server), 2.0), (None, 2.0)]).unwrap();
        assert_eq!(
            (found.resource, found.named, found.level.as_str()),
            ("cpu", "the CPU", "consistent")
        );
        assert!((found.share - 0.6).abs() < 1e-9 && found.is_known() && found.shared().is_none());
        let found = of(&[(Some(&server), 6.0), (Some(&cpu), 2.0)]).unwrap();
        assert!(found.shared().is_some_and(|why| why.contains("same server")));
    }

    #[test]
    fn nothing_is_named_where_no_resource_has_half_of_the_time() {
        let (cpu, none) = (judged("cpu"), judged("none"));
        let of = |shards: &[(Option<&Judged>, f64)]| sum(shards.iter().copied());
        assert_eq!(of(&[(None, 5.0)]), None);
        for shards in [
            &[(Some(&cpu), 4.0), (Some(&none), 6.0)][..],
            &[(Some(&cpu), 4.0), (None, 6.0)],
            &[(Some(&none), 6.0)],
        ] {
            let found = of(shards).unwrap();
            assert!(!found.is_known() && found.resource == "none", "{found:?}");
        }
    }
}
