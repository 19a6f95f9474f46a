//! Options that are handed on as they were typed.

use crate::options::{self, Block, OptArg, Row, Takes};

/// An option as it was typed, and its value.
pub type Word = (String, Option<String>);

/// Options that are handed on: the reader of options and job files gives all of them their meaning,
/// those of the command line and those in files.
pub struct Handed(pub(super) &'static str, pub(super) &'static [Row]);

/// An empty group of options.
pub(super) const fn handed(title: &'static str) -> Handed {
    Handed(title, &[])
}

impl Handed {
    /// The same with these options.
    pub(super) const fn with(self, rows: &'static [Row]) -> Handed {
        Handed(self.0, rows)
    }
}

impl Block<Vec<Word>> for Handed {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        self.1.iter().map(|row| (self.0, row)).collect()
    }

    fn set(&self, words: &mut Vec<Word>, given: &OptArg) -> Option<Result<(), String>> {
        let row = self.1.iter().find(|row| row.name == given.name)?;
        Some(given.text().map(|text| {
            words.push((row.name.to_owned(), (!text.is_empty()).then(|| text.to_owned())));
        }))
    }
}

/// An option of jobs with a value.
pub(super) const fn job(name: &'static str, what: &'static str, help: &'static str) -> Row {
    options::values(name, None, what, help)
}

/// An option of jobs that perhaps has a value.
pub(super) const fn mark(name: &'static str, what: &'static str, help: &'static str) -> Row {
    job(name, what, help).takes(Takes::PerhapsValues(what))
}

/// An option of the run with a value, of which the last one counts.
pub(super) const fn value(name: &'static str, what: &'static str, help: &'static str) -> Row {
    options::value(name, None, what, help)
}

/// A switch of the run.
pub(super) const fn flag(name: &'static str, help: &'static str) -> Row {
    options::flag(name, None, help)
}

/// An option that accepts only the value that applies anyway.
pub(super) const fn stays(name: &'static str, value: &'static str) -> Row {
    job(name, value, "no other value")
}
