//! What was written: options of the command line and of job files (fio's HOWTO, "Job file format"), taken apart into
//! sections with their places, and made into jobs once for each cell of a sweep.

use super::draft::{self, Draft};
use super::options::{Effect, IoOption, Takes, find};
use super::refused::FIOS_ALONE;
use super::{Axis, Environment, Job, Request, RunOptions, lists};
use std::borrow::Cow;
use std::fmt;

/// Files that one job file includes, at most: one that includes itself would otherwise never end.
const INCLUDED_MAX: usize = 256;
/// Cells of a sweep, at most.
const CELLS_MAX: usize = 10_000;

/// The name of the job that options without a `name` make.
const UNNAMED: &str = "io";

/// Origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    CommandLine,
    /// A line (from 1) of a job file.
    File(String, usize),
}

/// One option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: Option<String>,
    pub origin: Origin,
    /// Its value is a list of which each cell of a sweep takes one.
    pub swept: bool,
    /// Variables that have no value, and counted as empty.
    pub unset: Vec<String>,
}

/// A section of a job file, or what follows a `--name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The job's name; `None` for options that hold for all jobs after them.
    pub job: Option<String>,
    /// The first job of a second or later job file: it waits for all before it.
    pub waits: bool,
    /// Its options, in order.
    pub settings: Vec<Setting>,
}

impl Section {
    /// One without options.
    pub fn of(job: Option<String>) -> Section {
        Section { job, waits: false, settings: Vec::new() }
    }
}

/// Takes a command line apart. The lists in it are looked at later.
fn typed(arguments: &[(String, Option<String>)]) -> Result<(RunOptions, Vec<Section>), String> {
    let mut run = RunOptions::default();
    // What follows a `--name` is that job's, what comes before the first is for all of them.
    let mut sections = vec![Section::of(None)];
    for (name, value) in arguments {
        let setting = Setting::typed(name, value.as_deref());
        let option = find(name).map_err(|why| setting.wrong(&why))?;
        if let Effect::Run(set) = option.effect {
            let value = match (value.as_deref(), option.takes) {
                (None, Takes::Switch) => "1",
                (None, _) | (Some(""), Takes::Value) => return Err(setting.wrong("needs a value")),
                (Some(value), _) => value,
            };
            set(&mut run, value).map_err(|why| setting.wrong(&why))?;
        } else if option.name == "name" {
            let job = value.as_deref().filter(|job| !job.is_empty());
            let job = job.ok_or_else(|| setting.wrong("needs a value"))?;
            sections.push(Section::of((!is_global(job)).then(|| job.to_owned())));
        } else if let Some(section) = sections.last_mut() {
            let is_list = value.as_deref().is_some_and(lists::is_list);
            section.settings.push(Setting { swept: option.sweeps && is_list, ..setting });
        }
    }
    Ok((run, sections))
}

/// Returns whether a section holds options for all jobs after it: as in fio, if its name begins with `global`.
fn is_global(name: &str) -> bool {
    name.starts_with("global")
}

/// Reader of a job file and those that it includes.
struct JobFileReader<'a> {
    outside: &'a dyn Environment,
    sections: Vec<Section>,
    included: usize,
}

