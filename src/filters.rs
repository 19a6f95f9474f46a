//! Options of filter rules, and the filter made from them, in order (rsync(1), FILTER RULES).

mod argument;
mod order;

use crate::exit;
use crate::names;
use crate::options::{Group, OptArg, Row, Takes, flag, parts, push, put, titled, value, values};
use crate::show::escape::Escape;
pub use argument::ArgumentFilters;
use hakobu_core::error::{Fatal, cannot, quoted};
use hakobu_sys::paths::Links;
use hakobu_transfer::policy::filter::{Filter, FilterBuilder, Style};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Effect of an option on the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `--filter`.
    Any,
    /// `--exclude`.
    Exclude,
    /// `--include`.
    Include,
    /// `--exclude-from`.
    ExcludeFrom,
    /// `--include-from`.
    IncludeFrom,
    /// `-F`.
    PerDirectory,
    /// `--cvs-exclude`.
    Cvs,
}

/// The filter options read so far.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// In command-line order, each with its value.
    rules: Vec<(Rule, OsString)>,
    /// `-0`: names and patterns in files (merge files, too) are NUL-terminated.
    pub nul: bool,
    /// `--filter-style`, if it was given.
    style: Option<Style>,
}

parts!(Filters {});

/// Patterns for `s3://`, for commands that have no others.
pub static NAMED: Group<Filters> = titled("Filters").with(&[
    EXCLUDE
        .with_help("with s3://: skip matching names")
        .stored()
        .reads(|filters, arg| filters.add(Rule::Exclude, arg)),
    INCLUDE
        .with_help("with s3://: do not skip matching names")
        .stored()
        .reads(|filters, arg| filters.add(Rule::Include, arg)),
    EXCLUDE_FROM
        .with_help("with s3://: read exclude patterns ('-': standard input)")
        .stored()
        .reads(|filters, arg| filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM
        .with_help("with s3://: read include patterns ('-': standard input)")
        .stored()
        .reads(|filters, arg| filters.add(Rule::IncludeFrom, arg)),
    STYLE.stored().reads(Filters::set_style),
]);

/// Rules for names in any place, for commands that transfer nothing.
pub static CHOSEN: Group<Filters> = titled("Filters").with(&[
    values("filter", None, "RULE", "add a filter rule")
        .local("give --exclude and --include")
        .reads(|filters, arg| filters.add(Rule::Any, arg)),
    EXCLUDE.reads(|filters, arg| filters.add(Rule::Exclude, arg)),
    INCLUDE.reads(|filters, arg| filters.add(Rule::Include, arg)),
    EXCLUDE_FROM.reads(|filters, arg| filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM.reads(|filters, arg| filters.add(Rule::IncludeFrom, arg)),
    STYLE
        .with_help("syntax of patterns: rsync (the default), aws or s5cmd")
        .reads(Filters::set_style),
]);

/// Patterns for names in any place, as `du` spells them.
pub static COUNTED: Group<Filters> = titled("Filters").with(&[
    EXCLUDE.reads(|filters, arg| filters.add(Rule::Exclude, arg)),
    INCLUDE.reads(|filters, arg| filters.add(Rule::Include, arg)),
    Row { short: Some('X'), ..EXCLUDE_FROM }
        .reads(|filters, arg| filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM.reads(|filters, arg| filters.add(Rule::IncludeFrom, arg)),
    STYLE
        .with_help("syntax of patterns: rsync (the default), aws or s5cmd")
        .reads(Filters::set_style),
]);

/// Pattern styles, for commands with filters in their own table.
pub static STYLED: Group<Filters> =
    titled("Filters").with(&[STYLE.stored().reads(Filters::set_style)]);

/// `--exclude`.
pub const EXCLUDE: Row = values("exclude", None, "PATTERN", "skip matching names");
/// `--include`.
pub const INCLUDE: Row = values("include", None, "PATTERN", "do not skip matching names");
/// `--exclude-from`.
pub const EXCLUDE_FROM: Row =
    values("exclude-from", None, "FILE", "read exclude patterns ('-': standard input)");
/// `--include-from`.
pub const INCLUDE_FROM: Row =
    values("include-from", None, "FILE", "read include patterns ('-': standard input)");
const STYLE: Row = value(
    "filter-style",
    None,
    "PEER",
    "with s3://: syntax of patterns: rsync (the default), aws or s5cmd",
);

/// All filter options, in the order of the help.
pub static OPTIONS: Group<Filters> = titled("Filters").with(&[
    values("filter", Some('f'), "RULE", "add a filter rule")
        .reads(|filters, arg| filters.add(Rule::Any, arg)),
    EXCLUDE.reads(|filters, arg| filters.add(Rule::Exclude, arg)),
    INCLUDE.reads(|filters, arg| filters.add(Rule::Include, arg)),
    EXCLUDE_FROM.reads(|filters, arg| filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM.reads(|filters, arg| filters.add(Rule::IncludeFrom, arg)),
    flag("F", Some('F'), "per-directory .rsync-filter files")
        .takes(Takes::Marks)
        .short_only()
        .reads(|filters, arg| filters.add(Rule::PerDirectory, arg)),
    flag("cvs-exclude", Some('C'), "skip the files that CVS ignores")
        .reads(|filters, arg| filters.add(Rule::Cvs, arg)),
    flag("from0", Some('0'), "names, patterns and rules in files end with NUL")
        .off(&["no-from0"])
        .sets(|filters, on| filters.nul = on),
]);

/// Other settings that affect the rules.
#[derive(Default)]
pub struct Context {
    /// `--delete-excluded`.
    pub delete_excluded: bool,
    /// Backups with this suffix are not deleted (`--backup` with `--delete`).
    pub protect_suffix: Option<Vec<u8>>,
    /// A folder that is excluded everywhere, as by a last rule (`--partial-dir`).
    pub left_out: Option<Vec<u8>>,
    /// Symlinks allowed in the paths of rule files.
    pub links: Links,
}

impl Filters {
    /// Adds the rule of an option.
    ///
    /// # Errors
    /// None; a setter returns a result.
    pub fn add(&mut self, rule: Rule, arg: &OptArg) -> Result<(), String> {
        push(&mut self.rules, (rule, arg.value.clone()))
    }

    fn set_style(&mut self, arg: &OptArg) -> Result<(), String> {
        let style = match arg.value.to_str() {
            Some("rsync") => Style::Rsync,
            Some("aws") => Style::Aws,
            Some("s5cmd") => Style::S5cmd,
            _ => return Err(arg.refuse("is none of rsync, aws, s5cmd")),
        };
        put(&mut self.style, Some(style))
    }

    /// Builds the filter of a command that transfers nothing.
    ///
    /// # Errors
    /// As [`Filters::build`].
    pub fn of_names(&self) -> Result<Option<Arc<Filter>>, String> {
        let context = Context { links: Links::Trusted, ..Context::default() };
        self.build(&context).map_err(|fatal| fatal.message)
    }

    /// Returns whether the style of patterns was given.
    pub fn is_styled(&self) -> bool {
        self.style.is_some()
    }

    /// Checks with a side `in_store` that the rules are written for the order in which they count. Returns a note about an
    /// include that has no effect in any order.
    ///
    /// # Errors
    /// They mean something else in aws, and no style was given.
    pub fn note(&self, in_store: bool) -> Result<Option<String>, String> {
        if !in_store || self.style.is_some() {
            return Ok(None);
        }
        let pattern = |(rule, pattern)| match rule {
            &Rule::Include => Some((true, pattern)),
            Rule::Exclude => Some((false, pattern)),
            // A rule that aws does not have.
            _ => None,
        };
        let patterns: Option<Vec<_>> =
            self.rules.iter().map(|(rule, text)| pattern((rule, text))).collect();
        match patterns.and_then(|patterns| order::confused(&patterns)) {
            Some(message) => Err(message),
            None => Ok(self.idle_include()),
        }
    }

    /// Returns a note about an include that no exclude follows.
    fn idle_include(&self) -> Option<String> {
        let is_exclude = |(rule, _): &(Rule, OsString)| !matches!(rule, Rule::Include);
        let last = self.rules.iter().rposition(is_exclude);
        let at = last.map_or(0, |last| last + 1);
        let (_, pattern) = self.rules.get(at)?;
        let pattern = quoted(pattern);
        let why = match last {
            Some(_) => "the first rule that matches counts, and no exclude follows it",
            None => "nothing is left out without an exclude",
        };
        Some(format!(
            "note: --include {pattern} changes nothing: {why}\n\
             hint: --include {pattern} --exclude '*' takes only these; --filter-style=aws (or s5cmd) reads \
             patterns as that program does"
        ))
    }

    /// Builds the filter; `None` if there are no rules.
    ///
    /// # Errors
    /// A rule file that cannot be read (code 11) or an invalid rule (code 1).
    pub fn build(&self, context: &Context) -> Result<Option<Arc<Filter>>, Fatal> {
        let mut builder = FilterBuilder::default();
        builder.delete_excluded(context.delete_excluded);
        builder.from0(self.nul);
        let style = self.style.unwrap_or_default();
        if style != Style::Rsync {
            let pattern = |(rule, typed): &(Rule, OsString)| match rule {
                Rule::Include => Ok((true, typed.as_bytes().to_vec())),
                Rule::Exclude => Ok((false, typed.as_bytes().to_vec())),
                _ => Err(Fatal::new(
                    exit::SYNC_USAGE,
                    "--filter-style=aws and s5cmd take --include and --exclude alone",
                )),
            };
            let patterns = self.rules.iter().map(pattern).collect::<Result<Vec<_>, Fatal>>()?;
            builder.styled(style, &patterns);
        }
        for (rule, typed) in self.rules.iter().filter(|_| style == Style::Rsync) {
            let value = typed.as_bytes();
            let read = || {
                names::read(typed, &context.links, self.nul)
                    .map_err(|error| Fatal::new(exit::SYNC_IO, cannot("read", typed, error)))
            };
            let origin = Escape::of_locale().path(Path::new(typed));
            match rule {
                Rule::Any => builder.rule(value),
                Rule::Exclude => builder.exclude(value),
                Rule::Include => builder.include(value),
                Rule::ExcludeFrom => builder.exclude_from(&read()?, &origin, self.nul),
                Rule::IncludeFrom => builder.include_from(&read()?, &origin, self.nul),
                Rule::PerDirectory => builder.per_directory(),
                Rule::Cvs => {
                    builder.cvs_exclude();
                    continue;
                }
            }
            .map_err(|error| wrong(&error))?;
        }
        let home = names::variable("HOME").map_or(Ok(None), |home| of_home(&home, context));
        let home = match home {
            Err(fatal) if self.rules.iter().any(|(rule, _)| *rule == Rule::Cvs) => {
                return Err(fatal);
            }
            other => other.ok().flatten(),
        };
        builder.cvs_ignores(home.as_deref(), names::variable("CVSIGNORE").as_deref());
        if let Some(suffix) = &context.protect_suffix {
            let rule = [b"P *", suffix.as_slice()].concat();
            builder.rule(&rule).map_err(|error| wrong(&error))?;
        }
        if let Some(name) = &context.left_out {
            let rule = [b"- ", name.as_slice(), b"/"].concat();
            builder.rule(&rule).map_err(|error| wrong(&error))?;
        }
        let mut read = |name: &[u8]| names::read(OsStr::from_bytes(name), &context.links, self.nul);
        let filter = builder.build(&mut read).map_err(|error| wrong(&error))?;
        Ok((!filter.is_empty()).then(|| Arc::new(filter)))
    }
}

/// Reads `~/.cvsignore`, if it exists.
fn of_home(home: &[u8], context: &Context) -> Result<Option<Vec<u8>>, Fatal> {
    let path = Path::new(OsStr::from_bytes(home)).join(".cvsignore");
    match names::read(path.as_os_str(), &context.links, false) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fatal::new(exit::SYNC_IO, cannot("read", &path, error))),
    }
}

/// Converts an error: an invalid rule is a usage error, an unreadable rule file rsync's file I/O error.
fn wrong(error: &dyn std::error::Error) -> Fatal {
    let code = if error.source().is_some() { exit::SYNC_IO } else { exit::SYNC_USAGE };
    Fatal::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_include_that_changes_nothing_is_told() {
        let note = |rules: &[(Rule, &str)]| {
            let rules = rules.iter().map(|(rule, text)| (*rule, OsString::from(text))).collect();
            Filters { rules, ..Filters::default() }.note(true)
        };
        let (ex, inc) = (Rule::Exclude, Rule::Include);
        assert_eq!(note(&[]), Ok(None));
        assert_eq!(note(&[(inc, "*.txt"), (ex, "*")]), Ok(None));
        assert_eq!(note(&[(ex, "*.tmp")]), Ok(None));
        let text = note(&[(ex, "*.tmp"), (inc, "*.txt")]).unwrap().unwrap();
        assert!(
            text.starts_with("note: --include '*.txt' changes nothing: the first rule"),
            "{text}"
        );
        assert!(note(&[(ex, "*"), (inc, "*.txt")]).is_err());
        // rsync's own rules are read as rsync reads them.
        assert!(note(&[(Rule::Any, "P x"), (ex, "*"), (inc, "*.txt")]).is_ok());
        let text = note(&[(inc, "*.py")]).unwrap().unwrap();
        assert!(
            text.contains("without an exclude") && text.contains("--filter-style=aws"),
            "{text}"
        );
    }
}
