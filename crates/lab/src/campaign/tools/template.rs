//! Commands with placeholders: `rsync -a {src}/ {dst}/`. An inserted value stays one word, whether bare or in
//! single or double quotes. A command without shell syntax is split here and run without a shell, so that no
//! shell is measured.

use super::quote::{in_double, in_single, quoted};
use std::collections::BTreeMap;
use std::path::Path;

/// Values of placeholders.
pub type PlaceholderValues = BTreeMap<String, PlaceholderValue>;

/// Value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceholderValue {
    /// One word or part of a word.
    Word(String),
    /// Any number of separate words.
    Words(Vec<String>),
}

impl From<String> for PlaceholderValue {
    fn from(word: String) -> PlaceholderValue {
        PlaceholderValue::Word(word)
    }
}

impl From<&Path> for PlaceholderValue {
    fn from(path: &Path) -> PlaceholderValue {
        PlaceholderValue::Word(path.to_string_lossy().into_owned())
    }
}

/// Quotes around a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteKind {
    Bare,
    Single,
    Double,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplateToken {
    Text(String),
    Hole {
        name: String,
        /// True to quote once more, for a shell that the command starts.
        again: bool,
        quote: QuoteKind,
    },
}

/// A command with placeholders.
///
/// `{name}` is a placeholder; the value of `{name!q}` is quoted once more, for programs that pass it to a
/// shell (GNU parallel does). `{}`, `{/}`, `${name}` and other braces belong to the command, and `{{name}}`
/// yields `{name}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    tokens: Vec<TemplateToken>,
    needs_shell: bool,
}

/// Words that only a shell understands.
const SHELL_WORDS: &[&str] = &[
    ".", "alias", "break", "case", "cd", "eval", "exec", "exit", "export", "for", "if", "read",
    "set", "shift", "time", "trap", "type", "ulimit", "umask", "unset", "until", "wait", "while",
    "!", "{",
];

impl Template {
    /// Parses a command.
    ///
    /// # Errors
    /// A quote is not closed, or the command is empty.
    pub fn parse(text: &str) -> Result<Template, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("is an empty command".into());
        }
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let (mut quote, mut needs_shell) = (QuoteKind::Bare, false);
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let after_dollar = plain.ends_with('$') && quote != QuoteKind::Single;
            if let Some((name, again, length)) = hole(rest).filter(|_| !after_dollar) {
                if !plain.is_empty() {
                    tokens.push(TemplateToken::Text(std::mem::take(&mut plain)));
                }
                tokens.push(TemplateToken::Hole { name: name.to_owned(), again, quote });
                at += length;
                continue;
            }
            if let Some((inner, length)) = doubled(rest) {
                plain.push_str(inner);
                at += length;
                continue;
            }
            let mut length = c.len_utf8();
            match (quote, c) {
                (QuoteKind::Bare, '\'') => quote = QuoteKind::Single,
                (QuoteKind::Bare, '"') => quote = QuoteKind::Double,
                (QuoteKind::Single, '\'') | (QuoteKind::Double, '"') => quote = QuoteKind::Bare,
                (QuoteKind::Bare | QuoteKind::Double, '\\') => {
                    length += rest.chars().nth(1).map_or(0, char::len_utf8);
                }
                (QuoteKind::Double, '$' | '`') => needs_shell = true,
                (QuoteKind::Bare, _) => needs_shell |= is_operator(c, &plain),
                _ => {}
            }
            plain.push_str(&rest[..length]);
            at += length;
        }
        match quote {
            QuoteKind::Bare => {}
            QuoteKind::Single => return Err("has a ' that is not closed".into()),
            QuoteKind::Double => return Err("has a \" that is not closed".into()),
        }
        if !plain.is_empty() {
            tokens.push(TemplateToken::Text(plain));
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        needs_shell |= SHELL_WORDS.contains(&first) || is_assignment(first);
        Ok(Template { tokens, needs_shell })
    }

    /// Parses a text other than a command: a path, the value of a variable. Quotes have no meaning in it.
    pub fn plain(text: &str) -> Template {
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let length = if let Some((name, again, length)) = hole(rest) {
                tokens.push(TemplateToken::Text(std::mem::take(&mut plain)));
                tokens.push(TemplateToken::Hole {
                    name: name.to_owned(),
                    again,
                    quote: QuoteKind::Bare,
                });
                length
            } else if let Some((inner, length)) = doubled(rest) {
                plain.push_str(inner);
                length
            } else {
                plain.push(c);
                c.len_utf8()
            };
            rest = &rest[length..];
        }
        tokens.push(TemplateToken::Text(plain));
        Template { tokens, needs_shell: false }
    }

    /// Names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            TemplateToken::Hole { name, .. } => Some(name.as_str()),
            TemplateToken::Text(_) => None,
        })
    }

    /// Its parts in their order: texts, and as errors the names of placeholders.
    pub(super) fn parts(&self) -> impl Iterator<Item = Result<&str, &str>> {
        self.tokens.iter().map(|token| match token {
            TemplateToken::Text(text) => Ok(text.as_str()),
            TemplateToken::Hole { name, .. } => Err(name.as_str()),
        })
    }

    /// True if it has a placeholder of this name.
    pub fn mentions(&self, wanted: &str) -> bool {
        self.names().any(|name| name == wanted)
    }

    /// Program that it starts, if its first word is a plain word and no shell keyword.
    pub fn program(&self) -> Option<String> {
        let Some(TemplateToken::Text(text)) = self.tokens.first() else { return None };
        let word = text.split_whitespace().next()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
        // A placeholder may follow without a space, as in `tool-{version}`.
        let ends = self.tokens.len() == 1 || text.trim_start().len() > word.len();
        let is_program = ends && word.chars().all(plain) && !SHELL_WORDS.contains(&word);
        is_program.then(|| word.to_owned())
    }

    /// True if only a shell can run it.
    pub fn needs_shell(&self) -> bool {
        self.needs_shell
    }

    /// Arguments that run it: those of the command, or a shell with the command as a script.
    ///
    /// # Errors
    /// A placeholder without a value.
    pub fn argv(&self, values: &PlaceholderValues, shell: bool) -> Result<Vec<String>, String> {
        if shell || self.needs_shell {
            Ok(vec!["sh".into(), "-c".into(), self.script(values)?])
        } else {
            self.words(values)
        }
    }

    /// The command as a shell script.
    ///
    /// # Errors
    /// A placeholder without a value.
    pub fn script(&self, values: &PlaceholderValues) -> Result<String, String> {
        let mut out = String::new();
        for token in &self.tokens {
            match token {
                TemplateToken::Text(text) => out.push_str(text),
                TemplateToken::Hole { name, again, quote } => {
                    let words: Vec<String> = filled(values, name, *again)?;
                    let words = words.iter().map(|word| match quote {
                        QuoteKind::Bare => quoted(word),
                        QuoteKind::Single => in_single(word),
                        QuoteKind::Double => in_double(word),
                    });
                    out.push_str(&words.collect::<Vec<_>>().join(" "));
                }
            }
        }
        Ok(out)
    }

    /// The text with values inserted unquoted, for [`Template::plain`].
    ///
    /// # Errors
    /// A placeholder without a value.
    pub fn text(&self, values: &PlaceholderValues) -> Result<String, String> {
        let mut out = String::new();
        for token in &self.tokens {
            match token {
                TemplateToken::Text(text) => out.push_str(text),
                TemplateToken::Hole { name, again, .. } => {
                    out.push_str(&filled(values, name, *again)?.join(" "));
                }
            }
        }
        Ok(out)
    }

    /// Words of a command that needs no shell.
    fn words(&self, values: &PlaceholderValues) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        let mut open: Option<String> = None;
        let mut quote = QuoteKind::Bare;
        for token in &self.tokens {
            match token {
                TemplateToken::Text(text) => split(text, &mut quote, &mut open, &mut words),
                TemplateToken::Hole { name, again, .. } => match values.get(name) {
                    Some(PlaceholderValue::Words(_)) if open.is_none() => {
                        words.extend(filled(values, name, *again)?);
                    }
                    _ => {
                        let text = filled(values, name, *again)?.join(" ");
                        open.get_or_insert_default().push_str(&text);
                    }
                },
            }
        }
        words.extend(open);
        Ok(words)
    }
}

