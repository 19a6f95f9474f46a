//! `[[tool]]` and `[sweep]`: tools, the parameters to sweep, and the placeholders that commands may use.

use crate::campaign::spec::place::PlaceSpec;
use crate::campaign::spec::toml;
use crate::campaign::spec::toml::{NameKind, SpecError, TomlNamedList, TomlTable, UnknownName};
use crate::campaign::template::{Template, TemplateError};
use crate::campaign::tools;
use crate::campaign::tools::{KNOWN, KnownTool, OWN, OutputFormat};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;

/// Most values of a parameter.
const VALUES_MAX: usize = 1000;

/// A tool of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name: a line in charts.
    pub name: String,
    /// Its invocation.
    pub invocation: ToolInvocation,
    /// Additional arguments of a known tool.
    pub options: Vec<Template>,
    /// Required programs besides those of a known tool.
    pub needs: Vec<String>,
    /// Command that installs them, if not known.
    pub install: Option<String>,
    /// File for standard input.
    pub stdin: Option<Template>,
    /// True to run it by a shell even if its command needs none.
    pub shell: bool,
    /// Environment variables.
    pub env: BTreeMap<String, Template>,
    /// Folder of the data set's files after the run.
    pub arrives: Option<Template>,
    /// Metrics to extract from its output.
    pub output: OutputFormat,
    /// Fixed parameters.
    pub set: BTreeMap<String, String>,
    /// Swept parameters, if different from the campaign's.
    pub sweep: Option<Vec<SweptParameter>>,
    /// True for this program.
    pub own: bool,
}

/// Invocation of a tool.
#[derive(Clone, Debug)]
pub enum ToolInvocation {
    /// A known tool.
    Known(&'static KnownTool),
    /// A command.
    Command(Template),
}

impl PartialEq for ToolInvocation {
    fn eq(&self, other: &ToolInvocation) -> bool {
        match (self, other) {
            (ToolInvocation::Known(a), ToolInvocation::Known(b)) => a.name == b.name,
            (ToolInvocation::Command(a), ToolInvocation::Command(b)) => a == b,
            _ => false,
        }
    }
}

impl ToolSpec {
    /// The known tool, if it is one.
    pub fn known(&self) -> Option<&'static KnownTool> {
        match &self.invocation {
            ToolInvocation::Known(known) => Some(known),
            ToolInvocation::Command(_) => None,
        }
    }

    /// Default parameters.
    pub fn defaults(&self) -> &'static [(&'static str, &'static str)] {
        match &self.invocation {
            ToolInvocation::Known(known) => known.defaults,
            ToolInvocation::Command(_) => &[],
        }
    }

    /// The command, if one is given.
    pub fn command(&self) -> Option<&Template> {
        match &self.invocation {
            ToolInvocation::Known(_) => None,
            ToolInvocation::Command(command) => Some(command),
        }
    }

    /// Command for a target; `None` if the tool cannot write there.
    pub fn template(&self, target: &PlaceSpec) -> Option<Template> {
        let known = match &self.invocation {
            ToolInvocation::Command(command) => return Some(command.clone()),
            ToolInvocation::Known(known) => known,
        };
        let text = match (known.measure.is_empty(), target.is_store()) {
            (false, false) => known.measure,
            (false, true) => return None,
            (true, true) => known.upload,
            (true, false) => known.copy,
        };
        Template::parse(text).ok().filter(|_| !text.is_empty())
    }
}

/// Parses swept parameters.
pub(super) fn sweep(table: &TomlTable<'_>) -> Result<Vec<SweptParameter>, SpecError> {
    let one = |(name, values): TomlNamedList| {
        let wrong = |at, why: &str| Err(table.wrong_at(at, &name.value, why));
        if !toml::is_placeholder(&name.value) {
            return wrong(name.at, "must be lower-case letters, digits and '_'");
        }
        if FIXED.contains(&name.value.as_str()) {
            return wrong(name.at, "has a special meaning and cannot be swept");
        }
        if values.is_empty() || values.len() > VALUES_MAX {
            return wrong(name.at, "needs one value or more, and at most 1000");
        }
        let mut seen = BTreeSet::new();
        if let Some(again) = values.iter().find(|value| !seen.insert(&value.value)) {
            return wrong(again.at, &format!("{} is there twice", again.value));
        }
        let values = values.into_iter().map(|value| value.value).collect();
        Ok(SweptParameter { name: name.value, values })
    };
    table.lists()?.into_iter().map(one).collect()
}

/// Parses all tools, with the position of each.
pub(super) fn read(
    top: &mut TomlTable<'_>,
    sweep: &[SweptParameter],
    scaled: &[(String, u64, u64)],
) -> Result<Vec<(ToolSpec, usize)>, SpecError> {
    let mut names = BTreeSet::new();
    let tools = top.list("tool", |table| {
        let tool = parse_tool(table, sweep, scaled)?;
        if !names.insert(tool.name.clone()) {
            let why = format!("tool: there are two named '{}'", tool.name);
            return Err(table.source.error(table.at, why));
        }
        Ok((tool, table.at))
    })?;
    match tools.is_empty() {
        true => Err(top.lacks("there is no [[tool]]")),
        false => Ok(tools),
    }
}

