//! Command lines over a world: sources, targets and option folders in every spelling.

use super::world::{Make, Names};
use fastrand::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Cp,
    Mv,
    Sync,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub tool: Tool,
    pub options: Vec<String>,
    pub sources: Vec<String>,
    /// Empty where `-t` names it.
    pub target: String,
    /// Lines of `--files-from`.
    pub list: Option<Vec<String>>,
}

impl Line {
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    pub fn value(&self, option: &str) -> Option<&str> {
        let start = format!("{option}=");
        self.options.iter().find_map(|given| given.strip_prefix(&start))
    }

    pub fn deletes(&self) -> bool {
        self.options.iter().any(|given| given.starts_with("--delete"))
    }

    pub fn removes(&self) -> bool {
        self.tool == Tool::Mv || self.has("--remove-source-files")
    }

    /// It may leave entries out that the target has.
    pub fn skips(&self) -> bool {
        ["-n", "-u", "--ignore-existing", "--existing"].iter().any(|option| self.has(option))
    }

    /// The words after the program's name, as hakobu and its peers understand them.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.options.clone();
        if self.list.is_some() {
            words.push("--files-from=LIST".to_owned());
        }
        let into = self.has("-t");
        words.retain(|word| word != "-t");
        if into {
            words.extend(["-t".to_owned(), self.target.clone()]);
        }
        words.extend(self.sources.iter().cloned());
        if !into {
            words.push(self.target.clone());
        }
        words
    }

    pub fn text(&self, program: &str) -> String {
        let name = match (self.tool, program) {
            (Tool::Cp, _) => "cp",
            (Tool::Mv, _) => "mv",
            (Tool::Sync, "") => "rsync",
            (Tool::Sync, _) => "sync",
        };
        let words: Vec<String> =
            self.words().iter().map(|word| word.replace("@W", "$PWD")).collect();
        format!("{program} {name} {}", words.join(" ")).trim().to_owned()
    }
}

pub struct Drawer<'r> {
    pub rng: &'r mut Rng,
    pub names: &'r Names,
    pub makes: &'r [Make],
}

