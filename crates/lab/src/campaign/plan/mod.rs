//! Resolves a campaign to commands, for this machine and its programs. Parts that are impossible here are
//! left out, with a note on what would enable them.

mod cell;
mod cells;
mod ground;
mod target;
#[cfg(test)]
mod tests;
pub(super) mod throttle;

pub use ground::{PlanEnvironment, PlanOptions};
pub use throttle::DiskThrottle;

use super::spec::{self, CacheState, CampaignSpec};
use super::tools::{PlaceholderValues, Template, find_program, quoted};
use super::{CampaignPlan, PlannedCell, data, tools};
use crate::results::DataSet;
use cell::SETTINGS;
use cells::PlanBuilder;
use target::TargetContext;

/// Scale of a campaign for this user.
///
/// # Errors
/// The number is not a valid scale.
pub fn scale(spec: &CampaignSpec, wishes: &PlanOptions) -> Result<f64, String> {
    match wishes.scale {
        None => Ok(spec.scale),
        Some(scale) if spec::is_scale(scale) => Ok(scale),
        Some(scale) => Err(format!("{scale} is not a scale: more than 0 and at most 1000000")),
    }
}

/// Makes the plan. Writes nothing and starts no program.
///
/// # Errors
/// An option is invalid, a command uses an unknown name, or no cell is left to run.
pub fn make(
    spec: &CampaignSpec,
    wishes: &PlanOptions,
    ground: &PlanEnvironment,
) -> Result<CampaignPlan, String> {
    let scale = scale(spec, wishes)?;
    let recipes: Vec<data::DataRecipe> = spec.data.iter().map(|data| data.at(scale)).collect();
    if let Some(large) = recipes.iter().find(|recipe| recipe.count > spec::COUNT_MAX) {
        let (name, most) = (&large.name, spec::COUNT_MAX);
        return Err(format!("data.{name} has more than {most} files at the scale {scale}"));
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
        let folder = recipe.folder(&wishes.cache);
        plan.data.push((recipe, folder));
    }
    if !plan.data.is_empty() {
        plan.places.insert("source".into(), wishes.cache.clone());
    }
    let mut common = PlaceholderValues::from([
        ("work".to_owned(), wishes.work.as_path().into()),
        ("own".to_owned(), wishes.own.as_path().into()),
        ("cpus".to_owned(), ground.cpus.to_string().into()),
    ]);
    for (name, bytes, least) in &spec.scaled {
        let bytes = spec::scaled(*bytes, scale, *least);
        common.insert(name.clone(), bytes.to_string().into());
    }
    for parameter in &spec.sweep {
        let most = largest(&parameter.values);
        common.extend(most.map(|most| (format!("{}_max", parameter.name), most.into())));
    }
    let making = TargetContext {
        work: &wishes.work,
        program: &wishes.own,
        secret_key: &wishes.secret_key,
        campaign: &spec.header.name,
        is_free: &ground.is_free,
    };
    let mut cells = PlanBuilder {
        spec,
        wishes,
        ground,
        making,
        places: places(spec, wishes)?,
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
fn places(spec: &CampaignSpec, wishes: &PlanOptions) -> Result<Vec<spec::PlaceSpec>, String> {
    for name in wishes.places.keys() {
        if spec.place(name).is_none() {
            let known = spec.places.iter().map(|place| place.name.as_str());
            return Err(format!("there is no place '{name}'{}", spec::hint(name, known)));
        }
    }
    let targets = spec.targets.iter().filter_map(|name| spec.place(name));
    let wished = |place: &spec::PlaceSpec| match wishes.places.get(&place.name) {
        Some(text) => {
            place.parse_replacement(text).map_err(|why| format!("place '{}': {why}", place.name))
        }
        None => Ok(place.clone()),
    };
    targets.map(wished).collect()
}

impl PlanBuilder<'_> {
    /// Looks up the programs of all tools; tools with a missing program are left out.
    fn find_tools(&mut self) {
        for tool in &self.spec.tools {
            let mut lacking = Vec::new();
            let mut found = Vec::new();
            for name in needed(tool) {
                let path = match name.as_str() {
                    tools::OWN => Some(self.wishes.own.clone()),
                    name => find_program(name, &self.ground.path),
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
        let cache = &self.wishes.cache;
        let has_data = !self.plan.data.is_empty();
        if has_data && self.cache == CacheState::Cold && (self.ground.is_memory)(cache) {
            let cache = cache.display();
            let line = format!("cold data: '{cache}' is in memory, so its files cannot be cold");
            self.plan.header.left_out.push(line);
            self.cache = CacheState::Any;
        }
    }

    /// Completes the plan with what all runs share.
    fn finish(mut self) -> Result<CampaignPlan, String> {
        if self.plan.cells.is_empty() {
            let why = match self.plan.header.left_out.is_empty() {
                true => "the campaign has no cell".to_owned(),
                false => self.plan.header.left_out.join("; "),
            };
            return Err(format!("there is nothing to run: {why}"));
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
            self.plan.own.push(self.wishes.work.join(SETTINGS));
        }
        self.plan.setup.extend(self.files.iter().map(tools::SettingsFile::command));
        let mut values = self.common.clone();
        if let Some((recipe, folder)) = self.plan.data.first() {
            values.extend(cell::data_values(recipe, folder));
        }
        if let Some(target) = self.targets.first() {
            values.extend(target.values());
        }
        let scripts = |what: &str, templates: &[Template]| {
            let scripts = templates.iter().map(|template| template.script(&values));
            scripts.collect::<Result<Vec<_>, _>>().map_err(|why| format!("{what}: {why}"))
        };
        self.plan.setup.extend(scripts("setup", &self.spec.rules.setup)?);
        self.plan.teardown.extend(scripts("teardown", &self.spec.rules.teardown)?);
        Ok(self.plan)
    }
}

/// Programs that a tool needs: those of a known tool, the first word of a command, and `needs`.
fn needed(tool: &spec::ToolSpec) -> Vec<String> {
    let mut needed: Vec<String> = match (tool.known(), tool.command()) {
        (Some(known), _) => known.needs.iter().map(|name| (*name).to_owned()).collect(),
        (None, Some(command)) => command.program().into_iter().collect(),
        (None, None) => Vec::new(),
    };
    needed.extend(tool.needs.iter().cloned());
    needed.dedup();
    needed
}
