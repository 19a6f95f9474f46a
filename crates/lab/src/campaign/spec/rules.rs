//! What is put on the machine, what happens between runs, how often each is run, what is looked at
//! afterwards, and the figures of a published study.

use super::names::Names;
use super::node::Error;
use super::table::Table;
use super::value;
use crate::campaign::Repeat;
use crate::campaign::tools::Template;
use crate::results::Published;
use std::time::Duration;

/// Runs of a cell, where a campaign says nothing.
const MIN_RUNS: u32 = 3;
const MAX_RUNS: u32 = 10;
/// Half an interval below this share of the median is tight.
const TIGHT: f64 = 0.02;
/// How long a run may take, where a campaign says nothing.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Whether the source is in the page cache before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// As it comes.
    #[default]
    Any,
    /// None of it is.
    Cold,
    /// All of it is.
    Warm,
}

/// What is put on the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// CPUs that a tool may use.
    pub cpus: Option<usize>,
    /// Operations a second of the target's disk, reads and writes each.
    pub iops: Option<u64>,
    /// Bytes a second of the target's disk, reads and writes each.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// What each answer of an embedded server waits, in place of what the place says.
    pub latency: Option<Duration>,
}

/// What is looked at after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// The exit code.
    Exit,
    /// How many files and bytes there are.
    Count,
    /// Names and sizes of all files, and the contents of some.
    Tree {
        /// How many are compared, at most.
        compare: u64,
    },
}

/// What happens around runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Commands before the first run.
    pub setup: Vec<Template>,
    /// Commands after the last.
    pub teardown: Vec<Template>,
    /// Commands before each run, not timed.
    pub prepare: Vec<Template>,
    /// Commands after each run, not timed.
    pub conclude: Vec<Template>,
    /// Whether the source is in the page cache.
    pub cache: CacheState,
    /// The target is emptied before each run.
    pub empty: bool,
    /// Everything is written back before each run.
    pub sync: bool,
    /// A run that takes longer has failed.
    pub timeout: Duration,
}

/// `[scale]`: the default.
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

/// Whether a number can be a scale.
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
pub(super) fn check(top: &mut Table<'_>) -> Result<Option<Looked>, Error> {
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
    let looked = match (what.value.as_str(), compare) {
        ("tree", compare) => Looked::Tree { compare: compare.unwrap_or(COMPARED) },
        ("count", None) => Looked::Count,
        ("exit", None) => Looked::Exit,
        ("count" | "exit", Some(_)) => {
            return Err(table.lacks("'compare' is for what = \"tree\""));
        }
        (other, _) => {
            let why = format!("'{other}' is neither tree nor count nor exit");
            return Err(table.wrong(what.at, "what", why));
        }
    };
    table.end()?;
    Ok(Some(looked))
}

/// Files whose contents are compared after a run, where a campaign says nothing.
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
