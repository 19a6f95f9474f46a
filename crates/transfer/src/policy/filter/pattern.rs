//! The pattern of one rule, compiled to the cheapest sufficient test; independent of sides, order and files.

use super::glob::{Glob, Start, Text};

/// A compiled pattern of an include or exclude rule.
#[derive(Debug)]
pub(super) struct Pattern {
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

impl Pattern {
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
