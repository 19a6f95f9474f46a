//! Commands with holes: `rsync -a {src}/ {dst}/`. What is put in stays one word, wherever it stands:
//! bare, in single or in double quotes. A command without anything that needs a shell is taken apart
//! here and run without one, so that no shell is measured with it.

use super::quote::{in_double, in_single, quoted};
use std::collections::BTreeMap;

/// What holes are filled with.
pub type Values = BTreeMap<String, Fill>;

/// What a hole is filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// One word or a part of one.
    Word(String),
    /// Any number of words, each by itself.
    Words(Vec<String>),
}

impl From<String> for Fill {
    fn from(word: String) -> Fill {
        Fill::Word(word)
    }
}

impl From<&str> for Fill {
    fn from(word: &str) -> Fill {
        Fill::Word(word.to_owned())
    }
}

/// How the text around a hole is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    Bare,
    Single,
    Double,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Hole {
        name: String,
        /// Quoted once more, for a shell that the command starts.
        again: bool,
        quote: Quote,
    },
}

/// A command with holes.
///
/// `{name}` is a hole; `{name!q}` one whose content is quoted once more, for programs that hand it to
/// a shell (GNU parallel does). `{}`, `{/}`, `${name}` and other braces are the command's own, and
/// `{{name}}` stands for `{name}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    tokens: Vec<Token>,
    needs_shell: bool,
}

/// Words that only a shell knows.
const SHELL_WORDS: &[&str] = &[
    ".", "alias", "break", "case", "cd", "eval", "exec", "exit", "export", "for", "if", "read",
    "set", "shift", "time", "trap", "type", "ulimit", "umask", "unset", "until", "wait", "while",
    "!", "{",
];

