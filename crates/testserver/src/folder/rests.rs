//! Rests of listings: the names that later pages return, so that a page costs its own entries and not those of the folder.
//! A listing sees what was there when it began. A rest is kept for seconds; without it the next page reads the folder.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Age of a listing at which its rest is forgotten.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Names in all rests.
const NAMES_MAX: usize = 1 << 20;

/// Keys in order, with the paths of those that are not their own.
pub type Found = VecDeque<(String, Option<String>)>;

/// The request that a rest belongs to: bucket, prefix and delimiter.
pub type Scope = (String, String, String);

#[derive(Debug)]
struct Rest {
    id: u64,
    began: Instant,
    scope: Scope,
    found: Found,
}

/// Rests, the oldest first.
#[derive(Debug, Default)]
pub struct Rests {
    kept: Mutex<VecDeque<Rest>>,
}

impl Rests {
    /// Keeps the rest of a listing, and returns its number for [`Rests::take`].
    pub fn keep(&self, scope: Scope, began: Instant, found: Found) -> u64 {
        let id = fastrand::u64(..);
        let mut kept = self.kept.lock();
        kept.push_back(Rest { id, began, scope, found });
        let mut names: usize = kept.iter().map(|rest| rest.found.len()).sum();
        while let Some(oldest) = kept.front()
            && (names > NAMES_MAX || oldest.began.elapsed() > AGE_MAX)
        {
            names -= oldest.found.len();
            kept.pop_front();
        }
        id
    }

    /// Takes the rest with a number, and the time when its listing began; `None` if it is too old, was taken before, or
    /// does not continue after `after`.
    pub fn take(&self, id: u64, scope: &Scope, after: &str) -> Option<(Instant, Found)> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|rest| rest.id == id)?;
        let Rest { began, scope: of, found, .. } = kept.remove(at)?;
        let continues = found.front().is_none_or(|(key, _)| key.as_str() > after);
        (of == *scope && continues && began.elapsed() <= AGE_MAX).then_some((began, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(keys: &[&str]) -> Found {
        keys.iter().map(|key| ((*key).to_owned(), None)).collect()
    }

    #[test]
    fn a_rest_continues_its_own_listing_only_and_once() {
        let rests = Rests::default();
        let scope = |bucket: &str| (bucket.to_owned(), "p/".to_owned(), String::new());
        let now = Instant::now();
        let keep = |began| rests.keep(scope("b"), began, some(&["p/c", "p/d"]));
        let id = keep(now);
        assert_eq!(rests.take(id, &scope("b"), "p/b"), Some((now, some(&["p/c", "p/d"]))));
        assert_eq!(rests.take(id, &scope("b"), "p/b"), None);
        assert_eq!(rests.take(keep(now), &scope("other"), "p/b"), None);
        assert_eq!(rests.take(keep(now), &scope("b"), "p/c"), None);
        let old = now.checked_sub(AGE_MAX * 2).unwrap();
        assert_eq!(rests.take(keep(old), &scope("b"), "p/b"), None);
    }

    #[test]
    fn memory_is_bounded() {
        let rests = Rests::default();
        let many: Found = (0..NAMES_MAX / 2).map(|_| (String::new(), None)).collect();
        let ids: Vec<u64> =
            (0..4).map(|_| rests.keep(Scope::default(), Instant::now(), many.clone())).collect();
        assert!(rests.kept.lock().iter().map(|rest| rest.id).eq(ids[2..].iter().copied()));
    }
}
