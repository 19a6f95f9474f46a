//! Resolves a campaign to commands, for this machine and its programs: data sets × targets × conditions × tools ×
//! parameters, plus one control in each group. Parts that are impossible here are left out, with a note on what would
//! enable them.

mod cell;
mod target;
#[cfg(test)]
mod tests;

use crate::campaign::data::DataRecipe;
use crate::campaign::files::nearest_existing;
use crate::campaign::plan::cell::SETTINGS;
use crate::campaign::plan::target::{PlanTarget, TargetContext};
use crate::campaign::spec::data::COUNT_MAX;
use crate::campaign::spec::place::{PlaceError, PlaceLocation, PlaceSpec};
use crate::campaign::spec::rules::{CacheState, MachineCondition};
use crate::campaign::spec::toml::{UnknownName, duration_text, size_text};
use crate::campaign::spec::tool::{SweptParameter, ToolSpec};
use crate::campaign::spec::{CampaignSpec, data, rules};
use crate::campaign::template::{PlaceholderValues, Template, TemplateError, quoted};
use crate::campaign::throttle::{DiskThrottle, ThrottleError};
use crate::campaign::tools::{OWN, SettingsFile, find_program};
use crate::campaign::{CampaignPlan, PlannedCell, add_controls, tools};
use crate::product;
use crate::results::DataSet;
use hakobu_sys::{AsFd, disk};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a campaign cannot be planned.
#[derive(Debug)]
pub enum PlanError {
    /// The user's scale is not valid.
    Scale(f64),
    /// A data set has too many files at the scale.
    TooManyFiles { data: String, scale: f64 },
    /// The user replaces a place that does not exist.
    Unknown(UnknownName),
    /// The user's replacement is no place.
    Place { name: String, cause: PlaceError },
    /// A tool has no command for a place of the user.
    NoCommand(String),
    /// A command cannot be filled in.
    Command {
        /// Whose command it is.
        of: String,
        cause: TemplateError,
    },
    /// There are more than [`CELLS_MAX`] cells.
    TooManyCells,
    /// No port is free for a server.
    NoPort,
    /// No cell is left; the parts that were left out.
    Nothing(Vec<String>),
}

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Scale(scale) => {
                write!(out, "{scale} is not a scale: more than 0 and at most 1000000")
            }
            PlanError::TooManyFiles { data, scale } => {
                write!(out, "data.{data} has more than {COUNT_MAX} files at the scale {scale}")
            }
            PlanError::Unknown(name) => name.fmt(out),
            PlanError::Place { name, cause } => write!(out, "place '{name}': {cause}"),
            PlanError::NoCommand(tool) => write!(out, "tool '{tool}': cannot write there"),
            PlanError::Command { of, cause } => write!(out, "{of}: {cause}"),
            PlanError::TooManyCells => {
                write!(out, "more than {CELLS_MAX} configurations: less has to be swept")
            }
            PlanError::NoPort => out.write_str("no port of this machine is free for a server"),
            PlanError::Nothing(left_out) => {
                let why = match left_out.is_empty() {
                    true => "the campaign has no configuration",
                    false => &left_out.join("; "),
                };
                write!(out, "there is nothing to run: {why}")
            }
        }
    }
}

error_type!(PlanError: Unknown(UnknownName); Place, Command);

/// Scale of a campaign for this user.
///
/// # Errors
/// The number is not a valid scale.
pub fn scale(spec: &CampaignSpec, options: &PlanOptions) -> Result<f64, PlanError> {
    match options.scale {
        None => Ok(spec.scale),
        Some(scale) if rules::is_scale(scale) => Ok(scale),
        Some(scale) => Err(PlanError::Scale(scale)),
    }
}

