//! The options that clap found, in command-line order.

use super::table::PATHS;
use super::{OptArg, Row, Table, Takes, Typed};
use clap::ArgMatches;
use std::ffi::OsString;

impl<S> Table<S> {
    /// Joins an option with the next word if that is one of its possible values.
    pub(super) fn with_values(&self, arguments: &[OsString]) -> Vec<OsString> {
        let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
        let mut values: &[&str] = &[];
        for word in arguments {
            let text = word.to_str().unwrap_or_default();
            match joined.last_mut().filter(|_| values.contains(&text)) {
                Some(option) => {
                    option.push("=");
                    option.push(word);
                    values = &[];
                }
                None => {
                    joined.push(word.clone());
                    let row = text.strip_prefix("--");
                    let row = row.and_then(|name| self.rows().find(|row| row.name == name));
                    values = match row.map(|row| row.takes) {
                        Some(Takes::PerhapsOneOf(_, values)) => values,
                        _ => &[],
                    };
                }
            }
        }
        joined
    }

    pub(super) fn in_order(&self, matches: &ArgMatches) -> Typed {
        let mut found: Vec<(usize, OptArg)> = Vec::new();
        let arg = |name, on, count, value| OptArg { name, on, count, value };
        let typed =
            |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let rows: Vec<&Row> = self.rows().collect();
        for option in &rows {
            let name = option.name;
            if let Some(off) = option.off.first().filter(|off| typed(off)) {
                let last = matches.indices_of(off).and_then(|mut at| at.next_back()).unwrap_or(0);
                found.push((last, arg(name, false, 0, OsString::new())));
            }
            if !typed(name) {
                continue;
            }
            let Some(mut places) = matches.indices_of(name) else { continue };
            match option.takes {
                Takes::Nothing | Takes::Count => {
                    let counts = option.takes == Takes::Count;
                    let count = if counts { matches.get_count(name) } else { 1 };
                    let last = places.next_back();
                    found.extend(last.map(|at| (at, arg(name, true, count, "".into()))));
                }
                Takes::Marks => {
                    found.extend(places.map(|at| (at, arg(name, true, 1, "".into()))));
                }
                Takes::Words(names) => {
                    let places: Vec<usize> = places.collect();
                    let values = matches.get_many::<OsString>(name).into_iter().flatten();
                    let values: Vec<&OsString> = values.collect();
                    let each = places.chunks(names.len()).zip(values.chunks(names.len()));
                    found.extend(each.filter_map(|(at, words)| {
                        let mut joined = (*words.first()?).clone();
                        for word in &words[1..] {
                            joined.push("=");
                            joined.push(word);
                        }
                        Some((*at.first()?, arg(name, true, 1, joined)))
                    }));
                }
                Takes::Value(_)
                | Takes::Values(_)
                | Takes::Perhaps(_)
                | Takes::PerhapsValues(_)
                | Takes::PerhapsOneOf(..) => {
                    let values = matches.get_many::<OsString>(name).into_iter().flatten();
                    found.extend(
                        places.zip(values).map(|(at, v)| (at, arg(name, true, 1, v.clone()))),
                    );
                }
            }
        }
        found.sort_by_key(|(at, _)| *at);
        let (mut notes, mut noted) = (Vec::new(), Vec::new());
        let mut options = Vec::with_capacity(found.len());
        for (_, arg) in found {
            let row = rows.iter().find(|row| row.name == arg.name);
            match row.and_then(|row| Some((*row, row.note?))) {
                Some((row, why)) => {
                    notes.push((spelling(row, arg.on), why));
                    noted.push(arg);
                }
                None => options.push(arg),
            }
        }
        Typed {
            options,
            noted,
            notes,
            paths: matches.get_many::<OsString>(PATHS).into_iter().flatten().cloned().collect(),
        }
    }
}

/// Returns an option as typed, without its value.
fn spelling(row: &Row, on: bool) -> String {
    match row.short {
        Some(short) if on => format!("-{short}"),
        _ if on => format!("--{}", row.name),
        _ => format!("--{}", row.off.first().unwrap_or(&row.name)),
    }
}
