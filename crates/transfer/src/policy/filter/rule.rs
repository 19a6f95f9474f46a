//! Parser of one rule. Pure: reads no file and knows no directory. The grammar is that of rsync(1), FILTER RULES IN
//! DEPTH, FILTER RULE MODIFIERS and MERGE-FILE FILTER RULES.

use super::Filter;
use super::list::{ListOptions, ListReader, Loader, RulesDirectory, Spot};
use super::pattern::Anchor;
use hakobu_sys::errno;
use std::{error, fmt, io};

/// Meaning of one rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Directive {
    /// `!`
    Clear,
    /// `-`, `+`, `H`, `S`, `P`, `R`
    Match(MatchRule),
    /// `-C`: the list of names that CVS ignores
    Cvs { include: bool, flags: Flags },
    /// `.`
    Merge(MergeRule),
    /// `:`
    DirMerge(MergeRule),
}

/// An include or exclude rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MatchRule {
    pub include: bool,
    pub flags: Flags,
    pub pattern: Vec<u8>,
}

/// A rule that names a file of rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MergeRule {
    pub name: Vec<u8>,
    pub syntax: Syntax,
    /// Initial modifiers of every rule in the file.
    pub flags: Flags,
    /// `w`: rules are separated by any whitespace and there are no comments.
    pub words: bool,
    /// `n`: not for subdirectories.
    pub no_inherit: bool,
    /// `e`: the file itself is excluded.
    pub exclude_self: bool,
}

/// The modifiers that affect matching.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Flags {
    /// `/`: matched against the absolute path.
    pub absolute: bool,
    /// `!`: applies if the pattern does not match.
    pub negate: bool,
    /// `p`: ignored in directories that are being deleted.
    pub perishable: bool,
    /// `x`: decides about names of extended attributes instead of entries.
    pub xattr: bool,
    /// `s` or a rule name that implies it.
    pub sender: bool,
    /// `r` or a rule name that implies it.
    pub receiver: bool,
    /// Syntax of the pattern.
    pub style: Style,
}

/// Program whose rules apply to the patterns of `--include` and `--exclude`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Style {
    /// rsync: components of names, the first match counts.
    #[default]
    Rsync,
    /// aws: whole names below the source, `*` matches slashes, `[...]`; the last match counts.
    Aws,
    /// s5cmd: as aws without `[...]`; excludes override includes, and an include excludes everything that no include
    /// matches.
    S5cmd,
}

impl Flags {
    fn sided(self) -> bool {
        self.sender || self.receiver
    }
}

/// Parts of a rule's text besides the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Syntax {
    /// `--filter` and merge files: every rule starts with its name.
    Full,
    /// `--include`, `--exclude` and their `-from` files: a pattern, `+ PATTERN`, `- PATTERN` or
    /// `!`.
    Simple { include: bool },
    /// Merge files with the modifier `+` or `-`: a pattern; with `C` also `!`.
    Bare { include: bool, clear: bool },
}

/// Reason that a rule was rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// The rule lacks its pattern or file name. In word-split files the next word is used.
    Unfinished,
    /// Any other reason, as a sentence without its end.
    Because(String),
}

impl Refused {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Unfinished => "it ends before its pattern or file name".to_owned(),
            Self::Because(reason) => reason,
        }
    }
}

/// The long and the short name of every rule.
const NAMES: [(&[u8], u8); 9] = [
    (b"clear", b'!'),
    (b"dir-merge", b':'),
    (b"exclude", b'-'),
    (b"hide", b'H'),
    (b"include", b'+'),
    (b"merge", b'.'),
    (b"protect", b'P'),
    (b"risk", b'R'),
    (b"show", b'S'),
];

