//! The pattern of one rule, compiled to the cheapest sufficient test; independent of sides, order and files.

use super::rule::{Flags, MatchRule, Style};
use super::{Deciding, Written};

/// A compiled pattern of an include or exclude rule.
#[derive(Debug)]
pub(super) struct RulePattern {
    shape: Shape,
    /// A trailing slash: matches directories only.
    dir_only: bool,
    /// A leading slash: matches from the top of the text instead of its end.
    anchored: bool,
}

#[derive(Debug)]
enum Shape {
    /// Matches nothing, such as an unfinished `[`.
    Never,
    /// `*`
    Any,
    /// `name`
    Name(Box<[u8]>),
    /// `name*`
    NameStart(Box<[u8]>),
    /// `*.ext`
    NameEnd(Box<[u8]>),
    /// Wildcards, but neither a slash nor `**`: matches the last component only.
    NameGlob(Glob),
    /// `/a/b`
    Path(Box<[u8]>),
    /// `a/b`
    PathEnd(Box<[u8]>),
    /// Wildcards together with a slash or `**`.
    PathGlob(Glob),
    /// `a/***`: a directory and everything in it.
    Subtree(Glob),
    /// The whole name of a file, slashes included, as in aws and s5cmd.
    Whole(Glob),
}

impl RulePattern {
    /// Compiles the pattern text of a rule as described in rsync(1) under PATTERN MATCHING RULES. Every text is a
    /// valid pattern; a malformed one matches nothing.
    pub(super) fn new(text: &[u8]) -> Self {
        let (body, dir_only) = match text.strip_suffix(b"/") {
            Some(body) => (body, true),
            None => (text, false),
        };
        let (body, anchored) = match body.strip_prefix(b"/") {
            Some(body) => (body, true),
            None => (body, false),
        };
        let shape = if body.is_empty() { Shape::Never } else { Shape::new(body, anchored) };
        Self { shape, dir_only, anchored }
    }

    /// Compiles a pattern of aws (`sets`: with `[...]`) or s5cmd: it matches whole names of files.
    pub(super) fn whole(text: &[u8], sets: bool) -> Self {
        let shape = Shape::Whole(Glob::whole(text, sets));
        Self { shape, dir_only: false, anchored: false }
    }

    /// Returns whether a leading slash anchors the pattern at the top of the text.
    pub(super) fn anchored(&self) -> bool {
        self.anchored
    }

    /// Returns whether the pattern uses only the last component.
    pub(super) fn name_only(&self) -> bool {
        use Shape::*;
        matches!(self.shape, Never | Any | Name(_) | NameStart(_) | NameEnd(_) | NameGlob(_))
    }

    /// Returns whether the pattern matches the entry `text`, whose last component is `name`.
    pub(super) fn matches(&self, text: Text<'_>, name: &[u8], is_dir: bool) -> bool {
        if self.dir_only && !is_dir {
            return false;
        }
        match &self.shape {
            Shape::Never => false,
            Shape::Any => true,
            Shape::Name(wanted) => name == &**wanted,
            Shape::NameStart(start) => name.starts_with(start),
            // Most names differ in the last byte already, which saves the call of the comparison.
            Shape::NameEnd(end) => name.last() == end.last() && name.ends_with(end),
            Shape::NameGlob(glob) => glob.matches(Text::of(name)),
            Shape::Path(wanted) => text.is(wanted),
            Shape::PathEnd(wanted) => text.ends_with_components(wanted),
            Shape::PathGlob(glob) => glob.matches(text),
            Shape::Subtree(glob) => glob.matches(Text { slash: is_dir, ..text }),
            Shape::Whole(glob) => !is_dir && glob.matches(text),
        }
    }
}

impl Shape {
    fn new(body: &[u8], anchored: bool) -> Self {
        let slashes = body.iter().filter(|byte| **byte == b'/').count();
        // Without a wildcard even a backslash is an ordinary byte.
        if !body.iter().any(|byte| is_wild(*byte)) {
            return match (anchored, slashes) {
                (true, _) => Self::Path(body.into()),
                (false, 0) => Self::Name(body.into()),
                (false, _) => Self::PathEnd(body.into()),
            };
        }
        let wide = body.windows(2).any(|pair| pair == b"**");
        if !anchored && !wide && slashes == 0 {
            return Self::name(body);
        }
        let start = match (anchored, wide) {
            (true, _) => Start::Top,
            (false, true) => Start::Component,
            (false, false) => Start::Last(slashes),
        };
        // A leading "**/" may also match nothing, so the rest may begin at any component. An escaped slash is a
        // slash.
        let stars = body.iter().take_while(|byte| **byte == b'*').count();
        let body = match body.get(stars..) {
            Some([b'/', rest @ ..] | [b'\\', b'/', rest @ ..]) if stars > 1 && !anchored => rest,
            _ => body,
        };
        let shape = if body.ends_with(b"/***") { Self::Subtree } else { Self::PathGlob };
        Glob::new(body, start).map_or(Self::Never, shape)
    }

