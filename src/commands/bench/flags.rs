//! Commands on the command line as a plan: hyperfine's way of saying what a campaign says in TOML.

use super::REPEAT;
use super::asked::{Asked, Parameter};
use crate::commands::run::lines;
use hakobu_lab::campaign::{Action, Launch, Plan, Planned};
use hakobu_lab::results::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Cells beyond which nobody would wait for the end.
const CELLS_MAX: usize = 10_000;
/// Characters of a headline.
const TITLE_MAX: usize = 100;

/// Makes a plan of commands.
pub fn plan(commands: &[String], asked: &Asked) -> Result<Plan, String> {
    for (name, count) in [
        ("command-name", asked.names.len()),
        ("prepare", asked.prepare.len()),
        ("conclude", asked.conclude.len()),
    ] {
        if count > commands.len() {
            return Err(format!(
                "--{name} is given {count} times, for {} commands",
                commands.len()
            ));
        }
        // One is for all; of several there is one for each.
        if name != "command-name" && count > 1 && count < commands.len() {
            return Err(format!(
                "--{name} is given {count} times: give it once, or once for each command"
            ));
        }
    }
    let settings = settings(&asked.parameters);
    if commands.len() * settings.len() > CELLS_MAX {
        return Err(format!("there are more than {CELLS_MAX} commands with all their parameters"));
    }
    let swept = asked.parameters.iter().find(|parameter| {
        parameter.values.iter().all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    });
    let mut plan = Plan {
        name: name_of(commands),
        title: shortened(&commands.join(", ")),
        x_name: swept.map(|parameter| parameter.name.clone()),
        metric: "wall_s".into(),
        repeat: REPEAT,
        ..Plan::default()
    };
    for (at, command) in commands.iter().enumerate() {
        for setting in &settings {
            let planned = planned(at, command, setting, swept, asked)?;
            for (given, list) in
                [(&asked.setup, &mut plan.setup), (&asked.cleanup, &mut plan.teardown)]
            {
                // The same command once is enough.
                if let Some(filled) = given.as_ref().map(|given| filled(given, setting))
                    && !list.contains(&filled)
                {
                    list.push(filled);
                }
            }
            add_program(&planned.cell.command, &mut plan);
            plan.cells.push(planned);
        }
    }
    if asked.control && plan.cells.len() > 1 {
        add_control(&mut plan, settings.len());
    }
    for (id, planned) in plan.cells.iter_mut().enumerate() {
        planned.cell.id = u32::try_from(id).unwrap_or(u32::MAX);
    }
    if let Ok(here) = std::env::current_dir() {
        plan.places.insert("working folder".into(), here);
    }
    Ok(plan)
}

/// Parameters with a value each.
type Setting = BTreeMap<String, String>;

/// All combinations of values, the first parameter changing last.
fn settings(parameters: &[Parameter]) -> Vec<Setting> {
    let mut all = vec![Setting::new()];
    for parameter in parameters {
        let with = |setting: &Setting, value: &String| {
            let mut setting = setting.clone();
            setting.insert(parameter.name.clone(), value.clone());
            setting
        };
        all = all
            .iter()
            .flat_map(|setting| parameter.values.iter().map(|value| with(setting, value)))
            .collect();
    }
    all
}

/// A text with the values of parameters in it.
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
    asked: &Asked,
) -> Result<Planned, String> {
    let text = filled(command, setting);
    let argv = if asked.shell.is_empty() {
        let words = lines::words(text.as_bytes()).map_err(|why| format!("'{text}': {why}"))?;
        let words = words.into_iter().map(OsString::into_string);
        words.collect::<Result<Vec<_>, _>>().map_err(|_| format!("'{text}' is no text"))?
    } else {
        let mut argv = asked.shell.clone();
        argv.extend(["-c".into(), text.clone()]);
        argv
    };
    if argv.is_empty() {
        return Err(format!("'{command}' is no command"));
    }
    let mut others = setting.clone();
    let x = swept.and_then(|parameter| others.remove(&parameter.name)?.parse().ok());
    let name = asked.names.get(at).map_or(command, String::as_str);
    // Without its name in it, other values of a parameter that is not swept are another line.
    let mut series = filled(name, &others);
    for (parameter, value) in &others {
        if !name.contains(&format!("{{{parameter}}}")) {
            series.push_str(&format!(" {parameter}={value}"));
        }
    }
    let of_this = |given: &[String]| {
        let given = if given.len() == 1 { given.first() } else { given.get(at) };
        given.map(|given| filled(given, setting))
    };
    let mut conditions = BTreeMap::new();
    if let Some(cpus) = asked.cpus {
        conditions.insert("cpus".to_owned(), cpus.to_string());
    }
    Ok(Planned {
        cell: Cell {
            group: "commands".into(),
            series,
            x,
            parameters: setting.clone(),
            conditions,
            command: text,
            ..Cell::default()
        },
        prepare: of_this(&asked.prepare).map(Action::Shell).into_iter().collect(),
        launch: Launch {
            argv,
            stdin: asked.input.clone(),
            cpus: asked.cpus,
            any_exit: asked.ignore_failure,
            ..Launch::default()
        },
        conclude: of_this(&asked.conclude).into_iter().collect(),
        ..Planned::default()
    })
}

