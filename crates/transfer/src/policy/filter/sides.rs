//! The rules of one directory on both sides of a transfer. The source's files exclude entries, the target's own files
//! protect entries from deletion; the source's files protect as well.

use super::{
    Deciding, DirRules, Filter, FilterError, XattrSides,
    matcher::{Entry, Rule},
};
use std::sync::Arc;

/// The rules in force in one directory.
#[derive(Clone, Debug)]
pub struct SidedRules {
    source: Arc<DirRules>,
    target: Target,
}

/// The rules of the target's per-directory files.
#[derive(Clone, Debug)]
enum Target {
    /// Not read: nothing is deleted here, or no rule names such files.
    AsSource,
    Own(Arc<DirRules>),
    /// One of them could not be read: it may protect anything.
    Unknown,
}

impl SidedRules {
    /// Makes the rules of a directory whose target side is not needed.
    #[must_use]
    pub fn new(source: Arc<DirRules>) -> SidedRules {
        SidedRules { source, target: Target::AsSource }
    }

    /// Adds the rules of the target's files; `None` if they are not known.
    #[must_use]
    pub fn with_target(self, target: Option<Arc<DirRules>>) -> SidedRules {
        SidedRules { target: target.map_or(Target::Unknown, Target::Own), ..self }
    }

    /// Returns the source's rules.
    #[must_use]
    pub fn source(&self) -> &Arc<DirRules> {
        &self.source
    }

    /// Returns the rules that the target's files extend further down; `None` if they are not known.
    #[must_use]
    pub fn target(&self) -> Option<&Arc<DirRules>> {
        match &self.target {
            Target::AsSource => Some(&self.source),
            Target::Own(rules) => Some(rules),
            Target::Unknown => None,
        }
    }

    /// Returns the rules for extended attributes of the entries in the directory.
    #[must_use]
    pub fn xattrs(&self) -> XattrSides {
        let (target, is_unknown) = match &self.target {
            Target::AsSource => (None, false),
            Target::Own(rules) => (rules.xattrs.clone(), false),
            Target::Unknown => (None, true),
        };
        XattrSides { source: self.source.xattrs.clone(), target, is_unknown }
    }

    /// Enters the directory `path` that only the target has. `read` loads its per-directory files.
    ///
    /// # Errors
    /// As [`Filter::enter`]; everything in that directory is protected then.
    pub fn enter_target(
        &self,
        filter: &Filter,
        path: &[u8],
        read: &mut super::ReadFile<'_>,
    ) -> (SidedRules, Result<(), FilterError>) {
        let Some(target) = self.target() else { return (self.clone(), Ok(())) };
        // The source has no such directory: its inherited rules apply.
        let inherited = filter.enter(&self.source, path, &mut |_| Ok(None));
        let source = inherited.unwrap_or_else(|_| Arc::clone(&self.source));
        match filter.enter(target, path, read) {
            Ok(rules) => (SidedRules::new(source).with_target(Some(rules)), Ok(())),
            Err(error) => (SidedRules::new(source).with_target(None), Err(error)),
        }
    }

    /// Returns whether the sending side excludes the entry. See [`Filter::check`].
    #[must_use]
    pub fn hides(&self, path: &[u8], is_dir: bool) -> bool {
        self.source.decide(Entry::new(path, is_dir), false).hide
    }

    /// Returns the rule that decides whether the sending side excludes the entry, for messages.
    #[must_use]
    pub fn sending(&self, path: &[u8], is_dir: bool) -> Option<Deciding<'_>> {
        self.source.sending(Entry::new(path, is_dir)).map(Rule::shown)
    }

    /// Returns the rule that decides whether the receiving side keeps the entry, for messages; `None` also where that
    /// is not known. See [`SidedRules::protects`].
    #[must_use]
    pub fn receiving(
        &self,
        path: &[u8],
        is_dir: bool,
        in_deleted_dir: bool,
    ) -> Option<Deciding<'_>> {
        let entry = Entry::new(path, is_dir);
        let found = match &self.target {
            Target::AsSource => self.source.receiving(entry, in_deleted_dir),
            Target::Own(target) => {
                let own = target.receiving(entry, in_deleted_dir);
                let of_source = || self.source.protecting_file(entry, in_deleted_dir);
                own.filter(|rule| !rule.include).or_else(of_source).or(own)
            }
            Target::Unknown => None,
        };
        found.map(Rule::shown)
    }

    /// Returns whether the receiving side keeps the entry: rsync's result, which uses the target's files only, or a
    /// rule of the source's files. See [`Filter::check`].
    #[must_use]
    pub fn protects(&self, path: &[u8], is_dir: bool, in_deleted_dir: bool) -> bool {
        let entry = Entry::new(path, is_dir);
        let protect = |rules: &DirRules| rules.decide(entry, in_deleted_dir).protect;
        match &self.target {
            Target::AsSource => protect(&self.source),
            Target::Own(target) => {
                protect(target) || self.source.protecting_file(entry, in_deleted_dir).is_some()
            }
            Target::Unknown => true,
        }
    }
}