fn parse_tool(
    table: &mut TomlTable<'_>,
    campaign: &[SweptParameter],
    scaled: &[(String, u64, u64)],
) -> Result<ToolSpec, SpecError> {
    let used = table.text("use")?;
    let command = table.text("command")?;
    let known = match &used {
        None => None,
        Some(used) => {
            let names = KNOWN.iter().map(|known| known.name);
            let is_known = UnknownName::check(NameKind::KnownTool, used, names);
            is_known.map_err(|why| table.wrong("use", why))?;
            tools::known_tool(used)
        }
    };
    let name = match (table.text("name")?, used) {
        (Some(name), _) if name.trim().is_empty() => return Err(table.wrong("name", "is empty")),
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => return Err(table.lacks("'name' is missing")),
    };
    let own_sweep = table.table("sweep")?.map(|table| sweep(&table)).transpose()?;
    let set = values(table, "set", |name, value| {
        match !toml::is_placeholder(name) || FIXED.contains(&name) {
            true => Err("cannot be set"),
            false => Ok(value.to_owned()),
        }
    })?;
    let mut names = Placeholders::of(own_sweep.as_deref().unwrap_or(campaign), scaled);
    names.0.extend(set.keys().cloned());
    let defaults = known.iter().flat_map(|known| known.defaults);
    names.0.extend(defaults.map(|(name, _)| (*name).to_owned()));
    let invocation = match (known, command) {
        (Some(_), Some(_)) => {
            return Err(table.wrong("command", "and 'use' exclude each other"));
        }
        (None, None) => return Err(table.lacks("give 'use' or 'command'")),
        (Some(known), None) => ToolInvocation::Known(known),
        (None, Some(command)) => {
            let command = names.command(&command).map_err(|why| table.wrong("command", why))?;
            ToolInvocation::Command(command)
        }
    };
    let options = table.each("options", |text| names.plain(text))?.unwrap_or_default();
    if !options.is_empty() && !takes_options(&invocation) {
        return Err(table.lacks("'options' have no place in the command of this tool"));
    }
    Ok(ToolSpec {
        name,
        invocation,
        options,
        needs: table
            .each("needs", |text| Ok::<_, Infallible>(text.to_owned()))?
            .unwrap_or_default(),
        install: table.text("install")?,
        stdin: table.parsed("stdin", |text| names.plain(text))?,
        shell: table.truth("shell")?.unwrap_or(false),
        env: values(table, "env", |name, value| -> Result<Template, Box<dyn Error>> {
            match name.contains(['=', '\0']) || name.is_empty() {
                true => Err("is not a name for a variable".into()),
                false => Ok(names.plain(value)?),
            }
        })?,
        arrives: table.parsed("arrives", |text| names.plain(text))?,
        output: match table.word("extract", OUTPUTS)? {
            Some(output) => output,
            None => known.map_or(OutputFormat::Nothing, |known| known.output),
        },
        set,
        sweep: own_sweep,
        own: table.truth("own")?.unwrap_or(known.is_some_and(|known| known.needs.contains(&OWN))),
    })
}

fn takes_options(invocation: &ToolInvocation) -> bool {
    match invocation {
        ToolInvocation::Command(command) => command.mentions("options"),
        ToolInvocation::Known(known) => {
            [known.copy, known.upload, known.measure].iter().any(|text| text.contains("{options}"))
        }
    }
}

/// Outputs from which metrics are extracted, by name.
const OUTPUTS: &[(&str, OutputFormat)] = &[
    ("nothing", OutputFormat::Nothing),
    ("fio-json", OutputFormat::Fio),
    ("hakobu-json", OutputFormat::Own),
    ("joblog", OutputFormat::Joblog),
];

/// Parses a subtable `{ NAME = VALUE }`.
fn values<T, E: Display>(
    table: &mut TomlTable<'_>,
    key: &'static str,
    read: impl Fn(&str, &str) -> Result<T, E>,
) -> Result<BTreeMap<String, T>, SpecError> {
    let Some(table) = table.table(key)? else { return Ok(BTreeMap::new()) };
    let one = |(name, values): TomlNamedList| {
        let wrong = |why: &dyn Display| table.wrong_at(name.at, &name.value, why);
        let [value] = &values[..] else { return Err(wrong(&"takes one value")) };
        let value = read(&name.value, &value.value).map_err(|why| wrong(&why))?;
        Ok((name.value, value))
    };
    table.lists()?.into_iter().map(one).collect()
}

/// Placeholders available in every command.
pub const FIXED: &[&str] = &[
    "bucket", "config", "cpus", "data", "dst", "endpoint", "list", "name", "options", "own",
    "prefix", "src", "work",
];

/// A set of available placeholders.
pub(super) struct Placeholders(pub BTreeSet<String>);

/// A parameter with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptParameter {
    /// Name of the placeholder.
    pub name: String,
    /// Values as inserted into the command.
    pub values: Vec<String>,
}

impl Placeholders {
    /// Placeholders of a campaign: fixed ones, swept parameters (and `NAME_max`), scaled sizes.
    pub fn of(sweep: &[SweptParameter], scaled: &[(String, u64, u64)]) -> Placeholders {
        let mut names: BTreeSet<String> = FIXED.iter().map(|name| (*name).to_owned()).collect();
        names.extend(scaled.iter().map(|(name, ..)| name.clone()));
        for parameter in sweep {
            names.insert(parameter.name.clone());
            names.insert(format!("{}_max", parameter.name));
        }
        Placeholders(names)
    }

    /// Fails if a template uses an unknown placeholder.
    fn check(&self, template: Template) -> Result<Template, TemplateError> {
        for name in template.names() {
            UnknownName::check(NameKind::Placeholder, name, self.0.iter().map(String::as_str))?;
        }
        Ok(template)
    }

    /// Parses a command; fails on a syntax error or unknown placeholder.
    pub fn command(&self, text: &str) -> Result<Template, TemplateError> {
        self.check(Template::parse(text)?)
    }

    /// Parses a text other than a command; fails on an unknown placeholder.
    pub fn plain(&self, text: &str) -> Result<Template, TemplateError> {
        self.check(Template::plain(text))
    }
}
