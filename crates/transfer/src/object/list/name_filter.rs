//! Filter rules for whole names: a name is hidden if a folder above it is. Names mostly come in order, so the folders
//! of the last one are cached.

use crate::policy::filter::{Decision, DirRules, Filter, FilterError, Origin, ReadFile};
use hakobu_core::error::quoted;
use hakobu_sys::below::split;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Reads a per-directory file: the folder (from the listing's root, without a slash at its end; empty for the root)
/// and the file's name in it; `Ok(None)` if there is none.
pub type ReadMergeFile = Box<dyn FnMut(&[u8], &[u8]) -> io::Result<Option<Vec<u8>>> + Send + Sync>;

/// Filter for names of one listing; see the module. It caches the current folder.
pub struct NameFilter {
    filter: Arc<Filter>,
    /// The prefix of the listing's names in the transfer: empty, or ends in a slash.
    lead: Vec<u8>,
    read: Option<ReadMergeFile>,
    /// The files of hidden folders are read as well: in a target they may protect entries.
    reads_hidden: bool,
    top: Decision,
    /// The folders of the last name, from the root down. The root's level stays.
    chain: Vec<Level>,
    /// The path of the last folder in the chain, with the slash at its end, after the lead.
    path: Vec<u8>,
}

struct Level {
    /// Length of its path in `NameFilter::path`, slash included.
    len: usize,
    rules: Arc<DirRules>,
    decision: Decision,
}

impl NameFilter {
    /// Makes a name filter for one source argument. `origin.first` is the prefix of its names in the transfer (`b`
    /// for `/a/b`, nothing for `/a/b/`). `read` loads per-directory files; a store has none. Files above the root are
    /// not read.
    ///
    /// # Errors
    /// A per-directory file of the root cannot be read or holds an invalid rule.
    pub fn new(
        filter: Arc<Filter>,
        origin: &Origin<'_>,
        read: Option<ReadMergeFile>,
    ) -> Result<NameFilter, FilterError> {
        Self::with_above(filter, origin, read, &mut |_| Ok(None))
    }

    /// As [`NameFilter::new`]; `above` loads per-directory files of folders above the root, by absolute path.
    ///
    /// # Errors
    /// As [`NameFilter::new`].
    pub fn with_above(
        filter: Arc<Filter>,
        origin: &Origin<'_>,
        mut read: Option<ReadMergeFile>,
        above: &mut ReadFile<'_>,
    ) -> Result<NameFilter, FilterError> {
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
        Ok(NameFilter { filter, lead, read, reads_hidden: false, top, chain, path })
    }

    /// Makes it the name filter of a target, which reads the files of hidden folders, too.
    #[must_use]
    pub fn of_target(self) -> NameFilter {
        NameFilter { reads_hidden: true, ..self }
    }

    /// Returns whether a name is that of a per-directory file.
    pub fn is_rule_file(&self, name: &[u8]) -> bool {
        self.filter.is_merge_file(name.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
    }

    /// Returns the decision about the source argument itself, as a folder.
    pub fn top(&self) -> Decision {
        self.top
    }

    /// Returns the decision about a name from the listing's root; one that ends with a slash is a folder. Entries of
    /// a hidden folder are hidden, those of a protected one protected.
    ///
    /// # Errors
    /// A per-directory file above the name cannot be read or holds an invalid rule. Returned once; after that
    /// everything in that folder is hidden and protected.
    pub fn decide(&mut self, name: &[u8]) -> Result<Decision, FilterError> {
        let (inner, is_dir) = match name.strip_suffix(b"/") {
            Some(inner) => (inner, true),
            None => (name, false),
        };
        if inner.is_empty() {
            // The root's own marker, or a key that is a slash.
            return Ok(self.chain[0].decision);
        }
        let (folder, name) = split(inner);
        self.descend(folder)?;
        let parent = &self.chain[self.chain.len() - 1];
        if parent.decision.hide && parent.decision.protect {
            return Ok(parent.decision);
        }
        self.path.extend_from_slice(name);
        let own = self.filter.check(&parent.rules, &self.path, is_dir, false);
        self.path.truncate(parent.len);
        Ok(or(own, parent.decision))
    }

    /// Returns a sentence about the rule that leaves out a source argument: `name` in it, or all of it if that is empty.
    pub fn left_out(&mut self, name: &[u8]) -> String {
        match self.hiding(name) {
            Some(Some(pattern)) => {
                let pattern = quoted(OsStr::from_bytes(&pattern));
                format!("the filter rules leave it out, by the pattern {pattern}")
            }
            _ => "the filter rules leave it out".to_owned(),
        }
    }

    /// Returns a sentence about rules that leave out everything, of which `name` is one.
    pub fn all_left_out(&mut self, name: &[u8]) -> String {
        let mut text = "the filter rules leave out everything there".to_owned();
        if let Some(pattern) = self.hiding(name) {
            let rule = match pattern {
                Some(pattern) => format!("the pattern {}", quoted(OsStr::from_bytes(&pattern))),
                None => "a rule of a file".to_owned(),
            };
            text += &format!(": {} by {rule}", quoted(OsStr::from_bytes(name)));
        }
        text
    }

    /// Returns the pattern of the rule that excludes a name, or a folder above it; inside `None` for one of a file.
    fn hiding(&mut self, name: &[u8]) -> Option<Option<Vec<u8>>> {
        let inner = name.strip_suffix(b"/").unwrap_or(name);
        self.descend(split(inner).0).ok()?;
        let whole = [&*self.lead, inner].concat();
        let folders = self.chain.iter().skip(1).map(|level| level.len.saturating_sub(1));
        let ends = folders.chain([whole.len()]);
        self.chain.iter().zip(ends).find_map(|(level, end)| {
            let is_dir = end < whole.len() || inner.len() < name.len();
            let rule = self.filter.hiding(&level.rules, whole.get(..end)?, is_dir)?;
            Some(rule.pattern.map(<[u8]>::to_vec))
        })
    }

    /// Changes the chain to that of `folder` (empty, or ends with a slash).
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
            let entered = match decision.hide && !self.reads_hidden {
                // The rules in a hidden folder are not read.
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