impl Template {
    /// Reads a command.
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
        let (mut quote, mut needs_shell) = (Quote::Bare, false);
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let after_dollar = plain.ends_with('$') && quote != Quote::Single;
            if let Some((name, again, length)) = hole(rest).filter(|_| !after_dollar) {
                if !plain.is_empty() {
                    tokens.push(Token::Text(std::mem::take(&mut plain)));
                }
                tokens.push(Token::Hole { name: name.to_owned(), again, quote });
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
                (Quote::Bare, '\'') => quote = Quote::Single,
                (Quote::Bare, '"') => quote = Quote::Double,
                (Quote::Single, '\'') | (Quote::Double, '"') => quote = Quote::Bare,
                (Quote::Bare | Quote::Double, '\\') => {
                    length += rest.chars().nth(1).map_or(0, char::len_utf8);
                }
                (Quote::Double, '$' | '`') => needs_shell = true,
                (Quote::Bare, _) => needs_shell |= is_operator(c, &plain),
                _ => {}
            }
            plain.push_str(&rest[..length]);
            at += length;
        }
        match quote {
            Quote::Bare => {}
            Quote::Single => return Err("has a ' that is not closed".into()),
            Quote::Double => return Err("has a \" that is not closed".into()),
        }
        if !plain.is_empty() {
            tokens.push(Token::Text(plain));
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        needs_shell |= SHELL_WORDS.contains(&first) || is_assignment(first);
        Ok(Template { tokens, needs_shell })
    }

    /// Reads a text that is no command: a path, the value of a variable. Quotes are letters in it.
    pub fn plain(text: &str) -> Template {
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let length = if let Some((name, again, length)) = hole(rest) {
                tokens.push(Token::Text(std::mem::take(&mut plain)));
                tokens.push(Token::Hole { name: name.to_owned(), again, quote: Quote::Bare });
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
        tokens.push(Token::Text(plain));
        Template { tokens, needs_shell: false }
    }

    /// The names of its holes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            Token::Hole { name, .. } => Some(name.as_str()),
            Token::Text(_) => None,
        })
    }

    /// Whether it has a hole of this name.
    pub fn mentions(&self, wanted: &str) -> bool {
        self.names().any(|name| name == wanted)
    }

    /// The program that it starts, as far as its first word tells: a plain word that no shell knows
    /// better.
    pub fn program(&self) -> Option<String> {
        let Some(Token::Text(text)) = self.tokens.first() else { return None };
        let word = text.split_whitespace().next()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
        // A hole may follow without a space, as in `tool-{version}`.
        let ends = self.tokens.len() == 1 || text.trim_start().len() > word.len();
        let is_program = ends && word.chars().all(plain) && !SHELL_WORDS.contains(&word);
        is_program.then(|| word.to_owned())
    }

    /// Whether only a shell can run it.
    pub fn needs_shell(&self) -> bool {
        self.needs_shell
    }

    /// The words that run it: those of the command, or a shell's with the command as a script.
    ///
    /// # Errors
    /// A hole that nothing is given for.
    pub fn argv(&self, values: &Values, shell: bool) -> Result<Vec<String>, String> {
        if shell || self.needs_shell {
            Ok(vec!["sh".into(), "-c".into(), self.script(values)?])
        } else {
            self.words(values)
        }
    }

    /// The command as a shell takes it.
    ///
    /// # Errors
    /// A hole that nothing is given for.
    pub fn script(&self, values: &Values) -> Result<String, String> {
        let mut out = String::new();
        for token in &self.tokens {
            match token {
                Token::Text(text) => out.push_str(text),
                Token::Hole { name, again, quote } => {
                    let words: Vec<String> = filled(values, name, *again)?;
                    let words = words.iter().map(|word| match quote {
                        Quote::Bare => quoted(word),
                        Quote::Single => in_single(word),
                        Quote::Double => in_double(word),
                    });
                    out.push_str(&words.collect::<Vec<_>>().join(" "));
                }
            }
        }
        Ok(out)
    }

    /// The text with its holes filled as they are, for what was read by [`Template::plain`].
    ///
    /// # Errors
    /// A hole that nothing is given for.
    pub fn text(&self, values: &Values) -> Result<String, String> {
        let mut out = String::new();
        for token in &self.tokens {
            match token {
                Token::Text(text) => out.push_str(text),
                Token::Hole { name, again, .. } => {
                    out.push_str(&filled(values, name, *again)?.join(" "));
                }
            }
        }
        Ok(out)
    }

    /// The words of a command that needs no shell.
    fn words(&self, values: &Values) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        let mut open: Option<String> = None;
        let mut quote = Quote::Bare;
        for token in &self.tokens {
            match token {
                Token::Text(text) => split(text, &mut quote, &mut open, &mut words),
                Token::Hole { name, again, .. } => match values.get(name) {
                    Some(Fill::Words(_)) if open.is_none() => {
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

/// Goes on taking words out of a text: ends of words, quotes and backslashes are those of a shell.
fn split(text: &str, quote: &mut Quote, open: &mut Option<String>, words: &mut Vec<String>) {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (*quote, c) {
            (Quote::Bare, c) if c.is_whitespace() => words.extend(open.take()),
            (Quote::Bare, '\'' | '"') => {
                *quote = if c == '"' { Quote::Double } else { Quote::Single };
                open.get_or_insert_default();
            }
            (Quote::Single, '\'') | (Quote::Double, '"') => *quote = Quote::Bare,
            (Quote::Bare, '\\') => open.get_or_insert_default().extend(letters.next()),
            (Quote::Double, '\\') => {
                let next = letters.next();
                let word = open.get_or_insert_default();
                // Only these lose their backslash in double quotes.
                if !matches!(next, Some('$' | '`' | '"' | '\\')) {
                    word.push('\\');
                }
                word.extend(next);
            }
            (_, c) => open.get_or_insert_default().push(c),
        }
    }
}

/// What stands for a name, as words.
fn filled(values: &Values, name: &str, again: bool) -> Result<Vec<String>, String> {
    let words = match values.get(name) {
        Some(Fill::Word(word)) => vec![word.clone()],
        Some(Fill::Words(words)) => words.clone(),
        None => return Err(format!("there is nothing for {{{name}}}")),
    };
    Ok(if again { words.iter().map(|word| quoted(word)).collect() } else { words })
}

/// The hole at the start of a text: its name, whether it is quoted once more, its length.
fn hole(text: &str) -> Option<(&str, bool, usize)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find('}')?;
    let (name, again) = match inner[..end].strip_suffix("!q") {
        Some(name) => (name, true),
        None => (&inner[..end], false),
    };
    crate::campaign::spec::is_placeholder(name).then_some((name, again, end + 2))
}

/// `{{name}}` at the start of a text: what it stands for, and its length.
fn doubled(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('{')?;
    let (_, _, length) = hole(inner)?;
    inner[length..].starts_with('}').then(|| (&inner[..length], length + 2))
}

/// Whether a character outside of quotes is for a shell, given what stands before it.
fn is_operator(c: char, before: &str) -> bool {
    let starts_word = before.is_empty() || before.ends_with(char::is_whitespace);
    match c {
        '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '\n' => true,
        '~' | '#' => starts_word,
        _ => false,
    }
}

/// `NAME=value` in front of a command.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