/// Parses one rule. `outer` holds the modifiers of the merge rule whose file contains it. An empty text is not a rule.
pub(super) fn parse(
    text: &[u8],
    syntax: Syntax,
    outer: Flags,
) -> Result<Option<Directive>, Refused> {
    if text.is_empty() {
        return Ok(None);
    }
    let (include, pattern) = match syntax {
        Syntax::Full => return full(text, outer).map(Some),
        Syntax::Simple { .. } | Syntax::Bare { clear: true, .. } if text == b"!" => {
            return Ok(Some(Directive::Clear));
        }
        Syntax::Bare { include, .. } => (include, text),
        Syntax::Simple { include } => match text {
            [b'-', b' ', pattern @ ..] => (false, pattern),
            [b'+', b' ', pattern @ ..] => (true, pattern),
            _ => (include, text),
        },
    };
    if pattern.is_empty() {
        return Err(Refused::Unfinished);
    }
    Ok(Some(Directive::Match(MatchRule { include, flags: outer, pattern: pattern.to_vec() })))
}

fn full(text: &[u8], outer: Flags) -> Result<Directive, Refused> {
    let (kind, modifiers, argument) = split(text)?;
    match kind {
        b'!' => match (modifiers, argument) {
            ([], None) => Ok(Directive::Clear),
            _ => because("a clear rule takes no modifier and no argument"),
        },
        b':' | b'.' => merge(kind, modifiers, argument, outer),
        _ => matching(kind, modifiers, argument, outer),
    }
}

/// Short name, modifiers, argument.
type Parts<'a> = (u8, &'a [u8], Option<&'a [u8]>);

/// Splits a rule into its short name, its modifiers and, after one space or underscore, its
/// argument.
fn split(text: &[u8]) -> Result<Parts<'_>, Refused> {
    let long = NAMES.iter().find(|(name, _)| {
        text.strip_prefix(*name)
            .is_some_and(|rest| matches!(rest.first(), None | Some(b' ' | b'_' | b',')))
    });
    let (kind, rest) = match (long, text) {
        (Some((name, kind)), _) => (*kind, text.get(name.len()..).unwrap_or_default()),
        (None, [kind, rest @ ..]) if NAMES.iter().any(|(_, short)| short == kind) => (*kind, rest),
        _ => return because("it starts with no known rule name"),
    };
    let rest = rest.strip_prefix(b",").unwrap_or(rest);
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'_')).unwrap_or(rest.len());
    let (modifiers, argument) = rest.split_at(end);
    Ok((kind, modifiers, argument.get(1..)))
}

fn matching(
    kind: u8,
    modifiers: &[u8],
    argument: Option<&[u8]>,
    outer: Flags,
) -> Result<Directive, Refused> {
    let mut flags = Flags {
        sender: matches!(kind, b'H' | b'S'),
        receiver: matches!(kind, b'P' | b'R'),
        ..outer
    };
    // Names that imply a side do not allow modifiers that set one.
    let plain = matches!(kind, b'-' | b'+');
    let mut sided = !plain;
    let mut cvs = false;
    for modifier in modifiers {
        match modifier {
            b'C' if plain => cvs = true,
            b's' if plain => (flags.sender, sided) = (true, true),
            b'r' if plain => (flags.receiver, sided) = (true, true),
            b'/' | b'!' | b'p' | b'x' => flags.set(*modifier),
            other => return unknown_modifier(*other),
        }
    }
    settle_sides(&mut flags, sided, outer)?;
    let include = matches!(kind, b'+' | b'S' | b'R');
    match argument {
        _ if cvs => Ok(Directive::Cvs { include, flags }),
        None | Some([]) => Err(Refused::Unfinished),
        Some(pattern) => {
            Ok(Directive::Match(MatchRule { include, flags, pattern: pattern.to_vec() }))
        }
    }
}

