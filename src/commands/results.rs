//! `hakobu results`: lists, shows, removes, imports and exports results of `bench`.

use super::bench::{new_folder, now, report_text, terminal_look};
use super::report::baseline;
use super::tool::{carry_out, end_with};
use crate::cli::{Opt, OptArg, Part, Table, Typed, flag, parts, put, value};
use crate::files::{or_stdout, write_file};
use crate::show::{confirmed, output};
use crate::{environment, exit, names};
use hakobu_core::error::quoted;
use hakobu_lab::analysis::ranking::Baseline;
use hakobu_lab::report;
use hakobu_lab::report::{Language, ReportPart, render};
use hakobu_lab::results::read::{RUNS_FILE, read};
use hakobu_lab::results::store::{ResultsOverview, ResultsStore};
use hakobu_lab::results::{Results, ResultsLine, hyperfine, import, store};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| plan.run())
}

/// Format of `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultsFormat {
    Csv,
    Hyperfine,
}

/// The parsed action.
#[derive(Debug, PartialEq, Eq)]
enum ResultsOptions {
    List { within: Option<PathBuf> },
    Show { result: Option<OsString>, no_color: bool, baseline: Option<Baseline> },
    Remove { results: Vec<OsString>, force: bool },
    Import { files: Vec<PathBuf>, name: Option<String>, output: Option<PathBuf> },
    Export { result: Option<OsString>, format: ResultsFormat, output: Option<PathBuf> },
}

