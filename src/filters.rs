//! Options of filter rules, and the filters made from them, in order (rsync(1), FILTER RULES): of transfers, and of the
//! arguments of `rm` and `du`; whether rules are written for the order of aws.

use crate::cli::{Group, OptArg, Row, Takes, flag, parts, push, put, titled, value, values};
use crate::exit;
use crate::names::{self, strip_slashes};
use crate::show::escape::Escape;
use hakobu_core::error::{Fatal, cannot, quoted};
use hakobu_core::unit::Kind;
use hakobu_sys::paths::Links;
use hakobu_transfer::policy::filter::{DirRules, Filter, FilterBuilder, Origin, Style};
use std::collections::HashMap;
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
    /// Names and texts of the rule files of the near end, for the agent of another machine.
    pub told: Option<HashMap<Vec<u8>, Vec<u8>>>,
}

/// Names and texts of rule files.
pub type RuleFiles = Vec<(Vec<u8>, Vec<u8>)>;

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
        .with_help("with s3://: read exclude patterns from FILE ('-': standard input)")
        .stored()
        .reads(|filters, arg| filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM
        .with_help("with s3://: read include patterns from FILE ('-': standard input)")
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
        .with_help("read patterns as rsync (the default), aws or s5cmd does")
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
        .with_help("read patterns as rsync (the default), aws or s5cmd does")
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
    values("exclude-from", None, "FILE", "read exclude patterns from FILE ('-': standard input)");
/// `--include-from`.
pub const INCLUDE_FROM: Row =
    values("include-from", None, "FILE", "read include patterns from FILE ('-': standard input)");
const STYLE: Row = value(
    "filter-style",
    None,
    "SYNTAX",
    "with s3://: read patterns as rsync (the default), aws or s5cmd does",
)
.words(&["rsync", "aws", "s5cmd"]);

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
            _ => return Err(arg.refuse("none of rsync, aws, s5cmd")),
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
        match patterns.and_then(|patterns| written_for_aws(&patterns)) {
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
        self.build_from(context, &mut Vec::new())
    }

    /// As [`Filters::build`]; adds the rule files that were read, for another machine.
    pub fn build_from(
        &self,
        context: &Context,
        files: &mut RuleFiles,
    ) -> Result<Option<Arc<Filter>>, Fatal> {
        let mut read_file = |name: &[u8]| -> std::io::Result<Vec<u8>> {
            match &self.told {
                Some(told) => {
                    told.get(name).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
                }
                None => {
                    let text = names::read(OsStr::from_bytes(name), &context.links, self.nul)?;
                    files.push((name.to_vec(), text.clone()));
                    Ok(text)
                }
            }
        };
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
            let mut read = || {
                read_file(value)
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
        let filter = builder.build(&mut read_file).map_err(|error| wrong(&error))?;
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

/// `--include` or `--exclude`: whether it includes, and its pattern.
type Pattern<'a> = (bool, &'a OsString);

/// Finds a rule without effect here that has one in aws, where the last rule that matches a name counts, and not the first
/// one as in rsync and here: it is written for the other order. Returns a message with the ways to write what was meant.
///
/// An include is such a rule if an exclude before it matches some of its names, and takes all of them, or if no exclude
/// after it matches any. An exclude is, if an include before it takes all of its names. What follows may cancel the
/// difference.
fn written_for_aws(rules: &[Pattern<'_>]) -> Option<String> {
    // These are rules of rsync's, in words that aws does not have.
    let is_rsyncs = |(_, pattern): &Pattern<'_>| {
        let bytes = pattern.as_bytes();
        bytes.starts_with(b"- ") || bytes.starts_with(b"+ ") || bytes == b"!"
    };
    if rules.iter().any(is_rsyncs) {
        return None;
    }
    let (first, second) = (0..rules.len()).find_map(|at| {
        let (includes, pattern) = rules[at];
        let others = |rules: &'_ [Pattern<'_>]| {
            let others = rules.iter().filter(|(kind, _)| *kind != includes);
            others.map(|(_, other)| other.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        let (before, after) = (others(&rules[..at]), others(&rules[at + 1..]));
        let pattern = pattern.as_bytes();
        let covers = |other: &Vec<u8>| covers(other, pattern);
        let meets = |other: &Vec<u8>| meet(&tokens(other), &tokens(pattern));
        let met = before.iter().position(|other| meets(other) || covers(other))?;
        let covered = before.iter().any(covers);
        let is_idle = covered || (includes && !after.iter().any(meets));
        let of_kind = |rules: &[Pattern<'_>], count: usize| {
            rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.0 != includes)
                .nth(count)
                .map(|it| it.0)
        };
        (is_idle && !after.iter().any(covers)).then_some((of_kind(rules, met)?, at))
    })?;
    let spelled = |(includes, pattern): &Pattern<'_>| {
        format!("{} {}", if *includes { "--include" } else { "--exclude" }, quoted(pattern))
    };
    let typed: Vec<String> = rules.iter().map(spelled).collect();
    let mut turned: Vec<String> = typed.iter().rev().cloned().collect();
    // Folders that are excluded are not entered.
    let is_all = |(includes, pattern): &Pattern<'_>| !includes && *pattern == "*";
    if rules.iter().any(is_all) && rules.iter().any(|(includes, _)| *includes) {
        turned.insert(0, "--include '*/'".to_owned());
    }
    Some(format!(
        "{} changes nothing: the first rule that matches counts, and {} comes before it\n\
         hint: --filter-style=aws {} reads them as aws does; rsync's order is {}",
        typed[second],
        typed[first],
        typed.join(" "),
        turned.join(" ")
    ))
}

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// Any text.
    Star,
    /// Any character.
    Any,
    /// One of a set.
    Set(&'a [u8]),
    One(u8),
}

fn tokens(pattern: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        tokens.push(match first {
            b'*' => Token::Star,
            b'?' => Token::Any,
            // A closing bracket in first position belongs to the set.
            b'[' => match after.iter().skip(1).position(|byte| *byte == b']') {
                Some(end) => {
                    rest = &after[end + 2..];
                    Token::Set(&after[..end + 1])
                }
                None => Token::One(b'['),
            },
            other => Token::One(*other),
        });
    }
    tokens
}