    /// Makes a pattern with wildcards that matches the last component only.
    fn name(body: &[u8]) -> Self {
        let plain = |text: &[u8]| {
            !text.is_empty() && !text.iter().any(|byte| is_wild(*byte) || *byte == b'\\')
        };
        match body {
            b"*" => Self::Any,
            [b'*', end @ ..] if plain(end) => Self::NameEnd(end.into()),
            [start @ .., b'*'] if plain(start) => Self::NameStart(start.into()),
            _ => Glob::new(body, Start::Top).map_or(Self::Never, Self::NameGlob),
        }
    }
}

fn is_wild(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[')
}

// A compiled rule: its pattern, the anchor, and the sides that it decides for.

/// Start of patterns with a leading slash, relative to the transfer's top.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    /// In the directory of this path, which ends in a slash or is empty for the top itself.
    Below(Vec<u8>),
    /// Above the top, which has this path below it (ends in a slash).
    Above(Vec<u8>),
}

/// The two ends of a transfer as absolute paths without the leading slash; empty or ending in a
/// slash.
#[derive(Debug, Default)]
pub(super) struct FilterRoots {
    pub source: Vec<u8>,
    pub target: Vec<u8>,
}

/// An entry as matched by rules.
#[derive(Clone, Copy)]
pub(super) struct FilterEntry<'a> {
    pub path: &'a [u8],
    pub name: &'a [u8],
    pub is_dir: bool,
}

impl<'a> FilterEntry<'a> {
    pub(super) fn new(path: &'a [u8], is_dir: bool) -> Self {
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        Self { path, name: path.get(start..).unwrap_or_default(), is_dir }
    }
}

#[derive(Debug)]
pub(super) struct CompiledRule {
    pattern: RulePattern,
    /// The pattern as written, for messages.
    text: Box<[u8]>,
    written: Written,
    anchor: Anchor,
    absolute: bool,
    /// The pattern uses only the last component, so neither anchor nor ends.
    name_only: bool,
    negate: bool,
    pub include: bool,
    pub perishable: bool,
    /// The pattern matches whole names (aws, s5cmd).
    pub whole: bool,
    /// It is from a per-directory file.
    pub in_directory: bool,
    /// It decides about names of extended attributes.
    pub xattr: bool,
    /// Decides whether the sending side excludes the entry.
    pub sender: bool,
    /// Decides whether the receiving side may delete the entry.
    pub receiver: bool,
}

impl CompiledRule {
    /// Compiles a parsed rule of a per-directory file (`in_directory`) or of the options. `delete_excluded` makes
    /// rules without a side the sender's. `written`: where, for messages.
    pub(super) fn new(
        rule: &MatchRule,
        anchor: &Anchor,
        in_directory: bool,
        delete_excluded: bool,
        written: Written,
    ) -> Self {
        let Flags { absolute, negate, perishable, xattr, sender, receiver, style } = rule.flags;
        let both = !sender && !receiver;
        let pattern = match style {
            Style::Rsync => RulePattern::new(&rule.pattern),
            Style::Aws => RulePattern::whole(&rule.pattern, true),
            Style::S5cmd => RulePattern::whole(&rule.pattern, false),
        };
        let name_only = pattern.name_only();
        let anchor = if pattern.anchored() { anchor.clone() } else { Anchor::Below(Vec::new()) };
        Self {
            pattern,
            text: rule.pattern.as_slice().into(),
            written,
            anchor,
            absolute: absolute && !name_only,
            name_only,
            negate,
            include: rule.include,
            whole: style != Style::Rsync,
            perishable,
            in_directory,
            xattr,
            sender: sender || both,
            receiver: receiver || (both && !delete_excluded),
        }
    }

