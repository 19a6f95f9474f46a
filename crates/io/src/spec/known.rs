//! One option of jobs: its names, the form of its value, its effect.

use super::draft::Draft;

/// Form of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A value.
    Value,
    /// Perhaps `=1` or `=0`; nothing is 1.
    Mark,
    /// Perhaps a text.
    Text,
}

/// Effect of an option.
#[derive(Clone, Copy)]
pub enum Does {
    /// Sets something; the error goes on after the option.
    Set(fn(&mut Draft, &str) -> Result<(), String>),
    /// No effect: these values name the only supported behaviour; others are refused.
    Stays(&'static [&'static str]),
    /// No effect on measurements, with the reason; the value is ignored.
    Noted(&'static str),
}

/// One option of jobs.
#[derive(Clone, Copy)]
pub struct Known {
    /// fio's first name for it.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// Its value.
    pub takes: Takes,
    /// Whether commas separate values of a sweep on the command line; they have no other meaning in these values.
    pub sweeps: bool,
    /// Its effect.
    pub does: Does,
}

/// Sets an option of a draft.
pub type Set = fn(&mut Draft, &str) -> Result<(), String>;

/// An option with a value.
pub const fn value(name: &'static str, set: Set) -> Known {
    Known { name, aliases: &[], takes: Takes::Value, sweeps: true, does: Does::Set(set) }
}

/// An option that perhaps has a value.
pub const fn mark(name: &'static str, set: Set) -> Known {
    Known { takes: Takes::Mark, ..value(name, set) }
}

/// An option that accepts only the value that applies anyway.
pub const fn stays(name: &'static str, values: &'static [&'static str]) -> Known {
    Known { name, aliases: &[], takes: Takes::Value, sweeps: false, does: Does::Stays(values) }
}

/// An option that is taken and changes nothing that is measured here.
pub const fn noted(name: &'static str, why: &'static str) -> Known {
    Known { name, aliases: &[], takes: Takes::Value, sweeps: false, does: Does::Noted(why) }
}

impl Known {
    /// The same with other names.
    pub const fn alias(self, aliases: &'static [&'static str]) -> Known {
        Known { aliases, ..self }
    }

    /// Commas are a part of its value.
    pub const fn commas(self) -> Known {
        Known { sweeps: false, ..self }
    }

    /// The same with another form of its value.
    pub const fn takes(self, takes: Takes) -> Known {
        Known { takes, ..self }
    }

    /// Returns whether `name` is one of its names.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// First names of options that set something.
pub fn settable(options: &[Known]) -> Vec<&'static str> {
    let set = options.iter().filter(|known| matches!(known.does, Does::Set(_)));
    set.map(|known| known.name).collect()
}

/// Stores the parsed value.
pub fn put<T>(place: &mut T, read: Result<T, String>) -> Result<(), String> {
    *place = read?;
    Ok(())
}