fn merge(
    kind: u8,
    modifiers: &[u8],
    argument: Option<&[u8]>,
    outer: Flags,
) -> Result<Directive, Refused> {
    let mut flags = Flags { sender: false, receiver: false, ..outer };
    let mut sided = false;
    let mut rule = MergeRule {
        name: argument.unwrap_or_default().to_vec(),
        syntax: Syntax::Full,
        flags,
        words: false,
        no_inherit: false,
        exclude_self: false,
    };
    for modifier in modifiers {
        match modifier {
            b'-' | b'+' | b'C' if rule.syntax != Syntax::Full => {
                return unknown_modifier(*modifier);
            }
            b'-' => rule.syntax = Syntax::Bare { include: false, clear: false },
            b'+' => rule.syntax = Syntax::Bare { include: true, clear: false },
            b'C' => {
                rule.syntax = Syntax::Bare { include: false, clear: true };
                (rule.no_inherit, rule.words) = (true, true);
            }
            b'e' => rule.exclude_self = true,
            b'n' => rule.no_inherit = true,
            b'w' => rule.words = true,
            b's' => (flags.sender, sided) = (true, true),
            b'r' => (flags.receiver, sided) = (true, true),
            b'/' | b'p' => flags.set(*modifier),
            // Accepted without meaning for a rule file, as in rsync.
            b'x' => {}
            other => return unknown_modifier(*other),
        }
    }
    settle_sides(&mut flags, sided, outer)?;
    rule.flags = flags;
    if rule.name.is_empty() {
        match rule.syntax {
            Syntax::Bare { clear: true, .. } => rule.name = b".cvsignore".to_vec(),
            _ => return Err(Refused::Unfinished),
        }
    }
    Ok(if kind == b':' { Directive::DirMerge(rule) } else { Directive::Merge(rule) })
}

/// Inherits the sides of the enclosing merge rule; a rule with inherited sides must not name one itself.
fn settle_sides(flags: &mut Flags, sided: bool, outer: Flags) -> Result<(), Refused> {
    if outer.sided() {
        if sided {
            return because(
                "the merge rule for this file already names the side, so its rules must not",
            );
        }
        (flags.sender, flags.receiver) = (outer.sender, outer.receiver);
    }
    Ok(())
}

impl Flags {
    fn set(&mut self, modifier: u8) {
        match modifier {
            b'/' => self.absolute = true,
            b'!' => self.negate = true,
            b'x' => self.xattr = true,
            _ => self.perishable = true,
        }
    }
}

fn because<T>(reason: &str) -> Result<T, Refused> {
    Err(Refused::Because(reason.to_owned()))
}

fn unknown_modifier<T>(modifier: u8) -> Result<T, Refused> {
    Err(Refused::Because(format!(
        "the modifier '{}' is not one of this rule's",
        modifier.escape_ascii()
    )))
}

/// Parses the rules of a file's content; returns the line and the meaning of each.
pub(super) fn parse_all(
    content: &[u8],
    nul: bool,
    words: bool,
    syntax: Syntax,
    outer: Flags,
) -> Vec<(usize, Result<Option<Directive>, Refused>)> {
    let mut pieces = split_rules(content, nul, words);
    let mut rules = Vec::new();
    while let Some((line, piece)) = pieces.next() {
        let mut parsed = parse(piece, syntax, outer);
        // "the space that separates the prefix from the rule is treated specially" in word-split
        // files.
        if words
            && parsed == Err(Refused::Unfinished)
            && let Some((_, argument)) = pieces.next()
        {
            parsed = parse(&[piece, b" ", argument].concat(), syntax, outer);
        }
        rules.push((line, parsed));
    }
    rules
}

/// Splits a file's content into rules with their line numbers, counted from one. Lines end at LF or CR, or at NUL
/// with `nul` (`--from0`); words at any whitespace. Lines that start with `#` or `;` are comments. Without `nul` a
/// rule ends at a NUL byte in it, since no name can contain one.
pub(super) fn split_rules(
    content: &[u8],
    nul: bool,
    words: bool,
) -> impl Iterator<Item = (usize, &[u8])> {
    let mut line = 1;
    content.split_inclusive(move |byte| is_end(*byte, nul, words)).filter_map(move |piece| {
        let number = line;
        let ends_line = if nul { 0 } else { b'\n' };
        line += usize::from(piece.last() == Some(&ends_line));
        let mut rule = piece;
        if let Some((last, start)) = piece.split_last()
            && is_end(*last, nul, words)
        {
            rule = start;
        }
        if !nul && let Some(end) = rule.iter().position(|byte| *byte == 0) {
            rule = rule.get(..end).unwrap_or_default();
        }
        let comment = !words && matches!(rule.first(), Some(b'#' | b';'));
        (!rule.is_empty() && !comment).then_some((number, rule))
    })
}

