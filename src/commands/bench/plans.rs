//! Plans: of commands as in hyperfine, of the campaigns included in the program, and of the cells that `--only` selects.

use super::options::{BenchArgs, Parameter};
use crate::commands::run::lines;
use hakobu_lab::campaign::spec::CampaignSpec;
use hakobu_lab::campaign::{CampaignPlan, Launch, PlannedCell, RepeatRules, RunAction};
use hakobu_lab::product;
use hakobu_lab::results::{Cell, ResultsHeader};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Default repetitions of commands.
pub(super) const REPEAT: RepeatRules =
    RepeatRules { warmup: 0, min: 5, max: 20, tight: 0.02, budget: None, seed: 1 };
/// Maximum number of cells; more would take too long.
const CELLS_MAX: usize = 10_000;
/// Maximum characters of a headline.
const TITLE_MAX: usize = 100;

/// Makes a plan of commands.
pub fn plan_commands(commands: &[String], args: &BenchArgs) -> Result<CampaignPlan, String> {
    for (name, count) in [
        ("command-name", args.names.len()),
        ("prepare", args.prepare.len()),
        ("conclude", args.conclude.len()),
        ("output", args.sinks.len()),
    ] {
        if count > commands.len() {
            return Err(format!(
                "--{name} is given {count} times, for {} commands",
                commands.len()
            ));
        }
        // One applies to all; with several there must be one for each.
        if name != "command-name" && count > 1 && count < commands.len() {
            return Err(format!(
                "--{name} is given {count} times: give it once, or once for each command"
            ));
        }
    }
    let all_taken: Vec<Vec<&Parameter>> =
        commands.iter().enumerate().map(|(at, command)| taken(at, command, args)).collect();
    let is_taken =
        |parameter: &Parameter| all_taken.iter().flatten().any(|one| one.name == parameter.name);
    let swept = args.parameters.iter().find(|parameter| {
        is_taken(parameter)
            && parameter.values.iter().all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    });
    let mut plan = CampaignPlan {
        header: ResultsHeader {
            name: name_of(commands),
            title: shortened(&commands.join(", ")),
            x_name: swept.map(|parameter| parameter.name.clone()),
            metric: "wall_s".into(),
            ..ResultsHeader::default()
        },
        repeat: REPEAT,
        ..CampaignPlan::default()
    };
    let mut of_first = 0;
    for (at, (command, taken)) in commands.iter().zip(&all_taken).enumerate() {
        for setting in &settings(taken, plan.cells.len())? {
            let planned = planned(at, command, setting, swept, args)?;
            add_program(&planned.cell.command, &mut plan);
            plan.cells.push(planned);
            of_first += usize::from(at == 0);
        }
    }
    for (template, list) in [(&args.setup, &mut plan.setup), (&args.cleanup, &mut plan.teardown)] {
        let Some(template) = template else { continue };
        let named = args.parameters.iter().filter(|parameter| parameter.stands_in(template));
        let filled_in = settings(&named.collect::<Vec<_>>(), 0)?;
        list.extend(filled_in.iter().map(|setting| filled(template, setting)));
    }
    for parameter in args.parameters.iter().filter(|parameter| !is_taken(parameter)) {
        let name = &parameter.name;
        plan.header.left_out.push(format!("the values of {name}: no command has {{{name}}} in it"));
    }
    if !args.no_control && plan.cells.len() > 1 {
        add_control(&mut plan, of_first);
    }
    for (id, planned) in plan.cells.iter_mut().enumerate() {
        planned.cell.id = u32::try_from(id).unwrap_or(u32::MAX);
    }
    if let Ok(here) = std::env::current_dir() {
        plan.places.insert("working directory".into(), here);
    }
    Ok(plan)
}

/// Values of parameters, by name.
type Setting = BTreeMap<String, String>;

