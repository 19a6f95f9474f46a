//! What a campaign found, as it stands on disk: one folder for each time that it was run, with
//! append-only JSON lines, so that whatever stops the program, what was measured stays.
//!
//! `results.jsonl` holds one [`Line`] each: first the [`Header`], then runs in the order in which
//! they were made, remarks and experiments in between, and an [`End`] once it is whole. Load curves
//! are in `samples.jsonl`, one [`Curves`] for each run. A campaign that goes on after a stop appends
//! to the same files. Beside them, `outputs/BLOCK/CELL.json` is what fio, or `hakobu io`, printed.

pub mod import;
mod outputs;
pub mod read;
pub mod store;
pub mod write;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts changes of the files that are more than new fields.
pub const SCHEMA: u32 = 1;

/// The machine, as far as it matters for what was measured. Nothing that names it or its users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// What to call it beside others: what the user said, else the instance type, else the CPU.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// What the CPUs call themselves.
    pub cpu_model: Option<String>,
    /// CPUs that this process may use; a quota makes it a fraction.
    pub cpus: f64,
    /// CPUs that are on.
    pub cpus_online: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The cloud's instance type, where there is one.
    pub instance_type: Option<String>,
    /// Where data lay: label of the location, kind and options of the file system, model, scheduler
    /// and kind of the disk.
    pub volumes: BTreeMap<String, String>,
    /// Limits that control groups set, one sentence each.
    pub limits: Vec<String>,
}

/// A program that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// As the campaign calls it.
    pub name: String,
    /// The first line that it says of itself.
    pub version: String,
    /// Where it was found.
    pub path: String,
    /// SHA-256 of that file, hexadecimal.
    pub sha256: String,
}

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    /// As the campaign calls it.
    pub name: String,
    /// Regular files.
    pub files: u64,
    /// Their content in bytes.
    pub bytes: u64,
    /// What it is, in words.
    pub about: String,
}

/// One setting of one tool: what is repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number in the campaign, from 0, in the order of description.
    pub id: u32,
    /// What is compared with each other: cells of one group have the same data and conditions.
    pub group: String,
    /// The tool, as the campaign calls it: one line in a picture over the swept number.
    pub series: String,
    /// The swept number (jobs, requests), where there is one.
    pub x: Option<f64>,
    /// All parameters, the swept one included.
    pub parameters: BTreeMap<String, String>,
    /// What was put on the machine: `cpus`, `iops`, `bandwidth`, `latency`.
    pub conditions: BTreeMap<String, String>,
    /// The exact command, as a shell would take it.
    pub command: String,
    /// The data set.
    pub data: String,
    /// The A/A control: the cell that this one repeats.
    pub control_of: Option<u32>,
    /// hakobu's own row.
    pub own: bool,
}

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The campaign's name: letters, digits, dashes.
    pub name: String,
    /// Its headline.
    pub title: String,
    /// What it is to answer.
    pub question: String,
    /// The program and version that ran it.
    pub program: String,
    /// When it began, RFC 3339 in UTC.
    pub start: String,
    /// The seed of the order of runs.
    pub seed: u64,
    /// The scale of data that was asked for; 1 is as described.
    pub scale: f64,
    /// What the swept number is called: `jobs`.
    pub x_name: Option<String>,
    /// What is measured: seconds of wall clock (`wall_s`), or a metric of the runs.
    pub metric: String,
    /// More of it is better (a rate), not less (a time).
    pub more_is_better: bool,
    /// The machine.
    pub machine: Machine,
    /// The programs.
    pub tools: Vec<Tool>,
    /// What was moved.
    pub data: Vec<DataSet>,
    /// What is repeated.
    pub cells: Vec<Cell>,
    /// What was left out, and how to have it: a missing program with the command that installs it.
    pub left_out: Vec<String>,
    /// Figures of a published study that it repeats: series, x, seconds (or the metric).
    pub published: Vec<Published>,
    /// The campaign as it was written, TOML.
    pub text: String,
    /// What starting one job costs, by who starts it: `exec` (this program), `sh` (a shell in
    /// between), `parallel` (GNU parallel). Medians, seconds of wall clock.
    #[serde(default)]
    pub start_costs_s: BTreeMap<String, f64>,
    /// What the machine did by itself before the first run, by the names of [`Run::load`]: the noise
    /// that everything was measured in.
    #[serde(default)]
    pub idle_load: BTreeMap<String, f64>,
}

