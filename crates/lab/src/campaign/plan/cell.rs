//! Plans one cell: its exact command, actions before and after it, and the check.

use crate::campaign::data::{DataRecipe, list_of};
use crate::campaign::plan::target::PlanTarget;
use crate::campaign::plan::{CellChoice, PlanBuilder};
use crate::campaign::spec::rules::{COMPARED, CacheState, CheckLevel};
use crate::campaign::spec::tool::ToolSpec;
use crate::campaign::template::{
    HIDDEN, PlaceholderValue, PlaceholderValues, Template, TemplateError, line, quoted,
};
use crate::campaign::throttle::DiskThrottle;
use crate::campaign::tools::{KnownTool, OutputFormat, SettingsFormat, StoreAccess, settings_file};
use crate::campaign::{DiskLimits, Launch, PlannedCell, RunAction, RunCheck};
use crate::results::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Subfolder of the work folder for settings files.
pub const SETTINGS: &str = "settings";

/// Placeholders for a data set in commands.
pub fn data_values(recipe: &DataRecipe, folder: &Path) -> PlaceholderValues {
    PlaceholderValues::from([
        ("src".to_owned(), folder.into()),
        ("list".to_owned(), list_of(folder).as_path().into()),
        ("data".to_owned(), recipe.name.clone().into()),
    ])
}

/// Folder that a tool reads: the data set, or a copy beside it if the tool removes its source.
fn source_folder(tool: &ToolSpec, folder: &Path) -> PathBuf {
    match tool.known().is_some_and(|known| known.moves) {
        true => {
            let mut path = folder.as_os_str().to_owned();
            path.push(".moving");
            PathBuf::from(path)
        }
        false => folder.to_owned(),
    }
}