/// Makes the plan. Writes nothing and starts no program.
///
/// # Errors
/// An option is invalid, a command uses an unknown name, or no cell is left to run.
pub fn make(
    spec: &CampaignSpec,
    options: &PlanOptions,
    environment: &PlanEnvironment,
) -> Result<CampaignPlan, PlanError> {
    let scale = scale(spec, options)?;
    let recipes: Vec<DataRecipe> = spec.data.iter().map(|data| data.at(scale)).collect();
    if let Some(large) = recipes.iter().find(|recipe| recipe.count > COUNT_MAX) {
        return Err(PlanError::TooManyFiles { data: large.name.clone(), scale });
    }
    let mut plan = CampaignPlan {
        header: spec.header.clone(),
        other_endpoint: spec.other_endpoint.clone(),
        repeat: spec.repeat.clone(),
        ..CampaignPlan::default()
    };
    for recipe in recipes {
        let totals = recipe.totals();
        plan.header.data.push(DataSet {
            name: recipe.name.clone(),
            files: totals.files,
            bytes: totals.bytes,
            about: recipe.about(),
        });
        let folder = recipe.folder(&options.cache);
        plan.data.push((recipe, folder));
    }
    if !plan.data.is_empty() {
        plan.places.insert("source".into(), options.cache.clone());
    }
    let mut common = PlaceholderValues::from([
        ("work".to_owned(), options.work.as_path().into()),
        ("own".to_owned(), options.own.as_path().into()),
        ("cpus".to_owned(), environment.cpus.to_string().into()),
    ]);
    for (name, bytes, least) in &spec.scaled {
        let bytes = data::scale_number(*bytes, scale, *least);
        common.insert(name.clone(), bytes.to_string().into());
    }
    for parameter in &spec.sweep {
        let most = largest(&parameter.values);
        common.extend(most.map(|most| (format!("{}_max", parameter.name), most.into())));
    }
    let context = TargetContext {
        work: &options.work,
        program: &options.own,
        secret_key: &options.secret_key,
        campaign: &spec.header.name,
        is_free: &environment.is_free,
    };
    let mut cells = PlanBuilder {
        spec,
        options,
        environment,
        context,
        places: places(spec, options)?,
        common,
        plan,
        tools: Vec::new(),
        taken: Vec::new(),
        targets: Vec::new(),
        files: Vec::new(),
        cache: spec.rules.cache,
    };
    cells.find_tools();
    cells.ignore_cold();
    cells.all()?;
    cells.finish()
}

/// Largest of some numbers, as written.
fn largest(values: &[String]) -> Option<String> {
    let numbers = values.iter().filter_map(|text| Some((text.parse::<f64>().ok()?, text)));
    numbers.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, text)| text.clone())
}

/// Places from the campaign, or the user's replacements.
fn places(spec: &CampaignSpec, options: &PlanOptions) -> Result<Vec<PlaceSpec>, PlanError> {
    for name in options.places.keys() {
        spec.has_place(name)?;
    }
    let targets = spec.targets.iter().filter_map(|name| spec.place(name));
    let replaced = |place: &PlaceSpec| match options.places.get(&place.name) {
        Some(text) => place
            .parse_replacement(text)
            .map_err(|cause| PlanError::Place { name: place.name.clone(), cause }),
        None => Ok(place.clone()),
    };
    targets.map(replaced).collect()
}

