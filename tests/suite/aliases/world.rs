//! Small worlds: trees at places with names that meet, links between them, and a reader that knows every file by its
//! content, which no other file has.

use crate::common::must;
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// One thing that is made. Paths begin with `@W` (the working directory), `@O` (another file system) or `@K` (one that
/// ignores case).
#[derive(Clone, Debug)]
pub enum Make {
    Dir(String),
    /// Its number is its content and its size; the third is its age.
    File(String, usize, u64),
    Link(String, String),
    /// A second name of a file.
    Name(String, String),
    /// A second place of a directory.
    Bind(String, String),
}

impl Make {
    pub fn path(&self) -> &str {
        match self {
            Make::Dir(path) | Make::File(path, ..) | Make::Link(path, _) => path,
            Make::Name(path, _) | Make::Bind(path, _) => path,
        }
    }
}

/// The folders of one run.
#[derive(Clone, Debug)]
pub struct Site {
    pub work: PathBuf,
    pub other: PathBuf,
    pub caseless: Option<PathBuf>,
    /// Second places, and what they are places of.
    pub binds: Vec<(PathBuf, PathBuf)>,
}

/// What a file holds.
pub fn content(number: usize) -> String {
    // All sizes differ: a file that is taken for another by size and time would be right to be left.
    format!("content {number} {}\n", ".".repeat(number))
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Dir,
    /// A file with the content of that number; `None` if it is no content as a whole.
    File(Option<usize>),
    Link(PathBuf),
    Other,
}

pub type Tree = BTreeMap<PathBuf, Found>;

impl Site {
    pub fn fill(&self, text: &str) -> String {
        let text = text.replace("@W", self.work.to_str().unwrap());
        let text = text.replace("@O", self.other.to_str().unwrap());
        match &self.caseless {
            Some(place) => text.replace("@K", place.to_str().unwrap()),
            None => text,
        }
    }

    /// The roots, as they begin in descriptions.
    pub fn roots(&self) -> Vec<PathBuf> {
        let roots = [Some(&self.work), Some(&self.other), self.caseless.as_ref()];
        roots.into_iter().flatten().cloned().collect()
    }

    pub fn build(&mut self, makes: &[Make]) {
        for root in self.roots() {
            std::fs::create_dir_all(root).unwrap();
        }
        for make in makes {
            let path = PathBuf::from(self.fill(make.path()));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap_or_default();
            // What cannot be made (a name below a file) is left out.
            match make {
                Make::Dir(_) => std::fs::create_dir_all(&path).unwrap_or_default(),
                Make::File(_, number, age) => {
                    if std::fs::symlink_metadata(&path).is_ok() {
                        continue;
                    }
                    if std::fs::write(&path, content(*number)).is_ok() {
                        let file = std::fs::File::options().write(true).open(&path).unwrap();
                        let when = std::time::Duration::from_secs(1_500_000_000 + age * 1000);
                        file.set_modified(std::time::UNIX_EPOCH + when).unwrap();
                    }
                }
                Make::Link(_, to) => {
                    std::os::unix::fs::symlink(self.fill(to), &path).unwrap_or_default();
                }
                Make::Name(_, of) => {
                    std::fs::hard_link(self.fill(of), &path).unwrap_or_default();
                }
                Make::Bind(_, of) => {
                    let of = PathBuf::from(self.fill(of));
                    std::fs::create_dir_all(&path).unwrap_or_default();
                    let (Ok(of), Ok(path)) = (of.canonicalize(), path.canonicalize()) else {
                        continue;
                    };
                    must(Command::new("mount").arg("--bind").arg(&of).arg(&path));
                    self.binds.push((path, of));
                }
            }
        }
    }