impl JobFileReader<'_> {
    fn read(&mut self, name: &str, text: &str) -> Result<(), String> {
        let nested = self.included > 0;
        for (at, line) in text.lines().enumerate() {
            let wrong = |why: &str| format!("{name}:{}: {why}", at + 1);
            if line.contains('\0') {
                return Err(wrong("not valid UTF-8"));
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
                    let origin = Origin::File(name.to_owned(), at + 1);
                    section.settings.push(setting(line, origin, self.outside));
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
fn setting(line: &str, origin: Origin, outside: &dyn Environment) -> Setting {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
        None => (line, None),
    };
    let (value, unset) = value.map(|value| expanded(value, outside)).unzip();
    let mut unset: Vec<String> = unset.unwrap_or_default();
    unset.dedup();
    Setting { name: name.to_owned(), value, origin, swept: false, unset }
}

/// A value with `${VARIABLE}` and fio's keywords replaced; and the variables that there are not,
/// which count as empty.
fn expanded(value: &str, outside: &dyn Environment) -> (String, Vec<String>) {
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

impl fmt::Display for Setting {
    /// As an error begins: `--bs=4q`, `job.fio:3: bs=4q`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::CommandLine => write!(f, "--")?,
            Origin::File(name, line) => write!(f, "{name}:{line}: ")?,
        }
        write!(f, "{}", self.name)?;
        let value = self.value.as_deref();
        value.map_or(Ok(()), |value| write!(f, "={value}"))
    }
}

impl Setting {
    /// One of the command line.
    pub fn typed(name: &str, value: Option<&str>) -> Setting {
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        Setting { name, value, origin: Origin::CommandLine, swept: false, unset: Vec::new() }
    }

    /// The message for an invalid one.
    pub fn wrong(&self, why: &str) -> String {
        match self.unset.as_slice() {
            [] => format!("{self}: {why}"),
            unset => format!("{self}: {why} (not set in the environment: {})", unset.join(", ")),
        }
    }

    /// Lets it have its effect on a job.
    fn apply(&self, draft: &mut Draft) -> Result<(), String> {
        let option = find(&self.name).map_err(|why| self.wrong(&why))?;
        let value = match (self.value.as_deref(), option.takes) {
            (Some(value), _) => value.trim(),
            (None, Takes::Text) => "",
            (None, Takes::Mark) => "1",
            (None, _) if option.is_of_run() => "",
            (None, _) => return Err(self.wrong("needs a value")),
        };
        match option.effect {
            Effect::Job(set) => {
                set(draft, value).map_err(|why| self.wrong(&self.of_list(option, why)))?
            }
            Effect::Run(_) => {
                return Err(self.wrong("is an option of the command line, not of a job"));
            }
            Effect::Noted(why) => {
                let note = format!("{} has no effect here: {why}", option.name);
                if !draft.notes.contains(&note) {
                    draft.notes.push(note);
                }
            }
            Effect::Only(values) if values.contains(&value) => {}
            Effect::Only(values) => {
                let can = values.join(" or ");
                let why = format!("{FIOS_ALONE} (only {can} is)");
                return Err(self.wrong(&why));
            }
        }
        if !draft.given.contains(&option.name) {
            draft.given.push(option.name);
        }
        Ok(())
    }

    /// Reason that a value was refused; where it is a list in a job file, that lists of values to try stand on
    /// the command line.
    fn of_list(&self, option: &IoOption, why: String) -> String {
        let is_in_file = matches!(self.origin, Origin::File(..));
        let value = self.value.as_deref();
        let value = value.filter(|value| is_in_file && lists::is_list(value));
        match value {
            Some(value) if option.sweeps && !why.contains(FIOS_ALONE) => {
                let name = option.name;
                format!(
                    "{why}; a list of values to measure goes on the command line: \
                     --sweep={name}={value} (in job files only bs, bsrange, bssplit, rate, rate_iops, \
                     cpus_allowed and percentile_list have commas)"
                )
            }
            _ => why,
        }
    }

    /// The pair for the record: fio's first name, and the value; of an option without one `1`, or
    /// nothing where it would be a text.
    pub fn pair(&self) -> (String, String) {
        let (name, alone) = match find(&self.name) {
            Ok(option) if option.takes == Takes::Text => (option.name, ""),
            Ok(option) => (option.name, "1"),
            Err(_) => (self.name.as_str(), "1"),
        };
        let value = self.value.as_deref().map_or(alone, str::trim);
        (name.to_owned(), value.to_owned())
    }
}

/// A command line and job files, taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    own: RunOptions,
    sections: Vec<Section>,
    axes: Vec<Axis>,
}

