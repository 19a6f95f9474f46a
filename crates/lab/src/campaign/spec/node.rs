//! TOML document as a tree with source positions, and errors that refer to them.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// An error in a description, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// File name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Message; begins with the key.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for Error {}

/// Source text and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Creates an error at a byte offset.
    pub fn error(&self, at: usize, message: impl Into<String>) -> Error {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Error {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A value and its byte offsets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot<T> {
    pub at: usize,
    pub end: usize,
    pub value: T,
}

impl<T> From<Spanned<T>> for Spot<T> {
    fn from(spanned: Spanned<T>) -> Spot<T> {
        let span = spanned.span();
        Spot { at: span.start, end: span.end, value: spanned.into_inner() }
    }
}

/// A key with its value.
pub(super) type Entry = (Spot<String>, Spot<Value>);

/// A TOML value. Dates are not supported.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
    Truth(bool),
    List(Vec<Spot<Value>>),
    Table(Vec<Entry>),
}

impl Value {
    /// A text between quotes, TOML's basic string; empty quotes for other values.
    pub fn quoted(&self) -> String {
        let Value::Text(text) = self else { return "\"\"".to_owned() };
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
            Value::Text(_) => "a text",
            Value::Whole(_) => "a whole number",
            Value::Number(_) => "a number",
            Value::Truth(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text, a number, true, false, a list or a table")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Whole(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Truth(truth))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(value) = list.next_element::<Spanned<Value>>()? {
            nodes.push(value.into());
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            entries.push((key.into(), map.next_value::<Spanned<Value>>()?.into()));
        }
        // Restore the order of the text: tables opened twice are out of order.
        entries.sort_by_key(|(key, _)| key.at);
        Ok(Value::Table(entries))
    }
}

/// Parses a document.
///
/// # Errors
/// Invalid TOML, with position and reason.
pub(super) fn read(source: &Source<'_>) -> Result<Vec<Entry>, Error> {
    match toml::from_str::<Value>(source.text) {
        Ok(Value::Table(entries)) => Ok(entries),
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
