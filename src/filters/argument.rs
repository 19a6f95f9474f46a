//! Filter rules for one local argument of a command that transfers nothing (`rm`, `du`): names begin as those of a
//! source argument of a transfer do.

use crate::names::strip_slashes;
use hakobu_core::unit::Kind;
use hakobu_transfer::policy::filter::{DirRules, Filter, Origin};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Marks in an argument where the names begin that rules in s5cmd's style see.
const MARK: &[u8] = b"/./";

/// The rules for an argument and everything below it.
#[derive(Debug)]
pub struct ArgumentFilter {
    filter: Arc<Filter>,
    rules: Arc<DirRules>,
    /// The argument's last component, or what is behind the mark.
    name: Vec<u8>,
    /// Whether names below begin with it: `a/b` and not `a/b/`.
    named: bool,
}

impl ArgumentFilter {
    /// Makes the rules for an argument as typed.
    ///
    /// # Errors
    /// The rules require per-directory files, or the working directory cannot be told.
    pub fn new(filter: &Arc<Filter>, typed: &OsStr) -> Result<ArgumentFilter, String> {
        if filter.has_merge_files() {
            return Err(
                "per-directory filter files are not supported here: they are for transfers".into(),
            );
        }
        let typed = typed.as_bytes();
        // s5cmd's names begin below the argument, or where its wildcard begins.
        let mark = match filter.is_below_source() {
            true => typed.windows(MARK.len()).position(|part| part == MARK),
            false => None,
        };
        let last = typed.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (name, named) = match mark {
            Some(mark) => (strip_slashes(&typed[mark + MARK.len()..]), true),
            None => (&typed[last..], !filter.is_below_source()),
        };
        let named = named && !matches!(name, b"" | b"." | b"..");
        let above = if named { typed.strip_suffix(name).unwrap_or(typed) } else { typed };
        let source = match above {
            b"" => std::env::current_dir(),
            above => std::path::absolute(OsStr::from_bytes(above)),
        };
        let source = source.map_err(|error| error.to_string())?;
        let source = source.as_os_str().as_bytes();
        let first = if named { name } else { b"" };
        let rules = filter.root(&Origin { source, target: source, first }, &mut |_| Ok(None));
        let rules = rules.map_err(|error| error.to_string())?;
        Ok(ArgumentFilter { filter: Arc::clone(filter), rules, name: name.to_vec(), named })
    }

    /// Returns whether a rule excludes or protects an entry. `below` is its path below the argument, empty for the
    /// argument itself. Entries in an excluded directory are not checked: the caller must not enter it.
    pub fn excludes(&self, below: &[u8], is_dir: bool) -> bool {
        let joined;
        let path = match (below, self.named) {
            // The directory that an argument with a slash names is not an entry of its own.
            (b"", false) if is_dir => return false,
            (b"", _) => &self.name,
            (_, false) => below,
            (_, true) => {
                joined = [&self.name, &b"/"[..], below].concat();
                &joined
            }
        };
        let decision = self.filter.check(&self.rules, path, is_dir, false);
        decision.hide || decision.protect
    }
}

/// The rules for all local arguments of a command line; empty if there are none.
#[derive(Clone, Debug, Default)]
pub struct ArgumentFilters(HashMap<Vec<u8>, Arc<ArgumentFilter>>);