impl Source {
    /// Parses the text.
    pub(super) fn read(
        arguments: &[(String, Option<String>)],
        job_files: &[(String, String)],
        outside: &dyn Environment,
    ) -> Result<Source, String> {
        let (own, mut sections) = typed(arguments)?;
        let wanted = |section: &Section| {
            let named = |name: &String| own.only.is_empty() || own.only.contains(name);
            section.job.as_ref().is_none_or(named)
        };
        sections.retain(wanted);
        for (at, (name, text)) in job_files.iter().enumerate() {
            let mut reader = JobFileReader { outside, sections: Vec::new(), included: 0 };
            reader.read(name, text)?;
            let mut more = reader.sections;
            more.retain(wanted);
            // As in fio, one job file waits for the one before it.
            let first = more.iter_mut().find(|section| section.job.is_some());
            if let Some(first) = first.filter(|_| at > 0) {
                first.waits = true;
            }
            sections.extend(more);
        }
        if !sections.iter().any(|section| section.job.is_some()) {
            let nothing = sections.iter().all(|section| section.settings.is_empty());
            if nothing || !job_files.is_empty() || !own.only.is_empty() {
                return Err("no jobs: pass a job file or --name=...".to_owned());
            }
            sections.push(Section::of(Some(UNNAMED.to_owned())));
        }
        let axes = axes(&sections, &own.sweep)?;
        Ok(Source { own, sections, axes })
    }

