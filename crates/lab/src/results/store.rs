//! Results folders: create, resume, list, remove. Lines are only appended, each in one write, so that
//! measurements survive any interruption.

use super::outputs;
use super::read::{CURVES_FILE, RUNS_FILE, read};
use super::{CampaignEnd, LoadCurves, ResultsHeader, ResultsLine, Run, SCHEMA};
use hakobu_core::error::{cannot, quoted};
use hakobu_sys::paths::Links;
use serde::Serialize;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// File of running sessions, for cleanup after a crash.
pub const RUNNING_FILE: &str = "running";
/// Further files that a results folder may contain.
const MADE_FROM_IT: [&str; 7] = [
    "campaign.toml",
    "report.html",
    "report.md",
    "report.json",
    "report.csv",
    "report.svg",
    RUNNING_FILE,
];

/// A results folder that is open for writing, locked against other processes.
#[derive(Debug)]
pub struct ResultsStore {
    /// Path of the folder.
    pub folder: PathBuf,
    /// Runs that existed when it was opened.
    pub runs: Vec<Run>,
    /// Its end, if it had ended before.
    pub ended: Option<CampaignEnd>,
    /// Duration before the last interruption, seconds.
    pub elapsed_s: f64,
    results: File,
    samples: File,
}

impl ResultsStore {
    /// Creates a results folder, or resumes one of the same campaign. `now` is the time, RFC 3339.
    ///
    /// # Errors
    /// A message: it cannot be written, contains other files or another campaign's results, or is locked by
    /// another process.
    pub fn open(folder: &Path, header: &ResultsHeader, now: &str) -> Result<ResultsStore, String> {
        let made = Links::Trusted.make_dir(folder, 0o777, true);
        made.map_err(|error| cannot("make", folder, error))?;
        let path = folder.join(RUNS_FILE);
        let is_new = !path.exists();
        if is_new && let Some(other) = first_entry(folder, |_| true)? {
            return Err(format!(
                "{} is not empty ({other}) and holds no results: give a new folder",
                quoted(folder)
            ));
        }
        let append = |path: &Path| {
            // Commands may hold what is not for everybody.
            let opened = Links::Trusted.open_private(path).map(File::from);
            opened.map_err(|error| cannot("write", path, error))
        };
        let mut results = append(&path)?;
        match results.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another hakobu writes to {}", quoted(folder)));
            }
            // The file system does not support locks.
            Err(TryLockError::Error(_)) => {}
        }
        // An incomplete first line counts as new.
        let is_begun = is_cut_header(&mut results).map_err(|error| cannot("read", &path, error))?;
        // Check the folder before truncating: it may contain foreign files.
        let goes_on = !is_new && !is_begun;
        if goes_on {
            same(&read(folder)?.header, header).map_err(|why| {
                format!("{} holds other results: {why}; give a new folder", quoted(folder))
            })?;
        }
        let mut samples = append(&folder.join(CURVES_FILE))?;
        cut_half_line(&mut results).map_err(|error| cannot("repair", &path, error))?;
        if goes_on {
            cut_half_line(&mut samples).map_err(|error| cannot("repair", folder, error))?;
        }
        let (runs, ended, elapsed_s) = (Vec::new(), None, 0.0);
        let mut store =
            ResultsStore { folder: folder.to_owned(), runs, ended, elapsed_s, results, samples };
        if !goes_on {
            store.append(&ResultsLine::Header(Box::new(header.clone())))?;
            return Ok(store);
        }
        let known = read(folder)?;
        let ends = known.runs.iter().map(|run| run.at_s + run.wall_s);
        store.elapsed_s = ends.chain(known.end.iter().map(|end| end.took_s)).fold(0.0, f64::max);
        store.runs = known.runs;
        store.ended = known.end;
        store.append(&ResultsLine::Resumed { at: now.to_owned() })?;
        Ok(store)
    }

    /// Appends a run and its curves. After a crash a run may lack its curves, but curves never lack their
    /// run.
    ///
    /// # Errors
    /// A message.
    pub fn run(&mut self, run: &Run, curves: Option<&LoadCurves>) -> Result<(), String> {
        self.append(&ResultsLine::Run(Box::new(run.clone())))?;
        match curves {
            Some(curves) => write_line(&mut self.samples, curves)
                .map_err(|error| cannot("write", self.folder.join(CURVES_FILE), error)),
            None => Ok(()),
        }
    }

    /// Saves the output of a run. `is_control`: its cell is a control.
    ///
    /// # Errors
    /// A message.
    pub fn keep(&self, run: &Run, is_control: bool, output: &str) -> Result<(), String> {
        outputs::keep_output(&self.folder, run, is_control, output)
    }

    /// Appends a line other than a run.
    ///
    /// # Errors
    /// A message.
    pub fn append(&mut self, line: &ResultsLine) -> Result<(), String> {
        write_line(&mut self.results, line)
            .map_err(|error| cannot("write", self.folder.join(RUNS_FILE), error))
    }

    /// Appends the end, and syncs the files to the device.
    ///
    /// # Errors
    /// A message.
    pub fn end(&mut self, end: &CampaignEnd) -> Result<(), String> {
        self.append(&ResultsLine::End(end.clone()))?;
        let synced = self.samples.sync_data().and_then(|()| self.results.sync_data());
        synced.map_err(|error| cannot("write", &self.folder, error))
    }
}

