//! Sweeps of `hakobu io` over a matrix of settings, run as a campaign: each cell is this program with one
//! value of each list; order, load, controls, record and report are those of campaigns.

use crate::campaign::template::line;
use crate::campaign::tools::OutputFormat;
use crate::campaign::{
    CampaignPlan, Launch, PlannedCell, RepeatRules, RunAction, RunCheck, add_controls,
};
use crate::product;
use crate::results::{Cell, ResultsHeader};
use hakobu_core::error::PathError;
use hakobu_io::layout::LaidFile;
use hakobu_io::spec::Axis;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of the series in tables and charts.
const SERIES: &str = "hakobu io";
/// Most cells; more indicate a mistake in a list.
const CELLS_MAX: usize = 10_000;
/// Options preferred as the swept number.
const SWEPT_FIRST: [&str; 2] = ["numjobs", "iodepth"];

/// One value for each axis, in the order of axes.
pub type SweepSetting = Vec<(String, String)>;

/// Why a sweep cannot be planned: there are more than [`CELLS_MAX`] combinations.
#[derive(Debug)]
pub struct TooManySettings;

impl fmt::Display for TooManySettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the lists make more than {CELLS_MAX} combinations")
    }
}

error_type!(TooManySettings: ; );

/// All combinations, the swept number varying fastest.
pub fn settings(axes: &[Axis]) -> Result<Vec<SweepSetting>, TooManySettings> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    if count.is_none_or(|count| count > CELLS_MAX) {
        return Err(TooManySettings);
    }
    let swept = swept(axes);
    let mut order: Vec<usize> = (0..axes.len()).filter(|at| Some(*at) != swept).collect();
    order.extend(swept);
    let lists =
        order.into_iter().map(|at| axes[at].values.iter().map(|value| (at, value)).collect());
    let named = |mut setting: Vec<(usize, &String)>| {
        setting.sort_by_key(|(at, _)| *at);
        let pairs = setting.into_iter();
        pairs.map(|(at, value)| (axes[at].option.clone(), value.clone())).collect()
    };
    Ok(product(lists).into_iter().map(named).collect())
}