    pub fn clear(&mut self) {
        for (place, _) in std::mem::take(&mut self.binds).into_iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(place).status();
        }
        for root in self.roots() {
            let _ = std::fs::remove_dir_all(root);
        }
    }

    /// The one path of a place: no link and no second place is on it.
    pub fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut real = self.at(path).canonicalize().ok()?;
        // A second place may hold another.
        for _ in 0..4 {
            for (place, of) in &self.binds {
                if let Ok(rest) = real.strip_prefix(place) {
                    real = if rest.as_os_str().is_empty() { of.clone() } else { of.join(rest) };
                }
            }
        }
        Some(real)
    }

    /// The same, but a link at the end stays.
    pub fn real_name(&self, path: &Path) -> Option<PathBuf> {
        let path = self.at(path);
        match path.components().next_back()? {
            Component::Normal(name) => {
                let above = self.real(path.parent()?)?;
                Some(self.entry(&above, name))
            }
            _ => self.real(&path),
        }
    }

    /// A path as the command sees it.
    pub fn at(&self, path: &Path) -> PathBuf {
        self.work.join(path)
    }

    pub fn is_caseless(&self, path: &Path) -> bool {
        self.caseless.as_ref().is_some_and(|root| path.starts_with(root))
    }

    /// The entry of a directory that a name stands for: on a file system that ignores case, the one that is there.
    pub fn entry(&self, dir: &Path, name: &OsStr) -> PathBuf {
        if self.is_caseless(dir) {
            let wanted = name.to_ascii_lowercase();
            return dir.join(wanted);
        }
        dir.join(name)
    }

    /// Everything at all places, each once.
    pub fn scan(&self) -> Tree {
        let mut tree = Tree::new();
        for root in self.roots() {
            self.scan_dir(&root, &mut tree);
        }
        tree
    }

    pub fn scan_dir(&self, dir: &Path, tree: &mut Tree) {
        // Directories without end are seen by their number.
        if tree.len() > 2000 {
            return;
        }
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            let kind = meta.file_type();
            let found = if kind.is_symlink() {
                Found::Link(std::fs::read_link(&path).unwrap())
            } else if kind.is_dir() {
                Found::Dir
            } else if kind.is_fifo() {
                Found::Other
            } else {
                Found::File(number(&std::fs::read(&path).unwrap_or_default()))
            };
            tree.insert(path.clone(), found.clone());
            if found == Found::Dir && !self.binds.iter().any(|(place, _)| *place == path) {
                self.scan_dir(&path, tree);
            }
        }
    }

    /// A tree without the names of this site's folders.
    pub fn relative(&self, tree: &Tree) -> BTreeMap<String, String> {
        let plain = |path: &Path| {
            let mut text = path.to_str().unwrap().to_owned();
            for (root, short) in self.roots().iter().zip(["@W", "@O", "@K"]) {
                text = text.replace(root.to_str().unwrap(), short);
            }
            text
        };
        let entries = tree.iter().map(|(path, found)| {
            let text = match found {
                Found::Link(to) => format!("-> {}", plain(to)),
                other => format!("{other:?}"),
            };
            (plain(path), text)
        });
        entries.collect()
    }
}

/// The number of a content, if it is one as a whole (something may follow it, as in a log).
fn number(bytes: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(bytes).ok()?;
    let number = text.strip_prefix("content ")?.split(' ').next()?.parse().ok()?;
    text.starts_with(&content(number)).then_some(number)
}

/// The numbers of all contents of a tree.
pub fn contents(tree: &Tree) -> BTreeSet<usize> {
    let numbers = tree.values().filter_map(|found| match found {
        Found::File(number) => *number,
        _ => None,
    });
    numbers.collect()
}

/// Directories and other names of a world that is not made yet.
#[derive(Debug, Default)]
pub struct Names {
    pub dirs: Vec<String>,
    pub files: Vec<String>,
    pub links: Vec<String>,
}

/// Draws a world.
pub fn grow(rng: &mut Rng, caseless: bool, binds: bool) -> (Vec<Make>, Names) {
    let mut grower = Grower { rng, makes: Vec::new(), names: Names::default(), count: 0 };
    for top in ["a", "b", "t"] {
        grower.dir(&format!("@W/{top}"), 1);
    }
    grower.tree("@W", 0);
    if grower.rng.u8(..3) == 0 {
        grower.dir("@O/a", 1);
        grower.dir("@O/t", 1);
    }
    if caseless {
        grower.dir("@K/t", 1);
    }
    grower.links(binds);
    (grower.makes, grower.names)
}

struct Grower<'r> {
    rng: &'r mut Rng,
    makes: Vec<Make>,
    names: Names,
    count: usize,
}

