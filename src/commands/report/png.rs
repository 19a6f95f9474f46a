//! PNG pictures: the SVG of a report, rendered by an installed program. A built-in renderer would need fonts, which a
//! static program does not have.

use crate::commands::tool::random_key;
use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
enum Way {
    /// SVG on standard input, PNG on standard output.
    Pipe(&'static [&'static str]),
    /// A browser of the chromium family: renders a file to a file.
    Browser,
}

/// Known renderers, the best first.
const RENDERERS: &[(&str, Way)] = &[
    ("rsvg-convert", Way::Pipe(&["--format=png", "--zoom=2"])),
    ("resvg", Way::Pipe(&["--zoom=2", "-", "-c"])),
    ("inkscape", Way::Pipe(&["--pipe", "--export-type=png", "--export-dpi=192", "-o", "-"])),
    ("chromium", Way::Browser),
    ("chromium-browser", Way::Browser),
    ("google-chrome", Way::Browser),
];

/// Renders an SVG.
///
/// # Errors
/// A sentence: no renderer is installed, or it failed.
pub fn of_svg(svg: &str) -> Result<Vec<u8>, String> {
    let (program, way) = find().ok_or_else(|| {
        let names: Vec<&str> = RENDERERS.iter().map(|(name, _)| *name).collect();
        format!(
            "cannot draw a PNG: none of {} is installed\n\
             hint: apt-get install librsvg2-bin, or write .svg",
            names.join(", ")
        )
    })?;
    let name = program.display();
    let drawn = match way {
        Way::Pipe(arguments) => pipe(Command::new(&program).args(arguments), svg),
        Way::Browser => browser(&program, svg),
    };
    match drawn {
        Ok(png) if png.starts_with(SIGNATURE) => Ok(png),
        Ok(_) => Err(format!("{name} did not write a PNG")),
        Err(why) => Err(format!("{name} cannot draw the pictures: {why}")),
    }
}

fn find() -> Option<(PathBuf, Way)> {
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