/// Runs the last setting of the first command under another name as well: where numbers are swept,
/// it is the shortest, mostly, and so the one in which noise shows most.
fn add_control(plan: &mut Plan, settings: usize) {
    let Some(of) = settings.checked_sub(1).and_then(|at| plan.cells.get(at).map(|of| (at, of)))
    else {
        return;
    };
    let (at, mut control) = (of.0, of.1.clone());
    control.cell.control_of = u32::try_from(at).ok();
    plan.cells.push(control);
}

/// A name for a folder: that of the first program.
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

/// The program that a command starts, as far as that can be told from its first word.
fn program(command: &str) -> Option<PathBuf> {
    let words = lines::words(command.as_bytes()).ok()?;
    let first = words.into_iter().next()?.into_string().ok()?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._+-".contains(c);
    first.chars().all(is_plain).then(|| PathBuf::from(first))
}

fn add_program(command: &str, plan: &mut Plan) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::asked::{What, asked};
    use crate::options::bench::TABLE;

    fn read(words: &[&str]) -> Result<Plan, String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
        let asked = asked(&typed)?;
        match &asked.what {
            What::Commands(commands) => plan(commands, &asked),
            What::Campaign(_) => Err("a campaign".into()),
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
        assert_eq!((plan.name.as_str(), plan.x_name.as_deref()), ("cp", Some("jobs")));
        let told: Vec<_> = plan
            .cells
            .iter()
            .map(|one| {
                (one.cell.id, one.cell.series.as_str(), one.cell.x, one.cell.command.as_str())
            })
            .collect();
        assert_eq!(
            told,
            [
                (0, "copy size=a", Some(1.0), "cp -j1 a"),
                (1, "copy size=a", Some(4.0), "cp -j4 a"),
                (2, "copy size=b", Some(1.0), "cp -j1 b"),
                (3, "copy size=b", Some(4.0), "cp -j4 b"),
                (4, "mv a", Some(1.0), "mv a"),
                (5, "mv a", Some(4.0), "mv a"),
                (6, "mv b", Some(1.0), "mv b"),
                (7, "mv b", Some(4.0), "mv b"),
                (8, "copy size=b", Some(4.0), "cp -j4 b"),
            ]
        );
        assert_eq!(plan.cells[8].cell.control_of, Some(3));
        assert_eq!(plan.setup, ["make a", "make b"]);
        assert_eq!(plan.cells[2].prepare, [Action::Shell("reset b".into())]);
        assert_eq!(plan.cells[4].launch.argv, ["sh", "-c", "mv a"]);
        let programs: Vec<&str> = plan.programs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(programs, ["cp", "mv"]);
    }

    #[test]
    fn with_and_without_a_shell() {
        let argv = |words: &[&str]| read(words).unwrap().cells.swap_remove(0).launch.argv;
        assert_eq!(argv(&["-N", "echo 'a b' \"c\""]), ["echo", "a b", "c"]);
        assert_eq!(argv(&["-S", "bash -e", "echo $X"]), ["bash", "-e", "-c", "echo $X"]);
        assert!(read(&["-N", "echo 'a"]).unwrap_err().contains("a quote is not closed"));
        let plan = read(&["true"]).unwrap();
        assert_eq!(plan.cells.len(), 1);
        assert_eq!(read(&["--no-control", "true", "false"]).unwrap().cells.len(), 2);
        assert_eq!(read(&["X=1 cmd"]).unwrap().name, "commands");
    }

    #[test]
    fn one_for_all_or_one_for_each() {
        let plan = read(&["-p", "x", "-C", "1", "-C", "2", "a", "b"]).unwrap();
        let told = plan.cells.iter().map(|one| (one.prepare.len(), one.conclude[0].as_str()));
        assert_eq!(told.collect::<Vec<_>>(), [(1, "1"), (1, "2"), (1, "1")]);
        for (words, said) in [
            (vec!["-p", "x", "-p", "y", "a", "b", "c"], "once for each command"),
            (vec!["-n", "x", "-n", "y", "a"], "--command-name is given 2 times, for 1 commands"),
        ] {
            assert!(read(&words).unwrap_err().contains(said), "{words:?}");
        }
    }
}