/// Returns the parameters that a command uses: in itself, in its name, or in the commands run before or after it. It
/// is not repeated for the values of other parameters.
fn taken<'a>(at: usize, command: &str, args: &'a BenchArgs) -> Vec<&'a Parameter> {
    let around = [of_command(&args.prepare, at), of_command(&args.conclude, at)];
    let texts = [Some(command), args.names.get(at).map(String::as_str)];
    let around = around.into_iter().map(|text| text.map(String::as_str));
    let texts: Vec<&str> = texts.into_iter().chain(around).flatten().collect();
    let parameters = args.parameters.iter();
    parameters.filter(|parameter| texts.iter().any(|text| parameter.stands_in(text))).collect()
}

/// Returns one command's element of a list given once for all commands or once for each.
fn of_command<T>(list: &[T], at: usize) -> Option<&T> {
    if list.len() == 1 { list.first() } else { list.get(at) }
}

/// Returns all combinations of values, the first parameter changing last; `before` is the number of cells so far.
fn settings(parameters: &[&Parameter], before: usize) -> Result<Vec<Setting>, String> {
    let count = parameters.iter().try_fold(1, |all: usize, one| all.checked_mul(one.values.len()));
    if count.is_none_or(|count| before + count > CELLS_MAX) {
        return Err(format!("there are more than {CELLS_MAX} commands with all their parameters"));
    }
    let values =
        |of: &&Parameter| of.values.iter().map(|value| (of.name.clone(), value.clone())).collect();
    Ok(product(parameters.iter().map(values)).into_iter().map(Setting::from_iter).collect())
}

/// Replaces the parameters in a text by their values.
fn filled(text: &str, setting: &Setting) -> String {
    setting
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn planned(
    at: usize,
    command: &str,
    setting: &Setting,
    swept: Option<&Parameter>,
    args: &BenchArgs,
) -> Result<PlannedCell, String> {
    let text = filled(command, setting);
    let shell = args.shell.clone().unwrap_or_else(|| vec!["sh".into()]);
    let argv = if shell.is_empty() {
        let words = lines::words(text.as_bytes()).map_err(|why| format!("'{text}': {why}"))?;
        let words = words.into_iter().map(OsString::into_string);
        words.collect::<Result<Vec<_>, _>>().map_err(|_| format!("'{text}' is not valid UTF-8"))?
    } else {
        [shell, vec!["-c".into(), text.clone()]].concat()
    };
    if argv.is_empty() {
        return Err(format!("'{command}' is not a command"));
    }
    let mut others = setting.clone();
    let x = swept.and_then(|parameter| others.remove(&parameter.name)?.parse().ok());
    let name = args.names.get(at).map_or(command, String::as_str);
    // Unless its name contains them, other values of a parameter that is not swept are a separate series.
    let mut series = filled(name, &others);
    for (parameter, value) in &others {
        if !name.contains(&format!("{{{parameter}}}")) {
            series.push_str(&format!(" {parameter}={value}"));
        }
    }
    let of_this = |list: &[String]| of_command(list, at).map(|text| filled(text, setting));
    let mut conditions = BTreeMap::new();
    if let Some(cpus) = args.cpus {
        conditions.insert("cpus".to_owned(), cpus.to_string());
    }
    Ok(PlannedCell {
        cell: Cell {
            group: "commands".into(),
            series,
            x,
            parameters: setting.clone(),
            conditions,
            command: text,
            ..Cell::default()
        },
        prepare: of_this(&args.prepare).map(RunAction::Shell).into_iter().collect(),
        launch: Launch {
            argv,
            stdin: args.input.clone(),
            cpus: args.cpus,
            accepts: args.accepts.clone(),
            output: of_command(&args.sinks, at).cloned().unwrap_or_default(),
            ..Launch::default()
        },
        conclude: of_this(&args.conclude).into_iter().collect(),
        ..PlannedCell::default()
    })
}

/// Adds the last setting of the first command again under another name: in a sweep it is usually the shortest, so
/// noise shows most.
fn add_control(plan: &mut CampaignPlan, settings: usize) {
    let Some(at) = settings.checked_sub(1) else { return };
    let Some(mut control) = plan.cells.get(at).cloned() else { return };
    control.cell.control_of = u32::try_from(at).ok();
    plan.cells.push(control);
}

/// Returns a folder name: that of the first program.
fn name_of(commands: &[String]) -> String {
    let first = commands.first().and_then(|command| program(command));
    let first = first.unwrap_or_default();
    let file = first.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let name: String = file
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "commands".into() } else { name }
}

