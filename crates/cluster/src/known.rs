//! What the workers of a run know of objects: manifests by ranges, in the run folder, so that the next run of the same ends
//! asks for no headers of objects that did not change.
//!
//! - `known/RANGE-GENERATION-SIDE`: what the listing of a range knows, by the run before and by headers.
//! - `known/RANGE-GENERATION.WORKER-NUMBER-SIDE`: what a worker has learnt while it transferred shards of a range.
//! - `manifest/RANGE-SIDE`: all of it, where the look at both ends after the transfer confirms it. This is what the next
//!   run reads.
//!
//! All of it only spares requests: a file that is missing or damaged costs some.

use crate::folder::{RunError, RunFolder};
use crate::plan::{ClusterPlan, range_text};
use hakobu_transfer::location::Side;
use hakobu_transfer::manifest::{ManifestFiles, Place};
use hakobu_transfer::plan::NameRange;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Folder of what is known during a run.
const KNOWN: &str = "known";
/// Folder of the manifest of a run.
const MANIFEST: &str = "manifest";
/// Bytes that a worker has learnt after which it writes them.
const LEARNT_BYTES_MAX: usize = 4 << 20;

/// The word for a side in names of files.
fn word(side: Side) -> &'static str {
    match side {
        Side::Source => "source",
        Side::Target => "target",
    }
}

/// Manifests that were read before a transfer, and those that it leaves.
#[derive(Default)]
pub(crate) struct HeldManifests {
    earlier: BTreeMap<&'static str, Vec<Vec<u8>>>,
    kept: Mutex<Vec<(Side, Vec<u8>)>>,
}

impl HeldManifests {
    /// Takes what the transfer has left.
    pub fn take(&self) -> Vec<(Side, Vec<u8>)> {
        std::mem::take(&mut *self.kept.lock())
    }
}

impl ManifestFiles for HeldManifests {
    fn earlier(&self, side: Side, _: &Place) -> Vec<Vec<u8>> {
        self.earlier.get(word(side)).cloned().unwrap_or_default()
    }

    fn keep(&self, side: Side, _: &Place, content: Vec<u8>) {
        self.kept.lock().push((side, content));
    }
}

/// The manifest of an earlier run of the same ends.
pub struct PreviousRun {
    folder: Arc<dyn RunFolder>,
    /// The ranges of its plan.
    ranges: Vec<NameRange>,
}

impl PreviousRun {
    /// Opens the manifest of an earlier run; `None` if its folder has none that this program reads.
    pub fn open(folder: Arc<dyn RunFolder>, version: &str) -> Option<PreviousRun> {
        let plan = ClusterPlan::read(&*folder, version).ok()?;
        let ranges: Vec<NameRange> =
            (0..plan.ranges()).filter_map(|number| plan.range(number)).collect();
        (!ranges.is_empty()).then_some(PreviousRun { folder, ranges })
    }

    /// Reads what it knows of a range.
    fn read(&self, range: &NameRange, side: Side) -> Vec<Vec<u8>> {
        let ends = |until: &Option<Vec<u8>>, from: &Vec<u8>| {
            until.as_ref().is_some_and(|until| until <= from)
        };
        let meets = |other: &NameRange| {
            !ends(&other.until, &range.from) && !ends(&range.until, &other.from)
        };
        let meeting = self.ranges.iter().enumerate().filter(|(_, other)| meets(other));
        let name = |number: usize| format!("{MANIFEST}/{number:06}-{}", word(side));
        let names: Vec<String> = meeting.map(|(number, _)| name(number)).collect();
        // It only spares requests.
        self.folder.read_all(&names).unwrap_or_default().into_iter().flatten().collect()
    }
}

/// What one worker knows.
pub(crate) struct RunKnowledge<'a> {
    folder: &'a dyn RunFolder,
    worker: String,
    previous: Option<&'a PreviousRun>,
    /// What was learnt of the range in hand, and is not written yet.
    learnt: Mutex<Learnt>,
    /// Names of the files of the run, by their ranges, once they were listed for the look.
    names: Mutex<Option<BTreeMap<u32, Vec<String>>>>,
}