/// Whether two patterns may match one name, as aws matches: over whole names, in which slashes are not special. A set is
/// taken for any character.
fn meet(a: &[Token<'_>], b: &[Token<'_>]) -> bool {
    fit(a, b, true, &|a, b| match (a, b) {
        (Token::One(a), Token::One(b)) => a == b,
        _ => true,
    })
}

/// Whether the parts of two patterns fit each other one by one, where a star of the first one, and with `both` of the
/// second one as well, is any number of parts.
fn fit(
    a: &[Token<'_>],
    b: &[Token<'_>],
    both: bool,
    fits: &dyn Fn(Token<'_>, Token<'_>) -> bool,
) -> bool {
    let star = |tokens: &[Token<'_>], at: usize| tokens.get(at) == Some(&Token::Star);
    // Whether the rests of both fit, from the ends on: a row for each rest of the first one.
    let mut below = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let rest = |row: &[bool]| row.get(j + 1).copied().unwrap_or(false);
            row[j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                _ if star(a, i) && below[j] => true,
                _ if both && star(b, j) && rest(&row) => true,
                (Some(Token::Star), Some(_)) => rest(&row),
                (Some(_), Some(Token::Star)) if both => below[j],
                (Some(a), Some(b)) => fits(*a, *b) && rest(&below),
                (None, Some(_)) | (Some(_), None) => false,
            };
        }
        below = row;
    }
    below[0]
}

/// Whether a rule, as rsync reads it, certainly takes all names of another pattern: the whole tree, or a component of
/// these names, as folders that are excluded are not entered.
fn covers(rule: &[u8], pattern: &[u8]) -> bool {
    if matches!(rule, b"*" | b"**" | b"***" | b"/*" | b"/**" | b"/***") || rule == pattern {
        return true;
    }
    if rule.contains(&b'/') {
        return false;
    }
    let rule = tokens(rule);
    let parts = pattern.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    // A component with stars may be more than one.
    parts
        .filter(|part| !part.windows(2).any(|two| two == b"**"))
        .any(|part| takes(&rule, &tokens(part)))
}

/// Whether a pattern matches whatever another one of one component does.
fn takes(rule: &[Token<'_>], pattern: &[Token<'_>]) -> bool {
    fit(rule, pattern, false, &|rule, part| match (rule, part) {
        (Token::Any, Token::One(_) | Token::Any | Token::Set(_)) => true,
        (rule, part) => rule == part,
    })
}

/// Marks in an argument where the names begin that rules in s5cmd's style see.
const MARK: &[u8] = b"/./";

/// The rules for one local argument of a command that transfers nothing (`rm`, `du`), and for everything below it: names
/// begin as those of a source argument of a transfer do.
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

    fn list(line: &str) -> Vec<(bool, OsString)> {
        let rules = line.split_whitespace();
        rules.map(|rule| (rule.starts_with('+'), OsString::from(&rule[1..]))).collect()
    }

    fn said(line: &str) -> Option<String> {
        let rules = list(line);
        written_for_aws(&rules.iter().map(|(kind, pattern)| (*kind, pattern)).collect::<Vec<_>>())
    }

    #[test]
    fn lists_for_the_other_order_are_found() {
        for line in [
            "-* +*.txt",
            "-* +*.txt -secret*",
            "-* +a +b",
            "-*.tmp +keep.tmp",
            "-secret* +*.txt",
            "-d/* +*.txt",
            "-[ab]* +a.txt",
            "+*.txt -a.txt",
            "+* -*.tmp",
            "-*.o -* +main.c",
            "-logs +logs/keep",
        ] {
            assert!(said(line).is_some(), "{line}");
        }
        for line in [
            "",
            "+*.txt",
            "-*.tmp",
            "-*.tmp -*.bak",
            // rsync's own forms.
            "+*.txt -*",
            "+*/ +*.txt -*",
            "+d/*** -*",
            "-secret* +*.txt -*",
            "-*.o +*.c -*",
            // Nothing has both names.
            "-*.tmp +*.txt",
            // The last one takes all in both.
            "-* +*.txt -*",
            "+*.txt -*.txt.gz",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
        assert_eq!(
            said("-* +*.txt").unwrap(),
            "--include '*.txt' changes nothing: the first rule that matches counts, and --exclude '*' comes \
             before it\nhint: --filter-style=aws --exclude '*' --include '*.txt' reads them as aws does; rsync's \
             order is --include '*/' --include '*.txt' --exclude '*'"
        );
        let rules = [(false, OsString::from("- *")), (true, OsString::from("*.txt"))];
        let rules = rules.each_ref().map(|(kind, pattern)| (*kind, pattern));
        assert_eq!(written_for_aws(&rules), None);
    }

    /// Whether a list excludes a name of one component; `last`: the last rule that matches counts.
    fn rules_exclude(rules: &[(bool, OsString)], name: &str, last: bool) -> bool {
        let name: Vec<Token<'_>> = name.bytes().map(Token::One).collect();
        let mut matching =
            rules.iter().filter(|(_, pattern)| takes(&tokens(pattern.as_bytes()), &name));
        let counts = if last { matching.next_back() } else { matching.next() };
        counts.is_some_and(|(includes, _)| !includes)
    }

    proptest::proptest! {
        /// What is refused differs for a name, or is at least without effect here; what an include ends that is not
        /// refused does not differ.
        #[test]
        fn an_include_at_the_end_is_refused_if_it_matters(
            rules in proptest::collection::vec((proptest::bool::ANY, "[ab*?]{1,3}"), 1..4),
            names in proptest::collection::vec("[ab]{1,3}", 30),
        ) {
            let mut rules: Vec<(bool, OsString)> =
                rules.into_iter().map(|(kind, pattern)| (kind, pattern.into())).collect();
            // One change from excludes to includes: aws' order.
            rules.sort_by_key(|(includes, _)| *includes);
            let refs: Vec<_> = rules.iter().map(|(kind, pattern)| (*kind, pattern)).collect();
            if written_for_aws(&refs).is_none() {
                for name in &names {
                    proptest::prop_assert_eq!(
                        rules_exclude(&rules, name, true), rules_exclude(&rules, name, false), "{:?} {}", rules, name
                    );
                }
            }
        }
    }
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
