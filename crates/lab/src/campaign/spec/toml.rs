//! TOML with source positions: the document as a tree, and tables that are read key by key, by name and type. Errors
//! refer to lines; keys left over are errors that suggest the nearest known one.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::fmt::Display;
use std::time::Duration;
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

error_type!(SpecError: ; );

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

// Reads a table key by key, by name and type. Keys left over are errors that suggest the nearest known one.

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
                let near = nearest(key, keys);
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

    /// Reads a text that is one of some words, and returns its meaning.
    pub fn word<T: Clone>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, SpecError> {
        self.text(key)?.map(|text| self.meaning(key, &text, words)).transpose()
    }

    /// Reads a text and parses it.
    pub fn parsed<T, E: Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
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
        as_list(value).into_iter().map(text).collect()
    }

    /// Reads a list of texts and numbers, or a single one, and parses each.
    pub fn each<T, E: Display>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
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
        as_list(value).into_iter().map(number).collect::<Result<_, _>>().map(Some)
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
            size(text).ok_or_else(|| format!("'{text}' is not a size such as 500KB or 4GiB"))
        })
    }

    /// Reads a duration.
    pub fn duration(&mut self, key: &'static str) -> Result<Option<Duration>, SpecError> {
        self.parsed(key, |text| {
            duration(text).ok_or_else(|| format!("'{text}' is not a duration such as 50ms or 2m"))
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

    /// Reads such a subtable; one without keys if it is missing.
    pub fn section<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut TomlTable<'a>) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        let empty = TomlTable::new(self.source, self.name(key), self.at, Vec::new());
        self.table(key)?.unwrap_or(empty).whole_by(read)
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
        let hint = hint(&key.value, self.asked.iter().map(|(key, _)| *key));
        Err(self.wrong_at(key.at, &key.value, format!("is not known here{hint}")))
    }
}

/// Items of a list; a single value is a list of one.
fn as_list(value: Located<TomlValue>) -> Vec<Located<TomlValue>> {
    match value.value {
        TomlValue::List(values) => values,
        _ => vec![value],
    }
}

/// Parses a size in bytes like all options ([`hakobu_core::number`]); a space may precede the unit.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    hakobu_core::number::parse_size(format!("{number}{}", unit.trim_start()).as_ref(), 1).ok()
}

/// Parses a duration: a number with `us`, `ms`, `s`, `m` or `h`. `None` if invalid.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim_start() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
}

/// Formats a duration: `50 ms`.
pub fn duration_text(duration: Duration) -> String {
    let microseconds = duration.as_micros();
    match microseconds {
        _ if microseconds.is_multiple_of(1_000_000) => {
            format!("{} s", microseconds / 1_000_000)
        }
        _ if microseconds.is_multiple_of(1000) => format!("{} ms", microseconds / 1000),
        _ => format!("{microseconds} us"),
    }
}

/// Formats a size in the largest unit that needs no fraction: `500 KB`, `4 GiB`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: &[(u64, &str)] = &[
        (1 << 40, "TiB"),
        (1_000_000_000_000, "TB"),
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1000, "KB"),
    ];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// True if a text can name a campaign, data set or place: it becomes part of paths.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain) && !text.starts_with('-')
}

/// True if a text can be a placeholder.
pub fn is_placeholder(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Most similar known word.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|name| (strsim::osa_distance(word, name), name));
    near.filter(|(far, name)| *far <= 2 && *far < name.len()).min().map(|(_, name)| name)
}

/// `; did you mean 'NAME'?`, or the list of known words.
fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => {
            let known: Vec<&str> = known.into_iter().collect();
            match known.is_empty() {
                true => String::new(),
                false => format!("; there are: {}", known.join(", ")),
            }
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A program with a command that is known.
    KnownTool,
    /// A place of the campaign.
    Place,
    /// A swept parameter.
    Swept,
    /// A placeholder in a command.
    Placeholder,
    /// A tool of the campaign.
    Tool,
}

/// A name that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    kind: NameKind,
    name: String,
    hint: String,
}

impl UnknownName {
    /// Looks a name up among those that are known.
    pub fn check<'a>(
        kind: NameKind,
        name: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Result<(), UnknownName> {
        match known.clone().into_iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(UnknownName { kind, name: name.to_owned(), hint: hint(name, known) }),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { kind, name, hint } = self;
        match kind {
            NameKind::KnownTool => write!(out, "no tool '{name}' is known{hint}"),
            NameKind::Place => write!(out, "there is no place '{name}'{hint}"),
            NameKind::Swept => write!(out, "'{name}' is not swept{hint}"),
            NameKind::Placeholder => {
                write!(out, "{{{name}}} is not defined: sweep it or set it{hint}")
            }
            NameKind::Tool => write!(out, "there is no tool '{name}'{hint}"),
        }
    }
}

error_type!(UnknownName: ; );

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("15", Some(15)),
            ("15B", Some(15)),
            ("500KB", Some(500_000)),
            ("500 KB", Some(500_000)),
            ("4k", Some(4096)),
            ("4KiB", Some(4096)),
            ("1.5m", Some(1_572_864)),
            ("4GiB", Some(4 << 30)),
            ("2T", Some(2 << 40)),
            ("", None),
            ("k", None),
            ("4x", None),
            ("4kb2", None),
            ("-4", None),
            ("1..5k", None),
            ("99999999999999999999", None),
            ("9999999999T", None),
        ] {
            assert_eq!(size(text), bytes, "{text:?}");
        }
        for (bytes, text) in [
            (0, "0 bytes"),
            (15, "15 bytes"),
            (500_000, "500 KB"),
            (4096, "4 KiB"),
            (10 << 20, "10 MiB"),
            (4 << 30, "4 GiB"),
            (1_500_000_000, "1500 MB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn durations() {
        for (text, us) in [
            ("50ms", Some(50_000)),
            ("1.5 s", Some(1_500_000)),
            ("2m", Some(120_000_000)),
            ("1h", Some(3_600_000_000)),
            ("7us", Some(7)),
            ("5", None),
            ("ms", None),
            ("-1s", None),
            ("99999999999h", None),
        ] {
            assert_eq!(duration(text), us.map(Duration::from_micros), "{text:?}");
        }
        assert_eq!(duration_text(Duration::from_millis(50)), "50 ms");
        assert_eq!(duration_text(Duration::from_secs(60)), "60 s");
        assert_eq!(duration_text(Duration::from_micros(1500)), "1500 us");
    }

    #[test]
    fn words() {
        assert_eq!(nearest("jbos", ["jobs", "name"]), Some("jobs"));
        assert_eq!(nearest("nothing", ["jobs", "name"]), None);
        assert_eq!(hint("colour", ["a", "b"]), "; there are: a, b");
        assert!(is_name("a-rsync_2") && !is_name("") && !is_name("-a") && !is_name("a/b"));
        assert!(!is_name("..") && !is_name("Ä") && !is_name("a b"));
        assert!(is_placeholder("queue_size") && !is_placeholder("2") && !is_placeholder("A"));
    }
}
