//! The JSON file of a recording.

use super::columns::rounded;
use super::{Kept, Summary};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

/// Counts changes of the file that are more than new fields.
const SCHEMA: u32 = 1;

/// The machine, as far as it matters for what was measured. Nothing that names it or its users.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// What the CPUs call themselves.
    pub cpu_model: Option<String>,
    /// CPUs that are on.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// The command that was run, and what time(1) says of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Command {
    /// Its name and arguments; what is no UTF-8 in them is U+FFFD.
    pub argv: Vec<String>,
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// From its start to its end, seconds.
    pub real_s: f64,
    /// CPU time in user space, with its descendants that were waited for, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub sys_s: f64,
    /// CPU time in percent of one CPU.
    pub cpu_percent: f64,
    /// Peak resident memory of the largest process, bytes.
    pub max_rss_bytes: u64,
    /// True where that is only known to be no more.
    pub max_rss_is_bound: bool,
    /// Faults that needed no device.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// Times one of its processes gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
    /// Bytes that were fetched from devices for it.
    pub device_read_bytes: u64,
    /// Bytes that it made devices write, now or later.
    pub device_write_bytes: u64,
}

/// Everything that the file says.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The program that made it, with its version.
    pub program: &'a str,
    /// When it began, RFC 3339.
    pub start: &'a str,
    /// Seconds between samples.
    pub interval_s: f64,
    /// The machine.
    pub machine: &'a Machine,
    /// The command, where there was one.
    pub command: Option<&'a Command>,
    /// The process that was watched, where it was a running one.
    pub pid: Option<u32>,
    /// The summary.
    pub summary: &'a Summary,
    /// The rows.
    pub kept: &'a Kept,
}

impl Document<'_> {
    /// As one JSON object with a line end.
    ///
    /// # Errors
    /// None is known: nothing here has keys that are no text.
    pub fn json(&self) -> Result<String, String> {
        #[derive(Serialize)]
        struct Name<'a> {
            name: &'a str,
            unit: &'a str,
        }
        #[derive(Serialize)]
        struct Whole<'a> {
            schema: u32,
            program: &'a str,
            start: &'a str,
            interval_s: f64,
            machine: &'a Machine,
            #[serde(skip_serializing_if = "Option::is_none")]
            command: Option<&'a Command>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pid: Option<u32>,
            summary: &'a Summary,
            intervals_each_row: usize,
            columns: Vec<Name<'a>>,
            rows: Rows<'a>,
        }
        let columns = self.kept.columns().iter();
        let columns = columns.map(|column| Name { name: &column.name, unit: column.unit });
        let whole = Whole {
            schema: SCHEMA,
            program: self.program,
            start: self.start,
            interval_s: self.interval_s,
            machine: self.machine,
            command: self.command,
            pid: self.pid,
            summary: self.summary,
            intervals_each_row: self.kept.intervals_each(),
            columns: columns.collect(),
            rows: Rows(self.kept),
        };
        let text = serde_json::to_string(&whole).map_err(|error| error.to_string())?;
        Ok(text + "\n")
    }
}

/// Rows as arrays of numbers, `null` where one is not known.
struct Rows<'a>(&'a Kept);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(None)?;
        for row in self.0.rows() {
            let cells: Vec<_> =
                row.iter().map(|cell| cell.is_finite().then(|| rounded(*cell))).collect();
            rows.serialize_element(&cells)?;
        }
        rows.end()
    }
}
