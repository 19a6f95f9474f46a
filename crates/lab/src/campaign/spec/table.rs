//! Reads a table key by key, by name and type. Keys left over are errors that suggest the nearest known one.

use super::node::{Located, SourceText, SpecError, TomlEntry, TomlValue};
use super::value;
use std::fmt::Display;
use std::time::Duration;

/// A user-defined key with a list of texts.
pub(super) type TomlNamedList = (Located<String>, Vec<Located<String>>);

/// A table that is being read.
pub(super) struct TomlTable<'a> {
    pub source: SourceText<'a>,
    /// Full dotted name, `data.files`; empty for the document.
    path: String,
    /// Byte offset.
    pub at: usize,
    entries: Vec<TomlEntry>,
    /// Known keys, with the offsets of their values; that of the table for those that are missing.
    asked: Vec<(&'static str, usize)>,
}

impl<'a> TomlTable<'a> {
    pub fn new(
        source: SourceText<'a>,
        path: String,
        at: usize,
        entries: Vec<TomlEntry>,
    ) -> TomlTable<'a> {
        TomlTable { source, path, at, entries, asked: Vec::new() }
    }

    /// Full name of a key.
    fn name(&self, key: &str) -> String {
        match self.path.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.path),
        }
    }

    /// Error about the value of a key that was read.
    pub fn wrong(&self, key: &str, why: impl Display) -> SpecError {
        let asked = self.asked.iter().find(|(asked, _)| *asked == key);
        self.wrong_at(asked.map_or(self.at, |(_, at)| *at), key, why)
    }

    /// Error about a key, at a byte offset.
    pub fn wrong_at(&self, at: usize, key: &str, why: impl Display) -> SpecError {
        self.source.error(at, format!("{}: {why}", self.name(key)))
    }

    /// Error about the table itself.
    pub fn lacks(&self, why: impl Display) -> SpecError {
        let name = if self.path.is_empty() { "campaign" } else { &self.path };
        self.source.error(self.at, format!("{name}: {why}"))
    }

    fn entry(&self, key: &str) -> Option<&TomlEntry> {
        self.entries.iter().find(|(own, _)| own.value == key)
    }

    /// True if a key exists.
    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    fn take(&mut self, key: &'static str) -> Option<TomlEntry> {
        let at = self.entries.iter().position(|(own, _)| own.value == key);
        let entry = at.map(|at| self.entries.remove(at));
        self.asked.push((key, entry.as_ref().map_or(self.at, |(_, value)| value.at)));
        entry
    }

    fn mismatch(&self, key: &str, value: &Located<TomlValue>, wanted: &str) -> SpecError {
        let kind = value.value.kind();
        self.wrong_at(value.at, key, format!("{wanted} is expected here, not {kind}"))
    }

    /// Reads a text.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, SpecError> {
        match self.take(key) {
            None => Ok(None),
            Some((_, Located { value: TomlValue::Text(text), .. })) => Ok(Some(text)),
            Some((_, other)) => Err(self.mismatch(key, &other, "a text")),
        }
    }

    /// Reads a required text.
    pub fn required(&mut self, key: &'static str) -> Result<String, SpecError> {
        match self.text(key)? {
            Some(text) if text.trim().is_empty() => Err(self.wrong(key, "is empty")),
            Some(text) => Ok(text),
            None => {
                let keys = self.entries.iter().map(|(key, _)| key.value.as_str());
                let near = value::nearest(key, keys);
                let near = near.map_or(String::new(), |near| format!("; is '{near}' it?"));
                Err(self.lacks(format!("'{key}' is missing{near}")))
            }
        }
    }

    /// Meaning of a text that was read: one of some words.
    pub fn meaning<T: Clone>(
        &self,
        key: &str,
        text: &str,
        words: &[(&str, T)],
    ) -> Result<T, SpecError> {
        let found =
            words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning.clone());
        found.ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(key, format!("'{text}' is neither {}", words.join(" nor ")))
        })
    }

    /// Reads a text and parses it.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SpecError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        parse(&text).map(Some).map_err(|why| self.wrong(key, why))
    }

    /// Reads a list of texts and numbers, or a single one, as texts.
    pub fn texts(&mut self, key: &'static str) -> Result<Option<Vec<Located<String>>>, SpecError> {
        let Some((_, value)) = self.take(key) else { return Ok(None) };
        self.as_texts(key, value).map(Some)
    }

    fn as_texts(
        &self,
        key: &str,
        value: Located<TomlValue>,
    ) -> Result<Vec<Located<String>>, SpecError> {
        let text = |each: Located<TomlValue>| {
            let value = match each.value {
                TomlValue::Text(text) => text,
                TomlValue::Whole(number) => number.to_string(),
                TomlValue::Number(number) => number.to_string(),
                _ => return Err(self.mismatch(key, &each, "a text or a number")),
            };
            Ok(Located { at: each.at, end: each.end, value })
        };
        listed(value).into_iter().map(text).collect()
    }

    /// Reads a list of texts and numbers, or a single one, and parses each.
    pub fn each<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, SpecError> {
        let Some(texts) = self.texts(key)? else { return Ok(None) };
        let one = |text: &Located<String>| {
            parse(&text.value).map_err(|why| self.wrong_at(text.at, key, why))
        };
        texts.iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    /// Reads a list of numbers, or a single one.
    pub fn numbers(&mut self, key: &'static str) -> Result<Option<Vec<f64>>, SpecError> {
        let Some((_, value)) = self.take(key) else { return Ok(None) };
        let number = |each: Located<TomlValue>| match each.value {
            TomlValue::Whole(number) => Ok(number as f64),
            TomlValue::Number(number) if number.is_finite() => Ok(number),
            _ => Err(self.mismatch(key, &each, "a number")),
        };
        listed(value).into_iter().map(number).collect::<Result<_, _>>().map(Some)
    }

    /// Reads one number.
    pub fn number(&mut self, key: &'static str) -> Result<Option<f64>, SpecError> {
        match self.numbers(key)?.as_deref() {
            None => Ok(None),
            Some([number]) => Ok(Some(*number)),
            Some(_) => Err(self.wrong(key, "one number is expected here")),
        }
    }

    /// Reads a whole number ≥ 0.
    pub fn whole(&mut self, key: &'static str) -> Result<Option<u64>, SpecError> {
        match self.take(key) {
            None => Ok(None),
            Some((_, Located { value: TomlValue::Whole(number), .. })) => {
                match u64::try_from(number) {
                    Ok(number) => Ok(Some(number)),
                    Err(_) => Err(self.wrong(key, "must not be negative")),
                }
            }
            Some((_, other)) => Err(self.mismatch(key, &other, "a whole number")),
        }
    }

    /// Reads a whole number in a range.
    pub fn whole_in(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, SpecError> {
        match self.whole(key)? {
            Some(number) if !range.contains(&number) => {
                let (least, most) = (range.start(), range.end());
                Err(self.wrong(key, format!("must be between {least} and {most}")))
            }
            number => Ok(number),
        }
    }

    /// Reads a boolean.
    pub fn truth(&mut self, key: &'static str) -> Result<Option<bool>, SpecError> {
        match self.take(key) {
            None => Ok(None),
            Some((_, Located { value: TomlValue::Truth(truth), .. })) => Ok(Some(truth)),
            Some((_, other)) => Err(self.mismatch(key, &other, "true or false")),
        }
    }

    /// Reads a size in bytes.
    pub fn size(&mut self, key: &'static str) -> Result<Option<u64>, SpecError> {
        match self.sizes(key)?.as_deref() {
            None => Ok(None),
            Some([bytes]) => Ok(Some(*bytes)),
            Some(_) => Err(self.wrong(key, "one size is expected here")),
        }
    }

    /// Reads a list of sizes, or a single one.
    pub fn sizes(&mut self, key: &'static str) -> Result<Option<Vec<u64>>, SpecError> {
        self.each(key, |text| {
            value::size(text).ok_or_else(|| format!("'{text}' is not a size such as 500KB or 4GiB"))
        })
    }

    /// Reads a duration.
    pub fn duration(&mut self, key: &'static str) -> Result<Option<Duration>, SpecError> {
        self.parsed(key, |text| {
            value::duration(text)
                .ok_or_else(|| format!("'{text}' is not a duration such as 50ms or 2m"))
        })
    }

    /// True if the value of a key is a table.
    pub fn is_table(&self, key: &str) -> bool {
        self.entry(key).is_some_and(|(_, value)| matches!(value.value, TomlValue::Table(_)))
    }

    /// Reads a subtable.
    pub fn table(&mut self, key: &'static str) -> Result<Option<TomlTable<'a>>, SpecError> {
        match self.take(key) {
            None => Ok(None),
            Some((own, Located { value: TomlValue::Table(entries), .. })) => {
                Ok(Some(TomlTable::new(self.source, self.name(key), own.at, entries)))
            }
            Some((_, other)) => Err(self.mismatch(key, &other, "a table")),
        }
    }

    /// Reads a subtable that has no keys besides those which `read` asks for.
    pub fn inside<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut TomlTable<'a>) -> Result<T, SpecError>,
    ) -> Result<Option<T>, SpecError> {
        self.table(key)?.map(|table| table.whole_by(read)).transpose()
    }

    fn whole_by<T>(
        mut self,
        read: impl FnOnce(&mut TomlTable<'a>) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        let found = read(&mut self)?;
        self.end()?;
        Ok(found)
    }

    /// Reads a list of tables (`[[key]]`).
    pub fn list<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut TomlTable<'a>) -> Result<T, SpecError>,
    ) -> Result<Vec<T>, SpecError> {
        let Some((_, value)) = self.take(key) else { return Ok(Vec::new()) };
        let TomlValue::List(values) = value.value else {
            return Err(self.mismatch(key, &value, "a list of tables ([[…]])"));
        };
        let table = |(place, each): (usize, Located<TomlValue>)| match each.value {
            TomlValue::Table(entries) => {
                let name = format!("{}[{}]", self.name(key), place + 1);
                Ok(TomlTable::new(self.source, name, each.at, entries))
            }
            _ => Err(self.mismatch(key, &each, "a table")),
        };
        let tables = values.into_iter().enumerate().map(table).collect::<Result<Vec<_>, _>>()?;
        tables.into_iter().map(|table| table.whole_by(&mut read)).collect()
    }

    /// Reads the tables with user-defined names in a subtable.
    pub fn named<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(String, &mut TomlTable<'a>) -> Result<T, SpecError>,
    ) -> Result<Vec<T>, SpecError> {
        let Some(mut all) = self.table(key)? else { return Ok(Vec::new()) };
        let entries = std::mem::take(&mut all.entries);
        let table = |(key, value): TomlEntry| match value.value {
            TomlValue::Table(entries) => {
                let table = TomlTable::new(all.source, all.name(&key.value), key.at, entries);
                Ok((key.value, table))
            }
            _ => Err(all.mismatch(&key.value, &value, "a table")),
        };
        let tables = entries.into_iter().map(table).collect::<Result<Vec<_>, _>>()?;
        tables.into_iter().map(|(name, own)| own.whole_by(|own| read(name, own))).collect()
    }

    /// Reads all keys as lists of texts with user-defined names.
    pub fn lists(&self) -> Result<Vec<TomlNamedList>, SpecError> {
        let list =
            |(key, value): &TomlEntry| Ok((key.clone(), self.as_texts(&key.value, value.clone())?));
        self.entries.iter().map(list).collect()
    }

    /// Ends the table; fails if a key is left.
    pub fn end(self) -> Result<(), SpecError> {
        let Some((key, _)) = self.entries.first() else { return Ok(()) };
        let hint = value::hint(&key.value, self.asked.iter().map(|(key, _)| *key));
        Err(self.wrong_at(key.at, &key.value, format!("is not known here{hint}")))
    }
}

/// Items of a list; a single value is a list of one.
fn listed(value: Located<TomlValue>) -> Vec<Located<TomlValue>> {
    match value.value {
        TomlValue::List(values) => values,
        _ => vec![value],
    }
}