    /// Returns what messages show of it.
    pub(super) fn shown(&self) -> Deciding<'_> {
        Deciding {
            include: self.include,
            pattern: Some(&*self.text).filter(|_| !self.written.in_file),
            list: self.written.list.as_deref(),
        }
    }

    /// Returns whether the two sides have to be checked separately, because the rule uses absolute paths.
    pub(super) fn absolute(&self) -> bool {
        self.absolute
    }

    /// Returns whether the rule matches `entry`. `end` is the absolute path of the checking side; only rules with the
    /// modifier `/` use it.
    pub(super) fn applies(&self, entry: FilterEntry<'_>, end: &[u8]) -> bool {
        self.matches(entry, end) != self.negate
    }

    fn matches(&self, entry: FilterEntry<'_>, end: &[u8]) -> bool {
        let text = if self.name_only {
            Text::of(entry.path)
        } else if self.absolute {
            Text { head: end, ..Text::of(entry.path) }
        } else {
            match &self.anchor {
                Anchor::Above(head) => Text { head, ..Text::of(entry.path) },
                Anchor::Below(dir) => match entry.path.strip_prefix(&**dir) {
                    Some(path) => Text::of(path),
                    None => return false,
                },
            }
        };
        self.pattern.matches(text, entry.name, entry.is_dir)
    }
}

// Wildcards over bytes: `*`, `?`, `[...]`, `**` and backslash escapes as described in rsync(1) under PATTERN
// MATCHING RULES. Matching is iterative and takes polynomial time, because patterns may come from untrusted files in
// the tree.

/// The text to match, in two pieces, so that a path can be matched below another one without joining them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    /// First piece; empty or ends in a slash.
    pub head: &'a [u8],
    /// Second piece: the path.
    pub tail: &'a [u8],
    /// Whether a slash follows, which lets `dir/***` match the directory itself.
    pub slash: bool,
}

impl<'a> Text<'a> {
    /// Makes a text that is only `path`.
    pub(super) fn of(path: &'a [u8]) -> Self {
        Self { head: b"", tail: path, slash: false }
    }

    fn len(&self) -> usize {
        self.head.len() + self.tail.len() + usize::from(self.slash)
    }

    fn at(&self, index: usize) -> Option<u8> {
        if let Some(byte) = self.head.get(index) {
            return Some(*byte);
        }
        let index = index - self.head.len();
        match self.tail.get(index) {
            Some(byte) => Some(*byte),
            None if self.slash && index == self.tail.len() => Some(b'/'),
            None => None,
        }
    }

    /// Returns the character at an index and its length in bytes; an invalid byte is a character of its own.
    fn character(&self, index: usize) -> Option<(u32, usize)> {
        let first = self.at(index)?;
        let width = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        let bytes: Vec<u8> = (index..index + width).filter_map(|at| self.at(at)).collect();
        match std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()) {
            Some(character) => Some((u32::from(character), width)),
            // Larger than any character, so in no range.
            None => Some((0x11_0000 + u32::from(first), 1)),
        }
    }

    /// Returns whether the text is `wanted`, byte for byte.
    pub(super) fn is(&self, wanted: &[u8]) -> bool {
        self.len() == wanted.len() && self.ends_with(wanted)
    }

    /// Returns whether the last components of the text are `wanted`, byte for byte.
    pub(super) fn ends_with_components(&self, wanted: &[u8]) -> bool {
        let Some(before) = self.len().checked_sub(wanted.len()) else { return false };
        (before == 0 || self.at(before - 1) == Some(b'/')) && self.ends_with(wanted)
    }

    fn ends_with(&self, wanted: &[u8]) -> bool {
        debug_assert!(!self.slash, "literal comparisons see the path as it is");
        match wanted.len().checked_sub(self.tail.len()) {
            None => self.tail.ends_with(wanted),
            Some(over) => {
                let (front, back) = wanted.split_at(over);
                back == self.tail && self.head.ends_with(front)
            }
        }
    }

    /// Returns where the last `slashes + 1` components begin; `None` if the text has fewer.
    fn last_components(&self, slashes: usize) -> Option<usize> {
        let mut left = slashes + 1;
        for index in (0..self.len()).rev() {
            if self.at(index) == Some(b'/') {
                left -= 1;
                if left == 0 {
                    return Some(index + 1);
                }
            }
        }
        (left == 1).then_some(0)
    }
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// `?`: one byte other than a slash.
    One,
    /// `*`: any number of bytes other than slashes.
    Star,
    /// `**`: any bytes.
    Wide,
    /// `[...]`: one byte of the set, which never contains a slash.
    Set(Box<ByteSet>),
    /// One character, including a slash.
    Character,
    /// One character inside (or, negated, outside) the ranges, including a slash.
    Characters {
        ranges: Box<[(u32, u32)]>,
        negated: bool,
    },
}

