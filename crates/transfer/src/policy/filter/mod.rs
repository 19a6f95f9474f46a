//! rsync's filter language.

use std::io;
use std::sync::Arc;

/// What the rules say of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The sending side leaves it out.
    pub hide: bool,
    /// The receiving side must not delete it.
    pub protect: bool,
}
/// A rule that cannot be understood.
#[derive(Debug)]
pub struct FilterError {}
impl std::fmt::Display for FilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stub")
    }
}
impl std::error::Error for FilterError {}
/// Builder.
#[derive(Default)]
pub struct FilterBuilder {}
impl FilterBuilder {
    /// --filter
    pub fn rule(&mut self, _text: &[u8]) -> Result<(), FilterError> {
        Ok(())
    }
    /// --include
    pub fn include(&mut self, _pattern: &[u8]) -> Result<(), FilterError> {
        Ok(())
    }
    /// --exclude
    pub fn exclude(&mut self, _pattern: &[u8]) -> Result<(), FilterError> {
        Ok(())
    }
    /// --include-from
    pub fn include_from(
        &mut self,
        _content: &[u8],
        _origin: &str,
        _nul: bool,
    ) -> Result<(), FilterError> {
        Ok(())
    }
    /// --exclude-from
    pub fn exclude_from(
        &mut self,
        _content: &[u8],
        _origin: &str,
        _nul: bool,
    ) -> Result<(), FilterError> {
        Ok(())
    }
    /// -C
    pub fn cvs(&mut self, _home: Option<&[u8]>, _env: Option<&[u8]>) -> Result<(), FilterError> {
        Ok(())
    }
    /// -F
    pub fn per_directory(&mut self) -> Result<(), FilterError> {
        Ok(())
    }
    /// --delete-excluded
    pub fn delete_excluded(&mut self, _on: bool) {}
    /// Finish.
    pub fn build(
        self,
        _read: &mut dyn FnMut(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<Filter, FilterError> {
        Ok(Filter {})
    }
}
/// The rules.
pub struct Filter {}
/// Rules of one directory.
pub struct DirRules {}
impl Filter {
    /// No rules at all.
    pub fn is_empty(&self) -> bool {
        true
    }
    /// The state above the top.
    pub fn root(&self) -> Arc<DirRules> {
        Arc::new(DirRules {})
    }
    /// Whether enter reads.
    pub fn has_merge_files(&self) -> bool {
        false
    }
    /// Enter a directory.
    pub fn enter(
        &self,
        parent: &Arc<DirRules>,
        _path: &[u8],
        _read: &mut dyn FnMut(&[u8]) -> io::Result<Option<Vec<u8>>>,
    ) -> Result<Arc<DirRules>, FilterError> {
        Ok(parent.clone())
    }
    /// First match wins.
    pub fn check(
        &self,
        _dir: &DirRules,
        _path: &[u8],
        _is_dir: bool,
        _in_deleted_dir: bool,
    ) -> Decision {
        Decision::default()
    }
}
