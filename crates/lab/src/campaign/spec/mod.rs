//! Parses the description of a campaign (TOML): data sets, places, tools, swept parameters, conditions,
//! number of runs and checks. Nothing depends on the machine; errors point at their line.

pub mod data;
pub(crate) mod place;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
pub(crate) mod toml;
pub(crate) mod tool;

use crate::campaign::RepeatRules;
use crate::campaign::spec::data::DataSpec;
use crate::campaign::spec::place::PlaceSpec;
use crate::campaign::spec::rules::{CheckLevel, MachineCondition, RunRules};
use crate::campaign::spec::toml::{
    Located, NameKind, SourceText, SpecError, TomlEntry, TomlTable, TomlValue, UnknownName, is_name,
};
use crate::campaign::spec::tool::{Placeholders, SweptParameter, ToolSpec};
use crate::campaign::template::{HIDDEN, ShownPlaceholders, Template};
use crate::results::ResultsHeader;

/// A parsed campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignSpec {
    /// Header of its results, as far as it is described.
    pub header: ResultsHeader,
    /// Title of the published study that it reproduces.
    pub study: Option<String>,
    /// Default scale; 1 is as described.
    pub scale: f64,
    /// Data sets.
    pub data: Vec<DataSpec>,
    /// Places.
    pub places: Vec<PlaceSpec>,
    /// Names of places that tools write to.
    pub targets: Vec<String>,
    /// Tools in the order of the text.
    pub tools: Vec<ToolSpec>,
    /// Swept parameters of tools without their own.
    pub sweep: Vec<SweptParameter>,
    /// Parameters whose values form separate groups.
    pub groups: Vec<String>,
    /// Sizes that follow the scale: name, bytes at scale 1, least bytes.
    pub scaled: Vec<(String, u64, u64)>,
    /// Conditions of the machine, run one after the other; at least one, which may be empty.
    pub conditions: Vec<MachineCondition>,
    /// Setup, resets, time limit.
    pub rules: RunRules,
    /// Number of runs.
    pub repeat: RepeatRules,
    /// Check after a run; `None` for as much as the place allows.
    pub check: Option<CheckLevel>,
    /// Tool of the control, if it is not hakobu.
    pub control: Option<String>,
    /// Alternative endpoint for the counter-experiment: `http[s]://HOST[:PORT]`.
    pub other_endpoint: Option<String>,
}

