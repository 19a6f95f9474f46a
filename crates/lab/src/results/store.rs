//! Results folders: create, resume, list, remove. Lines are only appended, each in one write, so that measurements
//! survive any interruption.

use crate::results::read::{CURVES_FILE, RUNS_FILE, ReadError, read};
use crate::results::{CampaignEnd, LoadCurves, ResultsHeader, ResultsLine, Run, SCHEMA};
use hakobu_core::error::{PathError, quoted};
use hakobu_sys::paths::Links;
use serde::Serialize;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

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

/// Why a results folder cannot be written to, or removed.
#[derive(Debug)]
pub enum StoreError {
    /// A call failed.
    Path(PathError),
    /// Its results cannot be read.
    Read(ReadError),
    /// Another process writes to it.
    Locked(PathBuf),
    /// It is left as it is.
    Refused {
        folder: PathBuf,
        /// The reason: what follows its path in a sentence.
        why: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Path(error) => error.fmt(out),
            StoreError::Read(error) => error.fmt(out),
            StoreError::Locked(folder) => {
                write!(out, "another hakobu writes to {}", quoted(folder))
            }
            StoreError::Refused { folder, why } => write!(out, "{} {why}", quoted(folder)),
        }
    }
}

error_type!(StoreError: Path(PathError), Read(ReadError); );

fn refused(folder: &Path, why: impl Into<String>) -> StoreError {
    StoreError::Refused { folder: folder.to_owned(), why: why.into() }
}

