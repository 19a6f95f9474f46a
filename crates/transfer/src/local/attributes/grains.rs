//! Granularities of times, determined on demand: only if two times differ by less than the coarsest granularity.
//! Ordinary file systems keep what was set, so most runs need no probe.

use crate::policy::{Grain, Policy};
use crate::publish::{Scratch, TempNames};
use hakobu_core::unit::Meta;
use hakobu_sys::{BorrowedFd, volume};
use parking_lot::Mutex;

/// Granularities measured by setting times and reading them back, by file system.
#[derive(Default)]
pub(crate) struct Grains {
    known: Mutex<Vec<(u64, Grain)>>,
}

/// One side of a comparison: the entry, and an open directory on its file system.
pub(crate) type End<'a> = (&'a Meta, Option<BorrowedFd<'a>>);

impl Grains {
    /// Returns the coarser granularity of source and target, and whether the time of the target's directory changed
    /// by probing. `probes` makes temporary names if a file may be created at the target; without it, and for the
    /// source, the entries' own times are evaluated.
    pub fn of(
        &self,
        policy: &Policy,
        source: End<'_>,
        target: End<'_>,
        probes: Option<&TempNames>,
    ) -> (Grain, bool) {
        if policy.modify_window_s.is_some() || !Grain::matters(source.0.mtime, target.0.mtime) {
            return (Grain::NS, false);
        }
        let (grain, named) = self.of_target(target, probes);
        (Grains::shown(source).max(grain), named)
    }

    /// Returns the granularity of a target; see [`Grains::of`].
    pub fn of_target(&self, target: End<'_>, probes: Option<&TempNames>) -> (Grain, bool) {
        let (meta, dir) = target;
        let known = self.known.lock().iter().find(|(dev, _)| *dev == meta.dev).copied();
        let (learnt, named) = match (known, probes, dir) {
            (Some((_, grain)), ..) => (Some(grain), false),
            (None, Some(names), Some(dir)) => self.learn(meta.dev, dir, names),
            (None, ..) => (None, false),
        };
        (learnt.unwrap_or_else(|| Grains::shown(target)), named)
    }

    /// Returns the granularity shown by an entry's own times and the type of its file system.
    pub fn shown((meta, dir): End<'_>) -> Grain {
        let grain = Grain::shown_by(meta.mtime, meta.ctime);
        match grain == Grain::S && dir.is_some_and(volume::is_fat) {
            true => Grain::TWO_S,
            false => grain,
        }
    }

    fn learn(&self, dev: u64, dir: BorrowedFd<'_>, names: &TempNames) -> (Option<Grain>, bool) {
        if !hakobu_sys::meta::of_fd(dir).is_ok_and(|there| there.dev == dev) {
            return (None, false);
        }
        // A directory that does not allow creating a file is no failure.
        let Ok(scratch) = Scratch::new(dir, names) else { return (None, false) };
        let read_back = Grain::PROBES.iter().map(|set| Some((*set, scratch.keep(*set).ok()?)));
        let grain =
            read_back.collect::<Option<Vec<_>>>().and_then(|pairs| Grain::read_back(&pairs));
        self.known.lock().extend(grain.map(|grain| (dev, grain)));
        (grain, scratch.is_named())
    }
}
