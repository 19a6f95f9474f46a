//! Results of a campaign on disk: one folder per execution, with append-only JSON lines, so that measurements
//! survive any interruption.
//!
//! `results.jsonl` holds one [`ResultsLine`] each: the [`ResultsHeader`], then runs in the order of execution, with remarks
//! and experiments in between, and an [`CampaignEnd`] when it is complete. `samples.jsonl` holds load curves, one
//! [`LoadCurves`] per run. A resumed campaign appends to the same files. `outputs/BLOCK/CELL.json` holds the
//! output of fio or `hakobu io`.

pub mod hyperfine;
pub mod import;
pub mod read;
pub mod store;

pub use hakobu_core::unit::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the files, increased by changes other than new fields.
pub const SCHEMA: u32 = 1;

/// A program that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolFingerprint {
    /// Name in the campaign.
    pub name: String,
    /// First line of its version output.
    pub version: String,
    /// Path of the executable.
    pub path: String,
    /// SHA-256 of the executable, hexadecimal.
    pub sha256: String,
}

/// A data set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    /// Name in the campaign.
    pub name: String,
    /// Number of regular files.
    pub files: u64,
    /// Total bytes.
    pub bytes: u64,
    /// Description in words.
    pub about: String,
}

/// One setting of one tool, which is run repeatedly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Id in the campaign, from 0, in the order of description.
    pub id: u32,
    /// Group: cells with the same data and conditions, which are compared.
    pub group: String,
    /// Tool as named in the campaign: a line in charts over the swept number.
    pub series: String,
    /// Value of the swept number (jobs, requests), if any.
    pub x: Option<f64>,
    /// All parameters, including the swept one.
    pub parameters: BTreeMap<String, String>,
    /// Conditions of the machine: `cpus`, `iops`, `bandwidth`, `latency`.
    pub conditions: BTreeMap<String, String>,
    /// Exact command in shell syntax.
    pub command: String,
    /// Name of the data set.
    pub data: String,
    /// For an A/A control, the cell that it repeats.
    pub control_of: Option<u32>,
    /// True for hakobu.
    pub own: bool,
}

/// First line of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultsHeader {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the campaign: letters, digits, dashes.
    pub name: String,
    /// Headline.
    pub title: String,
    /// Question that it answers.
    pub question: String,
    /// Headline in Japanese; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title_ja: String,
    /// Question in Japanese; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question_ja: String,
    /// Program and version that ran it.
    pub program: String,
    /// Start time, RFC 3339 in UTC.
    pub start: String,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Requested scale of data; 1 is as described.
    pub scale: f64,
    /// Name of the swept number: `jobs`.
    pub x_name: Option<String>,
    /// Metric: wall clock seconds (`wall_s`), or a metric of the runs.
    pub metric: String,
    /// True if higher values of the metric are better (a rate).
    pub more_is_better: bool,
    /// The machine.
    pub machine: Machine,
    /// The programs.
    pub tools: Vec<ToolFingerprint>,
    /// Data sets.
    pub data: Vec<DataSet>,
    /// Cells.
    pub cells: Vec<Cell>,
    /// Parts left out, with a remedy: a missing program with the command that installs it.
    pub left_out: Vec<String>,
    /// Figures of a published study that it reproduces.
    pub published: Vec<PublishedFigure>,
    /// Source text of the campaign, TOML.
    pub text: String,
    /// Cost of starting one job: by `exec` (this program), `sh` (through a shell), `parallel` (GNU parallel).
    /// Medians of wall clock seconds.
    #[serde(default)]
    pub start_costs_s: BTreeMap<String, f64>,
    /// Load of the idle machine before the first run, by the names of [`Run::load`].
    #[serde(default)]
    pub idle_load: BTreeMap<String, f64>,
}

/// A figure of a published study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Machine or setting in the study.
    pub machine: String,
    /// Tool or pattern.
    pub series: String,
    /// Group; `None` if it applies to all groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The swept number.
    pub x: Option<f64>,
    /// Value in the unit of the metric.
    pub value: f64,
}

impl PublishedFigure {
    /// True if it applies to a group.
    pub fn is_of(&self, group: &str) -> bool {
        self.group.as_deref().is_none_or(|own| own == group)
    }

    /// Tool, and group if given.
    pub fn label(&self) -> String {
        match &self.group {
            Some(group) => format!("{}, {group}", self.series),
            None => self.series.clone(),
        }
    }
}

