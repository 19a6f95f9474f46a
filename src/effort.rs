//! What the options of how much is done at once, how fast, with how much memory and how politely
//! mean, for the commands that have them.

use crate::options::Given;
use crate::priority::{self, IoNice};
use crate::{jobs, size};
use hakobu_sys::process;
use hakobu_transfer::run::{memory_bytes_min, too_little_memory};
use hakobu_transfer::unit::Jobs;

/// The largest rate of operations that is believed: more is a typing error.
const OPERATIONS_MAX: u64 = 1_000_000_000;

/// What these options have said so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// `-j`.
    pub jobs: Jobs,
    /// `--bwlimit`, in bytes a second.
    pub bytes_per_s_max: Option<u64>,
    /// `--iops-limit`.
    iops_max: Option<u64>,
    /// `--rps-limit`.
    rps_max: Option<u64>,
    /// `--memory`, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Off: `--no-memory`.
    pub remember: bool,
    /// `--explain`.
    pub explain: bool,
    /// `--prove`.
    pub prove: bool,
    /// `--nice`, `--ionice`.
    pub priority: Priority,
}

/// How much others go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    nice: Option<i32>,
    ionice: Option<IoNice>,
}

impl Priority {
    /// Takes it on, for this thread and those that it starts from now on.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn apply(self) -> Result<(), String> {
        priority::apply(self.nice, self.ionice)
    }
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            jobs: Jobs::Auto,
            bytes_per_s_max: None,
            iops_max: None,
            rps_max: None,
            memory_bytes_max: None,
            remember: true,
            explain: false,
            prove: false,
            priority: Priority::default(),
        }
    }
}

impl Effort {
    /// Takes an option if it is one of these; whether it was.
    ///
    /// # Errors
    /// What is wrong with its value.
    pub fn take(&mut self, given: &Given) -> Result<bool, String> {
        match given.name {
            "jobs" => self.jobs = jobs::parse(&given.value, process::cpus())?,
            "bwlimit" if !given.on => self.bytes_per_s_max = None,
            "bwlimit" => {
                self.bytes_per_s_max =
                    size::parse_rate(&given.value).map_err(|why| wrong(given, why))?;
            }
            "iops-limit" => self.iops_max = Some(operations(given)?),
            "rps-limit" => self.rps_max = Some(operations(given)?),
            "memory" => {
                let bytes = size::parse(&given.value, 1).map_err(|why| wrong(given, why))?;
                self.memory_bytes_max = Some(bytes);
            }
            "no-memory" => self.remember = false,
            "explain" => self.explain = true,
            "prove" => self.prove = true,
            "nice" => {
                let nice = priority::parse_nice(&given.value).map_err(|why| wrong(given, why))?;
                self.priority.nice = Some(nice);
            }
            "ionice" => {
                let class =
                    priority::parse_ionice(&given.value).map_err(|why| wrong(given, why))?;
                self.priority.ionice = Some(class);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether `--memory` has room for what a store is sent in one piece, a part of `part_bytes`
    /// where that was said.
    ///
    /// # Errors
    /// The least that it needs.
    pub fn check_memory(&self, part_bytes: Option<u64>) -> Result<(), String> {
        let least = memory_bytes_min(true, part_bytes);
        match self.memory_bytes_max {
            Some(bytes) if bytes < least => Err(too_little_memory(least)),
            _ => Ok(()),
        }
    }

    /// The limit of operations of a transfer, a second: requests where a side is in S3
    /// (`with_store`), else operations on files.
    ///
    /// # Errors
    /// The limit that was given is of the other kind.
    pub fn operations_per_s_max(&self, with_store: bool) -> Result<Option<u64>, String> {
        match (self.iops_max, self.rps_max, with_store) {
            (Some(_), _, true) => Err("--iops-limit is for transfers between paths; \
                                       --rps-limit limits requests to s3://"
                .into()),
            (_, Some(_), false) => Err("--rps-limit is for s3:// locations, and none is given; \
                                        --iops-limit limits operations on files"
                .into()),
            (iops, rps, _) => Ok(iops.or(rps)),
        }
    }
}

/// A number of operations a second.
fn operations(given: &Given) -> Result<u64, String> {
    let number = given.value.to_str().and_then(|text| text.parse().ok());
    number
        .filter(|number| (1..=OPERATIONS_MAX).contains(number))
        .ok_or_else(|| wrong(given, "is not a whole number from 1 to 1000000000"))
}

fn wrong(given: &Given, why: &str) -> String {
    format!("--{}={} {why}", given.name, given.value.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&'static str, &str)]) -> Result<Effort, String> {
        let mut effort = Effort::default();
        for (name, value) in options {
            let given = Given { name, on: true, count: 1, value: value.into() };
            assert!(effort.take(&given)?, "{name}");
        }
        Ok(effort)
    }

    #[test]
    fn limits() {
        let effort = read(&[("bwlimit", "2m"), ("iops-limit", "1"), ("memory", "64M")]).unwrap();
        assert_eq!((effort.bytes_per_s_max, effort.iops_max), (Some(2 << 20), Some(1)));
        assert_eq!(effort.memory_bytes_max, Some(64 << 20));
        for (name, value) in [
            ("iops-limit", "0"),
            ("iops-limit", "-1"),
            ("iops-limit", "1.5"),
            ("rps-limit", "1k"),
            ("rps-limit", ""),
            ("rps-limit", "1000000001"),
            ("rps-limit", "99999999999999999999"),
            ("memory", "much"),
            ("bwlimit", "1b"),
            ("jobs", "x"),
        ] {
            let message = read(&[(name, value)]).unwrap_err();
            assert!(message.contains(value), "{message}");
        }
    }

    #[test]
    fn each_limit_of_operations_has_its_place() {
        let (iops, rps) =
            (read(&[("iops-limit", "5")]).unwrap(), read(&[("rps-limit", "7")]).unwrap());
        assert_eq!(iops.operations_per_s_max(false), Ok(Some(5)));
        assert_eq!(rps.operations_per_s_max(true), Ok(Some(7)));
        assert_eq!(Effort::default().operations_per_s_max(true), Ok(None));
        assert!(iops.operations_per_s_max(true).unwrap_err().contains("--rps-limit"));
        assert!(rps.operations_per_s_max(false).unwrap_err().contains("--iops-limit"));
    }
}
