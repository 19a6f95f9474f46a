//! Wildcards over bytes: `*`, `?`, `[...]`, `**` and backslash escapes as rsync(1) describes them
//! under PATTERN MATCHING RULES. Matching is iterative and takes polynomial time, because patterns
//! come from files in trees that somebody else may have written.

/// The text to match, in two pieces so that a path can be seen below another one without joining
/// them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    /// Comes first; empty or ends in a slash.
    pub head: &'a [u8],
    /// Comes second: the path.
    pub tail: &'a [u8],
    /// Whether a slash follows, which lets `dir/***` match the directory itself.
    pub slash: bool,
}

impl<'a> Text<'a> {
    /// The text that is only `path`.
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

    /// Whether the text is `wanted`, byte for byte.
    pub(super) fn is(&self, wanted: &[u8]) -> bool {
        self.len() == wanted.len() && self.ends_with(wanted)
    }

    /// Whether the last components of the text are `wanted`, byte for byte.
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

    /// Where the last `slashes + 1` components begin; `None` when the text has fewer.
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
    /// `[...]`: one byte of the set, which never holds a slash.
    Set(Box<ByteSet>),
}

/// Where in the text a match may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// At the first byte.
    Top,
    /// At the first of this many slashes plus one last components, and nowhere else.
    Last(usize),
    /// At the first byte of any component.
    Component,
}

/// A compiled pattern with wildcards.
#[derive(Debug)]
pub(super) struct Glob {
    tokens: Vec<Token>,
    start: Start,
}

impl Glob {
    /// Compiles `pattern`; `None` when it can match nothing (an unfinished or unknown class).
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
        Some(Self { tokens, start })
    }

    /// Whether the pattern matches all of `text` from an allowed start.
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

    /// Backs up to the newest `*` only, then to the newest `**`, then to the start. Older ones need
    /// no second look: a later wildcard of the same kind can take over whatever an earlier one
    /// would have taken in addition.
    fn run(&self, text: Text<'_>, begin: usize) -> bool {
        let mut token = 0;
        let mut at = begin;
        let mut star: Option<(usize, usize)> = None;
        let mut wide: Option<(usize, usize)> = None;
        let mut restart = (self.start == Start::Component).then_some(begin);
        loop {
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
            };
            if matched {
                token += 1;
                at += 1;
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
                wide = Some((after, from + 1));
                (token, at) = (after, from + 1);
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

/// The bytes that a `[...]` accepts.
#[derive(Debug)]
struct ByteSet([u64; 4]);

impl ByteSet {
    /// Parses what follows the opening bracket: the set and the rest of the pattern.
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

/// The POSIX class of that name, over ASCII.
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
