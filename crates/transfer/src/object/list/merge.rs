//! Merge of two listings in one order. An entry is only reported as missing at the source if no problem of the source
//! can hide it.

use super::{Entry, Item, Listing, Trouble};
use crate::object::Side;

/// One step of a merge.
#[derive(Debug)]
pub enum Merged {
    /// Both sides have it: source, target.
    Both(Entry, Entry),
    /// Only the source has it.
    Source(Entry),
    /// Only the target has it: extraneous. Never a folder in which the source has an entry.
    Target(Entry),
    /// The source has it; the target's entry could not be examined.
    Unknown(Entry),
    /// A problem of a side. After `Failed` nothing more comes.
    Trouble(Side, Trouble),
}

/// Merge of two listings; see the module. Entries are compared by their keys: local names that are percent-encoded on
/// request sort by the encoded form ([`Listing::key`]). Problems come in order as well, and before the entries that
/// they affect.
pub struct Merge {
    source: Stream,
    target: Stream,
    kept: u64,
    over: bool,
}

/// State of one side.
struct Stream {
    listing: Option<Listing>,
    /// The next entry and its key.
    head: Option<(Box<[u8]>, Entry)>,
    /// Keys that could not be examined, as far as they still matter: a folder with its slash, empty for everything;
    /// and whether it may be an entry without that slash.
    shields: Vec<(Box<[u8]>, bool)>,
}

impl Merge {
    /// Merges two listings. Without a target every entry is missing there; without a source every entry is
    /// extraneous.
    pub fn new(source: Option<Listing>, target: Option<Listing>) -> Merge {
        Merge { source: Stream::new(source), target: Stream::new(target), kept: 0, over: false }
    }

    /// Returns the number of target entries that were kept because of problems of the source.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    fn trouble(&mut self, side: Side, trouble: Trouble) -> Merged {
        self.over = matches!(trouble, Trouble::Failed(_));
        Merged::Trouble(side, trouble)
    }
}

impl Iterator for Merge {
    type Item = Merged;

    fn next(&mut self) -> Option<Merged> {
        while !self.over {
            // The source first: its problems must be known before the target is decided.
            if let Err(trouble) = self.source.fill() {
                return Some(self.trouble(Side::Source, trouble));
            }
            if let Err(trouble) = self.target.fill() {
                return Some(self.trouble(Side::Target, trouble));
            }
            let take_source = match (&self.source.head, &self.target.head) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((source, _)), Some((target, _))) if source == target => {
                    let (source, target) = (self.source.head.take(), self.target.head.take());
                    let ((_, source), (_, target)) = source.zip(target)?;
                    return Some(Merged::Both(source, target));
                }
                (Some((source, _)), Some((target, _))) => source < target,
            };
            if take_source {
                let (key, entry) = self.source.head.take()?;
                return Some(match self.target.shields(&key) {
                    true => Merged::Unknown(entry),
                    false => Merged::Source(entry),
                });
            }
            let (key, entry) = self.target.head.take()?;
            if self.source.shields(&key) {
                self.kept += 1;
                continue;
            }
            let below = |(source, _): &(Box<[u8]>, Entry)| source.starts_with(&key);
            if key.ends_with(b"/") && self.source.head.as_ref().is_some_and(below) {
                continue;
            }
            return Some(Merged::Target(entry));
        }
        None
    }
}

impl Stream {
    fn new(listing: Option<Listing>) -> Stream {
        Stream { listing, head: None, shields: Vec::new() }
    }

    /// Reads until there is a head or the end.
    fn fill(&mut self) -> Result<(), Trouble> {
        if self.head.is_some() {
            return Ok(());
        }
        let Some(listing) = &mut self.listing else { return Ok(()) };
        let item: Option<Item> = listing.next();
        match item {
            Some(Ok(entry)) => {
                let key = listing.key(&entry).into();
                self.head = Some((key, entry));
                Ok(())
            }
            Some(Err(trouble)) => {
                if let Trouble::Problem { name, .. } = &trouble {
                    let mut key = super::key_of(name, listing.encoded).into_owned();
                    let whole = !key.is_empty() && !key.ends_with(b"/");
                    if whole {
                        key.push(b'/');
                    }
                    self.shields.push((key.into(), whole));
                }
                Err(trouble)
            }
            None => {
                self.listing = None;
                Ok(())
            }
        }
    }

    /// Returns whether a key, not smaller than any before, is at or below a problem.
    fn shields(&mut self, key: &[u8]) -> bool {
        self.shields.retain(|(shield, _)| key.starts_with(shield) || key <= &**shield);
        self.shields.iter().any(|(shield, whole)| {
            key.starts_with(shield) || *whole && shield.strip_suffix(b"/") == Some(key)
        })
    }
}

#[cfg(test)]
mod tests;
