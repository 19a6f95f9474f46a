//! Reads a table key by key, by name and type. Keys left over are errors that suggest the nearest known one.

use super::node::{Entry, Error, Node, Source, Value};
use super::value;
use std::time::Duration;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot<T> {
    pub at: usize,
    pub value: T,
}

/// A user-defined key with a list of texts.
pub(super) type NamedList = (Spot<String>, Vec<Spot<String>>);

/// A table that is being read.
pub(super) struct Table<'a> {
    pub source: Source<'a>,
    /// Full dotted name, `data.files`; empty for the document.
    pub path: String,
    /// Byte offset.
    pub at: usize,
    entries: Vec<Entry>,
    asked: Vec<&'static str>,
}

impl<'a> Table<'a> {
    pub fn new(source: Source<'a>, path: String, at: usize, entries: Vec<Entry>) -> Table<'a> {
        Table { source, path, at, entries, asked: Vec::new() }
    }

    /// Full name of a key.
    pub fn name(&self, key: &str) -> String {
        match self.path.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.path),
        }
    }

    /// Error about a key, at a byte offset.
    pub fn wrong(&self, at: usize, key: &str, why: impl std::fmt::Display) -> Error {
        self.source.error(at, format!("{}: {why}", self.name(key)))
    }

    /// Error about the table itself.
    pub fn lacks(&self, why: impl std::fmt::Display) -> Error {
        let name = if self.path.is_empty() { "campaign" } else { &self.path };
        self.source.error(self.at, format!("{name}: {why}"))
    }

    /// True if a key exists.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    fn take(&mut self, key: &'static str) -> Option<Entry> {
        self.asked.push(key);
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    fn mismatch(&self, key: &str, node: &Node, wanted: &str) -> Error {
        self.wrong(node.at, key, format!("{wanted} is expected here, not {}", node.value.kind()))
    }

    /// Reads a text.
    pub fn text(&mut self, key: &'static str) -> Result<Option<Spot<String>>, Error> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.node.value {
            Value::Text(text) => Ok(Some(Spot { at: entry.node.at, value: text })),
            _ => Err(self.mismatch(key, &entry.node, "a text")),
        }
    }

    /// Reads a required text.
    pub fn required(&mut self, key: &'static str) -> Result<Spot<String>, Error> {
        match self.text(key)? {
            Some(text) if text.value.trim().is_empty() => Err(self.wrong(text.at, key, "is empty")),
            Some(text) => Ok(text),
            None => {
                let keys = self.entries.iter().map(|entry| entry.key.as_str());
                let near = value::nearest(key, keys);
                let near = near.map_or(String::new(), |near| format!("; is '{near}' it?"));
                Err(self.lacks(format!("'{key}' is missing{near}")))
            }
        }
    }

    /// Reads a list of texts and numbers, or a single one, as texts.
    pub fn texts(&mut self, key: &'static str) -> Result<Option<Spot<Vec<Spot<String>>>>, Error> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let at = entry.node.at;
        let value = self.as_texts(key, entry.node)?;
        Ok(Some(Spot { at, value }))
    }

    fn as_texts(&self, key: &str, node: Node) -> Result<Vec<Spot<String>>, Error> {
        let nodes = match node.value {
            Value::List(nodes) => nodes,
            _ => vec![node],
        };
        let text = |node: Node| match node.value {
            Value::Text(text) => Ok(Spot { at: node.at, value: text }),
            Value::Whole(number) => Ok(Spot { at: node.at, value: number.to_string() }),
            Value::Number(number) => Ok(Spot { at: node.at, value: number.to_string() }),
            _ => Err(self.mismatch(key, &node, "a text or a number")),
        };
        nodes.into_iter().map(text).collect()
    }

    /// Reads a list of numbers, or a single one.
    pub fn numbers(&mut self, key: &'static str) -> Result<Option<Spot<Vec<f64>>>, Error> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let at = entry.node.at;
        let nodes = match entry.node.value {
            Value::List(nodes) => nodes,
            _ => vec![entry.node],
        };
        let number = |node: &Node| match node.value {
            Value::Whole(number) => Ok(number as f64),
            Value::Number(number) if number.is_finite() => Ok(number),
            _ => Err(self.mismatch(key, node, "a number")),
        };
        let value = nodes.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Some(Spot { at, value }))
    }

    /// Reads one number.
    pub fn number(&mut self, key: &'static str) -> Result<Option<Spot<f64>>, Error> {
        let Some(numbers) = self.numbers(key)? else { return Ok(None) };
        match numbers.value[..] {
            [value] => Ok(Some(Spot { at: numbers.at, value })),
            _ => Err(self.wrong(numbers.at, key, "one number is expected here")),
        }
    }

    /// Reads a whole number ≥ 0.
    pub fn whole(&mut self, key: &'static str) -> Result<Option<Spot<u64>>, Error> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.node.value {
            Value::Whole(number) if number >= 0 => {
                Ok(Some(Spot { at: entry.node.at, value: number as u64 }))
            }
            Value::Whole(_) => Err(self.wrong(entry.node.at, key, "must not be negative")),
            _ => Err(self.mismatch(key, &entry.node, "a whole number")),
        }
    }

    /// Reads a whole number in a range.
    pub fn whole_in(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Error> {
        match self.whole(key)? {
            Some(number) if !range.contains(&number.value) => {
                let (least, most) = (range.start(), range.end());
                Err(self.wrong(number.at, key, format!("must be between {least} and {most}")))
            }
            number => Ok(number.map(|number| number.value)),
        }
    }

    /// Reads a boolean.
    pub fn truth(&mut self, key: &'static str) -> Result<Option<bool>, Error> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.node.value {
            Value::Truth(truth) => Ok(Some(truth)),
            _ => Err(self.mismatch(key, &entry.node, "true or false")),
        }
    }

    /// Reads a size in bytes.
    pub fn size(&mut self, key: &'static str) -> Result<Option<Spot<u64>>, Error> {
        let Some(sizes) = self.sizes(key)? else { return Ok(None) };
        match sizes.value[..] {
            [value] => Ok(Some(Spot { at: sizes.at, value })),
            _ => Err(self.wrong(sizes.at, key, "one size is expected here")),
        }
    }

    /// Reads a list of sizes, or a single one.
    pub fn sizes(&mut self, key: &'static str) -> Result<Option<Spot<Vec<u64>>>, Error> {
        let Some(texts) = self.texts(key)? else { return Ok(None) };
        let size = |text: &Spot<String>| {
            value::size(&text.value).ok_or_else(|| {
                let why = format!("'{}' is not a size such as 500KB or 4GiB", text.value);
                self.wrong(text.at, key, why)
            })
        };
        let value = texts.value.iter().map(size).collect::<Result<_, _>>()?;
        Ok(Some(Spot { at: texts.at, value }))
    }

    /// Reads a duration.
    pub fn duration(&mut self, key: &'static str) -> Result<Option<Spot<Duration>>, Error> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let duration = value::duration(&text.value).ok_or_else(|| {
            self.wrong(
                text.at,
                key,
                format!("'{}' is not a duration such as 50ms or 2m", text.value),
            )
        })?;
        Ok(Some(Spot { at: text.at, value: duration }))
    }

    /// True if the value of a key is a table.
    pub fn is_table(&self, key: &str) -> bool {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        entry.is_some_and(|entry| matches!(entry.node.value, Value::Table(_)))
    }

    /// Reads a subtable.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Table<'a>>, Error> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.node.value {
            Value::Table(entries) => {
                Ok(Some(Table::new(self.source, self.name(key), entry.at, entries)))
            }
            _ => Err(self.mismatch(key, &entry.node, "a table")),
        }
    }

    /// Reads a list of tables (`[[key]]`).
    pub fn list(&mut self, key: &'static str) -> Result<Vec<Table<'a>>, Error> {
        let Some(entry) = self.take(key) else { return Ok(Vec::new()) };
        let Value::List(nodes) = entry.node.value else {
            return Err(self.mismatch(key, &entry.node, "a list of tables ([[…]])"));
        };
        let mut tables = Vec::new();
        for (number, node) in nodes.into_iter().enumerate() {
            let name = format!("{}[{}]", self.name(key), number + 1);
            match node.value {
                Value::Table(entries) => {
                    tables.push(Table::new(self.source, name, node.at, entries));
                }
                _ => return Err(self.mismatch(key, &node, "a table")),
            }
        }
        Ok(tables)
    }

    /// Reads the rest as tables with user-defined names.
    pub fn named(self) -> Result<Vec<(Spot<String>, Table<'a>)>, Error> {
        let mut tables = Vec::new();
        for entry in &self.entries {
            let name = self.name(&entry.key);
            let Value::Table(entries) = &entry.node.value else {
                return Err(self.mismatch(&entry.key, &entry.node, "a table"));
            };
            let table = Table::new(self.source, name, entry.at, entries.clone());
            tables.push((Spot { at: entry.at, value: entry.key.clone() }, table));
        }
        Ok(tables)
    }

    /// Reads the rest as lists of texts with user-defined names.
    pub fn lists(self) -> Result<Vec<NamedList>, Error> {
        let mut lists = Vec::new();
        for entry in &self.entries {
            let texts = self.as_texts(&entry.key, entry.node.clone())?;
            lists.push((Spot { at: entry.at, value: entry.key.clone() }, texts));
        }
        Ok(lists)
    }

    /// Ends the table; fails if a key is left.
    pub fn end(self) -> Result<(), Error> {
        let Some(entry) = self.entries.first() else { return Ok(()) };
        let hint = value::hint(&entry.key, self.asked.iter().copied());
        Err(self.wrong(entry.at, &entry.key, format!("is not known here{hint}")))
    }
}