impl ArgumentFilters {
    /// Makes the rules for the arguments as typed.
    ///
    /// # Errors
    /// As [`ArgumentFilter::new`].
    pub fn new(filter: &Arc<Filter>, paths: &[OsString]) -> Result<ArgumentFilters, String> {
        let mut all = HashMap::new();
        for path in paths {
            let rules = Arc::new(ArgumentFilter::new(filter, path)?);
            let plain = strip_slashes(path.as_bytes());
            // Given with a slash and without, an argument can be excluded itself.
            if plain.len() == path.len() {
                all.insert(plain.to_vec(), rules);
            } else {
                all.entry(plain.to_vec()).or_insert(rules);
            }
        }
        Ok(ArgumentFilters(all))
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules for an argument, as typed or without slashes at its end.
    pub fn of(&self, argument: &[u8]) -> Option<&Arc<ArgumentFilter>> {
        self.0.get(strip_slashes(argument))
    }

    /// Returns whether a rule excludes the entry `below` an argument; see [`ArgumentFilter::excludes`].
    pub fn excludes(&self, argument: &[u8], below: &[u8], kind: Kind) -> bool {
        self.of(argument).is_some_and(|rules| rules.excludes(below, kind == Kind::Dir))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_transfer::policy::filter::{FilterBuilder, Style};

    fn filter(rules: &[&str]) -> Arc<Filter> {
        let mut builder = FilterBuilder::default();
        rules.iter().for_each(|rule| builder.rule(rule.as_bytes()).unwrap());
        Arc::new(builder.build(&mut |_| Ok(Vec::new())).unwrap())
    }

    fn excludes(filter: &Arc<Filter>, typed: &str, below: &str, is_dir: bool) -> bool {
        let argument = ArgumentFilter::new(filter, OsStr::new(typed)).unwrap();
        argument.excludes(below.as_bytes(), is_dir)
    }

    #[test]
    fn names_begin_as_those_of_a_source() {
        for (rule, typed, below, excluded) in [
            ("- x", "a/b", "x", true),
            ("- x", "a/b", "c/x", true),
            ("- /x", "a/b", "x", false),
            ("- /x", "a/b/", "x", true),
            ("- /x", "a/b//", "x", true),
            ("- /b/x", "a/b", "x", true),
            ("- b/x", "a/b", "x", true),
            ("- b/x", "a/b/", "x", false),
            ("- /x", ".", "x", true),
            ("- /x", "a/..", "x", true),
            ("P x", "a/b", "x", true),
            ("- a*", "b", "a\nb", true),
        ] {
            assert_eq!(excludes(&filter(&[rule]), typed, below, false), excluded, "{rule} {typed}");
        }
        assert!(excludes(&filter(&["-/ /tmp/q/x"]), "/tmp/q/", "x", false));
        assert!(excludes(&filter(&["-/ /tmp/q/x"]), "/tmp/q", "x", false));
        assert!(!excludes(&filter(&["-/ /tmp/q/x"]), "/tmp/r", "x", false));
    }

    #[test]
    fn the_argument_itself_is_an_entry_without_a_slash() {
        let all = filter(&["- *"]);
        assert!(excludes(&all, "a/b", "", true));
        assert!(excludes(&all, "a/b", "", false));
        for typed in ["a/b/", ".", "..", "/"] {
            assert!(!excludes(&all, typed, "", true), "{typed}");
        }
    }

    #[test]
    fn other_styles_see_names_below_the_argument() {
        let mut builder = FilterBuilder::default();
        builder.styled(Style::S5cmd, &[(false, b"c/*.txt".to_vec())]);
        let filter = Arc::new(builder.build(&mut |_| Ok(Vec::new())).unwrap());
        assert!(excludes(&filter, "a/b", "c/x.txt", false));
        assert!(!excludes(&filter, "a/b", "x.txt", false));
        assert!(!excludes(&filter, "c", "x.txt", false));
        assert!(excludes(&filter, "a/./c", "x.txt", false));
        assert!(excludes(&filter, "././c/", "x.txt", false));
        assert!(!excludes(&filter, "a/./b/c", "x.txt", false));
        // Directories are never matched.
        assert!(!excludes(&filter, "c/x.txt", "", true));
    }

    #[test]
    fn per_directory_files_are_refused() {
        let why = ArgumentFilter::new(&filter(&["dir-merge .rules"]), OsStr::new("a")).unwrap_err();
        assert!(why.contains("per-directory"), "{why}");
    }
}
