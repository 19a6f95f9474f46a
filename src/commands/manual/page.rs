//! A manual page in troff, from the table of a command and its sections.

use super::sections::{self, Group, Meaning};
use crate::commands::{COMMANDS, Command};
use std::io;

/// Start of the paragraph on exit codes at the end of each help.
const EXIT_CODES: &str = "Exit codes: ";

/// Returns the page of one command.
pub fn of_command(command: &Command) -> io::Result<Vec<u8>> {
    let clap = command.table.clap().name(format!("hakobu-{}", command.name));
    // The usage is the synopsis here, and the options have their own section.
    let mut out = render(&clap, command.table.usage())?;
    let after = clap.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, codes) = after.split_once(EXIT_CODES).unwrap_or((&after, ""));
    lines(&mut out, "NOTES", notes);
    lines(&mut out, "EXIT STATUS", codes);
    examples(&mut out, sections::examples(command.name));
    let groups = groups(command);
    meanings(&mut out, "ENVIRONMENT", of_groups(sections::ENVIRONMENT, &groups, sections::ALWAYS));
    meanings(&mut out, "FILES", of_groups(sections::FILES, &groups, &[]));
    lines(&mut out, "SEE ALSO", "hakobu(1), hakobu help topics");
    Ok(out)
}

/// Returns the page of the program.
pub fn of_program() -> io::Result<Vec<u8>> {
    let clap = clap::Command::new("hakobu")
        .about("copies and synchronises files between volumes and S3")
        .disable_help_flag(true);
    let mut out = render(&clap, "hakobu COMMAND [OPTIONS] [PATHS]\nhakobu help [COMMAND|TOPIC]")?;
    head(&mut out, "COMMANDS");
    for command in COMMANDS {
        let line = format!(".TP\n\\fBhakobu\\-{}\\fR(1)\n{}\n", command.name, roff(command.about));
        out.extend_from_slice(line.as_bytes());
    }
    lines(
        &mut out,
        "EXIT STATUS",
        "0 where everything was done as asked. The page of each command names the others; sync has \
         rsync's.",
    );
    examples(&mut out, sections::examples("sync"));
    let all = [Group::Store, Group::State, Group::Results];
    meanings(&mut out, "ENVIRONMENT", of_groups(sections::ENVIRONMENT, &all, sections::ALWAYS));
    meanings(&mut out, "FILES", of_groups(sections::FILES, &all, &[]));
    Ok(out)
}

/// Returns the groups of variables and files of a command.
fn groups(command: &Command) -> Vec<Group> {
    let clap = command.table.clap();
    let has = |name: &str| clap.get_arguments().any(|arg| arg.get_long() == Some(name));
    let mut groups = Vec::new();
    if has("endpoint-url") {
        groups.push(Group::Store);
    }
    if has("no-memory") || has("resume") {
        groups.push(Group::State);
    }
    if ["bench", "io", "results", "report", "compare"].contains(&command.name) {
        groups.push(Group::Results);
    }
    groups
}

fn of_groups<'a>(
    table: &'a [(Group, &[Meaning])],
    groups: &'a [Group],
    always: &'a [Meaning],
) -> impl Iterator<Item = &'a Meaning> {
    let wanted = table.iter().filter(|(group, _)| groups.contains(group));
    wanted.flat_map(|(_, meanings)| meanings.iter()).chain(always)
}

fn render(clap: &clap::Command, usage: &str) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(clap.clone())
        .source(concat!("hakobu ", env!("CARGO_PKG_VERSION")))
        .manual("hakobu");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    lines(&mut out, "SYNOPSIS", usage);
    man.render_description_section(&mut out)?;
    if clap.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    Ok(out)
}

fn head(out: &mut Vec<u8>, title: &str) {
    out.extend_from_slice(format!(".SH \"{title}\"\n").as_bytes());
}

/// Appends a section of lines, if there are any; indented ones are kept as they are.
fn lines(out: &mut Vec<u8>, title: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    head(out, title);
    for line in text.trim_end().lines() {
        out.extend_from_slice(format!("{}\n.br\n", roff(line)).as_bytes());
    }
}

fn examples(out: &mut Vec<u8>, examples: &[sections::Example]) {
    if examples.is_empty() {
        return;
    }
    head(out, "EXAMPLES");
    for (line, what) in examples {
        let text = format!(".PP\n{}\n.PP\n.EX\n    {}\n.EE\n", roff(what), roff(line));
        out.extend_from_slice(text.as_bytes());
    }
}

fn meanings<'a>(out: &mut Vec<u8>, title: &str, all: impl Iterator<Item = &'a Meaning>) {
    let mut all = all.peekable();
    if all.peek().is_none() {
        return;
    }
    head(out, title);
    let mut listed = Vec::new();
    for (name, meaning) in all {
        // Two groups may share a variable.
        if listed.contains(name) {
            continue;
        }
        listed.push(*name);
        let text = format!(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(meaning));
        out.extend_from_slice(text.as_bytes());
    }
}

/// Escapes text for troff: requests, escapes and dashes are literal.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('~', "\\(ti");
    let text = text.replace('^', "\\(ha").replace('`', "\\(ga").replace('\'', "\\(aq");
    match text.starts_with('.') {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(roff(".TH --x a\\b"), "\\&.TH \\-\\-x a\\eb");
        assert_eq!(roff("'a' ~"), "\\(aqa\\(aq \\(ti");
    }

    #[test]
    fn every_option_has_its_line() {
        for command in COMMANDS {
            let page = String::from_utf8(of_command(command).unwrap()).unwrap();
            let shown = command.table.clap();
            for arg in shown.get_arguments().filter(|arg| !arg.is_hide_set()) {
                if let Some(long) = arg.get_long() {
                    let spelled = format!("\\-\\-{}", long.replace('-', "\\-"));
                    assert!(page.contains(&spelled), "{}: {spelled}", command.name);
                }
            }
        }
    }

    #[test]
    fn every_page_has_its_sections() {
        for command in COMMANDS {
            let page = String::from_utf8(of_command(command).unwrap()).unwrap();
            for title in ["SYNOPSIS", "EXIT STATUS", "EXAMPLES", "ENVIRONMENT", "SEE ALSO"] {
                let head = format!(".SH \"{title}\"\n");
                assert_eq!(page.matches(&head).count(), 1, "hakobu-{}: {title}", command.name);
            }
            assert!(!page.contains("EXTRA"), "{}", command.name);
        }
        let sync = COMMANDS.iter().find(|command| command.name == "sync").unwrap();
        let page = String::from_utf8(of_command(sync).unwrap()).unwrap();
        let whole = String::from_utf8(of_program().unwrap()).unwrap();
        assert_eq!(whole.matches("XDG_STATE_HOME").count(), 1, "{whole}");
        for word in ["AWS_PROFILE", ".SH \"FILES\"", "\\(ti/.aws/config", "25 \\-\\-max\\-delete"] {
            assert!(page.contains(word), "{word}");
        }
    }
}
