//! Conditions, actions around runs, number of runs, checks, and the figures of a published study.

use crate::campaign::RepeatRules;
use crate::campaign::spec::toml;
use crate::campaign::spec::toml::{SpecError, TomlTable};
use crate::campaign::spec::tool::Placeholders;
use crate::campaign::template::Template;
use crate::results::PublishedFigure;
use std::time::Duration;

/// Default number of runs of a cell.
const MIN_RUNS: u32 = 3;
const MAX_RUNS: u32 = 10;
/// Default relative half width of an interval that counts as tight.
const TIGHT: f64 = 0.02;
/// Default time limit of a run.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Page cache state of the source before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Left as it is.
    #[default]
    Any,
    /// Evicted.
    Cold,
    /// Loaded.
    Warm,
}

/// Condition of the machine during runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineCondition {
    /// CPUs that a tool may use.
    pub cpus: Option<usize>,
    /// Operations per second of the disks of target and source, for reads and writes each.
    pub iops: Option<u64>,
    /// Bytes per second of these disks, for reads and writes each.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Delay of each answer of an embedded server; overrides the place's.
    pub latency: Option<Duration>,
}

/// Check after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckLevel {
    /// The exit code.
    Exit,
    /// Number of files and bytes.
    Count,
    /// Names and sizes of all files, and contents of some.
    Tree {
        /// Most files to compare.
        compare: u64,
    },
}

/// Actions around runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRules {
    /// Commands before the first run.
    pub setup: Vec<Template>,
    /// Commands after the last run.
    pub teardown: Vec<Template>,
    /// Commands before each run, not timed.
    pub prepare: Vec<Template>,
    /// Commands after each run, not timed.
    pub conclude: Vec<Template>,
    /// Page cache state of the source.
    pub cache: CacheState,
    /// True to empty the target before each run.
    pub empty: bool,
    /// True to write dirty pages back before each run.
    pub sync: bool,
    /// Time limit of a run.
    pub timeout: Duration,
}

/// `[scale]`: the default scale.
pub(super) fn scale(top: &mut TomlTable<'_>) -> Result<f64, SpecError> {
    top.section("scale", |table| match table.number("default")? {
        Some(scale) if !is_scale(scale) => {
            Err(table.wrong("default", "must be more than 0 and at most 1000000"))
        }
        scale => Ok(scale.unwrap_or(1.0)),
    })
}

/// True if a number is a valid scale.
pub fn is_scale(scale: f64) -> bool {
    scale > 0.0 && scale <= 1e6
}

/// `[scaled.NAME]`: sizes that follow the scale.
pub(super) fn parse_scaled_sizes(
    top: &mut TomlTable<'_>,
) -> Result<Vec<(String, u64, u64)>, SpecError> {
    top.named("scaled", |name, table| {
        if !toml::is_placeholder(&name) {
            return Err(table.lacks("the name must be lower-case letters, digits and '_'"));
        }
        let bytes = table.size("size")?.ok_or_else(|| table.lacks("'size' is missing"))?;
        Ok((name, bytes, table.size("min")?.unwrap_or(1)))
    })
}

/// `[[condition]]`.
pub(super) fn conditions(top: &mut TomlTable<'_>) -> Result<Vec<MachineCondition>, SpecError> {
    let mut conditions = Vec::new();
    top.list("condition", |table| {
        let condition = MachineCondition {
            cpus: table.whole_in("cpus", 1..=4096)?.map(|cpus| cpus as usize),
            iops: table.whole_in("iops", 1..=1_000_000_000)?,
            bandwidth_bytes_per_s: table.size("bandwidth")?,
            latency: table.duration("latency")?,
        };
        if condition.bandwidth_bytes_per_s == Some(0) {
            return Err(table.lacks("'bandwidth' must be more than nothing"));
        }
        if conditions.contains(&condition) {
            return Err(table.source.error(table.at, "condition: is there twice"));
        }
        conditions.push(condition);
        Ok(())
    })?;
    if conditions.is_empty() {
        conditions.push(MachineCondition::default());
    }
    Ok(conditions)
}

