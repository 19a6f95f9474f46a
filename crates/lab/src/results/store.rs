//! A folder of results: made, gone on with after a stop, listed, removed. Lines are only ever
//! appended, each written whole, so that whatever stops the program, what was measured stays.

use super::read::{CURVES_FILE, RUNS_FILE, read};
use super::{Curves, End, Header, Line, Run, SCHEMA, outputs};
use hakobu_transfer::error::{Cause, quoted};
use serde::Serialize;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What runs at the moment, while something does: for whoever finds the folder after a crash.
pub const RUNNING_FILE: &str = "running";
/// Files that a folder of results may hold besides; made from it, or by whoever keeps it.
const MADE_FROM_IT: [&str; 7] = [
    "campaign.toml",
    "report.html",
    "report.md",
    "report.json",
    "report.csv",
    "report.svg",
    RUNNING_FILE,
];

/// A folder that results are written to. Nobody else writes to it as long as this is there.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    results: File,
    samples: File,
    runs: Vec<Run>,
    ended: Option<End>,
    elapsed_s: f64,
}

impl Store {
    /// Begins results in a folder, which is made; or goes on where they stopped, if the folder has
    /// results of the same campaign. `now` is the time, RFC 3339.
    ///
    /// # Errors
    /// A sentence: it cannot be written; it holds something else, or another campaign's results;
    /// another process writes to it.
    pub fn open(folder: &Path, header: &Header, now: &str) -> Result<Store, String> {
        std::fs::create_dir_all(folder).map_err(|error| cannot("make", folder, error))?;
        let path = folder.join(RUNS_FILE);
        let is_new = !path.exists();
        if is_new && let Some(other) = first_entry(folder, |_| true)? {
            return Err(format!(
                "{} is not empty ({other}) and holds no results: give a new folder",
                quoted(folder)
            ));
        }
        let append = |path: &Path| {
            let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
            opened.map_err(|error| cannot("write", path, error))
        };
        let mut results = append(&path)?;
        match results.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another hakobu writes to {}", quoted(folder)));
            }
            // A file system without locks: nobody can know.
            Err(TryLockError::Error(_)) => {}
        }
        let mut samples = append(&folder.join(CURVES_FILE))?;
        cut_half_line(&mut results).map_err(|error| cannot("repair", &path, error))?;
        cut_half_line(&mut samples).map_err(|error| cannot("repair", folder, error))?;
        let mut store = Store {
            folder: folder.to_owned(),
            results,
            samples,
            runs: Vec::new(),
            ended: None,
            elapsed_s: 0.0,
        };
        // Stopped before its first line was whole, it is new as well.
        if is_new || store.results.metadata().is_ok_and(|meta| meta.len() == 0) {
            store.append(&Line::Header(Box::new(header.clone())))?;
            return Ok(store);
        }
        let known = read(folder)?;
        same(&known.header, header).map_err(|why| {
            format!("{} holds other results: {why}; give a new folder", quoted(folder))
        })?;
        let ends = known.runs.iter().map(|run| run.at_s + run.wall_s);
        store.elapsed_s = ends.chain(known.end.iter().map(|end| end.took_s)).fold(0.0, f64::max);
        store.runs = known.runs;
        store.ended = known.end;
        store.append(&Line::Resumed { at: now.to_owned() })?;
        Ok(store)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs that were there already.
    pub fn runs_before(&self) -> usize {
        self.runs.len()
    }

    /// Hands over the runs that were there already.
    pub fn take_runs(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.runs)
    }

    /// How it ended before, if it did.
    pub fn ended(&self) -> Option<End> {
        self.ended.clone()
    }

    /// Seconds that it took before it stopped.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    /// Writes down a run and its curves. A run may lack its curves after a crash, curves never
    /// their run.
    ///
    /// # Errors
    /// A sentence.
    pub fn run(&mut self, run: &Run, curves: Option<&Curves>) -> Result<(), String> {
        self.append(&Line::Run(Box::new(run.clone())))?;
        match curves {
            Some(curves) => write_line(&mut self.samples, curves)
                .map_err(|error| cannot("write", &self.folder.join(CURVES_FILE), error)),
            None => Ok(()),
        }
    }

    /// Keeps what a run printed. `is_control`: its cell is one.
    ///
    /// # Errors
    /// A sentence.
    pub fn keep(&self, run: &Run, is_control: bool, output: &str) -> Result<(), String> {
        outputs::keep(&self.folder, run, is_control, output)
    }

    /// Writes down a line that is no run.
    ///
    /// # Errors
    /// A sentence.
    pub fn append(&mut self, line: &Line) -> Result<(), String> {
        write_line(&mut self.results, line)
            .map_err(|error| cannot("write", &self.folder.join(RUNS_FILE), error))
    }

    /// Writes down that it is whole, and waits until all of it is on the device.
    ///
    /// # Errors
    /// A sentence.
    pub fn end(&mut self, end: &End) -> Result<(), String> {
        self.append(&Line::End(end.clone()))?;
        let synced = self.samples.sync_data().and_then(|()| self.results.sync_data());
        synced.map_err(|error| cannot("write", &self.folder, error))
    }
}