/// Returns the program that a command starts, by its first word.
fn program(command: &str) -> Option<PathBuf> {
    let words = lines::words(command.as_bytes()).ok()?;
    let first = words.into_iter().next()?.into_string().ok()?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._+-".contains(c);
    first.chars().all(is_plain).then(|| PathBuf::from(first))
}

fn add_program(command: &str, plan: &mut CampaignPlan) {
    let Some(path) = program(command) else { return };
    let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return;
    };
    if !plan.programs.iter().any(|(_, known)| *known == path) {
        plan.programs.push((name, path));
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Keeps the cells in a list: by number (as `--dry-run` shows them), range of numbers, name of their series, or
/// series with a swept number (`rsync@4`). A control is kept with the cell that it repeats. The remaining cells are
/// renumbered.
pub fn keep_only(plan: &mut CampaignPlan, wanted: &str) -> Result<(), String> {
    let mut keep = vec![false; plan.cells.len()];
    for word in wanted.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let mut found = false;
        for (at, planned) in plan.cells.iter().enumerate() {
            if is_meant(word, at, &planned.cell.series, planned.cell.x) {
                (keep[at], found) = (true, true);
            }
        }
        if !found {
            return Err(format!(
                "--only={wanted}: no configuration '{word}'; --dry-run lists them"
            ));
        }
    }
    for (at, planned) in plan.cells.iter().enumerate() {
        if let Some(of) = planned.cell.control_of {
            keep[at] = keep.get(of as usize).copied().unwrap_or(false);
        }
    }
    if !keep.contains(&true) {
        return Err(format!("--only={wanted}: no configuration is left"));
    }
    let number = |old: usize| keep[..old].iter().filter(|keep| **keep).count() as u32;
    for (at, planned) in plan.cells.iter_mut().enumerate() {
        planned.cell.id = number(at);
        planned.cell.control_of = planned.cell.control_of.map(|of| number(of as usize));
    }
    let mut kept = keep.iter();
    plan.cells.retain(|_| kept.next().copied().unwrap_or(false));
    Ok(())
}

fn is_meant(word: &str, at: usize, series: &str, x: Option<f64>) -> bool {
    if word == series || word.parse() == Ok(at) {
        return true;
    }
    let range = word
        .split_once('-')
        .and_then(|(first, last)| Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?));
    if range.is_some_and(|range| range.contains(&at)) {
        return true;
    }
    let (name, number) = word.rsplit_once('@').unwrap_or_default();
    name == series && number.parse::<f64>().ok().is_some_and(|number| Some(number) == x)
}

/// An included campaign: its name and its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! campaigns {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../campaigns/", $name, ".toml")),
        }),*]
    };
}

/// All of them.
pub const BUILTINS: &[Builtin] = campaigns![
    "a-rsync-parallel",
    "b-aws-s3-requests",
    "c-fio-numjobs",
    "d-s3cmd-parallel",
    "e-cp-rsync-load",
    "f-remote",
];

/// Returns the campaign of this name.
pub fn find_builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|campaign| campaign.name == name)
}