fn is_end(byte: u8, nul: bool, words: bool) -> bool {
    match (words, nul) {
        (true, _) => matches!(byte, b' ' | b'\t'..=b'\r') || (nul && byte == 0),
        (false, true) => byte == 0,
        (false, false) => matches!(byte, b'\n' | b'\r'),
    }
}

// Collects filter options in command-line order and builds a [`Filter`] from them.

/// Collects the filter options in command-line order. See rsync(1), FILTER RULES.
#[derive(Debug, Default)]
pub struct FilterBuilder {
    rules: Vec<ParsedRule>,
    per_directory_count: usize,
    cvs_exclude: bool,
    cvs_home: Option<Vec<u8>>,
    cvs_env: Option<Vec<u8>>,
    delete_excluded: bool,
    from0: bool,
}

/// A parsed rule, its text and its origin.
#[derive(Debug)]
struct ParsedRule {
    directive: Directive,
    text: Vec<u8>,
    origin: String,
}

impl FilterBuilder {
    /// Adds `--filter=RULE`, `-f RULE`: one rule with its name.
    ///
    /// # Errors
    /// The rule has an unknown name, a modifier that it does not allow, or lacks its argument.
    pub fn rule(&mut self, text: &[u8]) -> Result<(), FilterError> {
        self.add(text, Syntax::Full, "--filter")
    }

    /// Adds `--include=PATTERN`: a pattern; a leading `- ` makes it an exclude, `!` clears the list.
    ///
    /// # Errors
    /// There is nothing after `- ` or `+ `.
    pub fn include(&mut self, pattern: &[u8]) -> Result<(), FilterError> {
        self.add(pattern, Syntax::Simple { include: true }, "--include")
    }

    /// Adds `--exclude=PATTERN`: a pattern; a leading `+ ` makes it an include, `!` clears the list.
    ///
    /// # Errors
    /// There is nothing after `- ` or `+ `.
    pub fn exclude(&mut self, pattern: &[u8]) -> Result<(), FilterError> {
        self.add(pattern, Syntax::Simple { include: false }, "--exclude")
    }

    /// Adds all `--include` (true) and `--exclude` patterns of a command line, in order, with the meaning they have
    /// in aws or s5cmd. They become rules where the first match counts.
    pub fn styled(&mut self, style: Style, patterns: &[(bool, Vec<u8>)]) {
        let mut rules: Vec<(bool, Vec<u8>)> = patterns.to_vec();
        match style {
            Style::Rsync => {}
            // In aws the last match counts.
            Style::Aws => rules.reverse(),
            Style::S5cmd => {
                rules.sort_by_key(|(include, _)| *include);
                if rules.iter().any(|(include, _)| *include) {
                    rules.push((false, b"*".to_vec()));
                }
            }
        }
        self.rules.extend(rules.into_iter().map(|(include, pattern)| {
            let flags = Flags { style, ..Flags::default() };
            let origin = if include { "--include" } else { "--exclude" }.to_owned();
            let text = pattern.clone();
            ParsedRule {
                directive: Directive::Match(MatchRule { include, flags, pattern }),
                text,
                origin,
            }
        }));
    }

    /// Adds `--include-from=FILE`: the file's content, one pattern per line (or NUL-terminated with `nul`, for
    /// `--from0`). `origin` names the file in messages.
    ///
    /// # Errors
    /// As for [`Self::include`], with the line.
    pub fn include_from(
        &mut self,
        content: &[u8],
        origin: &str,
        nul: bool,
    ) -> Result<(), FilterError> {
        self.add_all(content, origin, nul, Syntax::Simple { include: true })
    }

    /// Adds `--exclude-from=FILE`: the file's content, as for [`Self::include_from`].
    ///
    /// # Errors
    /// As for [`Self::exclude`], with the line.
    pub fn exclude_from(
        &mut self,
        content: &[u8],
        origin: &str,
        nul: bool,
    ) -> Result<(), FilterError> {
        self.add_all(content, origin, nul, Syntax::Simple { include: false })
    }