impl PlanBuilder<'_> {
    /// Builds a cell with the next id.
    pub(super) fn cell(&mut self, choice: &CellChoice<'_>) -> Result<PlannedCell, TemplateError> {
        let tool = choice.tool;
        let mut parameters = self.parameters(choice);
        let data = choice.data.and_then(|at| self.plan.data.get(at)).cloned();
        let mut values = self.common.clone();
        values.insert("name".into(), tool.name.clone().into());
        values.extend(choice.condition.cpus.map(|cpus| ("cpus".into(), cpus.to_string().into())));
        values.extend(parameters.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        if let Some((recipe, folder)) = &data {
            values.extend(data_values(recipe, folder));
        }
        let given = data.as_ref().map(|(_, folder)| source_folder(tool, folder));
        values.extend(given.as_deref().map(|given| ("src".into(), given.into())));
        let access = choice.target.as_ref().and_then(|target| target.access.clone());
        let config = self.config(tool.known(), access.as_ref(), &parameters);
        if let Some(target) = &choice.target {
            values.extend(target.values());
        }
        values.extend(config.as_deref().map(|path| ("config".into(), path.into())));
        let options = tool.options.iter().map(|option| option.text(&values));
        let options = options.collect::<Result<_, _>>()?;
        values.insert("options".into(), PlaceholderValue::Words(options));
        let (launch, command) = self.launch(choice, &values, config.as_deref())?;
        let source = data.as_ref().map(|(_, folder)| folder.clone());
        for (name, value) in &mut parameters {
            if self.spec.hides(tool, name) {
                HIDDEN.clone_into(value);
            }
        }
        let (check, also) = self.check(choice, &values, source.as_deref())?;
        let mut conclude = choice.throttle.as_ref().map_or_else(Vec::new, DiskThrottle::end);
        conclude.extend(also);
        if let (Some(source), Some(given)) = (&source, &given)
            && source != given
        {
            // The remains of a failed move are removed as well.
            let given = quoted(&given.to_string_lossy());
            conclude.push(format!("test ! -e {given} || {{ rm -rf {given}; false; }}"));
        }
        for template in &self.spec.rules.conclude {
            conclude.push(template.script(&values)?);
        }
        let cell = Cell {
            id: self.plan.cells.len() as u32,
            group: self.group_of(choice),
            series: self.series(choice),
            x: self.x(choice, &parameters),
            parameters,
            conditions: choice.conditions.clone(),
            command,
            data: data.map(|(recipe, _)| recipe.name).unwrap_or_default(),
            control_of: None,
            own: tool.own,
        };
        Ok(PlannedCell {
            cell,
            prepare: self.prepare(choice, &values, source.as_deref(), given.as_deref())?,
            launch,
            conclude,
            check,
            extract: tool.output,
            source: given,
            disk: choice.throttle.clone().map(|throttle| DiskLimits {
                throttle,
                iops: choice.condition.iops,
                bandwidth_bytes_per_s: choice.condition.bandwidth_bytes_per_s,
            }),
            // Embedded servers have keys that no other endpoint accepts.
            endpoint: choice
                .target
                .as_ref()
                .filter(|target| target.server.is_none())
                .and_then(|target| Some(target.access.as_ref()?.endpoint.clone())),
        })
    }

    /// Settings file of a tool for an access, written before the first run.
    fn config(
        &mut self,
        known: Option<&KnownTool>,
        access: Option<&StoreAccess>,
        parameters: &BTreeMap<String, String>,
    ) -> Option<PathBuf> {
        let text = |name| parameters.get(name).map_or("", String::as_str);
        let (known, access) = (known?, access?);
        let has_keys =
            !access.access_key.is_empty() || std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
        if known.config == SettingsFormat::S3cmd && !has_keys {
            // The user's own file holds the keys; s3cmd finds those in the environment by itself.
            return Some(PathBuf::from(std::env::var_os("HOME")?).join(".s3cfg"));
        }
        let folder = self.options.work.join(SETTINGS);
        let (requests, queue) = (text("requests"), text("queue_size"));
        let file = settings_file(known.config, &folder, access, requests, queue)?;
        let path = file.path.clone();
        if !self.files.contains(&file) {
            self.files.push(file);
        }
        Some(path)
    }

    /// All parameters of a cell: the tool's defaults, fixed and swept ones.
    fn parameters(&self, choice: &CellChoice<'_>) -> BTreeMap<String, String> {
        let cpus = choice.condition.cpus.unwrap_or(self.environment.cpus);
        let value = |value: &str| match value {
            "cpus" => cpus.to_string(),
            value => value.to_owned(),
        };
        let mut parameters = BTreeMap::new();
        for (name, default) in choice.tool.defaults() {
            // The campaign defines values that follow the scale.
            let text = match self.common.get(*name) {
                Some(PlaceholderValue::Word(scaled)) => scaled.clone(),
                _ => value(default),
            };
            parameters.insert((*name).to_owned(), text);
        }
        parameters.extend(choice.tool.set.clone());
        parameters.extend(choice.swept.iter().cloned());
        parameters
    }

    /// Exact arguments, and the command as shown.
    fn launch(
        &self,
        choice: &CellChoice<'_>,
        values: &PlaceholderValues,
        config: Option<&Path>,
    ) -> Result<(Launch, String), TemplateError> {
        let CellChoice { tool, template, .. } = choice;
        let argv = template.argv(values, tool.shell)?;
        let stdin = match (&tool.stdin, tool.known().map(|known| known.stdin)) {
            (Some(stdin), _) => Some(stdin.text(values)?),
            (None, Some(stdin)) if !stdin.is_empty() => Some(Template::plain(stdin).text(values)?),
            _ => None,
        };
        let (mut named, mut command) = (BTreeMap::new(), String::new());
        let reads_config = matches!(
            tool.known().map(|known| known.config),
            Some(SettingsFormat::Aws | SettingsFormat::AwsPublished)
        );
        let reads_config = reads_config && !tool.env.contains_key("AWS_CONFIG_FILE");
        if let Some(path) = config.filter(|_| reads_config) {
            let path = path.to_string_lossy().into_owned();
            command.push_str(&format!("AWS_CONFIG_FILE={} ", quoted(&path)));
            named.insert("AWS_CONFIG_FILE".to_owned(), path);
        }
        let shown = self.spec.shown(tool);
        for (name, template) in &tool.env {
            named.insert(name.clone(), template.text(values)?);
            // The record goes to others: what is secret stands here more often than elsewhere.
            let text = shown.text(template, values);
            let text = if text.contains(HIDDEN) { text } else { quoted(&text) };
            command.push_str(&format!("{name}={text} "));
        }
        match tool.shell || template.needs_shell() {
            true => command.push_str(&template.script(values)?),
            false => command.push_str(&line(argv.iter().map(String::as_str))),
        }
        if let Some(stdin) = &stdin {
            command.push_str(&format!(" < {}", quoted(stdin)));
        }
        let mut env = choice.target.as_ref().map_or_else(BTreeMap::new, PlanTarget::environment);
        env.extend(named);
        let argv = match &choice.throttle {
            Some(throttle) => throttle.wrap(argv),
            None => argv,
        };
        let launch = Launch {
            argv,
            env,
            stdin: stdin.map(PathBuf::from),
            cpus: choice.condition.cpus,
            timeout: Some(self.spec.rules.timeout),
            ..Launch::default()
        };
        Ok((launch, command))
    }

    /// Actions before each run, in order: empty the target, write pages back, put the source into the page
    /// cache or evict it, limit the disk.
    fn prepare(
        &self,
        choice: &CellChoice<'_>,
        values: &PlaceholderValues,
        source: Option<&Path>,
        given: Option<&Path>,
    ) -> Result<Vec<RunAction>, TemplateError> {
        let rules = &self.spec.rules;
        let mut actions = Vec::new();
        if let Some(target) = choice.target.as_ref().filter(|_| rules.empty) {
            actions.extend(target.empty.iter().cloned());
        }
        if let (Some(source), Some(given)) = (source, given)
            && source != given
        {
            let [source, given] = [source, given].map(|path| quoted(&path.to_string_lossy()));
            actions.push(RunAction::Shell(format!("rm -rf {given} && cp -a {source} {given}")));
        }
        for template in &rules.prepare {
            actions.push(RunAction::Shell(template.script(values)?));
        }
        if rules.sync {
            actions.push(RunAction::Sync);
        }
        if let Some(source) = given {
            match self.cache {
                CacheState::Any => {}
                CacheState::Cold => actions.push(RunAction::Cold(source.to_owned())),
                CacheState::Warm => actions.push(RunAction::Warm(source.to_owned())),
            }
        }
        if let Some(throttle) = &choice.throttle {
            let condition = choice.condition;
            let begin = throttle.begin(condition.iops, condition.bandwidth_bytes_per_s);
            actions.extend(begin.into_iter().map(RunAction::Shell));
        }
        Ok(actions)
    }

    /// Check after each run: as requested and possible at the place; plus a command, if only the program
    /// itself can list the target.
    fn check(
        &mut self,
        choice: &CellChoice<'_>,
        values: &PlaceholderValues,
        source: Option<&Path>,
    ) -> Result<(RunCheck, Option<String>), TemplateError> {
        let tool = choice.tool;
        let moves = tool.output != OutputFormat::Fio && source.is_some();
        let level = self.spec.check.unwrap_or(CheckLevel::Tree { compare: COMPARED });
        let (Some(target), Some(source), true) =
            (&choice.target, source, moves && level != CheckLevel::Exit)
        else {
            return Ok((RunCheck::Exit, None));
        };
        let Some(seen) = &target.seen else {
            if target.server.is_some() {
                let why = format!("{}: nothing is kept there, so nothing is checked", target.name);
                self.leave_out(why);
                return Ok((RunCheck::Exit, None));
            }
            let own = self.options.own.to_string_lossy().into_owned();
            let mut words = vec![own, "verify".into(), "-q".into()];
            let endpoint = target.access.as_ref().map(|access| &access.endpoint);
            words.extend(endpoint.map(|url| format!("--endpoint-url={url}")));
            words.push(format!("{}/", source.display()));
            words.push(format!("{}/", target.dst));
            return Ok((RunCheck::Exit, Some(line(words.iter().map(String::as_str)))));
        };
        let arrives = match (&tool.arrives, tool.known()) {
            (Some(arrives), _) => arrives.clone(),
            (None, Some(known)) => Template::plain(known.arrives),
            (None, None) => Template::plain("{dst}"),
        };
        let mut values = values.clone();
        values.insert("dst".into(), seen.as_path().into());
        let arrived = PathBuf::from(arrives.text(&values)?);
        let check = match level {
            CheckLevel::Exit => RunCheck::Exit,
            CheckLevel::Tree { compare } => {
                RunCheck::Tree { source: source.to_owned(), target: arrived, compare }
            }
            CheckLevel::Count => {
                let totals = choice.data.and_then(|at| self.plan.header.data.get(at));
                let (files, bytes) = totals.map_or((0, 0), |data| (data.files, data.bytes));
                RunCheck::Count { target: arrived, files, bytes: Some(bytes) }
            }
        };
        Ok((check, None))
    }

    /// Name of the group, including the parameters that separate groups.
    fn group_of(&self, choice: &CellChoice<'_>) -> String {
        let mut group = choice.group.clone();
        for (name, value) in &choice.swept {
            if self.spec.groups.contains(name) {
                group.push(format!("{} {value}", name.replace('_', " ")));
            }
        }
        if group.is_empty() {
            let data = choice.data.and_then(|at| self.plan.header.data.get(at));
            group
                .push(data.map_or_else(|| self.spec.header.name.clone(), |data| data.name.clone()));
        }
        group.join(", ")
    }

    /// Line in a chart: the tool, and swept parameters other than the x axis and groups.
    fn series(&self, choice: &CellChoice<'_>) -> String {
        let mut series = choice.tool.name.clone();
        for (name, value) in &choice.swept {
            if self.spec.header.x_name.as_ref() != Some(name) && !self.spec.groups.contains(name) {
                series.push_str(&format!(", {} {value}", name.replace('_', " ")));
            }
        }
        series
    }

    /// Position on the x axis; only a swept value has one, not a default of the tool.
    fn x(&self, choice: &CellChoice<'_>, parameters: &BTreeMap<String, String>) -> Option<f64> {
        let name = self.spec.header.x_name.as_ref()?;
        let swept = choice.swept.iter().any(|(swept, _)| swept == name);
        if !swept && !choice.tool.set.contains_key(name) {
            return None;
        }
        parameters.get(name)?.parse().ok().filter(|x: &f64| x.is_finite())
    }
}