impl CampaignSpec {
    /// Parses a campaign. `file` is its name in errors.
    ///
    /// # Errors
    /// The text is not TOML, or a key is missing, unknown, of the wrong type or contradicts another one.
    pub fn parse(file: &str, text: &str) -> Result<CampaignSpec, SpecError> {
        let source = SourceText { file, text };
        let mut top = TomlTable::new(source, String::new(), 0, toml::read(&source)?);
        let name = top.required("name")?;
        if !is_name(&name) {
            return Err(top.wrong("name", "must be lower-case letters, digits, '-' and '_'"));
        }
        let title = top.required("title")?;
        let question = top.required("question")?;
        let title_ja = top.text("title_ja")?.unwrap_or_default();
        let question_ja = top.text("question_ja")?.unwrap_or_default();
        let study = top.text("study")?;
        let metric = top.text("metric")?.unwrap_or_else(|| "wall_s".to_owned());
        let more_is_better = top.truth("more_is_better")?.unwrap_or(false);
        let scale = rules::scale(&mut top)?;
        let data = data::read(&mut top)?;
        let places = place::read(&mut top)?;
        let targets = targets(&mut top, &places)?;
        let sweep = top.table("sweep")?.map(|table| tool::sweep(&table)).transpose()?;
        let sweep = sweep.unwrap_or_default();
        let x = top.text("x")?;
        let groups = top.texts("groups")?.unwrap_or_default();
        let scaled = rules::parse_scaled_sizes(&mut top)?;
        let tools = tool::read(&mut top, &sweep, &scaled)?;
        let (tools, spots): (_, Vec<usize>) = tools.into_iter().unzip();
        let conditions = rules::conditions(&mut top)?;
        let known = Placeholders::of(&sweep, &scaled);
        let rules = rules::read(&mut top, &known)?;
        let repeat = rules::repeat(&mut top)?;
        let check = rules::check(&mut top)?;
        let control = top.text("control")?;
        let published = rules::parse_published(&mut top)?;
        let other_endpoint = place::other(&mut top, &places)?;
        let mut spec = CampaignSpec {
            header: ResultsHeader {
                name,
                title,
                question,
                title_ja,
                question_ja,
                metric,
                more_is_better,
                published,
                text: text.to_owned(),
                ..ResultsHeader::default()
            },
            study,
            scale,
            data,
            places,
            targets,
            tools,
            sweep,
            groups: groups.iter().map(|group| group.value.clone()).collect(),
            scaled,
            conditions,
            rules,
            repeat,
            check,
            control,
            other_endpoint,
        };
        spec.header.x_name = spec.chosen_x(x).map_err(|why| top.wrong("x", why))?;
        for group in &groups {
            let swept = spec.swept(&group.value);
            swept.map_err(|why| top.wrong_at(group.at, "groups", why))?;
        }
        if let Some(control) = &spec.control {
            let tools = spec.tools.iter().map(|tool| tool.name.as_str());
            let known = UnknownName::check(NameKind::Tool, control, tools);
            known.map_err(|why| top.wrong("control", why))?;
        }
        for (tool, spot) in spec.tools.iter().zip(spots) {
            spec.fits(tool, |why| source.error(spot, format!("{}: {why}", tool.name)))?;
        }
        top.end()?;
        spec.header.text = text_without_secrets(&source, &spec)?;
        Ok(spec)
    }

    /// Placeholders whose values stand in the record of a tool's runs: they are swept, follow the scale, or have a fixed
    /// meaning.
    pub fn shown(&self, tool: &ToolSpec) -> ShownPlaceholders {
        let swept = tool.sweep.as_deref().unwrap_or(&self.sweep);
        let mut names = Placeholders::of(swept, &self.scaled).0;
        names.extend(self.header.x_name.clone());
        // Options of a tool are its own text.
        names.remove("options");
        ShownPlaceholders(names)
    }

    /// Whether the value of a fixed parameter of a tool goes into its environment only, and may be as secret as that.
    pub fn hides(&self, tool: &ToolSpec, name: &str) -> bool {
        let mut of_env = tool.env.values();
        let commands = tool.command().into_iter().chain(&tool.options).chain(&tool.stdin);
        tool.set.contains_key(name)
            && !self.shown(tool).0.contains(name)
            && of_env.any(|template| template.mentions(name))
            && !commands.chain(&tool.arrives).any(|template| template.mentions(name))
    }

    /// Finds a place by name.
    pub fn place(&self, name: &str) -> Option<&PlaceSpec> {
        self.places.iter().find(|place| place.name == name)
    }

    /// Checks that a tool works with all targets, and has all it needs.
    fn fits(&self, tool: &ToolSpec, wrong: impl Fn(&str) -> SpecError) -> Result<(), SpecError> {
        for target in self.targets.iter().filter_map(|name| self.place(name)) {
            let template = tool.template(target).ok_or_else(|| {
                let verb = if target.is_store() { "upload to" } else { "copy into" };
                wrong(&format!("cannot {verb} '{}'; a 'command' can be given", target.name))
            })?;
            let needs_data = template.mentions("src") || template.mentions("list");
            if needs_data && self.data.is_empty() {
                return Err(wrong("needs data, and the campaign has no [data.NAME]"));
            }
        }
        let writes = tool.command().is_none_or(|command| command.mentions("dst"));
        match self.targets.is_empty() && writes {
            true => Err(wrong("needs a place to write to, and the campaign has no [place.NAME]")),
            false => Ok(()),
        }
    }

