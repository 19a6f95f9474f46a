//! The filter rules asked about whole names: a name lies in folders, and who hides a folder hides
//! what is below it. Names come mostly in order, so the folders of the last one are remembered.

use crate::policy::filter::{Decision, DirRules, Filter, FilterError, Origin, ReadFile};
use std::io;
use std::sync::Arc;

/// Reads a per-directory file: the folder (from the listing's root, without a slash at its end;
/// empty for the root) and the file's name in it; `Ok(None)` where there is none.
pub type ReadMergeFile = Box<dyn FnMut(&[u8], &[u8]) -> io::Result<Option<Vec<u8>>> + Send>;

/// See the module. One for each listing: it remembers where it is.
pub struct Sieve {
    filter: Arc<Filter>,
    /// What stands before the listing's names in the transfer: empty, or ends in a slash.
    lead: Vec<u8>,
    read: Option<ReadMergeFile>,
    top: Decision,
    /// The folders of the last name, from the root down.
    chain: Vec<Level>,
    /// The name of the last folder in the chain, with the slash at its end, after the lead.
    path: Vec<u8>,
}

struct Level {
    /// Where its path ends in `Sieve::path`, slash included.
    len: usize,
    rules: Arc<DirRules>,
    decision: Decision,
}

impl Sieve {
    /// A sieve for the names of one source argument. `origin.first` is what stands before those
    /// names in the transfer (`b` for `/a/b`, nothing for `/a/b/`). `read` loads per-directory
    /// files; a store has none. Files above the root are not read here.
    ///
    /// # Errors
    /// When a per-directory file of the root cannot be read or holds a rule that is refused.
    pub fn new(
        filter: Arc<Filter>,
        origin: &Origin<'_>,
        read: Option<ReadMergeFile>,
    ) -> Result<Sieve, FilterError> {
        Self::with_above(filter, origin, read, &mut |_| Ok(None))
    }

    /// As [`Sieve::new`], where `above` loads per-directory files of folders above the root, by
    /// absolute path.
    ///
    /// # Errors
    /// As [`Sieve::new`].
    pub fn with_above(
        filter: Arc<Filter>,
        origin: &Origin<'_>,
        mut read: Option<ReadMergeFile>,
        above: &mut ReadFile<'_>,
    ) -> Result<Sieve, FilterError> {
        let outer = filter.root(origin, above)?;
        let first = origin.first;
        let mut top = Decision::default();
        if !first.is_empty() {
            top = filter.check(&outer, first, true, false);
        }
        let rules = filter.enter(&outer, first, &mut |name| match &mut read {
            Some(read) => read(b"", name),
            None => Ok(None),
        })?;
        let lead = if first.is_empty() { Vec::new() } else { [first, b"/"].concat() };
        let path = lead.clone();
        let chain = vec![Level { len: path.len(), rules, decision: Decision::default() }];
        Ok(Sieve { filter, lead, read, top, chain, path })
    }

    /// What the rules say of the source argument itself, as a folder.
    pub fn top(&self) -> Decision {
        self.top
    }

    /// What the rules say of a name from the listing's root; one that ends with a slash is a
    /// folder. What a hidden folder holds is hidden, what a protected one holds is protected.
    ///
    /// # Errors
    /// When a per-directory file on the way cannot be read or holds a rule that is refused. Said
    /// once; from then on everything in that folder is hidden and protected.
    pub fn decide(&mut self, name: &[u8]) -> Result<Decision, FilterError> {
        let (inner, is_dir) = match name.strip_suffix(b"/") {
            Some(inner) => (inner, true),
            None => (name, false),
        };
        if inner.is_empty() {
            // The root's own marker, or a key that is a slash.
            return Ok(self.chain.first().map(|level| level.decision).unwrap_or_default());
        }
        let parent_len = inner.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        self.descend(&inner[..parent_len])?;
        let Some(parent) = self.chain.last() else { return Ok(Decision::default()) };
        if parent.decision.hide && parent.decision.protect {
            return Ok(parent.decision);
        }
        self.path.extend_from_slice(&inner[parent_len..]);
        let own = self.filter.check(&parent.rules, &self.path, is_dir, false);
        self.path.truncate(parent.len);
        Ok(or(own, parent.decision))
    }

    /// Makes the chain that of `folder` (empty, or ends with a slash).
    fn descend(&mut self, folder: &[u8]) -> Result<(), FilterError> {
        let root = self.lead.len();
        while self.chain.len() > 1 && !folder.starts_with(&self.path[root..]) {
            self.chain.pop();
            let len = self.chain.last().map_or(root, |level| level.len);
            self.path.truncate(len);
        }
        while let Some(level) = self.chain.last()
            && let rest = &folder[level.len - root..]
            && let Some(slash) = rest.iter().position(|byte| *byte == b'/')
        {
            self.path.extend_from_slice(&rest[..slash]);
            let own = self.filter.check(&level.rules, &self.path, true, false);
            let decision = or(own, level.decision);
            let mut rules = Arc::clone(&level.rules);
            let (path, read) = (&self.path, &mut self.read);
            let entered = match decision.hide {
                // Nobody goes into a hidden folder to read its rules.
                true => Ok(rules.clone()),
                false => self.filter.enter(&rules, path, &mut |name| match read {
                    Some(read) => read(&path[root..], name),
                    None => Ok(None),
                }),
            };
            self.path.push(b'/');
            let len = self.path.len();
            match entered {
                Ok(entered) => {
                    rules = entered;
                    self.chain.push(Level { len, rules, decision });
                }
                Err(error) => {
                    let decision = Decision { hide: true, protect: true };
                    self.chain.push(Level { len, rules, decision });
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

fn or(a: Decision, b: Decision) -> Decision {
    Decision { hide: a.hide || b.hide, protect: a.protect || b.protect }
}