impl ResultsStore {
    /// Creates a results folder, or resumes one of the same campaign. `now` is the time, RFC 3339.
    pub fn open(
        folder: &Path,
        header: &ResultsHeader,
        now: &str,
    ) -> Result<ResultsStore, StoreError> {
        let made = Links::Trusted.make_dir(folder, 0o777, true);
        made.map_err(PathError::of("make", folder))?;
        let path = folder.join(RUNS_FILE);
        let is_new = !path.exists();
        if is_new && let Some(other) = first_entry(folder, |_| true)? {
            let why = format!("is not empty ({other}) and holds no results: give a new directory");
            return Err(refused(folder, why));
        }
        let append = |path: &Path| {
            // Commands may hold what is not for everybody.
            let opened = Links::Trusted.open_private(path).map(File::from);
            opened.map_err(PathError::of("write", path))
        };
        let mut results = append(&path)?;
        match results.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked(folder.to_owned()));
            }
            // The file system does not support locks.
            Err(TryLockError::Error(_)) => {}
        }
        // An incomplete first line counts as new.
        let is_begun = is_cut_header(&mut results).map_err(PathError::of("read", &path))?;
        // Check the folder before truncating: it may contain foreign files.
        let goes_on = !is_new && !is_begun;
        if goes_on && let Some(difference) = difference(&read(folder)?.header, header) {
            let why = format!("holds other results: {difference}; give a new directory");
            return Err(refused(folder, why));
        }
        let mut samples = append(&folder.join(CURVES_FILE))?;
        cut_half_line(&mut results).map_err(PathError::of("repair", &path))?;
        if goes_on {
            cut_half_line(&mut samples).map_err(PathError::of("repair", folder))?;
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
    pub fn run(&mut self, run: &Run, curves: Option<&LoadCurves>) -> Result<(), PathError> {
        self.append(&ResultsLine::Run(Box::new(run.clone())))?;
        match curves {
            Some(curves) => write_line(&mut self.samples, curves)
                .map_err(PathError::of("write", self.folder.join(CURVES_FILE))),
            None => Ok(()),
        }
    }

    /// Saves the output of a run. `is_control`: its cell is a control.
    pub fn keep(&self, run: &Run, is_control: bool, output: &str) -> Result<(), PathError> {
        let control = if is_control { CONTROL } else { "" };
        let block = self.folder.join(FOLDER).join(format!("{}{control}", run.block));
        let made = Links::Trusted.make_dir(&block, 0o777, true);
        made.map_err(PathError::of("make", &block))?;
        let path = block.join(format!("{}.json", run.cell));
        let written = Links::Trusted.write_private(&path, output.as_bytes());
        written.map_err(PathError::of("write", &path))
    }

    /// Appends a line other than a run.
    pub fn append(&mut self, line: &ResultsLine) -> Result<(), PathError> {
        write_line(&mut self.results, line)
            .map_err(PathError::of("write", self.folder.join(RUNS_FILE)))
    }

    /// Appends the end, and syncs the files to the device.
    pub fn end(&mut self, end: &CampaignEnd) -> Result<(), PathError> {
        self.append(&ResultsLine::End(end.clone()))?;
        let synced = self.samples.sync_data().and_then(|()| self.results.sync_data());
        synced.map_err(PathError::of("write", &self.folder))
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

/// What shows that two headers are not of the same campaign, as a sentence.
fn difference(there: &ResultsHeader, wanted: &ResultsHeader) -> Option<String> {
    let differs = |what: &str, there: &str, wanted: &str| {
        (there != wanted)
            .then(|| format!("their {what} is {}, not {}", quoted(there), quoted(wanted)))
    };
    if there.schema != SCHEMA {
        return Some(format!("they are of schema {}", there.schema));
    }
    let mut found = differs("name", &there.name, &wanted.name)
        .or_else(|| differs("seed", &there.seed.to_string(), &wanted.seed.to_string()))
        .or_else(|| differs("scale", &there.scale.to_string(), &wanted.scale.to_string()))
        .or_else(|| differs("metric", &there.metric, &wanted.metric));
    let count = |cells: usize| cells.to_string();
    found = found.or_else(|| {
        differs("number of configurations", &count(there.cells.len()), &count(wanted.cells.len()))
    });
    for (old, new) in there.cells.iter().zip(&wanted.cells) {
        let what = format!("command of configuration {}", new.id);
        found = found
            .or_else(|| differs(&what, &without_ports(&old.command), &without_ports(&new.command)));
        let (mut a, mut b) = (old.clone(), new.clone());
        (a.command, b.command) = (String::new(), String::new());
        if found.is_none() && a != b {
            found =
                Some(format!("their configuration {} has other parameters or conditions", new.id));
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
    found
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
fn first_entry(folder: &Path, picks: impl Fn(&str) -> bool) -> Result<Option<String>, PathError> {
    let entries = entries(folder)?;
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
    let folders = entries(within).unwrap_or_else(|why| {
        wrong.push(why.into());
        Vec::new()
    });
    for folder in folders.into_iter().filter(|folder| folder.join(RUNS_FILE).is_file()) {
        match look(&folder) {
            Ok(listed) => found.push(listed),
            Err(why) => wrong.push(why.into()),
        }
    }
    found.sort_by(|a, b| (&a.start, &a.folder).cmp(&(&b.start, &b.folder)));
    wrong.sort();
    (found, wrong)
}

fn look(folder: &Path) -> Result<ResultsOverview, ReadError> {
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
/// It contains no results, or other files as well.
pub fn may_remove(folder: &Path) -> Result<(), StoreError> {
    if !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(refused(folder, "is not a directory"));
    }
    read(folder)?;
    let known = |name: &str| {
        [RUNS_FILE, CURVES_FILE, FOLDER].contains(&name) || MADE_FROM_IT.contains(&name)
    };
    let other = match first_entry(folder, |name| !known(name))? {
        Some(other) => Some(other),
        None => foreign_entry(folder)?.map(|path| path.display().to_string()),
    };
    match other {
        Some(other) => {
            Err(refused(folder, format!("holds more than results ({other}): not removed")))
        }
        None => Ok(()),
    }
}

/// Removes a results folder; only files that belong to one.
///
/// # Errors
/// As [`may_remove`], or a removal failed.
pub fn remove(folder: &Path) -> Result<(), StoreError> {
    may_remove(folder)?;
    remove_outputs(folder)?;
    // The file of runs last: a partly removed folder can then be removed again.
    for name in MADE_FROM_IT.into_iter().chain([CURVES_FILE, RUNS_FILE]) {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(PathError::of("remove", &path)(error).into());
            }
            _ => {}
        }
    }
    Ok(std::fs::remove_dir(folder).map_err(PathError::of("remove", folder))?)
}

// Output of runs, kept beside the extracted metrics: one file per run, in a folder per block, so that
// programs which read fio's JSON find each setting once per folder.

/// Name of the folder inside a results folder.
const FOLDER: &str = "outputs";
/// Suffix of a block's folder for controls, which repeat the settings of another cell.
const CONTROL: &str = "-control";

/// Removes saved outputs, if there are any.
///
/// # Errors
/// Other files are in the folder, which stay.
fn remove_outputs(folder: &Path) -> Result<(), PathError> {
    let all = folder.join(FOLDER);
    for block in entries(&all)? {
        for file in entries(&block)? {
            if is_ours(&file) {
                fs::remove_file(&file).map_err(PathError::of("remove", &file))?;
            }
        }
        fs::remove_dir(&block).map_err(PathError::of("remove", &block))?;
    }
    match fs::remove_dir(&all) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(PathError::of("remove", &all)(error))
        }
        _ => Ok(()),
    }
}

/// First entry that is not a saved output.
fn foreign_entry(folder: &Path) -> Result<Option<PathBuf>, PathError> {
    let all = folder.join(FOLDER);
    if all.is_symlink() {
        return Ok(Some(all));
    }
    for block in entries(&all)? {
        let name = block.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_suffix(CONTROL).unwrap_or(&name);
        // Symbolic links are not followed.
        let is_folder = block.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if !is_folder || number.parse::<u32>().is_err() {
            return Ok(Some(block));
        }
        if let Some(other) = entries(&block)?.into_iter().find(|file| !is_ours(file)) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

fn is_ours(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.extension().is_some_and(|extension| extension == "json") && stem.parse::<u32>().is_ok()
}

/// Entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, PathError> {
    let all = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        all => all.and_then(|all| all.map(|entry| Ok(entry?.path())).collect()),
    };
    all.map_err(PathError::of("read", folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, ToolFingerprint};

    fn header() -> ResultsHeader {
        let cell = |id, command: &str| Cell { id, command: command.into(), ..Cell::default() };
        ResultsHeader {
            schema: SCHEMA,
            name: "n".into(),
            start: "2026-01-01T00:00:00Z".into(),
            seed: 3,
            cells: vec![cell(0, "a http://127.0.0.1:4001/b"), cell(1, "b")],
            tools: vec![ToolFingerprint {
                name: "a".into(),
                sha256: "00".into(),
                ..ToolFingerprint::default()
            }],
            ..ResultsHeader::default()
        }
    }

    fn run(cell: u32, block: u32) -> Run {
        Run { cell, block, at_s: f64::from(block), wall_s: 0.5, ok: true, ..Run::default() }
    }

    /// A temporary folder, removed when dropped.
    struct StoreFolder(PathBuf);

    impl StoreFolder {
        fn new(name: &str) -> StoreFolder {
            let dir =
                std::env::temp_dir().join(format!("hakobu-store-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            StoreFolder(dir)
        }
    }

    impl Drop for StoreFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn goes_on_where_it_stopped() {
        let dir = StoreFolder::new("on");
        let mut store = ResultsStore::open(&dir.0, &header(), "t0").unwrap();
        let curves = LoadCurves { cell: 0, block: 0, t_s: vec![0.1], ..LoadCurves::default() };
        store.run(&run(0, 0), Some(&curves)).unwrap();
        store.run(&run(1, 4), None).unwrap();
        assert!(
            ResultsStore::open(&dir.0, &header(), "t1")
                .unwrap_err()
                .to_string()
                .contains("another hakobu")
        );
        drop(store);
        // After a kill: an incomplete line in both files.
        for file in [RUNS_FILE, CURVES_FILE] {
            let mut file = std::fs::OpenOptions::new().append(true).open(dir.0.join(file)).unwrap();
            file.write_all(b"{\"line\":\"run\",\"cell\":1,\"blo").unwrap();
        }
        // Servers get other ports each time.
        let mut again = header();
        again.cells[0].command = "a http://127.0.0.1:50123/b".into();
        let mut store = ResultsStore::open(&dir.0, &again, "t1").unwrap();
        assert_eq!((store.runs.len(), store.elapsed_s), (2, 4.5));
        assert_eq!(store.runs[1], run(1, 4));
        store.run(&run(0, 5), Some(&LoadCurves { block: 5, ..curves.clone() })).unwrap();
        let end = CampaignEnd { reason: "done".into(), took_s: 9.0, overhead: 0.0 };
        store.end(&end).unwrap();
        drop(store);
        let results = read(&dir.0).unwrap();
        assert_eq!(results.runs, [run(0, 0), run(1, 4), run(0, 5)]);
        assert_eq!(results.curves.iter().map(|curves| curves.block).collect::<Vec<_>>(), [0, 5]);
        assert_eq!(results.header, header());
        let store = ResultsStore::open(&dir.0, &header(), "t2").unwrap();
        assert_eq!((store.elapsed_s, store.ended), (9.0, Some(end)));
        let text = std::fs::read_to_string(dir.0.join(RUNS_FILE)).unwrap();
        assert_eq!(text.matches("{\"line\":\"resumed\",\"at\":\"t").count(), 2, "{text}");
    }

    #[test]
    fn other_campaigns_are_refused() {
        let dir = StoreFolder::new("other");
        drop(ResultsStore::open(&dir.0, &header(), "t").unwrap());
        type Change = fn(&mut ResultsHeader);
        let changes: [(Change, &str); 7] = [
            (|header| header.name = "m".into(), "their name is 'n', not 'm'"),
            (|header| header.seed = 4, "their seed is '3', not '4'"),
            (|header| header.cells.truncate(1), "their number of configurations is '2', not '1'"),
            (
                |header| header.cells[1].command = "c".into(),
                "their command of configuration 1 is 'b', not 'c'",
            ),
            (|header| header.cells[1].x = Some(4.0), "their configuration 1 has other parameters"),
            (|header| header.machine.cpus = 8.0, "their machine is"),
            (|header| header.tools[0].sha256 = "01".into(), "a has changed since"),
        ];
        for (change, said) in changes {
            let mut other = header();
            change(&mut other);
            let why = ResultsStore::open(&dir.0, &other, "t").unwrap_err().to_string();
            assert!(why.contains("holds other results") && why.contains(said), "{why}");
        }
        assert!(ResultsStore::open(&dir.0, &header(), "t").is_ok());
        let full = StoreFolder::new("full");
        std::fs::create_dir_all(&full.0).unwrap();
        std::fs::write(full.0.join("thesis.txt"), "").unwrap();
        let why = ResultsStore::open(&full.0, &header(), "t").unwrap_err().to_string();
        assert!(why.contains("is not empty (thesis.txt)"), "{why}");
    }

    #[test]
    fn a_header_that_was_cut_is_begun_again() {
        let dir = StoreFolder::new("cut");
        std::fs::create_dir_all(&dir.0).unwrap();
        std::fs::write(dir.0.join(RUNS_FILE), "{\"line\":\"head").unwrap();
        let store = ResultsStore::open(&dir.0, &header(), "t").unwrap();
        assert_eq!(store.runs.len(), 0);
        assert_eq!(read(&dir.0).unwrap().header, header());
    }

    #[test]
    fn listed_and_removed() {
        let top = StoreFolder::new("list");
        for (name, start) in [("b", "2026-01-01T00:00:00Z"), ("a", "2026-01-02T00:00:00Z")] {
            let header = ResultsHeader { name: name.into(), start: start.into(), ..header() };
            let mut store = ResultsStore::open(&top.0.join(name), &header, "t").unwrap();
            store.run(&run(0, 0), None).unwrap();
            store.run(&Run { ok: false, ..run(1, 0) }, None).unwrap();
            store.run(&Run { warmup: true, ..run(1, 1) }, None).unwrap();
            store.keep(&run(0, 0), false, "{}").unwrap();
            store.keep(&run(1, 0), true, "{}").unwrap();
            assert!(store.folder.join("outputs/0/0.json").is_file());
            assert!(store.folder.join("outputs/0-control/1.json").is_file());
        }
        std::fs::create_dir(top.0.join("no-results")).unwrap();
        std::fs::create_dir(top.0.join("broken")).unwrap();
        std::fs::write(top.0.join("broken").join(RUNS_FILE), "x\n").unwrap();
        let (listed, wrong) = list(&top.0);
        let said = listed.iter().map(|one| (one.name.as_str(), one.cells, one.runs, one.failed));
        assert_eq!(said.collect::<Vec<_>>(), [("b", 2, 1, 1), ("a", 2, 1, 1)]);
        assert!(wrong.len() == 1 && wrong[0].contains("broken"), "{wrong:?}");
        assert_eq!(list(Path::new("/no/such")), (Vec::new(), Vec::new()));
        for (name, said) in
            [("no-results", "holds no results"), ("broken", "line 1"), ("c", "is not a directory")]
        {
            let why = remove(&top.0.join(name)).unwrap_err().to_string();
            assert!(why.contains(said), "{why}");
        }
        let a = top.0.join("a");
        std::fs::write(a.join("thesis.txt"), "").unwrap();
        let refusal = || remove(&a).unwrap_err().to_string();
        assert!(refusal().contains("more than results (thesis.txt)"));
        std::fs::remove_file(a.join("thesis.txt")).unwrap();
        std::fs::write(a.join("report.html"), "").unwrap();
        for other in ["notes", "0/1.txt", "0/x.json"] {
            let path = a.join("outputs").join(other);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            assert!(refusal().contains("more than results"), "{other}");
            std::fs::remove_file(&path).unwrap();
        }
        remove(&a).unwrap();
        assert!(!a.exists() && top.0.join("b").exists());
    }

    #[test]
    fn ports_are_left_out() {
        for (command, without) in [
            (
                "a http://127.0.0.1:80/x localhost:90 [::1]:7",
                "a http://127.0.0.1:/x localhost: [::1]:",
            ),
            ("a 10.0.0.1:80", "a 10.0.0.1:80"),
            ("127.0.0.1:", "127.0.0.1:"),
        ] {
            assert_eq!(without_ports(command), without);
        }
    }

    /// A foreign file with our name is neither truncated nor appended to.
    #[test]
    fn other_files_stay_as_they_are() {
        let dir = StoreFolder::new("others");
        std::fs::create_dir_all(&dir.0).unwrap();
        for text in ["{\"mine\":1}\n{\"mine\":2}", "no JSON", "{\"line\":\"run\"}\nhalf"] {
            for name in ["results.jsonl", "samples.jsonl"] {
                std::fs::write(dir.0.join(name), text).unwrap();
            }
            assert!(ResultsStore::open(&dir.0, &header(), "now").is_err(), "{text}");
            for name in ["results.jsonl", "samples.jsonl"] {
                assert_eq!(std::fs::read_to_string(dir.0.join(name)).unwrap(), text);
            }
        }
    }

    /// Links in a results folder are not followed.
    #[test]
    fn nothing_behind_links_is_removed() {
        let dir = StoreFolder::new("links");
        let outside = StoreFolder::new("outside");
        std::fs::create_dir_all(outside.0.join("0")).unwrap();
        std::fs::write(outside.0.join("0/1.json"), "mine").unwrap();
        drop(ResultsStore::open(&dir.0, &header(), "now").unwrap());
        let outputs = dir.0.join("outputs");
        std::os::unix::fs::symlink(&outside.0, &outputs).unwrap();
        assert!(remove(&dir.0).is_err());
        std::fs::remove_file(&outputs).unwrap();
        std::fs::create_dir(&outputs).unwrap();
        std::os::unix::fs::symlink(outside.0.join("0"), outputs.join("0")).unwrap();
        assert!(remove(&dir.0).is_err());
        assert_eq!(std::fs::read(outside.0.join("0/1.json")).unwrap(), b"mine");
    }
}