/// One write call, so that no reader sees part of a line, and an interruption cuts the last line at most.
fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// True if a file is empty or holds only part of a header.
fn is_cut_header(file: &mut File) -> io::Result<bool> {
    /// Start of a [`ResultsLine::Header`].
    const START: &[u8] = b"{\"line\":\"header\"";
    let text = whole(file)?;
    Ok(!text.contains(&b'\n') && (START.starts_with(&text) || text.starts_with(START)))
}

fn whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Truncates the file after its last newline.
fn cut_half_line(file: &mut File) -> io::Result<()> {
    let text = whole(file)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() { file.set_len(whole as u64) } else { Ok(()) }
}

/// Checks that two headers are of the same campaign.
///
/// # Errors
/// The difference.
fn same(there: &ResultsHeader, wanted: &ResultsHeader) -> Result<(), String> {
    let differs = |what: &str, there: &str, wanted: &str| {
        (there != wanted)
            .then(|| format!("their {what} is {}, not {}", quoted(there), quoted(wanted)))
    };
    if there.schema != SCHEMA {
        return Err(format!("they are of schema {}", there.schema));
    }
    let mut found = differs("name", &there.name, &wanted.name)
        .or_else(|| differs("seed", &there.seed.to_string(), &wanted.seed.to_string()))
        .or_else(|| differs("scale", &there.scale.to_string(), &wanted.scale.to_string()))
        .or_else(|| differs("metric", &there.metric, &wanted.metric));
    let count = |cells: usize| cells.to_string();
    found = found.or_else(|| {
        differs("number of cells", &count(there.cells.len()), &count(wanted.cells.len()))
    });
    for (old, new) in there.cells.iter().zip(&wanted.cells) {
        let what = format!("command of cell {}", new.id);
        found = found
            .or_else(|| differs(&what, &without_ports(&old.command), &without_ports(&new.command)));
        let (mut a, mut b) = (old.clone(), new.clone());
        (a.command, b.command) = (String::new(), String::new());
        if found.is_none() && a != b {
            found = Some(format!("their cell {} has other parameters or conditions", new.id));
        }
    }
    let fact = |header: &ResultsHeader| {
        let machine = &header.machine;
        let model = machine.cpu_model.as_deref().unwrap_or("unknown");
        format!("{} {model}, {} CPUs", machine.arch, machine.cpus)
    };
    found = found.or_else(|| differs("machine", &fact(there), &fact(wanted)));
    for tool in &wanted.tools {
        let old = there.tools.iter().find(|old| old.name == tool.name);
        if let Some(old) = old.filter(|old| found.is_none() && old.sha256 != tool.sha256) {
            let (name, was, is) = (&tool.name, &old.version, &tool.version);
            found = Some(format!("{name} has changed since (then: {was}; now: {is})"));
        }
    }
    found.map_or(Ok(()), Err)
}