impl Drawer<'_> {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.rng.usize(..of.len())]
    }

    fn any_dir(&mut self) -> String {
        if self.rng.u8(..12) == 0 {
            return "@W".to_owned();
        }
        self.names.dirs[self.rng.usize(..self.names.dirs.len())].clone()
    }

    fn any_file(&mut self) -> String {
        match self.names.files.len() {
            0 => self.any_dir(),
            files => self.names.files[self.rng.usize(..files)].clone(),
        }
    }

    fn any(&mut self) -> String {
        let links = self.names.links.len();
        match self.rng.u8(..10) {
            0..=3 => self.any_dir(),
            4 if links > 0 => self.names.links[self.rng.usize(..links)].clone(),
            _ => self.any_file(),
        }
    }

    /// One of the spellings of a path.
    fn spelled(&mut self, path: &str) -> String {
        // By a link or a second place above it.
        if self.rng.bool() {
            let aliases: Vec<String> =
                self.makes.iter().filter_map(|make| alias(make, path)).collect();
            if !aliases.is_empty() {
                return plain(&aliases[self.rng.usize(..aliases.len())]);
            }
        }
        match self.rng.u8(..6) {
            0 => path.to_owned(),
            1 if path.starts_with("@W/") => format!("./{}", plain(path)),
            2 if path.starts_with("@W/") => {
                let dir = self.any_dir();
                match dir.strip_prefix("@W/") {
                    Some(dir) => {
                        format!(
                            "{dir}/{}{}",
                            "../".repeat(dir.matches('/').count() + 1),
                            plain(path)
                        )
                    }
                    None => plain(path),
                }
            }
            _ => plain(path),
        }
    }

    fn jobs(&mut self, options: &mut Vec<String>) {
        if self.rng.u8(..3) == 0 {
            options.push(self.one(&["-j1", "-j2", "-j8"]).to_owned());
        }
    }

    fn target(&mut self) -> String {
        let dirs = &self.names.dirs;
        let favoured: Vec<&String> =
            dirs.iter().filter(|dir| dir.ends_with("/t") || dir.starts_with("@K")).collect();
        let path = match self.rng.u8(..6) {
            0..=2 if !favoured.is_empty() => favoured[self.rng.usize(..favoured.len())].clone(),
            _ => self.any_dir(),
        };
        self.spelled(&path)
    }

    pub fn line(&mut self) -> Line {
        match self.rng.u8(..10) {
            0..=2 => self.cp(),
            3..=4 => self.mv(),
            _ => self.sync(),
        }
    }

    fn cp(&mut self) -> Line {
        let base = self.one(&["-r", "-a", "-a", "", "-rL", "-rl", "-rH", "-d"]);
        let mut options: Vec<String> = Vec::new();
        options.extend(Some(base.to_owned()).filter(|base| !base.is_empty()));
        if self.rng.u8(..4) == 0 {
            options.push(self.one(&["-n", "-u", "-f"]).to_owned());
        }
        self.jobs(&mut options);
        let mut sources = Vec::new();
        for _ in 0..self.rng.usize(1..=4) {
            let path = if base.is_empty() || base == "-d" { self.any_file() } else { self.any() };
            let content = self.names.dirs.contains(&path) && self.rng.bool();
            let path = self.spelled(&path);
            sources.push(if content { format!("{path}/.") } else { path });
        }
        let mut target = self.target();
        if sources.len() == 1 && self.rng.u8(..3) == 0 {
            target = match self.rng.u8(..3) {
                0 => format!("{target}/new"),
                1 => {
                    let file = self.any();
                    self.spelled(&file)
                }
                _ => {
                    options.push("-T".to_owned());
                    target
                }
            };
        } else if self.rng.u8(..4) == 0 {
            options.push("-t".to_owned());
        }
        Line { tool: Tool::Cp, options, sources, target, list: None }
    }

    fn mv(&mut self) -> Line {
        let mut options = Vec::new();
        if self.rng.u8(..3) == 0 {
            options.push(self.one(&["-n", "-u", "-f"]).to_owned());
        }
        self.jobs(&mut options);
        let mut sources = Vec::new();
        for _ in 0..self.rng.usize(1..=4) {
            let path = self.any();
            if path != "@W" {
                sources.push(self.spelled(&path));
            }
        }
        if sources.is_empty() {
            sources.push("a".to_owned());
        }
        let mut target = self.target();
        if sources.len() == 1 && self.rng.u8(..2) == 0 {
            target = match self.rng.u8(..3) {
                0 => format!("{target}/new"),
                1 => {
                    let file = self.any();
                    self.spelled(&file)
                }
                _ => {
                    options.push("-T".to_owned());
                    target
                }
            };
        } else if self.rng.u8(..4) == 0 {
            options.push("-t".to_owned());
        }
        Line { tool: Tool::Mv, options, sources, target, list: None }
    }

    fn sync(&mut self) -> Line {
        let base = self.one(&["-a", "-a", "-a", "-rt", "-aL", "-aK", "-aH"]);
        let mut options = vec![base.to_owned()];
        if self.rng.u8(..2) == 0 {
            let when = [
                "--delete",
                "--delete-before",
                "--delete-during",
                "--delete-after",
                "--delete-delay",
            ];
            options.push(self.one(&when).to_owned());
        }
        if self.rng.u8(..3) == 0 {
            options.push("--remove-source-files".to_owned());
        }
        if self.rng.u8(..6) == 0 {
            options.push(
                self.one(&[
                    "-u",
                    "--ignore-existing",
                    "--force",
                    "--inplace",
                    "--delay-updates",
                    "-c",
                ])
                .to_owned(),
            );
        }
        self.jobs(&mut options);
        let target = self.target();
        let folder = |it: &mut Self, target: &str| match it.rng.u8(..4) {
            0 => "@W/aside".to_owned(),
            1 => it.one(&["a", "b", "f", ".", "aside", "a/..", "../t", "./"]).to_owned(),
            2 => {
                let path = it.any_dir();
                let path = it.spelled(&path);
                if path.starts_with('@') { path } else { format!("@W/{path}") }
            }
            _ if target.starts_with('@') => target.to_owned(),
            _ => format!("@W/{target}"),
        };
        match self.rng.u8(..12) {
            0 => options.push("-b".to_owned()),
            1 | 2 => {
                options.push("-b".to_owned());
                let dir = folder(self, &target);
                options.push(format!("--backup-dir={dir}"));
                if self.rng.u8(..3) == 0 {
                    options.push("--suffix=~".to_owned());
                }
            }
            3 => {
                let dir = folder(self, &target);
                options.push(format!("--partial-dir={dir}"));
            }
            4 => {
                let dir = folder(self, &target);
                options.push(format!("--temp-dir={dir}"));
            }
            5 => {
                let dir = folder(self, &target);
                let option = self.one(&["--link-dest", "--copy-dest", "--compare-dest"]);
                options.push(format!("{option}={dir}"));
            }
            _ => {}
        }
        let relative = self.rng.u8(..8) == 0;
        if self.rng.u8(..8) == 0 {
            return self.listed(options, target);
        }
        let mut sources = Vec::new();
        for _ in 0..self.rng.usize(1..=3) {
            let path = if self.rng.u8(..3) == 0 { self.any() } else { self.any_dir() };
            let content = self.names.dirs.contains(&path) && self.rng.u8(..3) > 0 || path == "@W";
            let path = if relative { plain(&path) } else { self.spelled(&path) };
            sources.push(if content { format!("{path}/") } else { path });
        }
        if relative {
            options.push("-R".to_owned());
        }
        Line { tool: Tool::Sync, options, sources, target, list: None }
    }

    fn listed(&mut self, options: Vec<String>, target: String) -> Line {
        let mut list = Vec::new();
        for _ in 0..self.rng.usize(1..=4) {
            let path = self.any();
            if let Some(name) = path.strip_prefix("@W/") {
                list.push(name.to_owned());
            }
        }
        let sources = vec![self.one(&[".", "./", "a/.."]).to_owned()];
        Line { tool: Tool::Sync, options, sources, target, list: Some(list) }
    }
}

/// A path of the working directory as it is typed.
fn plain(path: &str) -> String {
    match path.strip_prefix("@W/") {
        Some(rest) => rest.to_owned(),
        None if path == "@W" => ".".to_owned(),
        None => path.to_owned(),
    }
}

/// The path below a link or second place that leads to it or to something above it.
fn alias(make: &Make, path: &str) -> Option<String> {
    let (at, to) = match make {
        Make::Link(at, to) if to.starts_with('@') => (at, to.clone()),
        Make::Bind(at, of) => (at, of.clone()),
        Make::Link(at, to) if to.starts_with("../") => {
            // As it was made by `relative`.
            let ups = to.matches("../").count();
            let rest = to.trim_start_matches("../");
            (ups == at.matches('/').count() - 1).then_some(())?;
            (at, format!("{}/{rest}", at.get(..2)?))
        }
        _ => return None,
    };
    let rest = path.strip_prefix(&to)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{at}{rest}"))
}
