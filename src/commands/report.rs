//! `hakobu report`: results of campaigns as a page, an article, a table or a picture. A picture (PNG) is the SVG of the report, rendered
//! by an installed program: a built-in renderer would need fonts, which a static program does not have.

use super::tool::{carry_out, random_key};
use crate::cli::{Opt, OptArg, Table, Typed, flag, parts, put, value};
use crate::exit;
use crate::files::{Target, is_stdout, or_stdout};
use crate::limits::parse_language;
use crate::show::progress::{Progress, ProgressForm};
use hakobu_core::meter::Meter;
use hakobu_lab::analysis::ranking::Baseline;
use hakobu_lab::report::redact::Redaction;
use hakobu_lab::report::{Language, ReportFormat, ReportPart, render};
use hakobu_lab::results::read::{bytes_of, read_counted};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), plan, |plan| report(&plan).map(|()| exit::OK))
}

/// The command line of `report`.
pub static TABLE: Table<ReportOptions> = Table {
    command: "report",
    about: "Make a page, an article or a table from results of bench",
    description: "RESULT is a directory of results, as bench writes it. Several are shown side by \
            side: the same campaign on other machines or with other settings. An HTML report \
            is a single file that loads nothing.",
    usage: "hakobu report [OPTIONS] RESULT...",
    examples: &[
        ("hakobu report small -o report.html", "Make a page with charts."),
        ("hakobu report small --format md > report.md", "Make an article in Markdown."),
        ("hakobu report small large --lang ja -o report.html", "Compare two results, in Japanese."),
    ],
    common: &[],
    after: "md is for an article or an issue; csv has the raw runs, json the analysis, svg \
            and png the charts (png needs rsvg-convert, resvg, inkscape or chromium). CSV \
            and JSON are the same in every language. hakobu help report-guide describes \
            them.\n\
            Exit codes: 0 done, 1 a result could not be read or the report could not be \
            written, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    results: Vec<PathBuf>,
    /// `None`: standard output.
    output: Option<PathBuf>,
    /// `None`: Markdown.
    format: Option<ReportFormat>,
    lang: Language,
    baseline: Option<Baseline>,
    redact: bool,
}

parts!(ReportOptions {});

const OPTIONS: &[Opt<ReportOptions>] = &[
    value("output", Some('o'), "FILE", "write to FILE, not to standard output (also: -)")
        .reads(|it, arg| put(&mut it.output, Some(arg.path()))),
    value(
        "format",
        None,
        "FORMAT",
        "html, md, csv, json, svg or png (default: as the name of FILE ends; md without FILE)",
    )
    .words(&["html", "md", "csv", "json", "svg", "png"])
    .reads(|it, arg| {
        let known = arg.value.to_str().and_then(ReportFormat::of_name);
        let format = known.ok_or_else(|| arg.refuse("give html, md, csv, json, svg or png"))?;
        put(&mut it.format, Some(format))
    }),
    value("lang", None, "LANG", "language of the text: en (default, or $HAKOBU_LANG) or ja")
        .words(crate::limits::LANGUAGES)
        .reads(|it, arg| put(&mut it.lang, parse_language(arg)?)),
    value(
        "baseline",
        None,
        "TOOL",
        "compare with this tool (default: the first one that is not hakobu), or NAME=VALUE: every \
         setting with the one that has this value, all else equal",
    )
    .reads(|it, arg| put(&mut it.baseline, Some(baseline(arg)?))),
    flag("redact", None, "replace the names of machines, users and paths by host1, user1, dir1")
        .reads(|it, _| put(&mut it.redact, true)),
];

/// Parses `--baseline`.
pub(super) fn baseline(arg: &OptArg) -> Result<Baseline, String> {
    Baseline::parse(arg.text()?).map_err(|why| arg.refuse(&why))
}

fn plan(typed: Typed) -> Result<ReportOptions, String> {
    let mut plan = TABLE.read(&typed, ReportOptions::default())?;
    if typed.paths.is_empty() {
        return Err("missing directory of results".into());
    }
    if let (None, Some(path)) = (plan.format, &plan.output)
        && !is_stdout(path)
    {
        plan.format = Some(by_name(path)?);
    }
    plan.results = typed.paths.into_iter().map(PathBuf::from).collect();
    Ok(plan)
}