impl PlanBuilder<'_> {
    /// Looks up the programs of all tools; tools with a missing program are left out.
    fn find_tools(&mut self) {
        for tool in &self.spec.tools {
            let mut lacking = Vec::new();
            let mut found = Vec::new();
            for name in required_programs(tool) {
                let path = match name.as_str() {
                    OWN => Some(self.options.own.clone()),
                    name => find_program(name, &self.environment.path),
                };
                match path {
                    Some(path) => found.push((name, path)),
                    None => lacking.push(name),
                }
            }
            if lacking.is_empty() {
                self.tools.push(tool);
                for program in found {
                    if !self.plan.programs.contains(&program) {
                        self.plan.programs.push(program);
                    }
                }
                continue;
            }
            let how = |name: &String| {
                let usual = || tools::known_program(name).map(|program| program.install.to_owned());
                tool.install.clone().or_else(usual)
            };
            let mut commands: Vec<String> = lacking.iter().filter_map(how).collect();
            commands.dedup();
            let advice = match commands.is_empty() {
                true => String::new(),
                false => format!("; install it with: {}", commands.join(" && ")),
            };
            let programs = lacking.join(" and ");
            self.plan
                .header
                .left_out
                .push(format!("{}: {programs} is not installed{advice}", tool.name));
        }
    }

    /// Data sets on a file system in memory cannot be cold: a note says so, and the cache state is ignored.
    fn ignore_cold(&mut self) {
        let cache = &self.options.cache;
        let has_data = !self.plan.data.is_empty();
        if has_data && self.cache == CacheState::Cold && (self.environment.is_memory)(cache) {
            let cache = cache.display();
            let line = format!("cold data: '{cache}' is in memory, so its files cannot be cold");
            self.plan.header.left_out.push(line);
            self.cache = CacheState::Any;
        }
    }

    /// Completes the plan with what all runs share.
    fn finish(mut self) -> Result<CampaignPlan, PlanError> {
        if self.plan.cells.is_empty() {
            return Err(PlanError::Nothing(self.plan.header.left_out));
        }
        if self.plan.other_endpoint.is_some()
            && !self.plan.cells.iter().any(PlannedCell::names_endpoint)
        {
            let line = "another endpoint: no command names the one that it would replace";
            self.plan.header.left_out.push(line.into());
        }
        for target in &self.targets {
            self.plan.own.extend(target.own.clone().filter(|own| !self.plan.own.contains(own)));
            self.plan.setup.extend(target.guard.clone());
            if let Some(folder) = &target.folder {
                let command = format!("mkdir -p {}", quoted(&folder.to_string_lossy()));
                if !self.plan.setup.contains(&command) {
                    self.plan.setup.push(command);
                }
                self.plan.places.insert(target.name.clone(), folder.clone());
            }
            if let Some(server) = &target.server {
                if let Some(folder) = &server.folder {
                    self.plan.places.insert(target.name.clone(), folder.clone());
                }
                self.plan.servers.push(server.clone());
            }
        }
        if !self.files.is_empty() {
            self.plan.own.push(self.options.work.join(SETTINGS));
        }
        self.plan.setup.extend(self.files.iter().map(SettingsFile::command));
        let mut values = self.common.clone();
        if let Some((recipe, folder)) = self.plan.data.first() {
            values.extend(cell::data_values(recipe, folder));
        }
        if let Some(target) = self.targets.first() {
            values.extend(target.values());
        }
        let scripts = |of: &str, templates: &[Template]| {
            let scripts = templates.iter().map(|template| template.script(&values));
            let scripts = scripts.collect::<Result<Vec<_>, _>>();
            scripts.map_err(|cause| PlanError::Command { of: of.to_owned(), cause })
        };
        self.plan.setup.extend(scripts("setup", &self.spec.rules.setup)?);
        self.plan.teardown.extend(scripts("teardown", &self.spec.rules.teardown)?);
        Ok(self.plan)
    }
}

/// Programs that a tool needs: those of a known tool, the first word of a command, and `needs`.
fn required_programs(tool: &ToolSpec) -> Vec<String> {
    let mut needed: Vec<String> = match (tool.known(), tool.command()) {
        (Some(known), _) => known.needs.iter().map(|name| (*name).to_owned()).collect(),
        (None, Some(command)) => command.program().into_iter().collect(),
        (None, None) => Vec::new(),
    };
    needed.extend(tool.needs.iter().cloned());
    needed.dedup();
    needed
}

/// User's options besides the campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOptions {
    /// Overrides the scale of the campaign.
    pub scale: Option<f64>,
    /// Overrides places: a path or an `s3://` URL by the name of the place.
    pub places: BTreeMap<String, String>,
    /// Work folder, absolute: targets, data of servers, settings files.
    pub work: PathBuf,
    /// Folder for data sets, absolute.
    pub cache: PathBuf,
    /// Path of the running program, absolute.
    pub own: PathBuf,
    /// Secret key of embedded servers; random.
    pub secret_key: String,
}

/// Properties of the machine that a plan depends on.
#[derive(Clone, Debug)]
pub struct PlanEnvironment {
    /// Folders with programs.
    pub path: Vec<PathBuf>,
    /// Number of usable CPUs.
    pub cpus: usize,
    /// Finds a way to limit the disks of the target's and the source's folder.
    pub throttle: fn(&Path, Option<&Path>) -> Result<DiskThrottle, ThrottleError>,
    /// True if two folders are on one file system.
    pub is_one_fs: fn(&Path, &Path) -> bool,
    /// True if a port can be listened on.
    pub is_free: fn(u16) -> bool,
    /// True if a folder is always in memory (tmpfs).
    pub is_memory: fn(&Path) -> bool,
}

