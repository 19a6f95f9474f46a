//! The part of a bucket that an argument selects: the start of its listing, and a filter for its names.

use super::{NameFilter, Pattern};
use crate::policy::filter::{Filter, FilterError, Origin};
use std::sync::Arc;

/// Start of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The key up to its last slash.
    pub prefix: Vec<u8>,
    /// Common prefix of all names.
    pub narrowed: Vec<u8>,
    /// The wildcard, if there is one.
    pub pattern: Option<Pattern>,
}

impl Scope {
    /// Returns the scope of a key as typed; with `raw` wildcards are literal.
    pub fn of(key: &[u8], raw: bool) -> Scope {
        match Pattern::parse(key).filter(|_| !raw) {
            Some(pattern) => Scope::matching(pattern),
            None => {
                let at = key.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
                let (prefix, narrowed) = key.split_at(at);
                let (prefix, narrowed) = (prefix.to_vec(), narrowed.to_vec());
                Scope { prefix, narrowed, pattern: None }
            }
        }
    }

    /// The scope of a wildcard.
    pub fn matching(pattern: Pattern) -> Scope {
        let prefix = pattern.root().to_vec();
        let narrowed = pattern.literal()[prefix.len()..].to_vec();
        Scope { prefix, narrowed, pattern: Some(pattern) }
    }
}

/// Selects names of a listing by a wildcard and filter rules.
pub struct Choice {
    pattern: Option<Pattern>,
    name_filter: Option<NameFilter>,
    /// The prefix, followed by the last checked name.
    key: Vec<u8>,
    prefix_bytes: usize,
    /// The first name that rules excluded.
    left_out: Option<Vec<u8>>,
    /// Rules let a name through.
    lets: bool,
}

impl Choice {
    /// Selects among names below a prefix.
    ///
    /// # Errors
    /// None in practice: a store that is only listed has no rule files.
    pub fn new(
        prefix: &[u8],
        pattern: Option<Pattern>,
        filter: Option<&Arc<Filter>>,
    ) -> Result<Choice, FilterError> {
        let origin = Origin { source: b"", target: b"", first: b"" };
        let filter = filter.filter(|filter| !filter.is_empty());
        let name_filter =
            filter.map(|filter| NameFilter::new(Arc::clone(filter), &origin, None)).transpose()?;
        Ok(Choice {
            pattern,
            name_filter,
            key: prefix.to_vec(),
            prefix_bytes: prefix.len(),
            left_out: None,
            lets: false,
        })
    }

    /// Returns whether the wildcard matches the name.
    pub fn matches(&mut self, name: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        self.key.truncate(self.prefix_bytes);
        self.key.extend_from_slice(name);
        pattern.matches(&self.key)
    }

    /// Returns whether the rules exclude the name. Undecidable names are excluded.
    pub fn hides(&mut self, name: &[u8]) -> bool {
        let Some(name_filter) = &mut self.name_filter else { return false };
        let hides = !name_filter.decide(name).is_ok_and(|decision| !decision.hide);
        if hides {
            self.left_out.get_or_insert_with(|| name.to_vec());
        } else {
            self.lets = true;
        }
        hides
    }

    /// Returns a sentence if rules excluded all names so far.
    pub fn all_left_out(&mut self) -> Option<String> {
        let name = self.left_out.as_ref().filter(|_| !self.lets)?;
        Some(self.name_filter.as_mut()?.all_left_out(name))
    }

    /// Returns whether a name is selected.
    pub fn takes(&mut self, name: &[u8]) -> bool {
        self.matches(name) && !self.hides(name)
    }
}