/// Position in the text where a match may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// At the first byte.
    Top,
    /// At the start of the last n + 1 components only.
    Last(usize),
    /// At the first byte of any component.
    Component,
}

/// A compiled pattern with wildcards.
#[derive(Debug)]
pub(super) struct Glob {
    tokens: Vec<Token>,
    start: Start,
    /// Wildcards stand for whole characters, not for bytes.
    by_character: bool,
}

impl Glob {
    /// Compiles `pattern`; returns `None` if it can match nothing (an unfinished or unknown class).
    pub(super) fn new(pattern: &[u8], start: Start) -> Option<Self> {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut rest = pattern;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'?' => tokens.push(Token::One),
                b'*' => {
                    let more = rest.iter().take_while(|b| **b == b'*').count();
                    rest = rest.get(more..).unwrap_or_default();
                    tokens.push(if more == 0 { Token::Star } else { Token::Wide });
                }
                b'[' => {
                    let (set, after) = ByteSet::parse(rest)?;
                    rest = after;
                    tokens.push(Token::Set(Box::new(set)));
                }
                b'\\' => {
                    let (&escaped, after) = rest.split_first()?;
                    rest = after;
                    tokens.push(Token::Byte(escaped));
                }
                _ => tokens.push(Token::Byte(byte)),
            }
        }
        Some(Self { tokens, start, by_character: false })
    }

    /// Compiles a pattern whose wildcards match slashes: `*`, `?` and, with `sets`, `[...]` and `[!...]` as in
    /// fnmatch(3) without escapes. An unfinished `[` stands for itself.
    pub(super) fn whole(pattern: &[u8], sets: bool) -> Self {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut rest = pattern;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'*' if matches!(tokens.last(), Some(Token::Wide)) => {}
                b'*' => tokens.push(Token::Wide),
                b'?' => tokens.push(Token::Character),
                b'[' if sets => match characters(rest) {
                    Some((token, after)) => {
                        tokens.push(token);
                        rest = after;
                    }
                    None => tokens.push(Token::Byte(b'[')),
                },
                _ => tokens.push(Token::Byte(byte)),
            }
        }
        Self { tokens, start: Start::Top, by_character: true }
    }

    /// Returns whether the pattern matches all of `text` from an allowed start.
    pub(super) fn matches(&self, text: Text<'_>) -> bool {
        let begin = match self.start {
            Start::Last(slashes) => match text.last_components(slashes) {
                Some(begin) => begin,
                None => return false,
            },
            Start::Top | Start::Component => 0,
        };
        self.run(text, begin)
    }

    /// Matches with backtracking to the newest `*` only, then to the newest `**`, then to the start. Older ones need
    /// no retry: a later wildcard of the same kind can match anything that an earlier one would have matched in
    /// addition.
    fn run(&self, text: Text<'_>, begin: usize) -> bool {
        let mut token = 0;
        let mut at = begin;
        let mut star: Option<(usize, usize)> = None;
        let mut wide: Option<(usize, usize)> = None;
        let mut restart = (self.start == Start::Component).then_some(begin);
        loop {
            let mut width = 1;
            let matched = match self.tokens.get(token) {
                None if at == text.len() => return true,
                None => false,
                Some(Token::Star) => {
                    token += 1;
                    star = Some((token, at));
                    continue;
                }
                Some(Token::Wide) => {
                    token += 1;
                    (star, wide, restart) = (None, Some((token, at)), None);
                    continue;
                }
                Some(Token::Byte(wanted)) => text.at(at) == Some(*wanted),
                Some(Token::One) => text.at(at).is_some_and(|byte| byte != b'/'),
                Some(Token::Set(set)) => text.at(at).is_some_and(|byte| set.has(byte)),
                Some(Token::Character) => {
                    let found = text.character(at);
                    width = found.map_or(1, |(_, width)| width);
                    found.is_some()
                }
                Some(Token::Characters { ranges, negated }) => {
                    let found = text.character(at);
                    width = found.map_or(1, |(_, width)| width);
                    found.is_some_and(|(code, _)| {
                        let within =
                            ranges.iter().any(|(low, high)| (*low..=*high).contains(&code));
                        within != *negated
                    })
                }
            };
            if matched {
                token += 1;
                at += width;
                continue;
            }
            if let Some((after, from)) = star
                && text.at(from).is_some_and(|byte| byte != b'/')
            {
                star = Some((after, from + 1));
                (token, at) = (after, from + 1);
                continue;
            }
            star = None;
            if let Some((after, from)) = wide {
                if from >= text.len() {
                    return false;
                }
                let width = match self.by_character {
                    true => text.character(from).map_or(1, |(_, width)| width),
                    false => 1,
                };
                wide = Some((after, from + width));
                (token, at) = (after, from + width);
                continue;
            }
            let Some(from) = restart else { return false };
            let Some(slash) = (from..text.len()).find(|index| text.at(*index) == Some(b'/')) else {
                return false;
            };
            restart = Some(slash + 1);
            (token, at) = (0, slash + 1);
        }
    }
}