    /// Adds `-F`: the first call reads `.rsync-filter` in every directory from the root of the file system down, the
    /// second (`-FF`) excludes these files; further calls change nothing.
    ///
    /// # Errors
    /// None in practice; the rules are fixed.
    pub fn per_directory(&mut self) -> Result<(), FilterError> {
        self.per_directory_count += 1;
        match self.per_directory_count {
            1 => self.add(b"dir-merge /.rsync-filter", Syntax::Full, "-F"),
            2 => self.add(b"exclude .rsync-filter", Syntax::Full, "-FF"),
            _ => Ok(()),
        }
    }

    /// Adds `--cvs-exclude`, `-C`: the rules `:C` and `-C` after all others, regardless of the option's position.
    pub fn cvs_exclude(&mut self) {
        self.cvs_exclude = true;
    }

    /// Sets the content of `~/.cvsignore` and the value of `$CVSIGNORE`, for [`Self::cvs_exclude`] and the rule `-C`.
    pub fn cvs_ignores(&mut self, home: Option<&[u8]>, env: Option<&[u8]>) {
        self.cvs_home = home.map(<[u8]>::to_vec);
        self.cvs_env = env.map(<[u8]>::to_vec);
    }

    /// Sets `--delete-excluded`: rules that name no side become the sender's, so they protect nothing.
    pub fn delete_excluded(&mut self, on: bool) {
        self.delete_excluded = on;
    }

    /// Sets `--from0`, `-0`: rules in merge files end at NUL instead of the end of the line.
    pub fn from0(&mut self, on: bool) {
        self.from0 = on;
    }

    /// Returns whether there are no rules, so that no filter is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.cvs_exclude
    }

    /// Builds the filter. `read` loads a file that a merge rule (`. FILE`) names, as written: relative to the working
    /// directory, `-` for standard input.
    ///
    /// # Errors
    /// A merge file cannot be read or holds an invalid rule.
    pub fn build(
        self,
        read: &mut dyn FnMut(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<Filter, FilterError> {
        let options = ListOptions {
            delete_excluded: self.delete_excluded,
            from0: self.from0,
            cvs: patterns(self.cvs_home.as_deref(), self.cvs_env.as_deref()),
        };
        let mut rules = self.rules;
        if self.cvs_exclude {
            rules.extend(ParsedRule::new(b":C", Syntax::Full, "--cvs-exclude")?);
            rules.extend(ParsedRule::new(b"-C", Syntax::Full, "--cvs-exclude")?);
        }
        let place = RulesDirectory {
            anchor: Anchor::Below(Vec::new()),
            lead: Vec::new(),
            shown: Vec::new(),
            scanned: false,
        };
        let mut draft = ListReader::default();
        let mut read = |name: &[u8]| read(name).map(Some);
        let mut loader = Loader::new(&options, &mut read, &[]);
        for ParsedRule { directive, text, origin } in rules {
            let spot = Spot { text: &text, origin: &origin, place: &place, depth: 0 };
            loader.add(&mut draft, directive, spot)?;
        }
        let doubtful = std::mem::take(&mut loader.doubtful);
        Ok(Filter::new(draft.items, options, doubtful))
    }

    fn add(&mut self, text: &[u8], syntax: Syntax, origin: &str) -> Result<(), FilterError> {
        self.rules.extend(ParsedRule::new(text, syntax, origin)?);
        Ok(())
    }

    fn add_all(
        &mut self,
        content: &[u8],
        origin: &str,
        nul: bool,
        syntax: Syntax,
    ) -> Result<(), FilterError> {
        for (line, parsed) in parse_all(content, nul, false, syntax, Flags::default()) {
            let origin = line_of(Some(origin.as_bytes()), "", line);
            let parsed =
                parsed.map_err(|refused| FilterError::new(&[], &origin, refused.reason()))?;
            let text = Vec::new();
            self.rules.extend(parsed.map(|directive| ParsedRule { directive, text, origin }));
        }
        Ok(())
    }
}

impl ParsedRule {
    fn new(text: &[u8], syntax: Syntax, origin: &str) -> Result<Option<Self>, FilterError> {
        let parsed = parse(text, syntax, Flags::default())
            .map_err(|refused| FilterError::new(text, origin, refused.reason()))?;
        Ok(parsed.map(|directive| Self {
            directive,
            text: text.to_vec(),
            origin: origin.to_owned(),
        }))
    }
}

// The names that `--cvs-exclude` skips: rsync(1)'s list, then the user's `~/.cvsignore` and `$CVSIGNORE`.

/// The names that the manual page lists under `--cvs-exclude`.
const DEFAULT: &[u8] = b"RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ \
*.old *.bak *.BAK *.orig *.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/";

/// One name to ignore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CvsPattern {
    pub pattern: Vec<u8>,
    /// True for the default list only: the user's own names still protect inside directories being deleted.
    pub perishable: bool,
    /// It is from the user's file.
    pub in_file: bool,
}

