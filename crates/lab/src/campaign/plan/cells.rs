//! Enumerates the cells of a campaign: data sets × targets × conditions × tools × parameters, plus one
//! control in each group.

use super::ground::{PlanEnvironment, PlanOptions};
use super::target::{PlanTarget, TargetContext};
use super::throttle::DiskThrottle;
use crate::campaign::spec::{
    CacheState, CampaignSpec, MachineCondition, PlaceLocation, PlaceSpec, SweptParameter, ToolSpec,
    duration_text, size_text,
};
use crate::campaign::tools::{PlaceholderValues, SettingsFile, Template};
use crate::campaign::{CampaignPlan, PlannedCell, add_controls};
use crate::product;
use std::collections::BTreeMap;
use std::path::Path;

/// The choices that identify a cell.
pub struct CellChoice<'a> {
    pub tool: &'a ToolSpec,
    /// Index of the data set.
    pub data: Option<usize>,
    pub target: Option<PlanTarget>,
    pub condition: &'a MachineCondition,
    /// Condition as recorded.
    pub conditions: BTreeMap<String, String>,
    pub throttle: Option<DiskThrottle>,
    /// Swept parameters in the order of the text.
    pub swept: Vec<(String, String)>,
    /// Parts of the group's name, without parameters.
    pub group: Vec<String>,
}

/// Most cells of a campaign: more indicate a mistake in the sweep.
const CELLS_MAX: usize = 10_000;

/// A plan under construction.
pub struct PlanBuilder<'a> {
    pub spec: &'a CampaignSpec,
    pub wishes: &'a PlanOptions,
    pub ground: &'a PlanEnvironment,
    pub making: TargetContext<'a>,
    /// Places to write to, from the campaign or the user.
    pub places: Vec<PlaceSpec>,
    /// Placeholders available to all commands.
    pub common: PlaceholderValues,
    pub plan: CampaignPlan,
    /// Tools whose programs were found.
    pub tools: Vec<&'a ToolSpec>,
    /// Ports in use by the plan.
    pub taken: Vec<u16>,
    /// Targets by place and server conditions.
    pub targets: Vec<PlanTarget>,
    /// Settings files.
    pub files: Vec<SettingsFile>,
    /// Page cache state of the source, as far as it can be established.
    pub cache: CacheState,
}

impl<'a> PlanBuilder<'a> {
    /// Adds all cells.
    pub fn all(&mut self) -> Result<(), String> {
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
    ) -> Result<(), String> {
        let source = data.and_then(|at| self.plan.data.get(at)).map(|(_, folder)| folder.clone());
        let throttle = match self.can(place, condition, source.as_deref()) {
            Ok(throttle) => throttle,
            Err(why) => {
                self.leave_out(format!("{}: {why}", words(condition, place).join(", ")));
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
            for parameters in self.settings(tool, target.as_ref()) {
                let choice = CellChoice {
                    tool,
                    data,
                    target: target.clone(),
                    condition,
                    conditions: shown(condition, place),
                    throttle: throttle.clone(),
                    swept: parameters,
                    group: name.clone(),
                };
                if self.plan.cells.len() >= CELLS_MAX {
                    return Err(format!("more than {CELLS_MAX} cells: less has to be swept"));
                }
                let planned = self.cell(&choice);
                let planned = planned.map_err(|why| format!("tool '{}': {why}", tool.name))?;
                self.plan.cells.push(planned);
            }
        }
        let mut cells = std::mem::take(&mut self.plan.cells);
        add_controls(&mut cells, first, |planned| self.rank(planned));
        self.plan.cells = cells;
        Ok(())
    }

    /// Notes a part that is left out, once.
    pub fn leave_out(&mut self, why: String) {
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
                (self.ground.is_one_fs)(&self.making.folder(path), source)
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
    ) -> Result<Option<DiskThrottle>, String> {
        if let Some(cpus) = condition.cpus.filter(|cpus| *cpus > self.ground.cpus) {
            let there = self.ground.cpus;
            return Err(format!("needs {cpus} CPUs, and {there} are usable"));
        }
        let folder = match place.map(|place| &place.at) {
            Some(PlaceLocation::Path(path)) => {
                if condition.latency.is_some() {
                    return Err("only an embedded server can wait".into());
                }
                self.making.folder(path)
            }
            Some(PlaceLocation::Server { .. }) if condition.iops.is_none() => return Ok(None),
            _ if condition.iops.is_none()
                && condition.bandwidth_bytes_per_s.is_none()
                && condition.latency.is_none() =>
            {
                return Ok(None);
            }
            _ => return Err("nothing here can limit that place".into()),
        };
        if condition.iops.is_none() && condition.bandwidth_bytes_per_s.is_none() {
            return Ok(None);
        }
        (self.ground.throttle)(&folder, source).map(Some)
    }

    /// Target of a place under a condition, created once.
    fn target(
        &mut self,
        place: &PlaceSpec,
        condition: &MachineCondition,
    ) -> Result<PlanTarget, String> {
        let mut taken = self.taken.clone();
        let target = self.making.target(place, condition, &mut taken)?;
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
        parts.extend(words(condition, place));
        parts
    }

    /// All settings of a tool: the product of its parameters, the last one varying fastest.
    fn settings(&self, tool: &ToolSpec, target: Option<&PlanTarget>) -> Vec<Vec<(String, String)>> {
        let swept: Vec<&SweptParameter> = match &tool.sweep {
            Some(own) => own.iter().collect(),
            None => {
                let uses = |each: &&SweptParameter| self.uses(tool, target, &each.name);
                self.spec.sweep.iter().filter(uses).collect()
            }
        };
        let swept = swept.into_iter().filter(|each| !tool.set.contains_key(&each.name));
        product(swept.map(|each| {
            each.values.iter().map(|value| (each.name.clone(), value.clone())).collect()
        }))
    }

    /// Command of a tool for a target; `None` if it cannot write there.
    pub fn template(&self, tool: &ToolSpec, target: Option<&PlanTarget>) -> Option<Template> {
        match target {
            Some(target) => {
                let place = self.places.iter().find(|place| place.name == target.name)?;
                tool.template(place)
            }
            None => tool.command().cloned(),
        }
    }

    fn uses(&self, tool: &ToolSpec, target: Option<&PlanTarget>, name: &str) -> bool {
        let command = self.template(tool, target);
        let others = tool.options.iter().chain(tool.env.values()).chain(&tool.stdin);
        tool.defaults().iter().any(|(default, _)| *default == name)
            || command.iter().chain(others).any(|template| template.mentions(name))
    }
}

/// A condition as recorded in results.
fn shown(condition: &MachineCondition, place: Option<&PlaceSpec>) -> BTreeMap<String, String> {
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
fn words(condition: &MachineCondition, place: Option<&PlaceSpec>) -> Vec<String> {
    let order = |(name, value): (&str, &String)| match name {
        "cpus" if value == "1" => "1 CPU".to_owned(),
        "cpus" => format!("{value} CPUs"),
        "iops" => format!("{value} IOPS"),
        "latency" => format!("{value} latency"),
        _ => value.clone(),
    };
    let shown = shown(condition, place);
    let names = ["cpus", "iops", "bandwidth", "latency"];
    names.iter().filter_map(|name| shown.get(*name).map(|value| order((*name, value)))).collect()
}
