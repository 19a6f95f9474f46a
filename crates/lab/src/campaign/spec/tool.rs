//! `[[tool]]` and `[sweep]`: tools, and the parameters to sweep.

use super::names::{FIXED, Names, Parameter};
use super::node::Error;
use super::place::Place;
use super::table::Table;
use super::value;
use crate::campaign::tools::{self, KNOWN, Known, Output, Template};
use std::collections::{BTreeMap, BTreeSet};

/// Most values of a parameter.
const VALUES_MAX: usize = 1000;

/// A tool of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Name: a line in charts.
    pub name: String,
    /// Its invocation.
    pub invocation: Invocation,
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
    pub output: Output,
    /// Fixed parameters.
    pub set: BTreeMap<String, String>,
    /// Swept parameters, if different from the campaign's.
    pub sweep: Option<Vec<Parameter>>,
    /// True for this program.
    pub own: bool,
}

/// Invocation of a tool.
#[derive(Clone, Debug)]
pub enum Invocation {
    /// A known tool.
    Known(&'static Known),
    /// A command.
    Command(Template),
}

impl PartialEq for Invocation {
    fn eq(&self, other: &Invocation) -> bool {
        match (self, other) {
            (Invocation::Known(a), Invocation::Known(b)) => a.name == b.name,
            (Invocation::Command(a), Invocation::Command(b)) => a == b,
            _ => false,
        }
    }
}

impl Tool {
    /// The known tool, if it is one.
    pub fn known(&self) -> Option<&'static Known> {
        match &self.invocation {
            Invocation::Known(known) => Some(known),
            Invocation::Command(_) => None,
        }
    }