/// Returns the whole list, in order. A lone `!` in the user's names drops the names before it.
pub(super) fn patterns(home: Option<&[u8]>, env: Option<&[u8]>) -> Vec<CvsPattern> {
    let mut list = Vec::new();
    let sources = [(Some(DEFAULT), true, false), (home, false, true), (env, false, false)];
    for (source, perishable, in_file) in sources {
        for (_, word) in split_rules(source.unwrap_or_default(), false, true) {
            if word == b"!" {
                list.clear();
            } else {
                list.push(CvsPattern { pattern: word.to_vec(), perishable, in_file });
            }
        }
    }
    list
}

// Errors in filter rules and rule files.
//
// A message repeats what the command line says, but no line of a file, and no path that only a file names: a rule may
// name any file that the user can read, and the messages may be read by others.

/// An invalid rule, or a rule file that cannot be read, with the rule, its origin and the reason.
#[derive(Debug)]
pub struct FilterError {
    /// As written; empty for one of a file.
    pub(super) rule: Vec<u8>,
    /// The option, or the file and line.
    pub(super) origin: String,
    reason: String,
    cause: Option<io::Error>,
}

impl FilterError {
    pub(super) fn new(rule: &[u8], origin: &str, reason: impl Into<String>) -> Self {
        Self { rule: rule.to_vec(), origin: origin.to_owned(), reason: reason.into(), cause: None }
    }

    /// Returns the error of a file that a rule names. The path is shown only if the rule is (`rule` is not empty).
    pub(super) fn unreadable(rule: &[u8], origin: &str, file: &[u8], cause: io::Error) -> Self {
        let reason = match rule {
            // rsync's words, for a path that is too long together with its directory.
            [] if cause.raw_os_error() == Some(errno::ENAMETOOLONG) => {
                format!("merge-file name overflows: {cause}")
            }
            [] => format!("cannot read the file that it names: {cause}"),
            _ => format!("cannot read {}: {cause}", file.escape_ascii()),
        };
        Self { cause: Some(cause), ..Self::new(rule, origin, reason) }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.rule {
            [] => write!(f, "filter rule at {}: {}", self.origin, self.reason),
            rule => {
                write!(
                    f,
                    "filter rule \"{}\" ({}): {}",
                    rule.escape_ascii(),
                    self.origin,
                    self.reason
                )
            }
        }
    }
}

const NAMED_AT: &str = " of a file named at ";
const EARLIER: &str = " (a file read earlier)";

/// Returns the origin of a line of a file. `shown`: path of the file; `None` for one that a line of a file names, the
/// origin of which is `named_at`.
pub(super) fn line_of(shown: Option<&[u8]>, named_at: &str, line: usize) -> String {
    match shown {
        Some(path) => format!("{} line {line}", path.escape_ascii()),
        None => {
            let first = named_at.split_once(NAMED_AT).map_or(named_at, |(_, first)| first);
            let first = first.strip_suffix(EARLIER).unwrap_or(first);
            format!("line {line}{NAMED_AT}{first}{EARLIER}")
        }
    }
}

/// Returns the text that stands for a rule in a file.
pub(super) fn line_text(origin: &str) -> Vec<u8> {
    format!("<rule from {origin}>").into_bytes()
}

impl error::Error for FilterError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