impl Grower<'_> {
    fn is_taken(&self, path: &str) -> bool {
        self.makes.iter().any(|make| make.path() == path)
    }

    fn dir(&mut self, path: &str, depth: usize) {
        self.makes.push(Make::Dir(path.to_owned()));
        self.names.dirs.push(path.to_owned());
        self.tree(path, depth);
    }

    fn tree(&mut self, dir: &str, depth: usize) {
        let most = if depth == 0 { 5 } else { 4 };
        for _ in 0..self.rng.usize(1..=most) {
            let names = ["a", "b", "f", "g", "t", "A", "F", "f~"];
            let mut name = names[self.rng.usize(..names.len())].to_owned();
            if dir.starts_with("@K") {
                name.make_ascii_lowercase();
            }
            let path = format!("{dir}/{name}");
            if self.is_taken(&path) {
                continue;
            }
            match self.rng.u8(..10) {
                0..=2 if depth < 3 => self.dir(&path, depth + 1),
                3 if !self.names.files.is_empty() && !dir.starts_with("@K") => {
                    let of = self.names.files[self.rng.usize(..self.names.files.len())].clone();
                    if of.get(..2) == dir.get(..2) {
                        self.makes.push(Make::Name(path.clone(), of));
                        self.names.files.push(path);
                    }
                }
                _ => {
                    self.count += 1;
                    let age = self.rng.u64(..5);
                    self.makes.push(Make::File(path.clone(), self.count, age));
                    self.names.files.push(path);
                }
            }
        }
    }

    /// Links and second places, of what there is.
    fn links(&mut self, binds: bool) {
        for _ in 0..self.rng.usize(..4) {
            let dir = self.names.dirs[self.rng.usize(..self.names.dirs.len())].clone();
            let name = ["l", "a", "f", "m"][self.rng.usize(..4)];
            let path = format!("{dir}/{name}");
            let all = [&self.names.dirs[..], &self.names.files[..]].concat();
            if self.is_taken(&path) || dir.starts_with("@K") {
                continue;
            }
            let to = match self.rng.u8(..8) {
                0 => "nowhere".to_owned(),
                1 => "..".to_owned(),
                2 => "f".to_owned(),
                _ => all[self.rng.usize(..all.len())].clone(),
            };
            let to = if self.rng.bool() { relative(&dir, &to) } else { to };
            self.makes.push(Make::Link(path.clone(), to));
            self.names.links.push(path);
        }
        let links: Vec<String> = self.names.dirs.clone();
        if binds {
            let of = links[self.rng.usize(..links.len())].clone();
            let at = if self.rng.bool() {
                "@W".to_owned()
            } else {
                links[self.rng.usize(..links.len())].clone()
            };
            let path = format!("{at}/m");
            // A directory that is mounted inside of itself is two places (docs/differences.md).
            let nests = at.starts_with(&of);
            if !self.is_taken(&path) && !at.starts_with("@K") && !nests {
                self.makes.push(Make::Bind(path.clone(), of));
                self.names.links.push(path);
            }
        }
    }
}

/// A path from a directory to another place of the same folder, by `..`.
pub fn relative(dir: &str, to: &str) -> String {
    if !to.starts_with('@') || to.get(..2) != dir.get(..2) {
        return to.to_owned();
    }
    let ups = dir.matches('/').count();
    let rest = to.get(3..).unwrap_or_default();
    let path = format!("{}{rest}", "../".repeat(ups));
    let path = path.trim_end_matches('/');
    if path.is_empty() { ".".to_owned() } else { path.to_owned() }
}

/// The device and inode of a path, for links of one file.
pub fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// A shell script that makes a world.
pub fn script(makes: &[Make]) -> String {
    let mut text = String::new();
    for make in makes {
        let line = match make {
            Make::Dir(path) => format!("mkdir -p {path}"),
            Make::File(path, number, age) => format!(
                "mkdir -p $(dirname {path}); printf 'content {number} {}\\n' >{path}; touch -d @{} {path}",
                ".".repeat(*number),
                1_500_000_000 + age * 1000
            ),
            Make::Link(path, to) => format!("ln -s {to} {path}"),
            Make::Name(path, of) => format!("ln {of} {path}"),
            Make::Bind(path, of) => format!("mkdir -p {path}; mount --bind {of} {path}"),
        };
        text.push_str(&line.replace("@W/", "").replace("@W", "."));
        text.push('\n');
    }
    text
}

/// Bytes of a path's last name.
pub fn last(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_bytes()
}
