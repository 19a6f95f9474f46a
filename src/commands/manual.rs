//! `hakobu man`: manual pages in troff, generated from the option tables, with the environment and files of each command.

use super::tool::carry_out;
use crate::cli::{Example, Opt, Part, Table, Typed, parts, put, value};
use crate::exit;
use crate::files::{self, Target};
use crate::show::output;
use crate::{COMMANDS, Command, find, overview, unknown};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The commands, each of which has a page.
pub fn parts() -> Vec<Part> {
    COMMANDS.iter().map(|command| Part::new(command.name, command.about)).collect()
}

/// The command line of `man`.
pub static MAN: Table<ManArgs> = Table {
    command: "man",
    about: "Manual pages of the commands, for man(1)",
    description: "Prints the page of a command, or of the program, in troff; or installs all of \
            them.",
    usage: "hakobu man [COMMAND]\n       hakobu man --install DIR\n       hakobu man --all DIR",
    examples: &[
        ("hakobu man sync | man -l -", "Read the manual page of a command."),
        ("hakobu man --install ~/.local/share/man", "Install all pages for man(1)."),
    ],
    common: &[],
    after: "--install takes a directory of manuals, such as ~/.local/share/man or \
            /usr/share/man.\n\
            Exit codes: 0 done, 1 a file could not be written, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// Directories for the pages.
#[derive(Default)]
pub struct ManArgs {
    all: Option<PathBuf>,
    install: Option<PathBuf>,
}

parts!(ManArgs {});

const OPTIONS: &[Opt<ManArgs>] = &[
    value("all", None, "DIR", "write the pages of all commands into DIR")
        .reads(|it, arg| put(&mut it.all, Some(arg.path()))),
    value("install", None, "DIR", "write them to DIR/man1, where man(1) finds them")
        .reads(|it, arg| put(&mut it.install, Some(arg.path().join("man1")))),
];

/// Runs `man`.
pub fn man(arguments: Vec<OsString>) -> ExitCode {
    carry_out(MAN.parse(&arguments), |typed| pages(&typed), show)
}

/// The requested pages.
enum ManPages {
    /// The page of a command, or of the program.
    Of(Option<String>),
    /// All of them, into a folder.
    All(PathBuf),
}

fn pages(typed: &Typed) -> Result<ManPages, String> {
    let read = MAN.read(typed, ManArgs::default())?;
    match (read.install.or(read.all), typed.paths.as_slice()) {
        (Some(dir), []) => Ok(ManPages::All(dir)),
        (None, []) => Ok(ManPages::Of(None)),
        (None, [name]) => Ok(ManPages::Of(Some(name.to_string_lossy().into_owned()))),
        (Some(_), _) => Err("--all and --install write every page: give no command".into()),
        (None, _) => Err("give one command, or none for the page of the program".into()),
    }
}

fn show(pages: ManPages) -> Result<u8, String> {
    let page = match pages {
        ManPages::All(dir) => return write_all(&dir).map(|()| exit::OK),
        ManPages::Of(None) => program_page(),
        ManPages::Of(Some(name)) => match find(&name) {
            Some(command) => command_page(command),
            None => {
                unknown(&name);
                return Ok(exit::USAGE);
            }
        },
    };
    // Writing into memory does not fail.
    output::text(&String::from_utf8_lossy(&page.unwrap_or_default()));
    Ok(exit::OK)
}

fn write_all(dir: &Path) -> Result<(), String> {
    files::make_folder(dir)?;
    let write = |name: &str, page: io::Result<Vec<u8>>| {
        // Writing into memory does not fail.
        Target::open(&dir.join(name))?.deliver(page.unwrap_or_default())
    };
    write("hakobu.1", program_page())?;
    COMMANDS
        .iter()
        .try_for_each(|command| write(&format!("hakobu-{}.1", command.name), command_page(command)))
}

/// Start of the paragraph on exit codes at the end of each help.
const EXIT_CODES: &str = "Exit codes: ";

/// Returns the page of one command.
pub fn command_page(command: &Command) -> io::Result<Vec<u8>> {
    let table = command.table;
    let clap = table.clap().name(format!("hakobu-{}", command.name));
    let mut out = front(&clap, table.usage(), table.description(), table.examples())?;
    clap_mangen::Man::new(clap).render_options_section(&mut out)?;
    let (notes, codes) = table.after().split_once(EXIT_CODES).unwrap_or((table.after(), ""));
    lines(&mut out, "NOTES", notes);
    lines(&mut out, "EXIT STATUS", codes);
    let groups = groups(command);
    meanings(&mut out, "ENVIRONMENT", of_groups(ENVIRONMENT, &groups, ALWAYS));
    meanings(&mut out, "FILES", of_groups(FILES, &groups, &[]));
    lines(&mut out, "SEE ALSO", "hakobu(1), hakobu help topics");
    Ok(out)
}

/// Returns the page of the program.
pub fn program_page() -> io::Result<Vec<u8>> {
    let clap = clap::Command::new("hakobu")
        .about("a parallel rsync for local file systems, other machines and S3")
        .disable_help_flag(true);
    let usage = "hakobu COMMAND [OPTIONS] [PATHS]\nhakobu help [COMMAND|TOPIC]";
    let examples = find("sync").map_or(&[][..], |sync| sync.table.examples());
    let mut out = front(&clap, usage, overview::DESCRIPTION, examples)?;
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
    let all = [SectionGroup::Store, SectionGroup::State, SectionGroup::Results];
    meanings(&mut out, "ENVIRONMENT", of_groups(ENVIRONMENT, &all, ALWAYS));
    meanings(&mut out, "FILES", of_groups(FILES, &all, &[]));
    Ok(out)
}

/// Returns the groups of variables and files of a command.
fn groups(command: &Command) -> Vec<SectionGroup> {
    let clap = command.table.clap();
    let has = |name: &str| clap.get_arguments().any(|arg| arg.get_long() == Some(name));
    let mut groups = Vec::new();
    if has("endpoint-url") {
        groups.push(SectionGroup::Store);
    }
    if has("no-memory") || has("resume") {
        groups.push(SectionGroup::State);
    }
    if ["bench", "io", "results", "report", "compare"].contains(&command.name) {
        groups.push(SectionGroup::Results);
    }
    groups
}

fn of_groups<'a>(
    table: &'a [(SectionGroup, &[Meaning])],
    groups: &'a [SectionGroup],
    always: &'a [Meaning],
) -> impl Iterator<Item = &'a Meaning> {
    let wanted = table.iter().filter(|(group, _)| groups.contains(group));
    wanted.flat_map(|(_, meanings)| meanings.iter()).chain(always)
}