/// A figure of a published study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Which machine or setting of the study.
    pub machine: String,
    /// Which tool or pattern.
    pub series: String,
    /// Of which group; `None` where it may stand beside each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The swept number.
    pub x: Option<f64>,
    /// What came out, in the unit of the metric.
    pub value: f64,
}

impl Published {
    /// Whether it may stand beside cells of a group.
    pub fn is_of(&self, group: &str) -> bool {
        self.group.as_deref().is_none_or(|own| own == group)
    }

    /// The tool, and the group where it is said.
    pub fn label(&self) -> String {
        match &self.group {
            Some(group) => format!("{}, {group}", self.series),
            None => self.series.clone(),
        }
    }
}

/// One execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Of which cell.
    pub cell: u32,
    /// The block that it was in: runs of one block stand beside each other.
    pub block: u32,
    /// Its place in the block.
    pub place: u32,
    /// Not counted: it warmed up.
    pub warmup: bool,
    /// Seconds from the start of the campaign to its own.
    pub at_s: f64,
    /// It ended well and its result is right. A tool that is fast because it lost something is not.
    pub ok: bool,
    /// What went wrong, a sentence.
    pub problem: Option<String>,
    /// Exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// From start to end, seconds.
    pub wall_s: f64,
    /// CPU time of it and its descendants in user space, seconds.
    pub user_s: f64,
    /// In the kernel, seconds.
    pub sys_s: f64,
    /// Peak resident memory of the largest process, bytes.
    pub rss_bytes_max: u64,
    /// Bytes that were fetched from devices for it.
    pub read_bytes: u64,
    /// Bytes that it made devices write, now or later.
    pub write_bytes: u64,
    /// Times one of its processes gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
    /// Processes and threads that it started.
    pub started: u64,
    /// Share of the source in the page cache before it began, 0 to 1; `None` where nobody looked.
    pub cached: Option<f64>,
    /// What the check saw.
    pub checked: Option<Checked>,
    /// What else it measured: `iops`, `clat_p99_ns`.
    pub metrics: BTreeMap<String, f64>,
    /// Means over the run of what the machine did: `cpu_percent`, `busiest_cpu_percent`,
    /// `iowait_percent`, `disk_busy_percent`, `disk_iops`, `disk_bytes_per_s`, `net_bytes_per_s`,
    /// `steal_percent`.
    pub load: BTreeMap<String, f64>,
    /// The verdict as `--json` of a transfer has it, for hakobu's own runs.
    pub verdict: Option<serde_json::Value>,
}

/// What was found at the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Regular files or objects.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many were compared byte for byte.
    pub compared: u64,
}

/// The load curves of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Of which cell.
    pub cell: u32,
    /// In which block.
    pub block: u32,
    /// Ends of the intervals, seconds since the run began.
    pub t_s: Vec<f64>,
    /// One list for each name, as long as `t_s`: `user`, `system`, `iowait`, `steal` (percent of all
    /// CPUs), `busiest` (percent of one), `read`, `write` (bytes a second, all disks), `iops`, `net`
    /// (bytes a second).
    pub values: BTreeMap<String, Vec<f64>>,
}

/// A counter-experiment: one thing changed at a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The cell it was made at.
    pub cell: u32,
    /// What was changed: `cpus`, `iops`, `bandwidth`, `latency`, `source`, `sink`, `endpoint`.
    pub changed: String,
    /// From what to what, in words.
    pub about: String,
    /// By which factor the resource was changed; 0.5 is half.
    pub factor: f64,
    /// Ratios of speed, changed ÷ unchanged, of pairs of runs.
    pub ratios: Vec<f64>,
}

/// The last line of a campaign that is whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Why no more runs were made: `done`, `tight` (intervals), `budget`, `stopped`.
    pub reason: String,
    /// Seconds from the start to the end, without pauses.
    pub took_s: f64,
    /// Share of that in which the lab worked beside the runs, while a run was measured.
    pub overhead: f64,
}

/// One line of `results.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// The first.
    Header(Box<Header>),
    /// An execution.
    Run(Box<Run>),
    /// A counter-experiment.
    Experiment(Experiment),
    /// It went on after a stop; RFC 3339.
    Resumed {
        /// When.
        at: String,
    },
    /// It is whole.
    End(End),
}

/// All that a folder of results says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The first line.
    pub header: Header,
    /// Runs in the order in which they were made.
    pub runs: Vec<Run>,
    /// Counter-experiments.
    pub experiments: Vec<Experiment>,
    /// Load curves.
    pub curves: Vec<Curves>,
    /// How it ended, if it did.
    pub end: Option<End>,
}
