//! The filter rules of a `sync` command line, in their order (rsync(1), FILTER RULES).

use crate::exit;
use crate::names;
use crate::options::Given;
use crate::show::escape::Escape;
use hakobu_transfer::error::Fatal;
use hakobu_transfer::policy::filter::{Filter, FilterBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Options that change what the rules mean but are none.
pub struct Context {
    /// `-0`: names and patterns in files (merge files, too) end with NUL.
    pub nul: bool,
    /// `--delete-excluded`.
    pub delete_excluded: bool,
    /// Backups with this suffix are not deleted (`--backup` with `--delete`).
    pub protect_suffix: Option<Vec<u8>>,
}

/// Builds the filter; `None` where there are no rules.
///
/// # Errors
/// A file of rules that cannot be read (code 11) or a rule that is none (code 1).
pub fn build(given: &[Given], context: &Context) -> Result<Option<Arc<Filter>>, Fatal> {
    let mut builder = FilterBuilder::default();
    builder.delete_excluded(context.delete_excluded);
    builder.from0(context.nul);
    for option in given {
        let value = option.value.as_bytes();
        let read = || {
            names::read_whole(&option.value).map_err(|message| Fatal::new(exit::SYNC_IO, message))
        };
        let origin = Escape::of_locale().path(Path::new(&option.value));
        match option.name {
            "filter" => builder.rule(value),
            "exclude" => builder.exclude(value),
            "include" => builder.include(value),
            "exclude-from" => builder.exclude_from(&read()?, &origin, context.nul),
            "include-from" => builder.include_from(&read()?, &origin, context.nul),
            "F" => builder.per_directory(),
            "cvs-exclude" => {
                builder.cvs_exclude();
                continue;
            }
            _ => continue,
        }
        .map_err(|error| wrong(&error))?;
    }
    let home = names::variable("HOME").and_then(|home| {
        std::fs::read(Path::new(OsStr::from_bytes(&home)).join(".cvsignore")).ok()
    });
    builder.cvs_ignores(home.as_deref(), names::variable("CVSIGNORE").as_deref());
    if let Some(suffix) = &context.protect_suffix {
        let rule = [b"P *", suffix.as_slice()].concat();
        builder.rule(&rule).map_err(|error| wrong(&error))?;
    }
    let mut read = |name: &[u8]| match name {
        b"-" => {
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut content)?;
            Ok(content)
        }
        name => std::fs::read(OsStr::from_bytes(name)),
    };
    let filter = builder.build(&mut read).map_err(|error| wrong(&error))?;
    Ok((!filter.is_empty()).then(|| Arc::new(filter)))
}

/// A rule that is wrong is a wrong option; a file of rules that cannot be read is rsync's file I/O.
fn wrong(error: &dyn std::error::Error) -> Fatal {
    let code = if error.source().is_some() { exit::SYNC_IO } else { exit::SYNC_USAGE };
    Fatal::new(code, error.to_string())
}
