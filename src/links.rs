//! Symlinks that paths on the command line may contain: `--insecure-links`, `--confine-root`, and the files that are
//! read and written under that rule.

use crate::options::{Group, flag, parts, titled};
use hakobu_sys::paths::Links;
use std::path::PathBuf;

/// The link options read so far.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// `--insecure-links`.
    pub insecure: bool,
    /// `--confine-root`.
    pub root: Option<PathBuf>,
}

/// Options about symlinks in paths on the command line.
pub static OPTIONS: Group<Args> = titled("Limits").with(&[flag(
    "insecure-links",
    None,
    "follow symlinks of other users in the paths of options",
)
.off(&["no-insecure-links"])
.sets(|args, on| args.insecure = on)]);

parts!(Args {});

impl Args {
    /// Returns the rule.
    ///
    /// # Errors
    /// A sentence: a root that is not absolute, or without effect.
    pub fn links(self) -> Result<Links, String> {
        match (self.root, self.insecure) {
            (Some(root), _) if !root.is_absolute() => {
                Err("--confine-root must be an absolute path".into())
            }
            (Some(_), true) => {
                Err("--insecure-links and --confine-root cannot be used together".into())
            }
            (Some(root), false) => Ok(Links::Within(root)),
            (None, true) => Ok(Links::Any),
            (None, false) => Ok(Links::Trusted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meaning_of_options() {
        let links =
            |root: Option<&str>, insecure| Args { insecure, root: root.map(PathBuf::from) }.links();
        assert_eq!(links(None, false), Ok(Links::Trusted));
        assert_eq!(links(None, true), Ok(Links::Any));
        assert_eq!(links(Some("/a"), false), Ok(Links::Within("/a".into())));
        assert!(links(Some("a"), true).is_err_and(|why| why.contains("absolute")));
        assert!(links(Some("/a"), true).is_err_and(|why| why.contains("together")));
    }
}