/// Parses an fnmatch(3) set after its opening bracket: returns the token and the rest.
fn characters(rest: &[u8]) -> Option<(Token, &[u8])> {
    let (negated, inner) = match rest {
        [b'!', inner @ ..] => (true, inner),
        inner => (false, inner),
    };
    // A closing bracket in first position belongs to the set.
    let end = inner.iter().skip(1).position(|byte| *byte == b']')? + 1;
    let (set, after) = inner.split_at(end);
    let codes: Vec<u32> = match std::str::from_utf8(set) {
        Ok(text) => text.chars().map(u32::from).collect(),
        Err(_) => set.iter().map(|byte| u32::from(*byte)).collect(),
    };
    let (mut ranges, mut rest) = (Vec::new(), codes.as_slice());
    while let [first, tail @ ..] = rest {
        (rest, _) = match tail {
            [dash, last, after @ ..] if *dash == u32::from(b'-') => {
                (after, ranges.push((*first, *last)))
            }
            _ => (tail, ranges.push((*first, *first))),
        };
    }
    Some((Token::Characters { ranges: ranges.into(), negated }, after.get(1..)?))
}

/// The bytes that a `[...]` accepts.
#[derive(Debug)]
struct ByteSet([u64; 4]);

impl ByteSet {
    /// Parses a set after its opening bracket: returns the set and the rest of the pattern.
    fn parse(mut rest: &[u8]) -> Option<(Self, &[u8])> {
        let mut set = Self([0; 4]);
        let negated = matches!(rest.first(), Some(b'!' | b'^'));
        if negated {
            rest = rest.get(1..)?;
        }
        let mut previous: Option<u8> = None;
        let mut first = true;
        loop {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            match byte {
                b']' if !first => break,
                b'[' if rest.first() == Some(&b':') => {
                    let close = rest.iter().position(|b| *b == b']')?;
                    let name = rest.get(1..close)?;
                    if let Some(name) = name.strip_suffix(b":") {
                        let class = class(name)?;
                        (0..=u8::MAX).filter(class).for_each(|b| set.add(b));
                        rest = rest.get(close + 1..)?;
                        previous = None;
                    } else {
                        // Not closed by ":]", so the bracket stands for itself.
                        set.add(b'[');
                        previous = Some(b'[');
                    }
                }
                b'-' if previous.is_some() && rest.first().is_some_and(|b| *b != b']') => {
                    let (&end, after) = rest.split_first()?;
                    rest = after;
                    let end = if end == b'\\' {
                        let (&escaped, after) = rest.split_first()?;
                        rest = after;
                        escaped
                    } else {
                        end
                    };
                    (previous.take()?..=end).for_each(|b| set.add(b));
                }
                b'\\' => {
                    let (&escaped, after) = rest.split_first()?;
                    rest = after;
                    set.add(escaped);
                    previous = Some(escaped);
                }
                _ => {
                    set.add(byte);
                    previous = Some(byte);
                }
            }
            first = false;
        }
        if negated {
            set.0.iter_mut().for_each(|word| *word = !*word);
        }
        set.remove(b'/');
        Some((set, rest))
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }
}

/// Returns the POSIX class of that name, over ASCII.
fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |b| matches!(b, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |b| matches!(b, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |b| matches!(b, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