    /// The x axis: as given, else the only swept parameter if its values are numbers.
    fn chosen_x(&self, given: Option<String>) -> Result<Option<String>, UnknownName> {
        match (given, &self.sweep[..]) {
            (Some(x), _) if x.is_empty() => Ok(None),
            (Some(x), _) => self.swept(&x).map(|()| Some(x)),
            (None, [only]) if only.values.iter().all(|value| value.parse::<f64>().is_ok()) => {
                Ok(Some(only.name.clone()))
            }
            (None, _) => Ok(None),
        }
    }

    /// Fails if nothing sweeps a parameter.
    fn swept(&self, name: &str) -> Result<(), UnknownName> {
        let own = self.tools.iter().filter_map(|tool| tool.sweep.as_ref()).flatten();
        let known = self.sweep.iter().chain(own).map(|each| each.name.as_str());
        UnknownName::check(NameKind::Swept, name, known)
    }

    /// Fails if there is no such place.
    pub fn has_place(&self, name: &str) -> Result<(), UnknownName> {
        let known = self.places.iter().map(|place| place.name.as_str());
        UnknownName::check(NameKind::Place, name, known)
    }
}

/// Names of targets: as given, else the only place.
fn targets(top: &mut TomlTable<'_>, places: &[PlaceSpec]) -> Result<Vec<String>, SpecError> {
    let known = || places.iter().map(|place| place.name.as_str());
    let named = top.each("target", |name| {
        UnknownName::check(NameKind::Place, name, known()).map(|()| name.to_owned())
    })?;
    match named {
        Some(named) => Ok(named),
        None if places.len() > 1 => {
            Err(top.lacks("'target' has to say which of the places is written to"))
        }
        None => Ok(known().map(str::to_owned).collect()),
    }
}

// The source text of a campaign without the values of environment variables: results hold it, and reports publish it.

/// The text with each value of `env`, and of parameters that go there, as the record shows it.
fn text_without_secrets(source: &SourceText<'_>, spec: &CampaignSpec) -> Result<String, SpecError> {
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    let top = toml::read(source)?;
    let tools = list_items(&top, "tool");
    for (spot, tool) in tools.iter().zip(&spec.tools) {
        let shown = spec.shown(tool);
        for (_, value) in entries(spot, "env") {
            // A value that is no text of its own has a kind and a place only.
            let new = match &value.value {
                TomlValue::Text(text) => shown.template(&Template::plain(text)),
                _ => HIDDEN.to_owned(),
            };
            changes.push((value.at, value.end, new));
        }
        for (name, value) in entries(spot, "set") {
            if spec.hides(tool, &name.value) {
                changes.push((value.at, value.end, HIDDEN.to_owned()));
            }
        }
    }
    changes.sort_unstable();
    let mut out = String::with_capacity(source.text.len());
    let mut from = 0;
    for (at, end, new) in changes {
        out.push_str(source.text.get(from..at).unwrap_or_default());
        out.push_str(&TomlValue::Text(new).quoted());
        from = end.max(from);
    }
    out.push_str(source.text.get(from..).unwrap_or_default());
    Ok(out)
}

/// Tables of a list.
fn list_items<'a>(top: &'a [TomlEntry], key: &str) -> Vec<&'a Located<TomlValue>> {
    let found = top.iter().find(|(own, _)| own.value == key).map(|(_, spot)| &spot.value);
    match found {
        Some(TomlValue::List(tables)) => tables.iter().collect(),
        _ => Vec::new(),
    }
}

/// Entries of a subtable.
fn entries<'a>(table: &'a Located<TomlValue>, key: &str) -> &'a [TomlEntry] {
    let TomlValue::Table(entries) = &table.value else { return &[] };
    match entries.iter().find(|(own, _)| own.value == key).map(|(_, spot)| &spot.value) {
        Some(TomlValue::Table(entries)) => entries,
        _ => &[],
    }
}
