//! Job files: sections of options, one in a line, as fio reads them (its HOWTO, "Job file format").

use super::Outside;
use super::section::{Place, Section, Setting};

/// Files that one job file includes, at most: one that includes itself would otherwise never end.
const INCLUDED_MAX: usize = 256;

/// Reads a job file and those that it includes.
struct Reader<'a> {
    outside: &'a dyn Outside,
    sections: Vec<Section>,
    included: usize,
}

/// Returns whether a section holds options for all jobs after it: as in fio, if its name begins with `global`.
pub fn is_global(name: &str) -> bool {
    name.starts_with("global")
}

/// The sections of a job file.
///
/// # Errors
/// It cannot be read; the message names file and line.
pub fn sections(name: &str, text: &str, outside: &dyn Outside) -> Result<Vec<Section>, String> {
    let mut reader = Reader { outside, sections: Vec::new(), included: 0 };
    reader.read(name, text)?;
    Ok(reader.sections)
}

impl Reader<'_> {
    /// Reads one file.
    fn read(&mut self, name: &str, text: &str) -> Result<(), String> {
        let nested = self.included > 0;
        for (at, line) in text.lines().enumerate() {
            let wrong = |why: &str| format!("{name}:{}: {why}", at + 1);
            if line.contains('\0') {
                return Err(wrong("is not valid UTF-8"));
            }
            let line = bare(line);
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                if nested {
                    return Err(wrong("a section in a file that is included"));
                }
                let job = match rest.strip_suffix(']') {
                    Some("") => return Err(wrong("a section without a name")),
                    Some(job) => job,
                    None => return Err(wrong("a section that does not end with ]")),
                };
                let job = (!is_global(job)).then(|| job.to_owned());
                self.sections.push(Section::of(job));
                continue;
            }
            let Some(section) = self.sections.last_mut() else {
                return Err(wrong(&format!("{line} comes before the first [section]")));
            };
            let include = line.strip_prefix("include");
            match include.and_then(|rest| rest.strip_prefix([' ', '\t'])) {
                Some(other) => {
                    let (path, text) =
                        self.include(name, other.trim()).map_err(|why| wrong(&why))?;
                    self.read(&path, &text)?;
                }
                None => {
                    let place = Place::File(name.to_owned(), at + 1);
                    section.settings.push(setting(line, place, self.outside));
                }
            }
        }
        Ok(())
    }

    /// The path and the text of a file that another one names: as seen from where the program
    /// runs, or else from where the file is that names it.
    fn include(&mut self, name: &str, other: &str) -> Result<(String, String), String> {
        self.included += 1;
        if self.included > INCLUDED_MAX {
            return Err(format!("more than {INCLUDED_MAX} files are included"));
        }
        let error = match self.outside.include(other) {
            Ok(text) => return Ok((other.to_owned(), text)),
            Err(error) => error,
        };
        let beside = name.rsplit_once('/').filter(|_| !other.starts_with('/'));
        if let Some((dir, _)) = beside {
            let path = format!("{dir}/{other}");
            if let Ok(text) = self.outside.include(&path) {
                return Ok((path, text));
            }
        }
        Err(format!("cannot include {other}: {error}"))
    }
}

/// A line without what surrounds it: white space, and a comment from the first `;` or `#` on.
fn bare(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

/// Reads `NAME=VALUE` or `NAME`.
fn setting(line: &str, place: Place, outside: &dyn Outside) -> Setting {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
        None => (line, None),
    };
    let (value, unset) = value.map(|value| expanded(value, outside)).unzip();
    let mut unset: Vec<String> = unset.unwrap_or_default();
    unset.dedup();
    Setting { name: name.to_owned(), value, place, swept: false, unset }
}

/// A value with `${VARIABLE}` and fio's keywords replaced; and the variables that there are not,
/// which count as empty.
fn expanded(value: &str, outside: &dyn Outside) -> (String, Vec<String>) {
    let (mut out, mut unset) = (String::with_capacity(value.len()), Vec::new());
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let Some(length) = rest[at..].find('}') else { break };
        out.push_str(&rest[..at]);
        let name = &rest[at + 2..at + length];
        match outside.variable(name) {
            Some(text) => out.push_str(&text),
            None => unset.push(name.to_owned()),
        }
        rest = &rest[at + length + 1..];
    }
    out.push_str(rest);
    for (keyword, number) in [
        ("$ncpus", outside.cpus()),
        ("$pagesize", outside.page_bytes()),
        ("$mb_memory", outside.memory_mib()),
    ] {
        if out.contains(keyword) {
            out = out.replace(keyword, &number.to_string());
        }
    }
    (out, unset)
}
