//! TOML document as a tree with source positions, and errors that refer to them.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// An error in a description, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// File name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Message; begins with the key.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for SpecError {}

/// Source text and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceText<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl SourceText<'_> {
    /// Creates an error at a byte offset.
    pub fn error(&self, at: usize, message: impl Into<String>) -> SpecError {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        SpecError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A value and its byte offsets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Located<T> {
    pub at: usize,
    pub end: usize,
    pub value: T,
}

impl<T> From<Spanned<T>> for Located<T> {
    fn from(spanned: Spanned<T>) -> Located<T> {
        let span = spanned.span();
        Located { at: span.start, end: span.end, value: spanned.into_inner() }
    }
}

/// A key with its value.
pub(super) type TomlEntry = (Located<String>, Located<TomlValue>);

/// A TOML value. Dates are not supported.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TomlValue {
    Text(String),
    Whole(i64),
    Number(f64),
    Truth(bool),
    List(Vec<Located<TomlValue>>),
    Table(Vec<TomlEntry>),
}

impl TomlValue {
    /// A text between quotes, TOML's basic string; empty quotes for other values.
    pub fn quoted(&self) -> String {
        let TomlValue::Text(text) = self else { return "\"\"".to_owned() };
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
                c => out.push(c),
            }
        }
        out + "\""
    }

    /// Name of the type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            TomlValue::Text(_) => "a text",
            TomlValue::Whole(_) => "a whole number",
            TomlValue::Number(_) => "a number",
            TomlValue::Truth(_) => "true or false",
            TomlValue::List(_) => "a list",
            TomlValue::Table(_) => "a table",
        }
    }
}

impl<'de> Deserialize<'de> for TomlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TomlValue, D::Error> {
        deserializer.deserialize_any(TomlVisitor)
    }
}

struct TomlVisitor;

impl<'de> Visitor<'de> for TomlVisitor {
    type Value = TomlValue;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text, a number, true, false, a list or a table")
    }

    fn visit_str<E>(self, text: &str) -> Result<TomlValue, E> {
        Ok(TomlValue::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<TomlValue, E> {
        Ok(TomlValue::Whole(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<TomlValue, E> {
        Ok(TomlValue::Number(number))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<TomlValue, E> {
        Ok(TomlValue::Truth(truth))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TomlValue, A::Error> {
        let mut nodes = Vec::new();
        while let Some(value) = list.next_element::<Spanned<TomlValue>>()? {
            nodes.push(value.into());
        }
        Ok(TomlValue::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TomlValue, A::Error> {
        let mut entries: Vec<TomlEntry> = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            entries.push((key.into(), map.next_value::<Spanned<TomlValue>>()?.into()));
        }
        // Restore the order of the text: tables opened twice are out of order.
        entries.sort_by_key(|(key, _)| key.at);
        Ok(TomlValue::Table(entries))
    }
}

/// Parses a document.
///
/// # Errors
/// Invalid TOML, with position and reason.
pub(super) fn read(source: &SourceText<'_>) -> Result<Vec<TomlEntry>, SpecError> {
    match toml::from_str::<TomlValue>(source.text) {
        Ok(TomlValue::Table(entries)) => Ok(entries),
        Ok(other) => Err(source.error(0, format!("{} is not a campaign", other.kind()))),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let message = match error.message() {
                // An unquoted word that begins with t or f.
                text if text.starts_with("invalid boolean") => {
                    "texts need quotes, as in title = \"t\"; without them only true and false do"
                }
                text => text,
            };
            Err(source.error(at, message))
        }
    }
}