/// Continues to split a text into words, by the shell's rules for quotes and backslashes.
fn split(text: &str, quote: &mut QuoteKind, open: &mut Option<String>, words: &mut Vec<String>) {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (*quote, c) {
            (QuoteKind::Bare, c) if c.is_whitespace() => words.extend(open.take()),
            (QuoteKind::Bare, '\'' | '"') => {
                *quote = if c == '"' { QuoteKind::Double } else { QuoteKind::Single };
                open.get_or_insert_default();
            }
            (QuoteKind::Single, '\'') | (QuoteKind::Double, '"') => *quote = QuoteKind::Bare,
            (QuoteKind::Bare, '\\') => open.get_or_insert_default().extend(letters.next()),
            (QuoteKind::Double, '\\') => {
                let next = letters.next();
                let word = open.get_or_insert_default();
                // In double quotes a backslash escapes only these.
                if !matches!(next, Some('$' | '`' | '"' | '\\')) {
                    word.push('\\');
                }
                word.extend(next);
            }
            (_, c) => open.get_or_insert_default().push(c),
        }
    }
}

/// Value of a placeholder as words.
fn filled(values: &PlaceholderValues, name: &str, again: bool) -> Result<Vec<String>, String> {
    let words = match values.get(name) {
        Some(PlaceholderValue::Word(word)) => vec![word.clone()],
        Some(PlaceholderValue::Words(words)) => words.clone(),
        None => return Err(format!("there is nothing for {{{name}}}")),
    };
    Ok(if again { words.iter().map(|word| quoted(word)).collect() } else { words })
}

/// Placeholder at the start of a text: name, whether to quote once more, length.
fn hole(text: &str) -> Option<(&str, bool, usize)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find('}')?;
    let (name, again) = match inner[..end].strip_suffix("!q") {
        Some(name) => (name, true),
        None => (&inner[..end], false),
    };
    crate::campaign::spec::is_placeholder(name).then_some((name, again, end + 2))
}

/// `{{name}}` at the start of a text: the literal text, and its length.
fn doubled(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('{')?;
    let (_, _, length) = hole(inner)?;
    inner[length..].starts_with('}').then(|| (&inner[..length], length + 2))
}

/// True if an unquoted character is shell syntax, given the text before it.
fn is_operator(c: char, before: &str) -> bool {
    let starts_word = before.is_empty() || before.ends_with(char::is_whitespace);
    match c {
        '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '\n' => true,
        '~' | '#' => starts_word,
        _ => false,
    }
}

/// True for `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
