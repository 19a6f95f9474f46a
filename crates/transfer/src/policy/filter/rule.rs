//! Parser of one rule. Pure: reads no file and knows no directory. The grammar is that of rsync(1), FILTER RULES IN
//! DEPTH, FILTER RULE MODIFIERS and MERGE-FILE FILTER RULES.

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