/// In one call, so that no reader sees half of it, and a stop leaves at most the last one cut.
fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Removes what stands behind the last line end.
fn cut_half_line(file: &mut File) -> io::Result<()> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() { file.set_len(whole as u64) } else { Ok(()) }
}

pub(super) fn cannot(what: &str, path: &Path, error: io::Error) -> String {
    format!("cannot {what} {}: {}", quoted(path), Cause::System(error))
}

/// Whether a campaign is the one whose header is there.
///
/// # Errors
/// What differs.
fn same(there: &Header, wanted: &Header) -> Result<(), String> {
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
    let fact = |header: &Header| {
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

/// A command without the numbers of ports on this machine: servers get free ones each time.
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

/// The first entry of a folder that a test picks.
fn first_entry(folder: &Path, picks: impl Fn(&str) -> bool) -> Result<Option<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| cannot("read", folder, error))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().display().to_string()));
    Ok(names.filter(|name| picks(name)).min())
}

/// A folder of results in few words.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Where it is.
    pub folder: PathBuf,
    /// The campaign's name.
    pub name: String,
    /// When it began, RFC 3339.
    pub start: String,
    /// Its cells.
    pub cells: usize,
    /// Runs that count.
    pub runs: usize,
    /// Runs that failed, warm-ups included.
    pub failed: usize,
    /// Why it ended; `None` where it did not.
    pub ended: Option<String>,
}

/// The folders of results in a folder, oldest first, and what is wrong with those that cannot be
/// read. A folder that is not there has none.
pub fn list(within: &Path) -> (Vec<Listed>, Vec<String>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    let entries = std::fs::read_dir(within).into_iter().flatten();
    for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if !folder.join(RUNS_FILE).is_file() {
            continue;
        }
        match look(&folder) {
            Ok(listed) => found.push(listed),
            Err(why) => wrong.push(why),
        }
    }
    found.sort_by(|a, b| (&a.start, &a.folder).cmp(&(&b.start, &b.folder)));
    wrong.sort();
    (found, wrong)
}

fn look(folder: &Path) -> Result<Listed, String> {
    let results = read(folder)?;
    Ok(Listed {
        folder: folder.to_owned(),
        name: results.header.name,
        start: results.header.start,
        cells: results.header.cells.len(),
        runs: results.runs.iter().filter(|run| run.ok && !run.warmup).count(),
        failed: results.runs.iter().filter(|run| !run.ok).count(),
        ended: results.end.map(|end| end.reason),
    })
}

/// Whether a folder may be removed as one of results.
///
/// # Errors
/// A sentence: it holds no results, or something else besides.
pub fn may_remove(folder: &Path) -> Result<(), String> {
    let is_folder = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !is_folder {
        return Err(format!("{} is no folder", quoted(folder)));
    }
    read(folder)?;
    let known = |name: &str| {
        [RUNS_FILE, CURVES_FILE, outputs::FOLDER].contains(&name) || MADE_FROM_IT.contains(&name)
    };
    let other = first_entry(folder, |name| !known(name))?;
    let other = match other {
        Some(other) => Some(other),
        None => outputs::stranger(folder)?.map(|path| path.display().to_string()),
    };
    match other {
        Some(other) => {
            Err(format!("{} holds more than results ({other}): not removed", quoted(folder)))
        }
        None => Ok(()),
    }
}

/// Removes a folder of results; nothing but files that belong to one.
///
/// # Errors
/// As [`may_remove`], or it cannot be removed.
pub fn remove(folder: &Path) -> Result<(), String> {
    may_remove(folder)?;
    outputs::remove(folder)?;
    let mut names: Vec<&str> = MADE_FROM_IT.to_vec();
    // Last of all what makes it one: half removed, it can be removed again.
    names.extend([CURVES_FILE, RUNS_FILE]);
    for name in names {
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