/// The command line of `results`.
pub static TABLE: Table<ResultsArgs> = Table {
    command: "results",
    about: "List, show, remove, import and export the results of bench",
    description: "RESULT is a directory of results, or its name as ls shows it; the default is the \
            newest. import creates one from the JSON of hyperfine or fio.",
    usage: "hakobu results ls [DIR]\n       \
            hakobu results show [RESULT]\n       \
            hakobu results rm [-f] RESULT...\n       \
            hakobu results import [OPTIONS] FILE...\n       \
            hakobu results export [OPTIONS] [RESULT]",
    examples: &[
        ("hakobu results ls", "List the results."),
        ("hakobu results show small", "Show the results in a directory as a table."),
        (
            "hakobu results export small --format csv -o small.csv",
            "Write a line for each run as CSV.",
        ),
    ],
    common: &[],
    after: "ls lists the results in DIR (default: where bench writes them). import: several \
            files of one program are one campaign.\n\
            rm asks before it removes, unless -f is given, and removes only directories of \
            results.\n\
            Exit codes: 0 done, 1 something could not be done, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// The arguments read so far.
pub struct ResultsArgs {
    /// As typed.
    action: String,
    plan: ResultsOptions,
}

parts!(ResultsArgs {});

impl ResultsArgs {
    fn refuse(&self, arg: &OptArg) -> Result<(), String> {
        Err(format!("--{} does not go with {}", arg.name, self.action))
    }
}

/// The subcommands.
pub static PARTS: &[Part] = &[
    Part::new("ls", "list the results").with(|_| false),
    Part::new("show", "show a result as a table")
        .with(|name| ["no-color", "baseline"].contains(&name)),
    Part::new("rm", "remove results").with(|name| name == "force"),
    Part::new("import", "import the JSON of hyperfine or fio")
        .with(|name| ["output", "name"].contains(&name)),
    Part::new("export", "write a result as CSV or JSON")
        .with(|name| ["format", "output"].contains(&name)),
];

const OPTIONS: &[Opt<ResultsArgs>] = &[
    flag("force", Some('f'), "rm: do not ask").reads(|it, arg| match &mut it.plan {
        ResultsOptions::Remove { force, .. } => put(force, true),
        _ => it.refuse(arg),
    }),
    value(
        "format",
        None,
        "FORMAT",
        "export: csv (a line for each run, the default) or hyperfine (its JSON)",
    )
    .words(&["csv", "hyperfine"])
    .reads(|it, arg| match &mut it.plan {
        ResultsOptions::Export { format, .. } => match arg.value.to_str() {
            Some("csv") => put(format, ResultsFormat::Csv),
            Some("hyperfine") => put(format, ResultsFormat::Hyperfine),
            _ => Err(arg.refuse("none of csv, hyperfine")),
        },
        _ => it.refuse(arg),
    }),
    value("output", Some('o'), "PATH", "export: the file; import: the directory").reads(
        |it, arg| match &mut it.plan {
            ResultsOptions::Export { output, .. } | ResultsOptions::Import { output, .. } => {
                put(output, Some(arg.path()))
            }
            _ => it.refuse(arg),
        },
    ),
    value("name", Some('n'), "NAME", "import: its name (default: the first file's name)").reads(
        |it, arg| match &mut it.plan {
            ResultsOptions::Import { name, .. } => {
                let arg = arg.value.to_str().filter(|name| is_name(name));
                put(name, Some(arg.ok_or("--name takes letters, digits and dashes")?.to_owned()))
            }
            _ => it.refuse(arg),
        },
    ),
    flag("no-color", None, "show: without colours").reads(|it, arg| match &mut it.plan {
        ResultsOptions::Show { no_color, .. } => put(no_color, true),
        _ => it.refuse(arg),
    }),
    value("baseline", None, "TOOL", "show: compare with this tool, or NAME=VALUE, such as jobs=10")
        .reads(|it, arg| match &mut it.plan {
            ResultsOptions::Show { baseline, .. } => put(baseline, Some(self::baseline(arg)?)),
            _ => it.refuse(arg),
        }),
];

fn plan(typed: &Typed) -> Result<ResultsOptions, String> {
    const WHAT: &str = "missing subcommand: ls, show, rm, import or export";
    let (action, rest) = typed.paths.split_first().ok_or(WHAT)?;
    let action = action.to_str().unwrap_or_default();
    let at_most_one = || match rest {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [_, more, ..] => Err(format!("'{}' is one argument too many", more.display())),
    };
    let some = |what: &str| match rest {
        [] => Err(format!("{action} needs {what}")),
        all => Ok(all.to_vec()),
    };
    let plan = match action {
        "ls" | "list" => ResultsOptions::List { within: at_most_one()?.map(PathBuf::from) },
        "show" => ResultsOptions::Show { result: at_most_one()?, no_color: false, baseline: None },
        "rm" => ResultsOptions::Remove { results: some("results to remove")?, force: false },
        "import" => {
            let files = some("files of hyperfine or fio")?;
            let files = files.into_iter().map(PathBuf::from).collect();
            ResultsOptions::Import { files, name: None, output: None }
        }
        "export" => ResultsOptions::Export {
            result: at_most_one()?,
            format: ResultsFormat::Csv,
            output: None,
        },
        other => return Err(format!("'{other}' is nothing to do with results; {WHAT}")),
    };
    let reading = ResultsArgs { action: action.to_owned(), plan };
    Ok(TABLE.read(typed, reading)?.plan)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

impl ResultsOptions {
    /// Runs it; returns the exit code.
    fn run(&self) -> Result<u8, String> {
        match self {
            ResultsOptions::List { within } => list(within.as_deref())?,
            ResultsOptions::Show { result, no_color, baseline } => {
                let look = terminal_look(*no_color);
                output::text(&report_text(&load(result)?, &look, baseline.as_ref())?);
            }
            ResultsOptions::Remove { results, force } => return Ok(remove(results, *force)),
            ResultsOptions::Import { files, name, output } => {
                bring(files, name.as_deref(), output.as_deref())?;
            }
            ResultsOptions::Export { result, format, output } => {
                export(&load(result)?, *format, output.as_deref())?;
            }
        }
        Ok(exit::OK)
    }
}

/// Returns the folder of a result: as typed, or by name in the folder of results; by default the newest.
pub(super) fn find(result: Option<&OsString>) -> Result<PathBuf, String> {
    let Some(result) = result else {
        let (listed, _) = store::list(&environment::results_folder()?);
        let newest = listed.into_iter().next_back().map(|listed| listed.folder);
        return newest
            .ok_or_else(|| "there are no results yet: hakobu bench creates some".to_owned());
    };
    let path = Path::new(result);
    if path.exists() || path.components().count() != 1 {
        return Ok(path.to_owned());
    }
    let kept = environment::results_folder()?.join(path);
    if kept.join(RUNS_FILE).exists() {
        return Ok(kept);
    }
    Err(format!("there are no results {}; hakobu results ls lists them", quoted(path)))
}

fn load(result: &Option<OsString>) -> Result<Results, String> {
    Ok(read(&find(result.as_ref())?)?)
}

fn list(within: Option<&Path>) -> Result<(), String> {
    let within = match within {
        Some(within) => within.to_owned(),
        None => environment::results_folder()?,
    };
    let (listed, wrong) = store::list(&within);
    output::text(&match listed.as_slice() {
        [] => format!("there are no results in {}\n", quoted(&within)),
        listed => table(listed),
    });
    match wrong.len() {
        0 => Ok(()),
        _ => Err(wrong.join("; ")),
    }
}

/// Returns a line for each, oldest first.
fn table(listed: &[ResultsOverview]) -> String {
    if listed.is_empty() {
        return String::new();
    }
    let folder = |one: &ResultsOverview| {
        one.folder.file_name().map_or(String::new(), |name| name.display().to_string())
    };
    let mut rows =
        vec![["RESULT", "NAME", "STARTED", "CELLS", "RUNS", "FAILED", "STATUS"].map(str::to_owned)];
    for one in listed {
        rows.push([
            folder(one),
            one.name.clone(),
            one.start.clone(),
            one.cells.to_string(),
            one.runs.to_string(),
            one.failed.to_string(),
            one.ended.clone().unwrap_or_else(|| "no".into()),
        ]);
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let width = widths[column];
            // Right-align numbers.
            let cell = match column {
                3..=5 => format!("{text:>width$}  "),
                _ => format!("{text:<width$}  "),
            };
            line.push_str(&cell);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn remove(results: &[OsString], force: bool) -> u8 {
    let mut code = exit::OK;
    for result in results {
        let done = find(Some(result)).and_then(|folder| {
            store::may_remove(&folder)?;
            if !force && !confirmed(&format!("hakobu results rm: remove {}? ", quoted(&folder))) {
                return Ok(());
            }
            Ok(store::remove(&folder)?)
        });
        if let Err(message) = done {
            code = end_with(exit::FAILURE, &message);
        }
    }
    code
}

fn bring(files: &[PathBuf], name: Option<&str>, output: Option<&Path>) -> Result<(), String> {
    let mut texts = Vec::new();
    for file in files {
        let text = names::read_text(file)?;
        texts.push((quoted(file), text));
    }
    let stem = files.first().and_then(|file| file.file_stem()).unwrap_or_default();
    let stem: String = stem
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let stem = stem.trim_matches('-');
    let name = name.unwrap_or(if stem.is_empty() { "imported" } else { stem });
    let now = now();
    let results = import::import(name, &now, &texts)?;
    let folder = match output {
        Some(folder) => folder.to_owned(),
        None => new_folder(&environment::results_folder()?, name, &now)?,
    };
    if folder.join(RUNS_FILE).exists() {
        return Err(format!("there are results in {} already", quoted(&folder)));
    }
    let mut store = ResultsStore::open(&folder, &results.header, &now)?;
    for run in &results.runs {
        store.append(&ResultsLine::Run(Box::new(run.clone())))?;
    }
    if let Some(end) = &results.end {
        store.end(end)?;
    }
    output::text(&format!("{}\n", folder.display()));
    Ok(())
}

fn export(results: &Results, format: ResultsFormat, output: Option<&Path>) -> Result<(), String> {
    let text = match format {
        ResultsFormat::Csv => {
            let part = ReportPart::new(results.clone());
            render(&[part], report::ReportFormat::Csv, Language::English)?
        }
        ResultsFormat::Hyperfine => hyperfine::hyperfine_json(results)?,
    };
    write_file(&or_stdout(output.map(Path::to_owned)), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ResultsOptions, String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "missing subcommand"),
            ("list-all", "'list-all' is nothing to do with results"),
            ("rm", "rm needs results to remove"),
            ("import", "import needs files"),
            ("show a b", "'b' is one argument too many"),
            ("ls -f", "--force does not go with ls"),
            ("export --format=xml", "invalid --format 'xml': none of csv, hyperfine"),
            ("import -n a/b x", "--name takes letters"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
        assert_eq!(
            read("rm -f a").unwrap(),
            ResultsOptions::Remove { results: vec!["a".into()], force: true }
        );
    }

    #[test]
    fn tables_line_up() {
        let one = |name: &str, runs| ResultsOverview {
            folder: PathBuf::from("/r").join(name),
            name: name.into(),
            start: "2026-01-01T00:00:00Z".into(),
            cells: 2,
            runs,
            failed: 0,
            ended: Some("done".into()),
        };
        assert_eq!(table(&[]), "");
        assert_eq!(
            table(&[one("a", 5), ResultsOverview { ended: None, ..one("copies", 1234) }]),
            "RESULT  NAME    STARTED               CELLS  RUNS  FAILED  STATUS\n\
             a       a       2026-01-01T00:00:00Z      2     5       0  done\n\
             copies  copies  2026-01-01T00:00:00Z      2  1234       0  no\n"
        );
    }
}
