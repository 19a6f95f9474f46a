//! The whole source text: made into jobs once for each cell of a sweep.

use super::draft::Draft;
use super::own::{self, RunOptions};
use super::section::{Section, Setting};
use super::{Axis, Job, Outside, Request, file, finish, lists};
use std::borrow::Cow;

/// Cells of a sweep, at most.
const CELLS_MAX: usize = 10_000;

/// The name of the job that options without a `name` make.
const UNNAMED: &str = "io";

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
        outside: &dyn Outside,
    ) -> Result<Source, String> {
        let (own, mut sections) = own::read(arguments)?;
        let wanted = |section: &Section| {
            let named = |name: &String| own.only.is_empty() || own.only.contains(name);
            section.job.as_ref().is_none_or(named)
        };
        sections.retain(wanted);
        for (at, (name, text)) in job_files.iter().enumerate() {
            let mut more = file::sections(name, text, outside)?;
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
                return Err("there is no job: name a job file, or give its options".to_owned());
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
            let (job, more) = finish::job(draft).map_err(|why| format!("{name}: {why}"))?;
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
        jobs.iter().filter(|_| runs).try_for_each(finish::can_run)
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