/// Returns the format for the extension of a file.
pub(super) fn by_name(path: &Path) -> Result<ReportFormat, String> {
    let end = path.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
    end.as_deref().and_then(ReportFormat::of_name).ok_or_else(|| {
        format!(
            "--output={}: its name does not end in .html, .md, .csv, .json, .svg or .png: give --format",
            path.display()
        )
    })
}

/// Reads, analyses and writes. The error is a sentence.
fn report(plan: &ReportOptions) -> Result<(), String> {
    // Open the output before reading, to fail early.
    let target = Target::open(&or_stdout(plan.output.clone()))?;
    let format = plan.format.unwrap_or(ReportFormat::Markdown);
    let meter = Arc::new(Meter::new(1));
    let lane = meter.lane(0);
    lane.found(plan.results.len() as u64);
    lane.ahead(plan.results.iter().map(|path| bytes_of(path)).sum());
    meter.all_found();
    let progress = Progress::start(ProgressForm::of(None, false, false), Language::English, |_| {});
    progress.begins(&meter);
    let mut redaction = plan.redact.then(redaction);
    let parts = plan.results.iter().map(|path| -> Result<ReportPart, String> {
        let mut results = read_counted(path, &|bytes| lane.bytes(bytes))?;
        lane.done(1);
        if let Some(redaction) = &mut redaction {
            redaction.apply(&mut results);
        }
        let mut part = ReportPart::new(results);
        if let Some(baseline) = &plan.baseline {
            part.analysis.compare_with(&part.results, baseline)?;
        }
        Ok(part)
    });
    let parts: Vec<ReportPart> = parts.collect::<Result<_, String>>()?;
    progress.finish();
    let text = render(&parts, format, plan.lang)?;
    match format {
        ReportFormat::Png => target.deliver(render_png(&text)?),
        _ => target.deliver(text),
    }
}

/// Names of this machine and its user, which are replaced wherever they stand.
fn redaction() -> Redaction {
    let named = |name: &str| std::env::var(name).ok();
    let users: Vec<String> = ["USER", "LOGNAME"].into_iter().filter_map(named).collect();
    Redaction::new(&[hakobu_sys::host::name()], &users)
}

/// Pixels per unit of the drawing: sharp on paper and on dense screens.
const ZOOM: u32 = 2;
/// Maximum duration of a renderer.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Interval of checks of a renderer.
const TICK: Duration = Duration::from_millis(10);
/// The first bytes of every PNG (ISO/IEC 15948, 5.2).
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Invocation of a renderer.
#[derive(Clone, Copy, Debug)]
enum Renderer {
    /// SVG on standard input, PNG on standard output.
    Pipe(&'static [&'static str]),
    /// A browser of the chromium family: renders a file to a file.
    Browser,
}

/// Known renderers, the best first.
const RENDERERS: &[(&str, Renderer)] = &[
    ("rsvg-convert", Renderer::Pipe(&["--format=png", "--zoom=2"])),
    ("resvg", Renderer::Pipe(&["--zoom=2", "-", "-c"])),
    ("inkscape", Renderer::Pipe(&["--pipe", "--export-type=png", "--export-dpi=192", "-o", "-"])),
    ("chromium", Renderer::Browser),
    ("chromium-browser", Renderer::Browser),
    ("google-chrome", Renderer::Browser),
];

/// Renders an SVG.
///
/// # Errors
/// A sentence: no renderer is installed, or it failed.
pub fn render_png(svg: &str) -> Result<Vec<u8>, String> {
    let (program, way) = find_renderer().ok_or_else(|| {
        let names: Vec<&str> = RENDERERS.iter().map(|(name, _)| *name).collect();
        format!(
            "cannot draw a PNG: none of {} is installed\n\
             hint: apt-get install librsvg2-bin, or write .svg",
            names.join(", ")
        )
    })?;
    let name = program.display();
    let drawn = match way {
        Renderer::Pipe(arguments) => pipe(Command::new(&program).args(arguments), svg),
        Renderer::Browser => browser(&program, svg),
    };
    match drawn {
        Ok(png) if png.starts_with(SIGNATURE) => Ok(png),
        Ok(_) => Err(format!("{name} did not write a PNG")),
        Err(why) => Err(format!("{name} cannot draw the pictures: {why}")),
    }
}

fn find_renderer() -> Option<(PathBuf, Renderer)> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    RENDERERS.iter().find_map(|(name, way)| {
        let program = folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file())?;
        Some((program, *way))
    })
}

