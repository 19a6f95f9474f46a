//! Options of the tree commands that mean nothing where one side is in S3: each is refused by
//! name when it was typed. What only `-a` (or `-p`) implies is left out silently, as documented.

use super::is_s3;
use crate::options::Given;
use std::path::Path;

/// Which sides of a transfer are in S3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concerned {
    /// A source is.
    pub source: bool,
    /// The target is.
    pub target: bool,
}

impl Concerned {
    /// Of sources and a target as typed.
    ///
    /// # Errors
    /// Sources of both kinds: they are listed in different ways, so one run takes one kind.
    pub fn of(sources: &[impl AsRef<Path>], target: &Path) -> Result<Concerned, String> {
        let stored = sources.iter().filter(|source| is_s3(source.as_ref())).count();
        if stored > 0 && stored < sources.len() {
            return Err("sources are either all local or all in s3://".into());
        }
        Ok(Concerned { source: stored > 0, target: is_s3(target) })
    }

    /// Whether any side is.
    pub fn any(self) -> bool {
        self.source || self.target
    }
}

/// Where an option has no meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Any side in S3.
    Any,
    /// The target in S3.
    Target,
}

use Where::{Any, Target};

/// Options (by their name in the tables of `sync`, `cp` and `mv`), where, and what to do instead.
const MISFITS: &[(&str, Where, &str)] = &[
    ("hard-links", Any, "every object has one name"),
    ("acls", Any, "objects have no POSIX ACLs; --acl sets a canned one"),
    ("xattrs", Any, "objects have no extended attributes"),
    ("devices", Any, "objects are files"),
    ("specials", Any, "objects are files"),
    ("D", Any, "objects are files"),
    ("dirs", Any, "a store has no directories; --dir-markers keeps empty ones"),
    ("relative", Any, "name the prefix to keep in the target"),
    ("sparse", Any, ""),
    ("reflink", Any, ""),
    ("link", Any, ""),
    ("symbolic-link", Any, ""),
    ("inplace", Any, ""),
    ("partial", Any, "--resume goes on with interrupted objects"),
    ("P", Any, "--progress shows a bar, --resume goes on with interrupted objects"),
    ("temp-dir", Any, ""),
    ("link-dest", Any, ""),
    ("backup", Any, ""),
    ("suffix", Any, ""),
    ("b", Any, ""),
    ("fsync", Any, ""),
    ("force", Any, "a prefix and an object do not stand in each other's way"),
    ("chmod", Any, ""),
    ("chown", Any, ""),
    ("copy-dirlinks", Any, "-L follows all symlinks"),
    ("keep-dirlinks", Any, ""),
    ("safe-links", Any, ""),
    ("H", Any, "-L follows all symlinks"),
    ("one-file-system", Any, ""),
    ("prune-empty-dirs", Target, "a store has no empty directories unless --dir-markers is given"),
    ("omit-dir-times", Target, "a store keeps no times of directories"),
    ("list-only", Any, "hakobu ls lists buckets and prefixes"),
    ("interactive", Any, "--no-clobber keeps what is there"),
    ("parents", Any, "name the prefix to keep in the target"),
];

/// Refuses options that mean nothing with S3 on the sides where it is. `force` of cp and mv is
/// how S3 works anyway.
///
/// # Errors
/// A sentence that names the option.
pub fn check(command: &str, options: &[Given], concerned: Concerned) -> Result<(), String> {
    if !concerned.any() {
        return Ok(());
    }
    for given in options.iter().filter(|given| given.on) {
        let found = MISFITS.iter().find(|(name, place, _)| {
            *name == given.name
                && match place {
                    Any => true,
                    Target => concerned.target,
                }
        });
        let Some((name, _, why)) = found else { continue };
        if *name == "force" && command != "sync" {
            continue;
        }
        let dashes = if name.len() == 1 { "-" } else { "--" };
        return Err(match *why {
            "" => format!("{dashes}{name} is not built for s3://"),
            why => format!("{dashes}{name} is not built for s3://: {why}"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_misfit_is_an_option_of_some_command() {
        let tables =
            [&crate::options::sync::TABLE, &crate::options::cp::TABLE, &crate::options::mv::TABLE];
        for (name, _, _) in MISFITS {
            let known = tables.iter().any(|table| {
                table.options.iter().copied().flatten().any(|option| option.name == *name)
            });
            assert!(known, "{name} is no option");
        }
    }

    #[test]
    fn only_what_was_typed_counts() {
        let given = |name, on| Given { name, on, count: 1, value: "".into() };
        let up = Concerned { source: false, target: true };
        let down = Concerned { source: true, target: false };
        let none = Concerned::default();
        let refused = |option, sides| check("sync", &[option], sides).is_err();
        assert!(refused(given("hard-links", true), up) && refused(given("hard-links", true), down));
        assert!(!refused(given("hard-links", false), up));
        assert!(!refused(given("archive", true), up) && !refused(given("hard-links", true), none));
        let pruning = |sides| refused(given("prune-empty-dirs", true), sides);
        assert!(pruning(up) && !pruning(down));
        assert!(refused(given("force", true), up));
        assert_eq!(check("cp", &[given("force", true)], up), Ok(()));
        assert_eq!(
            check("cp", &[given("b", true)], up),
            Err("-b is not built for s3://".to_owned())
        );
    }

    #[test]
    fn sources_are_of_one_kind() {
        let of = |sources: &[&str], target: &str| Concerned::of(sources, Path::new(target));
        assert_eq!(of(&["a"], "b"), Ok(Concerned::default()));
        assert_eq!(of(&["s3://abc/x"], "b"), Ok(Concerned { source: true, target: false }));
        assert_eq!(of(&["a"], "s3://abc"), Ok(Concerned { source: false, target: true }));
        assert!(of(&["a", "s3://abc/x"], "b").is_err());
    }
}