/// One execution of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Id of its cell.
    pub cell: u32,
    /// Block; runs of one block are compared in pairs.
    pub block: u32,
    /// Position in the block.
    pub place: u32,
    /// True for a warm-up, which does not count.
    pub warmup: bool,
    /// Start time, seconds since the start of the campaign.
    pub at_s: f64,
    /// True if it succeeded and its result is correct: a tool that is fast because it lost data fails.
    pub ok: bool,
    /// Problem, as a sentence.
    pub problem: Option<String>,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Wall clock time, seconds.
    pub wall_s: f64,
    /// CPU time in user space including descendants, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub sys_s: f64,
    /// Peak resident memory of the largest process, bytes.
    pub rss_bytes_max: u64,
    /// Bytes read from devices for it.
    pub read_bytes: u64,
    /// Bytes that it made dirty, to be written to devices.
    pub write_bytes: u64,
    /// Bytes passed to write(2) and similar calls; `None` if not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Processes and threads that it started.
    pub started: u64,
    /// Share of the source in the page cache before it began, 0 to 1; `None` if not measured.
    pub cached: Option<f64>,
    /// Result of the check.
    pub checked: Option<CheckedFiles>,
    /// Further metrics: `iops`, `clat_p99_ns`.
    pub metrics: BTreeMap<String, f64>,
    /// Mean loads of the machine during the run: `cpu_percent`, `busiest_cpu_percent`, `iowait_percent`,
    /// `disk_busy_percent`, `disk_iops`, `disk_bytes_per_s`, `net_bytes_per_s`, `steal_percent`.
    pub load: BTreeMap<String, f64>,
    /// Verdict as in `--json` of a transfer, for hakobu's own runs.
    pub verdict: Option<serde_json::Value>,
}

impl Run {
    /// A metric: `wall_s`, `user_s`, `sys_s`, or one of [`Run::metrics`].
    pub fn measured(&self, metric: &str) -> Option<f64> {
        match metric {
            "wall_s" => Some(self.wall_s),
            "user_s" => Some(self.user_s),
            "sys_s" => Some(self.sys_s),
            metric => self.metrics.get(metric).copied(),
        }
    }
}

/// Content of the target after a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckedFiles {
    /// Number of regular files or objects.
    pub files: u64,
    /// Total bytes.
    pub bytes: u64,
    /// Number of files compared byte for byte.
    pub compared: u64,
}

/// Load curves of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadCurves {
    /// Id of its cell.
    pub cell: u32,
    /// Block.
    pub block: u32,
    /// Ends of the intervals, seconds since the start of the run.
    pub t_s: Vec<f64>,
    /// Values by name, each list as long as `t_s`: `user`, `system`, `iowait`, `steal` (percent of all CPUs),
    /// `own_user`, `own_system` (the same of the command and its descendants; not in older results), `busiest`
    /// (percent of one), `read`, `write` (bytes per second, all disks), `iops`, `net` (bytes per
    /// second).
    pub values: BTreeMap<String, Vec<f64>>,
}

/// A counter-experiment: one resource changed at a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterExperiment {
    /// Id of its cell.
    pub cell: u32,
    /// Changed resource: `cpus`, `iops`, `bandwidth`, `latency`, `source`, `sink`, `endpoint`.
    pub changed: String,
    /// Values before and after, in words.
    pub about: String,
    /// Factor by which the resource was changed; 0.5 is half.
    pub factor: f64,
    /// Speed ratios of pairs of runs, changed ÷ unchanged.
    pub ratios: Vec<f64>,
}

/// Last line of a complete campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignEnd {
    /// Reason for the end: `done`, `tight` (intervals), `budget`, `stopped`.
    pub reason: String,
    /// Duration without pauses, seconds.
    pub took_s: f64,
    /// CPU time of the lab during runs, as a share of the measured time.
    pub overhead: f64,
}

/// One line of `results.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum ResultsLine {
    /// First line.
    Header(Box<ResultsHeader>),
    /// A run.
    Run(Box<Run>),
    /// A counter-experiment.
    Experiment(CounterExperiment),
    /// The campaign was resumed.
    Resumed {
        /// Time, RFC 3339.
        at: String,
    },
    /// The campaign is complete.
    End(CampaignEnd),
}

/// Content of a results folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// First line.
    pub header: ResultsHeader,
    /// Runs in the order of execution.
    pub runs: Vec<Run>,
    /// Counter-experiments.
    pub experiments: Vec<CounterExperiment>,
    /// Load curves.
    pub curves: Vec<LoadCurves>,
    /// Its end, if it has ended.
    pub end: Option<CampaignEnd>,
}