/// Index of the swept axis: jobs, else depth, else the only numeric one.
fn swept(axes: &[Axis]) -> Option<usize> {
    let is_numeric = |axis: &Axis| axis.values.iter().all(|value| number(value).is_some());
    for name in SWEPT_FIRST {
        let found = axes.iter().position(|axis| axis.option == name && is_numeric(axis));
        if found.is_some() {
            return found;
        }
    }
    let numeric: Vec<usize> = (0..axes.len()).filter(|at| is_numeric(&axes[*at])).collect();
    match numeric[..] {
        [only] => Some(only),
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Inputs of a sweep.
pub struct SweepMatrix<'a> {
    /// Lists of values.
    pub axes: &'a [Axis],
    /// Runs per cell.
    pub repeat: u32,
    /// Seed of the order.
    pub seed: u64,
    /// Path of this program.
    pub program: &'a Path,
    /// Command line of the sweep, for the record.
    pub line: &'a str,
    /// Folders of the files, by label.
    pub places: BTreeMap<String, PathBuf>,
}

/// Plans a sweep. `words` gives the arguments of this program for a cell.
pub fn plan(
    matrix: &SweepMatrix<'_>,
    words: &dyn Fn(&SweepSetting) -> Vec<String>,
) -> Result<CampaignPlan, TooManySettings> {
    let axes = matrix.axes;
    let x = swept(axes).map(|at| axes[at].option.clone());
    let mut cells = Vec::new();
    for setting in settings(axes)? {
        let words = words(&setting);
        cells.push(planned_cell(matrix, &setting, x.as_deref(), words, cells.len()));
    }
    add_controls(&mut cells, 0, |_| 0);
    let others = axes.iter().filter(|axis| Some(&axis.option) != x.as_ref());
    let over = x.as_ref().map_or(String::new(), |x| format!(" over {x}"));
    let lists: Vec<String> =
        others.map(|axis| format!("{} {}", axis.option, axis.values.join(", "))).collect();
    let title = match lists.is_empty() {
        true => format!("{SERIES}{over}"),
        false => format!("{SERIES}{over}; {}", lists.join("; ")),
    };
    Ok(CampaignPlan {
        header: ResultsHeader {
            name: "io".into(),
            title,
            text: format!("# {}\n", matrix.line.replace(['\n', '\r'], " ")),
            x_name: x,
            metric: "iops".into(),
            more_is_better: true,
            ..ResultsHeader::default()
        },
        cells,
        repeat: RepeatRules {
            warmup: 0,
            min: matrix.repeat,
            max: matrix.repeat,
            tight: 0.0,
            budget: None,
            seed: matrix.seed,
        },
        programs: vec![("hakobu".into(), matrix.program.to_owned())],
        places: matrix.places.clone(),
        ..CampaignPlan::default()
    })
}

fn planned_cell(
    matrix: &SweepMatrix<'_>,
    setting: &SweepSetting,
    x: Option<&str>,
    words: Vec<String>,
    id: usize,
) -> PlannedCell {
    let others = setting.iter().filter(|(name, _)| Some(name.as_str()) != x);
    let group: Vec<String> = others.map(|(name, value)| format!("{name} {value}")).collect();
    let swept = setting.iter().find(|(name, _)| Some(name.as_str()) == x);
    let shown = ["hakobu"].into_iter().chain(words.iter().map(String::as_str));
    let command = line(shown);
    let mut argv = vec![matrix.program.to_string_lossy().into_owned()];
    argv.extend(words);
    PlannedCell {
        cell: Cell {
            id: u32::try_from(id).unwrap_or(u32::MAX),
            group: if group.is_empty() { "all".into() } else { group.join(", ") },
            series: SERIES.into(),
            x: swept.and_then(|(_, value)| number(value)),
            parameters: setting.iter().cloned().collect(),
            command,
            own: true,
            ..Cell::default()
        },
        // So that no run pays for the writeback of the previous one.
        prepare: vec![RunAction::Sync],
        launch: Launch { argv, ..Launch::default() },
        check: RunCheck::Exit,
        extract: OutputFormat::Fio,
        ..PlannedCell::default()
    }
}

// Writes all files one or more times before the first run, so that a device is measured in its steady state,
// not fresh from the factory (SNIA Solid State Storage Performance Test Specification 2.0,
// "preconditioning").

/// Bytes per write.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes all files `passes` times sequentially with incompressible content, and syncs them. `report`
/// receives the bytes written and the total. Returns false if `stop` ended it.
pub fn precondition(
    files: &[LaidFile],
    passes: u32,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64, u64),
) -> Result<bool, PathError> {
    let total = files.iter().map(|file| file.bytes).sum::<u64>().saturating_mul(passes.into());
    let mut block = vec![0; BLOCK_BYTES];
    let mut random = fastrand::Rng::with_seed(total);
    let mut done = 0;
    // Folders and missing files have no content; names that no engine opens belong to files of others.
    let has_content = |file: &&LaidFile| file.bytes > 0 && !file.nothing;
    for laid in std::iter::repeat_n(files, passes as usize).flatten().filter(has_content) {
        let failed = PathError::of("write", &laid.path);
        let mut file = OpenOptions::new().write(true).open(&laid.path).map_err(&failed)?;
        let mut left = laid.bytes;
        while left > 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let length = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            random.fill(&mut block[..length]);
            file.write_all(&block[..length]).map_err(&failed)?;
            left -= length as u64;
            done += length as u64;
            report(done, total);
        }
        file.sync_data().map_err(&failed)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(option: &str, values: &str) -> Axis {
        Axis { option: option.into(), values: values.split(',').map(str::to_owned).collect() }
    }

    fn words(setting: &SweepSetting) -> Vec<String> {
        let options = setting.iter().map(|(name, value)| format!("--{name}={value}"));
        ["io".to_owned()].into_iter().chain(options).collect()
    }

    fn made(axes: &[Axis]) -> CampaignPlan {
        let matrix = SweepMatrix {
            axes,
            repeat: 3,
            seed: 7,
            program: Path::new("/bin/h"),
            line: "hakobu io --numjobs=1,2",
            places: BTreeMap::new(),
        };
        plan(&matrix, &words).unwrap()
    }

    #[test]
    fn jobs_are_swept_and_the_rest_are_groups() {
        let plan = made(&[axis("numjobs", "1,2,4"), axis("rw", "read,randread")]);
        assert_eq!(
            (plan.header.x_name.as_deref(), plan.header.metric.as_str()),
            (Some("numjobs"), "iops")
        );
        let varied: Vec<_> = plan
            .cells
            .iter()
            .map(|planned| {
                let cell = &planned.cell;
                (cell.id, cell.group.as_str(), cell.x, cell.control_of)
            })
            .collect();
        assert_eq!(
            varied,
            [
                (0, "rw read", Some(1.0), None),
                (1, "rw read", Some(2.0), None),
                (2, "rw read", Some(4.0), None),
                (3, "rw randread", Some(1.0), None),
                (4, "rw randread", Some(2.0), None),
                (5, "rw randread", Some(4.0), None),
                (6, "rw read", Some(2.0), Some(1)),
                (7, "rw randread", Some(2.0), Some(4)),
            ]
        );
        let first = &plan.cells[0];
        assert_eq!(first.launch.argv, ["/bin/h", "io", "--numjobs=1", "--rw=read"]);
        assert_eq!(first.cell.command, "hakobu io --numjobs=1 --rw=read");
        assert_eq!((plan.repeat.min, plan.repeat.max, plan.repeat.seed), (3, 3, 7));
        assert!(plan.header.text.starts_with("# hakobu io"), "{}", plan.header.text);
    }

    #[test]
    fn what_is_swept() {
        let x = |axes: &[Axis]| made(axes).header.x_name;
        assert_eq!(x(&[axis("iodepth", "1,2"), axis("numjobs", "1,2")]), Some("numjobs".into()));
        assert_eq!(x(&[axis("rw", "read,write"), axis("iodepth", "1,2")]), Some("iodepth".into()));
        assert_eq!(x(&[axis("rwmixread", "0,50")]), Some("rwmixread".into()));
        assert_eq!(x(&[axis("rwmixread", "0,50"), axis("rate_iops", "1,2")]), None);
        assert_eq!(x(&[axis("rw", "read,write")]), None);
        // Without lists there is one cell, repeated.
        let plan = made(&[]);
        assert_eq!((plan.cells.len(), plan.cells[0].cell.group.as_str()), (2, "all"));
    }

    #[test]
    fn too_many_are_refused() {
        let values: Vec<String> = (0..101).map(|number| number.to_string()).collect();
        let axes = ["numjobs", "iodepth"].map(|option| axis(option, &values.join(",")));
        assert!(settings(&axes).unwrap_err().to_string().contains("more than 10000"));
    }

    fn laid(path: &std::path::Path) -> LaidFile {
        let path = path.to_owned();
        LaidFile { path, bytes: 3_000_000, laid_out: true, device: false, nothing: false }
    }

    #[test]
    fn everything_is_written_as_often_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.0.0");
        std::fs::write(&path, vec![0; 3_000_000]).unwrap();
        let go = AtomicBool::new(false);
        let mut last = (0, 0);
        let mut report = |done, total| last = (done, total);
        assert!(precondition(&[laid(&path)], 2, &go, &mut report).unwrap());
        assert_eq!(last, (6_000_000, 6_000_000));
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len(), 3_000_000);
        let zeros = content.iter().filter(|byte| **byte == 0).count();
        assert!(zeros < 3_000_000 / 128, "{zeros}");
    }

    #[test]
    fn a_stop_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.0.0");
        std::fs::write(&path, "as it was").unwrap();
        let stop = AtomicBool::new(true);
        assert!(!precondition(&[laid(&path)], 1, &stop, &mut |_, _| {}).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"as it was");
        let go = AtomicBool::new(false);
        let gone = laid(&folder.path().join("gone"));
        let why = precondition(&[gone], 1, &go, &mut |_, _| {}).unwrap_err().to_string();
        assert!(why.contains("gone"), "{why}");
    }
}