/// `[run]`.
pub(super) fn read(top: &mut TomlTable<'_>, names: &Placeholders) -> Result<RunRules, SpecError> {
    top.section("run", |table| {
        let mut commands = |key| -> Result<Vec<Template>, SpecError> {
            Ok(table.each(key, |text| names.command(text))?.unwrap_or_default())
        };
        let (setup, teardown) = (commands("setup")?, commands("teardown")?);
        let (prepare, conclude) = (commands("prepare")?, commands("conclude")?);
        let states =
            [("any", CacheState::Any), ("cold", CacheState::Cold), ("warm", CacheState::Warm)];
        let cache = table.word("cache", &states)?.unwrap_or_default();
        let empty = table.truth("empty")?.unwrap_or(true);
        let sync = table.truth("sync")?.unwrap_or(true);
        let timeout = table.duration("timeout")?.unwrap_or(TIMEOUT);
        if timeout.is_zero() {
            return Err(table.wrong("timeout", "must be more than nothing"));
        }
        Ok(RunRules { setup, teardown, prepare, conclude, cache, empty, sync, timeout })
    })
}

/// `[repeat]`.
pub(super) fn repeat(top: &mut TomlTable<'_>) -> Result<RepeatRules, SpecError> {
    top.section("repeat", |table| {
        let warmup = table.whole_in("warmup", 0..=1000)?.unwrap_or(0) as u32;
        let min = table.whole_in("min", 1..=10_000)?.map_or(MIN_RUNS, |min| min as u32);
        let max = table.whole_in("max", 1..=10_000)?.map_or(min.max(MAX_RUNS), |max| max as u32);
        if max < min {
            return Err(table.lacks("'max' must not be below 'min'"));
        }
        let tight = table.number("tight")?.unwrap_or(TIGHT);
        if !(0.0..1.0).contains(&tight) {
            return Err(table.wrong("tight", "must be a share between 0 and 1"));
        }
        let budget = table.duration("budget")?;
        let seed = table.whole("seed")?.unwrap_or(1);
        Ok(RepeatRules { warmup, min, max, tight, budget, seed })
    })
}

/// `[check]`.
pub(super) fn check(top: &mut TomlTable<'_>) -> Result<Option<CheckLevel>, SpecError> {
    top.inside("check", |table| {
        let what = table.required("what")?;
        let compare = match table.texts("compare")? {
            None => None,
            Some(texts) => {
                let wrong = || table.wrong("compare", "must be a number of files, or 'all'");
                let [text] = &texts[..] else { return Err(wrong()) };
                match text.value.as_str() {
                    "all" => Some(u64::MAX),
                    number => Some(number.parse().map_err(|_| wrong())?),
                }
            }
        };
        let tree = CheckLevel::Tree { compare: compare.unwrap_or(COMPARED) };
        let levels = [("tree", tree), ("count", CheckLevel::Count), ("exit", CheckLevel::Exit)];
        let level = table.meaning("what", &what, &levels)?;
        if compare.is_some() && level != tree {
            return Err(table.lacks("'compare' is for what = \"tree\""));
        }
        Ok(level)
    })
}

/// Default number of files whose contents are compared after a run.
pub const COMPARED: u64 = 20;

/// `[[published]]`.
pub(super) fn parse_published(top: &mut TomlTable<'_>) -> Result<Vec<PublishedFigure>, SpecError> {
    let figures = top.list("published", |table| {
        let machine = table.required("machine")?;
        let series = table.required("series")?;
        let group = table.text("group")?;
        let x = table.numbers("x")?;
        let values = table.numbers("values")?.ok_or_else(|| table.lacks("'values' is missing"))?;
        let count = values.len();
        let places: Vec<Option<f64>> = match x {
            None if count > 1 => return Err(table.lacks("'x' is missing: one for each value")),
            None => vec![None; count],
            Some(x) if x.len() != count => {
                return Err(table.wrong("x", format!("{} numbers for {count} values", x.len())));
            }
            Some(x) => x.into_iter().map(Some).collect(),
        };
        let figure = move |(x, value)| PublishedFigure {
            machine: machine.clone(),
            series: series.clone(),
            group: group.clone(),
            x,
            value,
        };
        Ok(places.into_iter().zip(values).map(figure))
    })?;
    Ok(figures.into_iter().flatten().collect())
}