    /// Default parameters.
    pub fn defaults(&self) -> &'static [(&'static str, &'static str)] {
        match &self.invocation {
            Invocation::Known(known) => known.defaults,
            Invocation::Command(_) => &[],
        }
    }

    /// The command, if one is given.
    pub fn command(&self) -> Option<&Template> {
        match &self.invocation {
            Invocation::Known(_) => None,
            Invocation::Command(command) => Some(command),
        }
    }

    /// Command for a target; `None` if the tool cannot write there.
    pub fn template(&self, target: &Place) -> Option<Template> {
        let known = match &self.invocation {
            Invocation::Command(command) => return Some(command.clone()),
            Invocation::Known(known) => known,
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
pub(super) fn sweep(table: Option<Table<'_>>) -> Result<Vec<Parameter>, Error> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let (source, path) = (table.source, table.path.clone());
    let mut parameters = Vec::new();
    for (name, values) in table.lists()? {
        let wrong = |at, why: &str| source.error(at, format!("{path}.{}: {why}", name.value));
        if !value::is_placeholder(&name.value) {
            return Err(wrong(name.at, "must be small letters, digits and '_'"));
        }
        if FIXED.contains(&name.value.as_str()) {
            return Err(wrong(name.at, "has a special meaning and cannot be swept"));
        }
        if values.is_empty() || values.len() > VALUES_MAX {
            return Err(wrong(name.at, "needs one value or more, and at most 1000"));
        }
        let mut seen = BTreeSet::new();
        for value in &values {
            if !seen.insert(&value.value) {
                return Err(wrong(value.at, &format!("{} is there twice", value.value)));
            }
        }
        let values = values.iter().map(|value| value.value.clone()).collect();
        parameters.push(Parameter { name: name.value, values });
    }
    Ok(parameters)
}

/// Parses all tools, with the position of each.
pub(super) fn read(
    top: &mut Table<'_>,
    sweep: &[Parameter],
    scaled: &[(String, u64, u64)],
) -> Result<(Vec<Tool>, Vec<usize>), Error> {
    let tables = top.list("tool")?;
    if tables.is_empty() {
        return Err(top.lacks("there is no [[tool]]"));
    }
    let mut tools: Vec<Tool> = Vec::new();
    let mut spots = Vec::new();
    for table in tables {
        let (source, at) = (table.source, table.at);
        let tool = one(table, sweep, scaled)?;
        if tools.iter().any(|other| other.name == tool.name) {
            return Err(source.error(at, format!("tool: there are two named '{}'", tool.name)));
        }
        tools.push(tool);
        spots.push(at);
    }
    Ok((tools, spots))
}

fn one(
    mut table: Table<'_>,
    campaign: &[Parameter],
    scaled: &[(String, u64, u64)],
) -> Result<Tool, Error> {
    let used = table.text("use")?;
    let command = table.text("command")?;
    let known = match &used {
        None => None,
        Some(used) => Some(tools::known(&used.value).ok_or_else(|| {
            let hint = value::hint(&used.value, KNOWN.iter().map(|known| known.name));
            table.wrong(used.at, "use", format!("no tool '{}' is known{hint}", used.value))
        })?),
    };
    let name = table.text("name")?;
    let name = match (name, &used) {
        (Some(name), _) if name.value.trim().is_empty() => {
            return Err(table.wrong(name.at, "name", "is empty"));
        }
        (Some(name), _) => name.value,
        (None, Some(used)) => used.value.clone(),
        (None, None) => return Err(table.lacks("'name' is missing")),
    };
    let own_sweep = match table.table("sweep")? {
        None => None,
        some => Some(sweep(some)?),
    };
    let set = match table.table("set")? {
        None => BTreeMap::new(),
        Some(table) => set(table)?,
    };
    let swept = own_sweep.as_deref().unwrap_or(campaign);
    let mut names = Names::of(swept, scaled);
    names.0.extend(set.keys().cloned());
    let defaults = known.iter().flat_map(|known| known.defaults);
    names.0.extend(defaults.map(|(name, _)| (*name).to_owned()));
    let invocation = match (known, command) {
        (Some(_), Some(command)) => {
            return Err(table.wrong(command.at, "command", "and 'use' exclude each other"));
        }
        (None, None) => return Err(table.lacks("give 'use' or 'command'")),
        (Some(known), None) => Invocation::Known(known),
        (None, Some(command)) => Invocation::Command(names.command(&table, "command", &command)?),
    };
    let options = table.texts("options")?.map_or_else(Vec::new, |texts| texts.value);
    let options: Vec<Template> = options
        .iter()
        .map(|text| names.plain(&table, "options", text))
        .collect::<Result<_, _>>()?;
    if !options.is_empty() && !takes_options(&invocation) {
        return Err(table.lacks("'options' have no place in the command of this tool"));
    }
    let needs = table
        .texts("needs")?
        .map_or_else(Vec::new, |texts| texts.value.into_iter().map(|text| text.value).collect());
    let install = table.text("install")?.map(|text| text.value);
    let stdin = optional(&mut table, "stdin", &names)?;
    let shell = table.truth("shell")?.unwrap_or(false);
    let env = match table.table("env")? {
        None => BTreeMap::new(),
        Some(table) => env(table, &names)?,
    };
    let arrives = optional(&mut table, "arrives", &names)?;
    let output = output(&mut table, known)?;
    let own =
        table.truth("own")?.unwrap_or(known.is_some_and(|known| known.needs.contains(&tools::OWN)));
    table.end()?;
    let sweep = own_sweep;
    Ok(Tool {
        name,
        invocation,
        options,
        needs,
        install,
        stdin,
        shell,
        env,
        arrives,
        output,
        set,
        sweep,
        own,
    })
}

fn takes_options(invocation: &Invocation) -> bool {
    match invocation {
        Invocation::Command(command) => command.mentions("options"),
        Invocation::Known(known) => {
            [known.copy, known.upload, known.measure].iter().any(|text| text.contains("{options}"))
        }
    }
}

fn optional(
    table: &mut Table<'_>,
    key: &'static str,
    names: &Names,
) -> Result<Option<Template>, Error> {
    let Some(text) = table.text(key)? else { return Ok(None) };
    names.plain(table, key, &text).map(Some)
}

fn output(table: &mut Table<'_>, known: Option<&Known>) -> Result<Output, Error> {
    let Some(text) = table.text("extract")? else {
        return Ok(known.map_or(Output::Nothing, |known| known.output));
    };
    match text.value.as_str() {
        "nothing" => Ok(Output::Nothing),
        "fio-json" => Ok(Output::Fio),
        "hakobu-json" => Ok(Output::Own),
        "joblog" => Ok(Output::Joblog),
        other => {
            let why = format!("'{other}' is neither nothing nor fio-json, hakobu-json nor joblog");
            Err(table.wrong(text.at, "extract", why))
        }
    }
}

/// `set = { NAME = VALUE }`.
fn set(table: Table<'_>) -> Result<BTreeMap<String, String>, Error> {
    let (source, path) = (table.source, table.path.clone());
    let mut set = BTreeMap::new();
    for (name, values) in table.lists()? {
        let wrong = |why: &str| source.error(name.at, format!("{path}.{}: {why}", name.value));
        let [value] = &values[..] else { return Err(wrong("takes one value")) };
        if !value::is_placeholder(&name.value) || FIXED.contains(&name.value.as_str()) {
            return Err(wrong("cannot be set"));
        }
        set.insert(name.value.clone(), value.value.clone());
    }
    Ok(set)
}

/// `env = { NAME = "value" }`.
fn env(table: Table<'_>, names: &Names) -> Result<BTreeMap<String, Template>, Error> {
    let (source, path) = (table.source, table.path.clone());
    let mut variables = BTreeMap::new();
    for (name, values) in table.lists()? {
        let wrong = |why: &str| source.error(name.at, format!("{path}.{}: {why}", name.value));
        let [value] = &values[..] else { return Err(wrong("takes one value")) };
        if name.value.contains(['=', '\0']) || name.value.is_empty() {
            return Err(wrong("is not a name for a variable"));
        }
        let template = Template::plain(&value.value);
        names.check(&template).map_err(|why| wrong(&why))?;
        variables.insert(name.value.clone(), template);
    }
    Ok(variables)
}