impl PlanEnvironment {
    /// Properties of this machine.
    pub fn here() -> PlanEnvironment {
        PlanEnvironment {
            path: tools::folders(),
            cpus: hakobu_sys::process::cpus(),
            throttle: DiskThrottle::find,
            is_one_fs,
            is_free: |port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(),
            is_memory,
        }
    }
}

/// Compares the file systems of two folders, which need not exist yet.
fn is_one_fs(one: &Path, other: &Path) -> bool {
    let dev = |folder: &Path| nearest_existing(folder).metadata().ok().map(|meta| meta.dev());
    dev(one) == dev(other)
}

/// Looks at the file system of a folder, which need not exist yet.
fn is_memory(folder: &Path) -> bool {
    File::open(nearest_existing(folder)).is_ok_and(|file| disk::is_memory(file.as_fd()))
}

/// The choices that identify a cell.
struct CellChoice<'a> {
    tool: &'a ToolSpec,
    /// Its command for the target.
    template: &'a Template,
    /// Index of the data set.
    data: Option<usize>,
    target: Option<PlanTarget>,
    condition: &'a MachineCondition,
    /// Condition as recorded.
    conditions: BTreeMap<String, String>,
    throttle: Option<DiskThrottle>,
    /// Swept parameters in the order of the text.
    swept: Vec<(String, String)>,
    /// Parts of the group's name, without parameters.
    group: Vec<String>,
}

/// Most cells of a campaign: more indicate a mistake in the sweep.
const CELLS_MAX: usize = 10_000;

/// A plan under construction.
struct PlanBuilder<'a> {
    spec: &'a CampaignSpec,
    options: &'a PlanOptions,
    environment: &'a PlanEnvironment,
    context: TargetContext<'a>,
    /// Places to write to, from the campaign or the user.
    places: Vec<PlaceSpec>,
    /// Placeholders available to all commands.
    common: PlaceholderValues,
    plan: CampaignPlan,
    /// Tools whose programs were found.
    tools: Vec<&'a ToolSpec>,
    /// Ports in use by the plan.
    taken: Vec<u16>,
    /// Targets by place and server conditions.
    targets: Vec<PlanTarget>,
    /// Settings files.
    files: Vec<SettingsFile>,
    /// Page cache state of the source, as far as it can be established.
    cache: CacheState,
}

