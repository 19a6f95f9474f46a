//! The shards of a worker on their way: claimed and read before the work on them, and their results written after it.
//! All of this waits for the run folder, so most of it happens in a thread beside the work on another shard.

use crate::choice::Choice;
use crate::claim::{self, Claimed};
use crate::folder::{self, Trouble};
use crate::plan::number_text;
use crate::shard::{self, Broken, Entry};
use crate::worker::{Done, Setup};
use hakobu_core::error::quoted;
use std::collections::BTreeMap;

/// A shard that this worker claimed, as it was read.
pub(crate) struct Loaded {
    /// Number and generation.
    pub claimed: Claimed,
    /// Entries of the plan.
    pub planned: u64,
    /// Its entries by their roots, or why they cannot be used.
    pub entries: Result<BTreeMap<u32, Vec<Entry>>, String>,
}

/// See the module.
pub(crate) struct Queue<'a> {
    setup: &'a Setup<'a>,
    choice: Choice<'a>,
    /// Results that are not written yet.
    results: Vec<Done>,
}

impl<'a> Queue<'a> {
    /// Returns the queue of a worker with this name.
    pub fn new(setup: &'a Setup<'a>, worker: &str) -> Queue<'a> {
        let (plan, phase) = (setup.plan, &setup.phase);
        let choice = Choice::new(setup.folder, (plan, phase), setup.stale, worker);
        Queue { setup, choice, results: Vec::new() }
    }

    /// Returns whether all shards are known to be done.
    pub fn is_all_done(&self) -> bool {
        self.choice.is_all_done()
    }

    /// Takes the result of a shard, to be written with the next call.
    pub fn finished(&mut self, done: Done) {
        self.results.push(done);
    }

    /// Claims and reads a shard; `None` where there is none now.
    ///
    /// # Errors
    /// The folder's.
    pub fn next(&mut self) -> Result<Option<Loaded>, Trouble> {
        self.record()?;
        let claimed = self.choice.next()?;
        self.load(claimed)
    }

    /// The same while another shard is in hand: only where so many are left that no other worker will lack one.
    ///
    /// # Errors
    /// The folder's.
    pub fn ahead(&mut self) -> Result<Option<Loaded>, Trouble> {
        self.record()?;
        if self.setup.control.is_stopped() {
            return Ok(None);
        }
        let claimed = self.choice.ahead(self.setup.workers)?;
        self.load(claimed)
    }

    fn load(&self, claimed: Option<Claimed>) -> Result<Option<Loaded>, Trouble> {
        let Some(claimed) = claimed else { return Ok(None) };
        let Some(planned) = self.setup.plan.shards.get(claimed.0 as usize) else { return Ok(None) };
        let entries = match shard::read(self.setup.folder, planned) {
            Ok(entries) => match shard::outside(&entries).filter(|_| self.setup.has_paths()) {
                Some(entry) => {
                    let name = String::from_utf8_lossy(&entry.name).into_owned();
                    Err(format!("it names {}, outside of its folder", quoted(name)))
                }
                None => {
                    let mut by_root: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
                    for entry in entries {
                        by_root.entry(entry.root).or_default().push(entry);
                    }
                    Ok(by_root)
                }
            },
            Err(Broken::Damaged(why)) => Err(why),
            Err(Broken::Folder(trouble)) => {
                give_back(self.setup, claimed);
                return Err(trouble);
            }
        };
        Ok(Some(Loaded { claimed, planned: planned.entries, entries }))
    }

    /// Writes results. A shard whose result cannot be written is given back: it was done in vain.
    ///
    /// # Errors
    /// The folder's.
    pub fn record(&mut self) -> Result<(), Trouble> {
        let folder = self.setup.phase.results();
        while let Some(done) = self.results.pop() {
            let name = format!("{folder}/{}.json", number_text(done.shard));
            let content = folder::json(&done);
            let written = content.and_then(|content| self.setup.folder.create(&name, &content));
            if let Err(trouble) = written {
                give_back(self.setup, (done.shard, done.generation));
                return Err(trouble);
            }
            self.choice.finished(done.shard);
        }
        Ok(())
    }
}

/// Gives a shard back. One that cannot be given back is redone when this worker counts as gone.
pub(crate) fn give_back(setup: &Setup<'_>, claimed: Claimed) {
    drop(claim::give_back(setup.folder, &setup.phase.claims(), claimed));
}