/// Returns their names, each with its question.
///
/// # Errors
/// One of them is invalid.
pub fn list_builtins() -> Result<String, String> {
    let mut out = String::new();
    for Builtin { name, text } in BUILTINS {
        let spec = CampaignSpec::parse(name, text)?;
        let _ = writeln!(out, "{name}\n    {}\n    {}", spec.header.title, spec.header.question);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::TABLE;
    use crate::commands::bench::options::{Task, parse_args};

    fn read(words: &[&str]) -> Result<CampaignPlan, String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
        let args = parse_args(&typed)?;
        match &args.task {
            Task::Commands(commands) => plan_commands(commands, &args),
            Task::Campaign(_) | Task::Print(_) => Err("a campaign".into()),
        }
    }

    #[test]
    fn parameters_make_cells() {
        let plan = read(&[
            "-L",
            "size",
            "a,b",
            "-L",
            "jobs",
            "1,4",
            "-n",
            "copy",
            "-p",
            "reset {size}",
            "-s",
            "make {size}",
            "cp -j{jobs} {size}",
            "mv {size}",
        ])
        .unwrap();
        assert_eq!(
            (plan.header.name.as_str(), plan.header.x_name.as_deref()),
            ("cp", Some("jobs"))
        );
        let cells: Vec<_> = plan
            .cells
            .iter()
            .map(|one| {
                (one.cell.id, one.cell.series.as_str(), one.cell.x, one.cell.command.as_str())
            })
            .collect();
        assert_eq!(
            cells,
            [
                (0, "copy size=a", Some(1.0), "cp -j1 a"),
                (1, "copy size=a", Some(4.0), "cp -j4 a"),
                (2, "copy size=b", Some(1.0), "cp -j1 b"),
                (3, "copy size=b", Some(4.0), "cp -j4 b"),
                (4, "mv a", None, "mv a"),
                (5, "mv b", None, "mv b"),
                (6, "copy size=b", Some(4.0), "cp -j4 b"),
            ]
        );
        assert_eq!(plan.cells[6].cell.control_of, Some(3));
        assert_eq!(plan.setup, ["make a", "make b"]);
        assert_eq!(plan.cells[2].prepare, [RunAction::Shell("reset b".into())]);
        assert_eq!(plan.cells[4].launch.argv, ["sh", "-c", "mv a"]);
        let programs: Vec<&str> = plan.programs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(programs, ["cp", "mv"]);
    }

    #[test]
    fn a_command_without_the_parameter_is_run_once() {
        let plan_of = |words: &[&str]| {
            let plan = read(words).unwrap();
            let cells = plan.cells.iter().map(|one| (one.cell.command.clone(), one.cell.x));
            (plan.header.x_name.clone(), cells.collect::<Vec<_>>(), plan.header.left_out.clone())
        };
        let (x_name, cells, left_out) =
            plan_of(&["--no-control", "-L", "jobs", "1,4", "cp -r a b", "cp -j{jobs} a b"]);
        assert_eq!((x_name.as_deref(), left_out.len()), (Some("jobs"), 0));
        let cell = |command: &str, x| (command.to_owned(), x);
        assert_eq!(
            cells,
            [cell("cp -r a b", None), cell("cp -j1 a b", Some(1.0)), cell("cp -j4 a b", Some(4.0))]
        );
        // No command uses it: nothing is swept, which is reported.
        let (x_name, cells, left_out) = plan_of(&["-L", "jobs", "1,4", "cp -r a b"]);
        assert_eq!((x_name, cells.len()), (None, 1));
        assert_eq!(left_out, ["the values of jobs: no command has {jobs} in it"]);
        // A parameter of `--prepare` belongs to its command.
        let (_, cells, _) = plan_of(&["--no-control", "-L", "n", "1,2", "-p", "set {n}", "cp a b"]);
        assert_eq!(cells, [cell("cp a b", Some(1.0)), cell("cp a b", Some(2.0))]);
        let many = (0..120).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let too_many = ["-L", "a", &many, "-L", "b", &many, "cp {a} {b}"];
        assert!(read(&too_many).unwrap_err().contains("more than 10000 commands"));
    }

    #[test]
    fn with_and_without_a_shell() {
        let argv = |words: &[&str]| read(words).unwrap().cells.swap_remove(0).launch.argv;
        assert_eq!(argv(&["-N", "echo 'a b' \"c\""]), ["echo", "a b", "c"]);
        assert_eq!(argv(&["-S", "bash -e", "echo $X"]), ["bash", "-e", "-c", "echo $X"]);
        let quoted = "'/opt/my shell' -o \"a b\" c\\ d";
        assert_eq!(argv(&["-S", quoted, "x"]), ["/opt/my shell", "-o", "a b", "c d", "-c", "x"]);
        for (wrong, why) in [("sh 'a", "not closed"), ("", "not a shell"), ("''", "not a shell")] {
            assert!(read(&["-S", wrong, "x"]).unwrap_err().contains(why), "{wrong}");
        }
        assert!(read(&["-N", "echo 'a"]).unwrap_err().contains("a quote is not closed"));
        let plan = read(&["true"]).unwrap();
        assert_eq!(plan.cells.len(), 1);
        assert_eq!(read(&["--no-control", "true", "false"]).unwrap().cells.len(), 2);
        assert_eq!(read(&["X=1 cmd"]).unwrap().header.name, "commands");
    }

    #[test]
    fn one_for_all_or_one_for_each() {
        let plan = read(&["-p", "x", "-C", "1", "-C", "2", "a", "b"]).unwrap();
        let commands = plan.cells.iter().map(|one| (one.prepare.len(), one.conclude[0].as_str()));
        assert_eq!(commands.collect::<Vec<_>>(), [(1, "1"), (1, "2"), (1, "1")]);
        for (words, said) in [
            (vec!["-p", "x", "-p", "y", "a", "b", "c"], "once for each command"),
            (vec!["-n", "x", "-n", "y", "a"], "--command-name is given 2 times, for 1 commands"),
        ] {
            assert!(read(&words).unwrap_err().contains(said), "{words:?}");
        }
    }
    use hakobu_lab::campaign::PlannedCell;
    use hakobu_lab::results::Cell;

    fn plan() -> CampaignPlan {
        let cell = |id: u32, series: &str, x: f64, control_of| PlannedCell {
            cell: Cell { id, series: series.into(), x: Some(x), control_of, ..Cell::default() },
            ..PlannedCell::default()
        };
        let cells = vec![
            cell(0, "cp", 1.0, None),
            cell(1, "cp", 4.0, None),
            cell(2, "rsync", 1.0, None),
            cell(3, "rsync", 4.0, None),
            cell(4, "rsync (again)", 4.0, Some(3)),
        ];
        CampaignPlan { cells, ..CampaignPlan::default() }
    }

    fn kept(wanted: &str) -> Result<Vec<(u32, String, Option<u32>)>, String> {
        let mut plan = plan();
        keep_only(&mut plan, wanted)?;
        let cells = plan.cells.into_iter().map(|one| one.cell);
        Ok(cells
            .map(|cell| (cell.id, format!("{}@{}", cell.series, cell.x.unwrap()), cell.control_of))
            .collect())
    }

    #[test]
    fn cells_are_picked_and_numbered_anew() {
        let one = |id, name: &str| (id, name.to_owned(), None);
        assert_eq!(kept("cp").unwrap(), [one(0, "cp@1"), one(1, "cp@4")]);
        assert_eq!(kept("0, 2").unwrap(), [one(0, "cp@1"), one(1, "rsync@1")]);
        let with_control =
            [one(0, "cp@4"), one(1, "rsync@4"), (2, "rsync (again)@4".to_owned(), Some(1))];
        assert_eq!(kept("rsync@4,1").unwrap(), with_control);
        assert_eq!(kept("1-2").unwrap(), [one(0, "cp@4"), one(1, "rsync@1")]);
        assert!(kept("mv").unwrap_err().contains("no configuration 'mv'"));
        assert!(kept(",").unwrap_err().contains("no configuration is left"));
        assert!(kept("4").unwrap_err().contains("no configuration is left"));
    }
    use std::path::Path;

    #[test]
    fn every_campaign_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("campaigns");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let names: Vec<String> = BUILTINS.iter().map(|of| format!("{}.toml", of.name)).collect();
        assert_eq!(files, names);
        for campaign in BUILTINS {
            let spec = CampaignSpec::parse(campaign.name, campaign.text).unwrap();
            assert_eq!(spec.header.name, campaign.name);
        }
        assert!(find_builtin("a-rsync-parallel").is_some() && find_builtin("a-rsync").is_none());
        assert!(list_builtins().unwrap().lines().count() == 3 * BUILTINS.len());
    }
}