impl<'a> PlanBuilder<'a> {
    /// Adds all cells.
    fn all(&mut self) -> Result<(), PlanError> {
        let count = self.plan.data.len().max(1);
        for data in 0..count {
            let data = (!self.plan.data.is_empty()).then_some(data);
            let places: Vec<Option<PlaceSpec>> = match self.places.is_empty() {
                true => vec![None],
                false => self.places.iter().cloned().map(Some).collect(),
            };
            for place in &places {
                for condition in &self.spec.conditions {
                    self.group(data, place.as_ref(), condition)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the cells of one data set at one place under one condition.
    fn group(
        &mut self,
        data: Option<usize>,
        place: Option<&PlaceSpec>,
        condition: &MachineCondition,
    ) -> Result<(), PlanError> {
        let source = data.and_then(|at| self.plan.data.get(at)).map(|(_, folder)| folder.clone());
        let throttle = match self.can(place, condition, source.as_deref()) {
            Ok(throttle) => throttle,
            Err(why) => {
                self.leave_out(format!("{}: {why}", condition_words(condition, place).join(", ")));
                return Ok(());
            }
        };
        let target = match place {
            None => None,
            Some(place) => Some(self.target(place, condition)?),
        };
        let name = self.name(data, place, condition);
        let first = self.plan.cells.len();
        let renames = self.renames(place, source.as_deref());
        for tool in self.tools.clone() {
            if renames && tool.known().is_some_and(|known| known.moves) {
                self.leave_out(format!(
                    "{}: source and target are on one file system, where a move only renames; \
                     --place NAME=DIR chooses another one",
                    tool.name
                ));
                continue;
            }
            let template = self.template(tool, target.as_ref());
            let template = template.ok_or_else(|| PlanError::NoCommand(tool.name.clone()))?;
            for parameters in self.settings(tool, &template) {
                let choice = CellChoice {
                    tool,
                    template: &template,
                    data,
                    target: target.clone(),
                    condition,
                    conditions: condition_values(condition, place),
                    throttle: throttle.clone(),
                    swept: parameters,
                    group: name.clone(),
                };
                if self.plan.cells.len() >= CELLS_MAX {
                    return Err(PlanError::TooManyCells);
                }
                let planned = self.cell(&choice).map_err(|cause| {
                    let of = format!("tool '{}'", tool.name);
                    PlanError::Command { of, cause }
                })?;
                self.plan.cells.push(planned);
            }
        }
        let mut cells = std::mem::take(&mut self.plan.cells);
        add_controls(&mut cells, first, |planned| self.rank(planned));
        self.plan.cells = cells;
        Ok(())
    }

    /// Notes a part that is left out, once.
    fn leave_out(&mut self, why: String) {
        if !self.plan.header.left_out.contains(&why) {
            self.plan.header.left_out.push(why);
        }
    }

    /// Rank of a cell as a control: the named tool's come first, then hakobu's.
    fn rank(&self, planned: &PlannedCell) -> usize {
        match &self.spec.control {
            Some(name) if self.series_of(planned) == Some(name.as_str()) => 0,
            _ if planned.cell.own => 1,
            _ => 2,
        }
    }

    /// Tool of a cell: the longest tool name that its series begins with.
    fn series_of(&self, planned: &PlannedCell) -> Option<&str> {
        let series = planned.cell.series.as_str();
        let starts = |tool: &&&ToolSpec| {
            series
                .strip_prefix(tool.name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
        };
        let longest = self.tools.iter().filter(starts).max_by_key(|tool| tool.name.len());
        longest.map(|tool| tool.name.as_str())
    }

    /// True if moving from the source to a place would be a rename.
    fn renames(&self, place: Option<&PlaceSpec>, source: Option<&Path>) -> bool {
        match (place.map(|place| &place.at), source) {
            (Some(PlaceLocation::Path(path)), Some(source)) => {
                (self.environment.is_one_fs)(&self.context.folder(path), source)
            }
            _ => false,
        }
    }

    /// Checks that the machine supports a condition; returns the disk throttle, if needed.
    fn can(
        &self,
        place: Option<&PlaceSpec>,
        condition: &MachineCondition,
        source: Option<&Path>,
    ) -> Result<Option<DiskThrottle>, ConditionError> {
        let usable = self.environment.cpus;
        if let Some(needed) = condition.cpus.filter(|cpus| *cpus > usable) {
            return Err(ConditionError::Cpus { needed, usable });
        }
        let folder = match place.map(|place| &place.at) {
            Some(PlaceLocation::Path(path)) => {
                if condition.latency.is_some() {
                    return Err(ConditionError::Reason("only an embedded server can wait"));
                }
                self.context.folder(path)
            }
            Some(PlaceLocation::Server { .. }) if condition.iops.is_none() => return Ok(None),
            _ if condition.iops.is_none()
                && condition.bandwidth_bytes_per_s.is_none()
                && condition.latency.is_none() =>
            {
                return Ok(None);
            }
            _ => return Err(ConditionError::Reason("nothing here can limit that place")),
        };
        if condition.iops.is_none() && condition.bandwidth_bytes_per_s.is_none() {
            return Ok(None);
        }
        Ok(Some((self.environment.throttle)(&folder, source)?))
    }

    /// Target of a place under a condition, created once.
    fn target(
        &mut self,
        place: &PlaceSpec,
        condition: &MachineCondition,
    ) -> Result<PlanTarget, PlanError> {
        let mut taken = self.taken.clone();
        let target = self.context.target(place, condition, &mut taken).ok_or(PlanError::NoPort)?;
        let label = |target: &PlanTarget| target.server.as_ref().map(|server| server.label.clone());
        let twin =
            |other: &&PlanTarget| other.name == target.name && label(other) == label(&target);
        if let Some(there) = self.targets.iter().find(twin) {
            return Ok(there.clone());
        }
        self.taken = taken;
        self.targets.push(target.clone());
        Ok(target)
    }

    /// Name of a group: what its cells share and other groups do not.
    fn name(
        &self,
        data: Option<usize>,
        place: Option<&PlaceSpec>,
        condition: &MachineCondition,
    ) -> Vec<String> {
        let mut parts = Vec::new();
        if self.spec.data.len() > 1 {
            let data = data.and_then(|at| self.plan.header.data.get(at));
            parts.extend(data.map(|data| data.name.clone()));
        }
        if self.spec.targets.len() > 1 {
            parts.extend(place.map(|place| place.name.clone()));
        }
        parts.extend(condition_words(condition, place));
        parts
    }

    /// All settings of a tool: the product of its parameters, the last one varying fastest.
    fn settings(&self, tool: &ToolSpec, template: &Template) -> Vec<Vec<(String, String)>> {
        let swept: Vec<&SweptParameter> = match &tool.sweep {
            Some(own) => own.iter().collect(),
            None => {
                let uses = |each: &&SweptParameter| uses(tool, template, &each.name);
                self.spec.sweep.iter().filter(uses).collect()
            }
        };
        let swept = swept.into_iter().filter(|each| !tool.set.contains_key(&each.name));
        product(swept.map(|each| {
            each.values.iter().map(|value| (each.name.clone(), value.clone())).collect()
        }))
    }

    /// Command of a tool for a target; `None` if it cannot write there.
    fn template(&self, tool: &ToolSpec, target: Option<&PlanTarget>) -> Option<Template> {
        match target {
            Some(target) => {
                let place = self.places.iter().find(|place| place.name == target.name)?;
                tool.template(place)
            }
            None => tool.command().cloned(),
        }
    }
}

/// True if a value of a parameter has an effect on a tool.
fn uses(tool: &ToolSpec, template: &Template, name: &str) -> bool {
    let others = tool.options.iter().chain(tool.env.values()).chain(&tool.stdin);
    tool.defaults().iter().any(|(default, _)| *default == name)
        || [template].into_iter().chain(others).any(|template| template.mentions(name))
}

/// Why a condition is impossible here: the end of a sentence.
#[derive(Debug)]
enum ConditionError {
    Cpus { needed: usize, usable: usize },
    Reason(&'static str),
    Throttle(ThrottleError),
}

impl fmt::Display for ConditionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionError::Cpus { needed, usable } => {
                write!(out, "needs {needed} CPUs, and {usable} are usable")
            }
            ConditionError::Reason(why) => out.write_str(why),
            ConditionError::Throttle(error) => error.fmt(out),
        }
    }
}

impl From<ThrottleError> for ConditionError {
    fn from(error: ThrottleError) -> ConditionError {
        ConditionError::Throttle(error)
    }
}

/// A condition as recorded in results.
fn condition_values(
    condition: &MachineCondition,
    place: Option<&PlaceSpec>,
) -> BTreeMap<String, String> {
    let (mut bandwidth, mut latency) = (condition.bandwidth_bytes_per_s, condition.latency);
    if let Some(PlaceLocation::Server { latency: own, bandwidth_bytes_per_s, .. }) =
        place.map(|place| &place.at)
    {
        bandwidth = bandwidth.or(*bandwidth_bytes_per_s);
        latency = latency.or(Some(*own).filter(|latency| !latency.is_zero()));
    }
    let all = [
        ("cpus", condition.cpus.map(|cpus| cpus.to_string())),
        ("iops", condition.iops.map(|iops| iops.to_string())),
        ("bandwidth", bandwidth.map(|rate| format!("{}/s", size_text(rate)))),
        ("latency", latency.map(duration_text)),
    ];
    all.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}

/// A condition as words in the name of a group.
fn condition_words(condition: &MachineCondition, place: Option<&PlaceSpec>) -> Vec<String> {
    let order = |(name, value): (&str, &String)| match name {
        "cpus" if value == "1" => "1 CPU".to_owned(),
        "cpus" => format!("{value} CPUs"),
        "iops" => format!("{value} IOPS"),
        "latency" => format!("{value} latency"),
        _ => value.clone(),
    };
    let shown = condition_values(condition, place);
    let names = ["cpus", "iops", "bandwidth", "latency"];
    names.iter().filter_map(|name| shown.get(*name).map(|value| order((*name, value)))).collect()
}