/// Writes the text to its input and reads its output.
fn pipe(command: &mut Command, svg: &str) -> Result<Vec<u8>, String> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().map_err(|error| error.to_string())?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    std::thread::scope(|scope| {
        // A renderer that does not read to the end fails by itself.
        scope.spawn(move || input.map(|mut input| input.write_all(svg.as_bytes())));
        let reader = scope.spawn(move || {
            let mut png = Vec::new();
            output.map_or(Ok(0), |mut output| output.read_to_end(&mut png)).map(|_| png)
        });
        wait(&mut child)?;
        match reader.join() {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Waits until it has exited successfully.
fn wait(child: &mut Child) -> Result<(), String> {
    let started = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if started.elapsed() > TIME_MAX => {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it took longer than {} s", TIME_MAX.as_secs()));
            }
            None => std::thread::sleep(TICK),
        }
    }
}

/// A private folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("hakobu-picture-{}", random_key()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // At worst a picture stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn browser(program: &Path, svg: &str) -> Result<Vec<u8>, String> {
    let text = |error: std::io::Error| error.to_string();
    let folder = Folder::new().map_err(text)?;
    let (from, to) = (folder.0.join("picture.svg"), folder.0.join("picture.png"));
    std::fs::write(&from, svg).map_err(text)?;
    let size = |name| length(svg, name).ok_or("the picture has no size");
    let mut command = Command::new(program);
    command.args(["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    command.args(["--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb"]);
    command.arg(format!("--force-device-scale-factor={ZOOM}"));
    command.arg(format!("--window-size={},{}", size("width")?, size("height")?));
    command.arg(format!("--user-data-dir={}", folder.0.join("profile").display()));
    command.arg(format!("--screenshot={}", to.display()));
    if hakobu_sys::process::euid() == 0 {
        // Its sandbox does not work as root. The picture is our own text.
        command.arg("--no-sandbox");
    }
    command.arg(format!("file://{}", from.display()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    wait(&mut command.spawn().map_err(text)?)?;
    std::fs::read(&to).map_err(text)
}

/// Returns a length of the outermost element, in pixels.
fn length(svg: &str, name: &str) -> Option<u32> {
    let tag = svg.split('>').next()?;
    tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ReportOptions, String> {
        plan(TABLE.parse_line(line)?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "missing directory of results"),
            ("-o a.html", "missing directory of results"),
            ("--format=pdf a", "invalid --format 'pdf': give html, md, csv, json, svg or png"),
            ("--lang=de a", "invalid --lang 'de': give en or ja"),
            ("-o report a", "--output=report: its name does not end in .html"),
            ("-o a.pdf a", "--output=a.pdf: its name does not end in .html"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn formats() {
        for (line, format, output) in [
            ("a", ReportFormat::Markdown, "-"),
            ("a b -o c.html", ReportFormat::Html, "c.html"),
            ("a -o c.CSV", ReportFormat::Csv, "c.CSV"),
            ("a -o c.txt --format json", ReportFormat::Json, "c.txt"),
            ("a -o - --format svg", ReportFormat::Svg, "-"),
            ("a -o c.png", ReportFormat::Png, "c.png"),
            ("a -o -", ReportFormat::Markdown, "-"),
        ] {
            let plan = read(line).unwrap();
            let found = plan.format.unwrap_or(ReportFormat::Markdown);
            assert_eq!((found, or_stdout(plan.output)), (format, output.into()), "{line}");
        }
        assert_eq!(read("a --lang ja").unwrap().lang, Language::Japanese);
    }

    #[test]
    fn the_outermost_element_says_the_size() {
        let svg = "<svg width=\"1000\" height=\"274\" viewBox=\"0 0 1 1\">\n<svg height=\"3\">";
        assert_eq!((length(svg, "width"), length(svg, "height")), (Some(1000), Some(274)));
        assert_eq!(length("<svg>", "width"), None);
    }

    #[test]
    fn a_renderer_is_fed_and_heard_whatever_it_does() {
        let long = "x".repeat(1 << 20);
        let run = |script: &str| pipe(Command::new("sh").args(["-c", script]), &long);
        assert_eq!(run("cat").unwrap(), long.as_bytes());
        assert_eq!(run("exec <&-; echo short").unwrap(), b"short\n");
        assert!(run("cat >/dev/null; exit 3").unwrap_err().contains("exit status: 3"));
        assert!(pipe(&mut Command::new("/no/such/program"), "").is_err());
    }
}
