//! The help of a command: what it does, how it is called, examples, and its options by subject. `-h` prints one screen,
//! `--help` all of it.

use super::table::{PATHS, SHORT_HELP};
use super::{Syntax, Table};

/// Which help is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpLength {
    /// The most common options, on one screen.
    Short,
    /// All options.
    Whole,
}

/// Columns of the short help: those of a terminal that nobody has widened.
const SHORT_COLUMNS: usize = 80;
/// Columns of the whole help.
const COLUMNS: usize = 100;
/// Examples in the short help.
const SHORT_EXAMPLES: usize = 3;

/// The headline of options that are accepted without effect.
pub(super) const ACCEPTED: &str = "Accepted without effect";

/// Returns the place of a headline: a command's own subjects come first, in the order of its table, then those that
/// commands share, and what has no effect comes last.
pub(super) fn rank(title: &str) -> u8 {
    match title {
        "Limits" => 1,
        "Output" => 2,
        _ if title.starts_with("S3") => 3,
        "Many machines" => 4,
        ACCEPTED => 5,
        _ => 0,
    }
}

/// Renders the help of a command.
pub(super) fn render<S>(table: &Table<S>, length: HelpLength) -> String {
    let is_short = length == HelpLength::Short;
    let columns = if is_short { SHORT_COLUMNS } else { COLUMNS };
    let mut out = format!("{}\n", wrapped(table.about, columns));
    if !is_short && !table.description.is_empty() {
        out.push_str(&format!("\n{}\n", wrapped(table.description, columns)));
    }
    out.push_str(&format!("\nUsage: {}\n", table.usage));
    let most = if is_short { SHORT_EXAMPLES } else { usize::MAX };
    let examples: Vec<_> = table.examples.iter().take(most).collect();
    if !examples.is_empty() {
        out.push_str("\nExamples:\n");
    }
    for (line, purpose) in examples {
        match is_short {
            true => out.push_str(&format!("  {line}\n")),
            false => out.push_str(&format!("  # {purpose}\n  {line}\n")),
        }
    }
    let mut command = Syntax::clap(table).help_template("{all-args}").term_width(columns);
    if is_short {
        command = command.mut_args(|arg| {
            let name = arg.get_id().as_str();
            let own = arg.get_help_heading().is_none_or(|title| rank(title) == 0);
            let shown = match table.common {
                [] => own && ![PATHS, SHORT_HELP, "help"].contains(&name),
                common => common.contains(&name),
            };
            let hidden = arg.is_hide_set() || !shown;
            arg.hide(hidden).help_heading("Options")
        });
    }
    let options = command.render_help().to_string();
    out.push_str(&format!("\n{}\n", options.trim_end()));
    match is_short {
        true => {
            out.push_str(&format!("\nhakobu {} --help shows all options.\n", table.command));
        }
        false => out.push_str(&format!("\n{}\n", wrapped(table.after, columns))),
    }
    out
}

/// Wraps lines at spaces. Lines that begin with a space keep their form.
fn wrapped(text: &str, columns: usize) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        if line.starts_with(' ') {
            out.push(line.to_owned());
            continue;
        }
        let mut row = String::new();
        for word in line.split(' ') {
            if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > columns {
                out.push(std::mem::take(&mut row));
            }
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        }
        out.push(row);
    }
    out.join("\n")
}