#[derive(Default)]
struct Learnt {
    of: Option<(u32, u32)>,
    contents: Vec<(Side, Vec<u8>)>,
    bytes: usize,
    /// Number of the next file.
    next: u32,
}

impl<'a> RunKnowledge<'a> {
    pub fn new(
        folder: &'a dyn RunFolder,
        worker: &str,
        previous: Option<&'a PreviousRun>,
    ) -> RunKnowledge<'a> {
        let (learnt, names) = (Mutex::default(), Mutex::default());
        RunKnowledge { folder, worker: worker.to_owned(), previous, learnt, names }
    }

    /// What is known before a range is listed.
    pub fn before_listing(&self, range: &NameRange) -> HeldManifests {
        let Some(previous) = self.previous else { return HeldManifests::default() };
        let of = |side| (word(side), previous.read(range, side));
        let earlier = [Side::Source, Side::Target].map(of).into_iter();
        HeldManifests { earlier: earlier.collect(), ..HeldManifests::default() }
    }

    /// Writes what a listing knows.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn listed(&self, of: (u32, u32), held: &HeldManifests) -> Result<(), RunError> {
        for (side, content) in held.take() {
            let name = format!("{KNOWN}/{}-{}", range_text(of), word(side));
            self.folder.replace(&name, &content)?;
        }
        Ok(())
    }

    /// Takes over what was learnt while a shard of a range was transferred.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn transferred(&self, of: (u32, u32), held: &HeldManifests) -> Result<(), RunError> {
        let new = held.take();
        let mut learnt = self.learnt.lock();
        if learnt.of != Some(of) || learnt.bytes >= LEARNT_BYTES_MAX {
            self.write(&mut learnt)?;
        }
        learnt.of = Some(of);
        learnt.bytes += new.iter().map(|(_, content)| content.len()).sum::<usize>();
        learnt.contents.extend(new);
        Ok(())
    }

    /// Writes what was learnt.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn flush(&self) -> Result<(), RunError> {
        self.write(&mut self.learnt.lock())
    }

    fn write(&self, learnt: &mut Learnt) -> Result<(), RunError> {
        let Some(of) = learnt.of.take() else { return Ok(()) };
        learnt.bytes = 0;
        for (side, content) in std::mem::take(&mut learnt.contents) {
            let (range, worker) = (range_text(of), &self.worker);
            let name = format!("{KNOWN}/{range}.{worker}-{:06}-{}", learnt.next, word(side));
            learnt.next += 1;
            self.folder.replace(&name, &content)?;
        }
        Ok(())
    }

    /// What is known before a range is looked at after the transfer.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn before_look(&self, range: u32) -> Result<HeldManifests, RunError> {
        let mut names = self.names.lock();
        let names = match &mut *names {
            Some(names) => names,
            none => none.insert(self.by_range()?),
        };
        let mut earlier = BTreeMap::new();
        for side in [Side::Source, Side::Target] {
            let mine = names.get(&range).into_iter().flatten();
            let mine = mine.filter(|name| name.ends_with(word(side)));
            let paths: Vec<String> = mine.map(|name| format!("{KNOWN}/{name}")).collect();
            let contents = self.folder.read_all(&paths)?.into_iter().flatten().collect();
            earlier.insert(word(side), contents);
        }
        Ok(HeldManifests { earlier, ..HeldManifests::default() })
    }

    /// Lists the files of the run: those of listings before those of workers.
    fn by_range(&self) -> Result<BTreeMap<u32, Vec<String>>, RunError> {
        let mut names = self.folder.names(KNOWN)?;
        names.sort_by_key(|name| (name.contains('.'), name.clone()));
        let mut by_range: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for name in names.into_iter().filter(|name| crate::folder::is_inside(name)) {
            let range = name.split_once('-').and_then(|(range, _)| range.parse().ok());
            by_range.entry(range.unwrap_or(u32::MAX)).or_default().push(name);
        }
        Ok(by_range)
    }

    /// Writes the manifest of a range.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn looked(&self, range: u32, held: &HeldManifests) -> Result<(), RunError> {
        for (side, content) in held.take() {
            let name = format!("{MANIFEST}/{range:06}-{}", word(side));
            self.folder.replace(&name, &content)?;
        }
        Ok(())
    }
}