    /// The jobs, with the values (option, value) of one cell; where an option of the sweep has none
    /// here, with its first.
    pub(super) fn request(&self, values: &[(&str, &str)]) -> Result<Request, String> {
        let value = |option: &str| {
            let chosen = values.iter().find(|(name, _)| *name == option).map(|(_, value)| *value);
            let axis = self.axes.iter().find(|axis| axis.option == option);
            chosen.or_else(|| axis.and_then(|axis| axis.values.first()).map(String::as_str))
        };
        let (mut jobs, mut globals, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Draft::default();
        for section in &self.sections {
            let settings = section.settings.iter().map(|setting| {
                let swept = setting.swept.then(|| setting.pair().0);
                match swept.and_then(|option| value(&option)) {
                    Some(value) => {
                        let value = Some(value.to_owned());
                        Cow::Owned(Setting { value, swept: false, ..setting.clone() })
                    }
                    None => Cow::Borrowed(setting),
                }
            });
            let mut settings: Vec<Cow<Setting>> = settings.collect();
            let Some(name) = &section.job else {
                apply(&mut all, &settings)?;
                record(&mut globals, settings.iter().map(Cow::as_ref));
                continue;
            };
            for axis in &self.own.sweep {
                settings.push(Cow::Owned(Setting::typed(&axis.option, value(&axis.option))));
            }
            let mut draft = all.clone();
            draft.job.name.clone_from(name);
            draft.job.stonewall |= section.waits;
            apply(&mut draft, &settings)?;
            record(&mut draft.job.given, settings.iter().map(Cow::as_ref));
            let (job, more) = draft::job(draft).map_err(|why| format!("{name}: {why}"))?;
            jobs.push(job);
            for warning in more {
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        among(&jobs)?;
        self.check(&jobs, &warnings)?;
        Ok(Request {
            command_line: command_line(&self.sections, &globals, &jobs),
            jobs,
            globals,
            run: self.own.clone(),
            warnings,
            sweep: Vec::new(),
            source: self.clone(),
        })
    }

    /// Refuses what a run may not begin with.
    fn check(&self, jobs: &[Job], warnings: &[String]) -> Result<(), String> {
        if self.own.strict && !warnings.is_empty() {
            return Err(format!("{} (--strict)", warnings.join("\n")));
        }
        if let Some(job) = jobs.iter().find(|job| job.rw.writes && self.own.read_only) {
            return Err(format!("{}: writes, and --readonly was given", job.name));
        }
        let runs = !self.own.parse_only && !self.own.show_cmd;
        jobs.iter().filter(|_| runs).try_for_each(draft::can_run)
    }

    /// Parses all cells, so that a wrong value is found before the sweep starts; collects their warnings.
    pub(super) fn cells(&self, mut request: Request) -> Result<Request, String> {
        if self.axes.is_empty() {
            return Ok(request);
        }
        let mut cells = self.axes.iter().map(|axis| axis.values.len());
        let cells = cells.try_fold(1, |all: usize, values| all.checked_mul(values));
        let cells = cells.filter(|cells| *cells <= CELLS_MAX);
        let cells = cells.ok_or_else(|| format!("the sweep has more than {CELLS_MAX} cells"))?;
        for number in 0..cells {
            let mut rest = number;
            let mut values = Vec::new();
            for axis in &self.axes {
                let value = axis.values.get(rest % axis.values.len());
                rest /= axis.values.len();
                values.push((axis.option.as_str(), value.map_or("", String::as_str)));
            }
            for warning in self.request(&values)?.warnings {
                if !request.warnings.contains(&warning) {
                    request.warnings.push(warning);
                }
            }
        }
        request.sweep.clone_from(&self.axes);
        Ok(request)
    }
}

/// Jobs that wait for others (`wait_for`): the other one stands before, once.
fn among(jobs: &[Job]) -> Result<(), String> {
    for (number, job) in jobs.iter().enumerate() {
        let Some(other) = &job.among.after else { continue };
        let before = jobs.iter().take(number).filter(|before| before.name == *other).count();
        let why = match before {
            1 => continue,
            0 => "no earlier job has this name",
            _ => "several jobs before it have this name",
        };
        return Err(format!("{}: wait_for={other}: {why}", job.name));
    }
    Ok(())
}

/// Applies the options of a section, the unit of numbers before those that have it.
fn apply(draft: &mut Draft, settings: &[Cow<Setting>]) -> Result<(), String> {
    let is_base = |setting: &&Cow<Setting>| setting.name == "kb_base";
    settings.iter().filter(is_base).try_for_each(|setting| setting.apply(draft))?;
    settings.iter().filter(|s| !is_base(s)).try_for_each(|setting| setting.apply(draft))
}

/// Notes options in fio's first names; of several with one name the last.
fn record<'s>(given: &mut Vec<(String, String)>, settings: impl IntoIterator<Item = &'s Setting>) {
    for (name, value) in settings.into_iter().map(Setting::pair) {
        given.retain(|(known, _)| *known != name);
        given.push((name, value));
    }
}

/// Jobs as fio's command line (`--showcmd`): options for all jobs, then each job with its own. Options that hold only
/// for some of the jobs (from a second `[global]` on) stand with each of those.
fn command_line(sections: &[Section], globals: &[(String, String)], jobs: &[Job]) -> String {
    let mut words: Vec<String> = Vec::new();
    let is_job = |section: &Section| section.job.is_some();
    let mut after = sections.iter().skip_while(|section| !is_job(section));
    let at_front = !after.any(|section| !is_job(section) && !section.settings.is_empty());
    if at_front {
        words.extend(globals.iter().map(word));
    }
    let mut held: Vec<(String, String)> = Vec::new();
    let mut jobs = jobs.iter();
    for section in sections {
        if !is_job(section) {
            record(&mut held, section.settings.iter().filter(|_| !at_front));
            continue;
        }
        let Some(job) = jobs.next() else { break };
        words.push(word(&("name".to_owned(), job.name.clone())));
        let says = |held: &str| job.given.iter().any(|(name, _)| name == held);
        let holds = held.iter().filter(|(name, _)| !says(name));
        let own = job.given.iter().filter(|(name, _)| name != "name");
        words.extend(holds.chain(own).map(word));
    }
    words.join(" ")
}

/// `--NAME=VALUE` or `--NAME`, quoted for a shell where it has to be.
fn word((name, value): &(String, String)) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=.,:/%@".contains(c);
    if value.is_empty() {
        format!("--{name}")
    } else if value.chars().all(plain) {
        format!("--{name}={value}")
    } else {
        format!("--{name}='{}'", value.replace('\'', "'\\''"))
    }
}

/// Axes of the sweep: lists in place, then those of `--sweep`.
fn axes(sections: &[Section], sweep: &[Axis]) -> Result<Vec<Axis>, String> {
    let mut axes: Vec<Axis> = Vec::new();
    let in_place = sections.iter().flat_map(|section| &section.settings);
    for setting in in_place.filter(|setting| setting.swept) {
        let text = setting.value.as_deref().unwrap_or_default();
        let values = lists::values(text).map_err(|why| setting.wrong(&why))?;
        let axis = Axis { option: setting.pair().0, values };
        match axes.iter().find(|known| known.option == axis.option) {
            None => axes.push(axis),
            Some(known) if *known == axis => {}
            Some(_) => return Err(setting.wrong("another list was given before")),
        }
    }
    for axis in sweep {
        if axes.iter().any(|known| known.option == axis.option) {
            return Err(format!("--sweep={}: another list was given before", axis.option));
        }
        axes.push(axis.clone());
    }
    Ok(axes)
}
