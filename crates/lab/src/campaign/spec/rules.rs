//! Conditions, actions around runs, number of runs, checks, and the figures of a published study.

use super::names::Names;
use super::node::Error;
use super::table::Table;
use super::value;
use crate::campaign::Repeat;
use crate::campaign::tools::Template;
use crate::results::Published;
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
pub struct Condition {
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
pub struct Rules {
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
pub(super) fn scale(top: &mut Table<'_>) -> Result<f64, Error> {
    let Some(mut table) = top.table("scale")? else { return Ok(1.0) };
    let scale = match table.number("default")? {
        Some(scale) if !is_scale(scale.value) => {
            let why = "must be more than 0 and at most 1000000";
            return Err(table.wrong(scale.at, "default", why));
        }
        scale => scale.map_or(1.0, |scale| scale.value),
    };
    table.end()?;
    Ok(scale)
}

/// True if a number is a valid scale.
pub fn is_scale(scale: f64) -> bool {
    scale > 0.0 && scale <= 1e6
}

/// `[scaled.NAME]`: sizes that follow the scale.
pub(super) fn scaled(top: &mut Table<'_>) -> Result<Vec<(String, u64, u64)>, Error> {
    let Some(table) = top.table("scaled")? else { return Ok(Vec::new()) };
    let mut sizes = Vec::new();
    for (name, mut table) in table.named()? {
        if !value::is_placeholder(&name.value) {
            return Err(table.lacks("the name must be small letters, digits and '_'"));
        }
        let bytes = table.size("size")?.ok_or_else(|| table.lacks("'size' is missing"))?.value;
        let least = table.size("min")?.map_or(1, |min| min.value);
        table.end()?;
        sizes.push((name.value, bytes, least));
    }
    Ok(sizes)
}

/// `[[condition]]`.
pub(super) fn conditions(top: &mut Table<'_>) -> Result<Vec<Condition>, Error> {
    let mut conditions = Vec::new();
    for mut table in top.list("condition")? {
        let at = table.at;
        let condition = Condition {
            cpus: table.whole_in("cpus", 1..=4096)?.map(|cpus| cpus as usize),
            iops: table.whole_in("iops", 1..=1_000_000_000)?,
            bandwidth_bytes_per_s: table.size("bandwidth")?.map(|rate| rate.value),
            latency: table.duration("latency")?.map(|latency| latency.value),
        };
        if condition.bandwidth_bytes_per_s == Some(0) {
            return Err(table.lacks("'bandwidth' must be more than nothing"));
        }
        if conditions.contains(&condition) {
            return Err(table.source.error(at, "condition: is there twice"));
        }
        table.end()?;
        conditions.push(condition);
    }
    if conditions.is_empty() {
        conditions.push(Condition::default());
    }
    Ok(conditions)
}

/// `[run]`.
pub(super) fn read(top: &mut Table<'_>, names: &Names) -> Result<Rules, Error> {
    let mut rules = Rules {
        setup: Vec::new(),
        teardown: Vec::new(),
        prepare: Vec::new(),
        conclude: Vec::new(),
        cache: CacheState::Any,
        empty: true,
        sync: true,
        timeout: TIMEOUT,
    };
    let Some(mut table) = top.table("run")? else { return Ok(rules) };
    let mut commands = |key| -> Result<Vec<Template>, Error> {
        let texts = table.texts(key)?.map_or_else(Vec::new, |texts| texts.value);
        texts.iter().map(|text| names.command(&table, key, text)).collect()
    };
    rules.setup = commands("setup")?;
    rules.teardown = commands("teardown")?;
    rules.prepare = commands("prepare")?;
    rules.conclude = commands("conclude")?;
    if let Some(cache) = table.text("cache")? {
        rules.cache = match cache.value.as_str() {
            "any" => CacheState::Any,
            "cold" => CacheState::Cold,
            "warm" => CacheState::Warm,
            other => {
                let why = format!("'{other}' is neither any nor cold nor warm");
                return Err(table.wrong(cache.at, "cache", why));
            }
        };
    }
    rules.empty = table.truth("empty")?.unwrap_or(true);
    rules.sync = table.truth("sync")?.unwrap_or(true);
    if let Some(timeout) = table.duration("timeout")? {
        if timeout.value.is_zero() {
            return Err(table.wrong(timeout.at, "timeout", "must be more than nothing"));
        }
        rules.timeout = timeout.value;
    }
    table.end()?;
    Ok(rules)
}

/// `[repeat]`.
pub(super) fn repeat(top: &mut Table<'_>) -> Result<Repeat, Error> {
    let mut repeat =
        Repeat { warmup: 0, min: MIN_RUNS, max: MAX_RUNS, tight: TIGHT, budget: None, seed: 1 };
    let Some(mut table) = top.table("repeat")? else { return Ok(repeat) };
    let whole = |number: Option<u64>, otherwise| number.map_or(otherwise, |number| number as u32);
    repeat.warmup = whole(table.whole_in("warmup", 0..=1000)?, 0);
    repeat.min = whole(table.whole_in("min", 1..=10_000)?, MIN_RUNS);
    repeat.max = whole(table.whole_in("max", 1..=10_000)?, repeat.min.max(MAX_RUNS));
    if repeat.max < repeat.min {
        return Err(table.lacks("'max' must not be below 'min'"));
    }
    if let Some(tight) = table.number("tight")? {
        if !(0.0..1.0).contains(&tight.value) {
            return Err(table.wrong(tight.at, "tight", "must be a share between 0 and 1"));
        }
        repeat.tight = tight.value;
    }
    repeat.budget = table.duration("budget")?.map(|budget| budget.value);
    repeat.seed = table.whole("seed")?.map_or(1, |seed| seed.value);
    table.end()?;
    Ok(repeat)
}

/// `[check]`.
pub(super) fn check(top: &mut Table<'_>) -> Result<Option<CheckLevel>, Error> {
    let Some(mut table) = top.table("check")? else { return Ok(None) };
    let what = table.required("what")?;
    let compare = match table.texts("compare")? {
        None => None,
        Some(texts) => {
            let wrong = || table.wrong(texts.at, "compare", "must be a number of files, or 'all'");
            let [text] = &texts.value[..] else { return Err(wrong()) };
            match text.value.as_str() {
                "all" => Some(u64::MAX),
                number => Some(number.parse().map_err(|_| wrong())?),
            }
        }
    };
    let level = match (what.value.as_str(), compare) {
        ("tree", compare) => CheckLevel::Tree { compare: compare.unwrap_or(COMPARED) },
        ("count", None) => CheckLevel::Count,
        ("exit", None) => CheckLevel::Exit,
        ("count" | "exit", Some(_)) => {
            return Err(table.lacks("'compare' is for what = \"tree\""));
        }
        (other, _) => {
            let why = format!("'{other}' is neither tree nor count nor exit");
            return Err(table.wrong(what.at, "what", why));
        }
    };
    table.end()?;
    Ok(Some(level))
}

/// Default number of files whose contents are compared after a run.
pub const COMPARED: u64 = 20;

/// `[[published]]`.
pub(super) fn published(top: &mut Table<'_>) -> Result<Vec<Published>, Error> {
    let mut figures = Vec::new();
    for mut table in top.list("published")? {
        let machine = table.required("machine")?.value;
        let series = table.required("series")?.value;
        let group = table.text("group")?.map(|group| group.value);
        let x = table.numbers("x")?;
        let values = table.numbers("values")?.ok_or_else(|| table.lacks("'values' is missing"))?;
        let count = values.value.len();
        let places: Vec<Option<f64>> = match x {
            None if count > 1 => return Err(table.lacks("'x' is missing: one for each value")),
            None => vec![None; count],
            Some(x) if x.value.len() != count => {
                let why = format!("{} numbers for {count} values", x.value.len());
                return Err(table.wrong(x.at, "x", why));
            }
            Some(x) => x.value.into_iter().map(Some).collect(),
        };
        table.end()?;
        figures.extend(places.into_iter().zip(values.value).map(|(x, value)| Published {
            machine: machine.clone(),
            series: series.clone(),
            group: group.clone(),
            x,
            value,
        }));
    }
    Ok(figures)
}