/// Removes port numbers of this machine from a command: servers get free ones each time.
fn without_ports(command: &str) -> String {
    let mut out = String::with_capacity(command.len());
    let mut rest = command;
    while let Some((at, host)) = ["127.0.0.1:", "localhost:", "[::1]:"]
        .iter()
        .filter_map(|host| Some((rest.find(host)?, *host)))
        .min()
    {
        let (before, after) = rest.split_at(at + host.len());
        out.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out + rest
}

/// First entry of a folder that `picks` accepts.
fn first_entry(folder: &Path, picks: impl Fn(&str) -> bool) -> Result<Option<String>, String> {
    let entries = outputs::entries(folder)?;
    let names = entries.iter().filter_map(|path| Some(path.file_name()?.display().to_string()));
    Ok(names.filter(|name| picks(name)).min())
}

/// Overview of a results folder.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultsOverview {
    /// Path of the folder.
    pub folder: PathBuf,
    /// Name of the campaign.
    pub name: String,
    /// Start time, RFC 3339.
    pub start: String,
    /// Number of cells.
    pub cells: usize,
    /// Number of runs that count.
    pub runs: usize,
    /// Number of failed runs, including warm-ups.
    pub failed: usize,
    /// Reason of the end; `None` if it has not ended.
    pub ended: Option<String>,
}

/// Results folders inside a folder, oldest first, and messages about unreadable ones. Empty if the folder
/// does not exist.
pub fn list(within: &Path) -> (Vec<ResultsOverview>, Vec<String>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    let folders = outputs::entries(within).unwrap_or_else(|why| {
        wrong.push(why);
        Vec::new()
    });
    for folder in folders.into_iter().filter(|folder| folder.join(RUNS_FILE).is_file()) {
        match look(&folder) {
            Ok(listed) => found.push(listed),
            Err(why) => wrong.push(why),
        }
    }
    found.sort_by(|a, b| (&a.start, &a.folder).cmp(&(&b.start, &b.folder)));
    wrong.sort();
    (found, wrong)
}

fn look(folder: &Path) -> Result<ResultsOverview, String> {
    let results = read(folder)?;
    Ok(ResultsOverview {
        folder: folder.to_owned(),
        name: results.header.name,
        start: results.header.start,
        cells: results.header.cells.len(),
        runs: results.runs.iter().filter(|run| run.ok && !run.warmup).count(),
        failed: results.runs.iter().filter(|run| !run.ok).count(),
        ended: results.end.map(|end| end.reason),
    })
}

/// Checks that a folder can be removed as a results folder.
///
/// # Errors
/// A message: it contains no results, or other files as well.
pub fn may_remove(folder: &Path) -> Result<(), String> {
    if !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(format!("{} is not a folder", quoted(folder)));
    }
    read(folder)?;
    let known = |name: &str| {
        [RUNS_FILE, CURVES_FILE, outputs::FOLDER].contains(&name) || MADE_FROM_IT.contains(&name)
    };
    let other = match first_entry(folder, |name| !known(name))? {
        Some(other) => Some(other),
        None => outputs::foreign_entry(folder)?.map(|path| path.display().to_string()),
    };
    match other {
        Some(other) => {
            Err(format!("{} holds more than results ({other}): not removed", quoted(folder)))
        }
        None => Ok(()),
    }
}

/// Removes a results folder; only files that belong to one.
///
/// # Errors
/// As [`may_remove`], or a removal failed.
pub fn remove(folder: &Path) -> Result<(), String> {
    may_remove(folder)?;
    outputs::remove_outputs(folder)?;
    // The file of runs last: a partly removed folder can then be removed again.
    for name in MADE_FROM_IT.into_iter().chain([CURVES_FILE, RUNS_FILE]) {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(cannot("remove", &path, error));
            }
            _ => {}
        }
    }
    std::fs::remove_dir(folder).map_err(|error| cannot("remove", folder, error))
}

#[cfg(test)]
mod tests;