/// Returns the sections that a page begins with: its name, its usage, what it does, and examples.
fn front(
    clap: &clap::Command,
    usage: &str,
    description: &str,
    all: &[Example],
) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(clap.clone())
        .source(concat!("hakobu ", env!("CARGO_PKG_VERSION")))
        .manual("hakobu");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    lines(&mut out, "SYNOPSIS", usage);
    head(&mut out, "DESCRIPTION");
    out.extend_from_slice(format!("{}\n", roff(description)).as_bytes());
    examples(&mut out, all);
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
    let is_synopsis = title == "SYNOPSIS";
    for line in text.trim_end().lines() {
        // The lines of a usage are aligned below its first word, which has no place here.
        let line = if is_synopsis { line.trim_start() } else { line };
        out.extend_from_slice(format!("{}\n.br\n", roff(line)).as_bytes());
    }
}

fn examples(out: &mut Vec<u8>, examples: &[Example]) {
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

/// A name and its meaning.
pub type Meaning = (&'static str, &'static str);

/// Groups of commands that share variables and files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SectionGroup {
    /// Commands that can open a store.
    Store,
    /// Commands that tune the number of jobs and store it, or keep a record of their run.
    State,
    /// Commands that keep results.
    Results,
}

/// Environment variables that a group reads.
pub const ENVIRONMENT: &[(SectionGroup, &[Meaning])] = &[
    (
        SectionGroup::Store,
        &[
            ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "Credentials."),
            ("AWS_PROFILE", "The profile with credentials and settings."),
            ("AWS_REGION, AWS_DEFAULT_REGION", "The region."),
            (
                "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, S3_ENDPOINT_URL",
                "The address of the S3 server, the first that is set.",
            ),
            ("AWS_CA_BUNDLE", "Certificates to trust instead of the system's."),
            ("AWS_MAX_ATTEMPTS", "How often a request is tried."),
            (
                "AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
                "Files to read instead of those below ~/.aws.",
            ),
        ],
    ),
    (
        SectionGroup::State,
        &[("XDG_STATE_HOME", "The directory of state files instead of ~/.local/state.")],
    ),
    (
        SectionGroup::Results,
        &[
            ("XDG_STATE_HOME", "The directory of state and results instead of ~/.local/state."),
            ("XDG_CACHE_HOME", "The directory of data sets instead of ~/.cache."),
            ("NO_COLOR", "No colours, if it is set and not empty."),
        ],
    ),
];

/// Files that a group uses.
pub const FILES: &[(SectionGroup, &[Meaning])] = &[
    (SectionGroup::Store, &[("~/.aws/config, ~/.aws/credentials", "Profiles, as aws has them.")]),
    (
        SectionGroup::State,
        &[(
            "~/.local/state/hakobu/",
            "Learned job counts, records of runs under way, and of transfers that --resume can \
             continue.",
        )],
    ),
    (
        SectionGroup::Results,
        &[
            ("~/.local/state/hakobu/results/", "Results, a directory each."),
            ("~/.cache/hakobu/", "Data sets and targets of campaigns."),
        ],
    ),
];

/// Variables that every command reads.
pub const ALWAYS: &[Meaning] = &[("LC_ALL, LC_CTYPE, LANG", "Whether names are shown as UTF-8.")];

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
            let page = String::from_utf8(command_page(command).unwrap()).unwrap();
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
            let page = String::from_utf8(command_page(command).unwrap()).unwrap();
            for title in
                ["SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "ENVIRONMENT", "SEE ALSO"]
            {
                let head = format!(".SH \"{title}\"\n");
                assert_eq!(page.matches(&head).count(), 1, "hakobu-{}: {title}", command.name);
            }
            assert!(!page.contains("EXTRA"), "{}", command.name);
        }
        let sync = COMMANDS.iter().find(|command| command.name == "sync").unwrap();
        let page = String::from_utf8(command_page(sync).unwrap()).unwrap();
        let whole = String::from_utf8(program_page().unwrap()).unwrap();
        assert_eq!(whole.matches("XDG_STATE_HOME").count(), 1, "{whole}");
        for word in ["AWS_PROFILE", ".SH \"FILES\"", "\\(ti/.aws/config", "25 \\-\\-max\\-delete"] {
            assert!(page.contains(word), "{word}");
        }
    }
}
