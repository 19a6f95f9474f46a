//! What a line may replace or delete, computed before it runs, and what was lost after it.

use super::lines::{Line, Tool};
use super::world::{Found, Site, Tree, contents, inode, last};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An entry of a source, and where it goes.
#[derive(Clone, Debug)]
pub struct Given {
    /// The entry itself: no link and no second place is on its path.
    pub real: PathBuf,
    /// The path that it is to have.
    pub to: PathBuf,
    pub is_dir: bool,
    /// It was named on the command line (or is a line of a list).
    pub named: bool,
}

/// What is known before a run.
#[derive(Debug)]
pub struct Before {
    pub tree: Tree,
    pub given: Vec<Given>,
    /// Files whose contents the rules of the command let go.
    pub may_go: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, (u64, u64)>,
    /// The target directory.
    root: Option<PathBuf>,
}

impl Before {
    /// The folder of backups is the target itself: rsync lets backups replace each other there.
    pub fn backs_up_into_target(&self, site: &Site, line: &Line) -> bool {
        let dir = line.value("--backup-dir").map(|dir| PathBuf::from(site.fill(dir)));
        let (Some(root), Some(dir)) = (&self.root, dir) else { return false };
        site.real(&root.join(dir)).is_some_and(|real| Some(real) == site.real(root))
    }
}

struct Model<'a> {
    site: &'a Site,
    line: &'a Line,
    tree: &'a Tree,
    given: Vec<Given>,
    root: PathBuf,
    follows: bool,
}

pub fn before(site: &Site, line: &Line) -> Before {
    let tree = site.scan();
    let links = tree.keys().filter_map(|path| Some((path.clone(), inode(path)?))).collect();
    let typed = PathBuf::from(site.fill(&line.target));
    let real = site.real(&typed);
    let is_dir = real.as_ref().is_some_and(|real| real.is_dir());
    // The root below which names go: the folder, or the path itself.
    let as_name = line.has("-T") || !is_dir;
    let named = || {
        let there = site.real_name(&typed);
        match line.tool {
            Tool::Mv => there,
            _ => real.clone().or(there),
        }
    };
    let root = if as_name { named() } else { real.clone() };
    let Some(root) = root else {
        return Before { tree, given: Vec::new(), may_go: BTreeSet::new(), links, root: None };
    };
    let folder = root.clone();
    let mut model = Model {
        site,
        line,
        tree: &tree,
        given: Vec::new(),
        root,
        follows: line.options.iter().any(|option| {
            option.starts_with("-") && !option.starts_with("--") && option.contains('L')
        }),
    };
    model.give(as_name);
    let may_go = model.may_go();
    let given = model.given;
    Before { tree, given, may_go, links, root: Some(folder) }
}

impl Model<'_> {
    fn flag(&self, letter: char) -> bool {
        self.line.options.iter().any(|option| {
            option.starts_with('-')
                && !option.starts_with("--")
                && !option.starts_with("-j")
                && option.contains(letter)
        })
    }

    fn recurses(&self) -> bool {
        // --files-from takes recursion from -a.
        let archive = self.flag('a') && self.line.list.is_none();
        self.line.tool == Tool::Mv || self.flag('r') || archive
    }

    fn give(&mut self, as_name: bool) {
        if let Some(list) = &self.line.list {
            let top = PathBuf::from(self.site.fill(&self.line.sources[0]));
            for name in list.clone() {
                let typed = top.join(&name);
                let to = self.below(&self.root.clone(), Path::new(&name));
                self.argument(&typed, to, false, name.ends_with('/'));
            }
            return;
        }
        for source in self.line.sources.clone() {
            let typed = self.site.fill(&source);
            let dots = typed.ends_with("/.") || typed == "." || typed.ends_with("..");
            let content = dots || (typed.ends_with('/') && self.line.tool == Tool::Sync);
            let path = PathBuf::from(&typed);
            if self.line.has("-R") {
                let rel = typed.trim_start_matches('/').trim_end_matches('/').to_owned();
                let to = self.below(&self.root.clone(), Path::new(&rel));
                self.argument(&path, to, content, content);
                continue;
            }
            let to = match path.file_name() {
                Some(name)
                    if !content
                        && (!as_name || self.line.tool == Tool::Sync && self.is_many(&path)) =>
                {
                    self.below(&self.root.clone(), Path::new(name))
                }
                _ => self.root.clone(),
            };
            self.argument(&path, to, content, content);
        }
    }

    /// rsync makes a folder of a target that is not there, unless one file is copied.
    fn is_many(&self, path: &Path) -> bool {
        self.line.sources.len() > 1
            || self.site.at(path).symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    fn argument(&mut self, typed: &Path, to: PathBuf, content: bool, slash: bool) {
        let sync = self.line.tool == Tool::Sync;
        let plain_cp = self.line.tool == Tool::Cp && !self.recurses() && !self.flag('d');
        let follow = content || slash || self.follows || plain_cp || self.flag('H') && !sync;
        let real = match follow {
            true => self.site.real(typed),
            false => self.site.real_name(typed),
        };
        if let Some(real) = real {
            self.entry(&real, to, true, 0);
        }
    }

    fn entry(&mut self, real: &Path, to: PathBuf, named: bool, depth: usize) {
        let Ok(meta) = std::fs::symlink_metadata(real) else { return };
        if meta.is_symlink() {
            if self.follows {
                if let Some(real) = self.site.real(real).filter(|_| depth < 6) {
                    self.entry(&real, to, named, depth + 1);
                }
                return;
            }
            if self.line.tool == Tool::Sync && self.line.has("-rt") {
                return;
            }
        }
        self.given.push(Given {
            real: real.to_owned(),
            to: to.clone(),
            is_dir: meta.is_dir(),
            named,
        });
        if !meta.is_dir() || !self.recurses() || depth > 6 {
            return;
        }
        let Ok(entries) = std::fs::read_dir(real) else { return };
        for entry in entries {
            let name = entry.unwrap().file_name();
            let path = real.join(&name);
            // A second place of a directory is read as what it is.
            let Some(path) = self.site.real_name(&path) else { continue };
            let path = match path.is_symlink() {
                true => path,
                false => self.site.real(&path).unwrap_or(path),
            };
            let to = self.below(&to, Path::new(&name));
            self.entry(&path, to, false, depth + 1);
        }
    }

    /// The path of a name in the target.
    fn below(&self, root: &Path, name: &Path) -> PathBuf {
        let mut path = root.to_owned();
        for part in name.components() {
            let part = match part {
                std::path::Component::Normal(part) => part,
                std::path::Component::ParentDir => OsStr::new(".."),
                _ => continue,
            };
            path = if self.flag('K') && self.line.tool == Tool::Sync {
                self.site.real(&path).unwrap_or(path)
            } else {
                path
            };
            path = self.site.entry(&path, part);
            if !path.is_symlink() {
                path = self.site.real(&path).unwrap_or(path);
            }
        }
        path
    }

    fn is_below(&self, path: &Path, top: &Path) -> bool {
        path.starts_with(top)
    }

    fn may_go(&self) -> BTreeSet<PathBuf> {
        let line = self.line;
        let sources: BTreeMap<&Path, Vec<&Given>> = {
            let mut sources: BTreeMap<&Path, Vec<&Given>> = BTreeMap::new();
            for given in self.given.iter().filter(|given| !given.is_dir) {
                sources.entry(&given.real).or_default().push(given);
            }
            sources
        };
        let keeps = line.has("-n") || line.has("--ignore-existing");
        let mut going: BTreeSet<PathBuf> = BTreeSet::new();
        if !keeps {
            for given in &self.given {
                if given.is_dir && line.tool != Tool::Sync {
                    continue;
                }
                if line.list.is_some() || line.has("-R") {
                    // A directory that leads to a name replaces a file.
                    let above = given.to.ancestors().filter(|path| path.starts_with(&self.root));
                    going.extend(above.map(Path::to_owned));
                }
                if !given.is_dir {
                    going.insert(given.to.clone());
                    if line.tool == Tool::Cp {
                        // cp writes through a link that is named.
                        going.extend(self.site.real(&given.to));
                    }
                }
                // A file in place of a directory, a directory in place of a file.
                if line.tool == Tool::Sync {
                    let force = line.deletes() || line.has("--force");
                    if given.is_dir || force {
                        let there = self.tree.keys().filter(|path| {
                            if given.is_dir {
                                **path == given.to
                            } else {
                                self.is_below(path, &given.to)
                            }
                        });
                        going.extend(there.cloned());
                    }
                }
            }
        }
        if line.has("--inplace") {
            // Other names of a file that is written into change with it.
            let ids: BTreeSet<_> = going.iter().filter_map(|path| inode(path)).collect();
            let names =
                self.tree.keys().filter(|path| inode(path).is_some_and(|id| ids.contains(&id)));
            going.extend(names.cloned().collect::<Vec<_>>());
        }
        if line.deletes() {
            let wanted: BTreeSet<&Path> =
                self.given.iter().map(|given| given.to.as_path()).collect();
            for dir in self.given.iter().filter(|given| given.is_dir) {
                for path in self.tree.keys() {
                    // The entry of that directory on the way to this path.
                    let Ok(rest) = path.strip_prefix(&dir.to) else { continue };
                    let Some(first) = rest.components().next() else { continue };
                    let top = dir.to.join(first);
                    let extraneous = !wanted.contains(top.as_path());
                    // A source that stands in the target is not extraneous, nor is what leads to it.
                    let holds = self.given.iter().any(|given| {
                        self.is_below(&given.real, path) || self.is_below(path, &given.real)
                    });
                    if extraneous && !holds {
                        going.insert(path.clone());
                    }
                }
                // What is mounted in the target is deleted through it, as by rsync.
                for (place, of) in &self.site.binds {
                    let Ok(rest) = place.strip_prefix(&dir.to) else { continue };
                    let Some(first) = rest.components().next() else { continue };
                    if !wanted.contains(dir.to.join(first).as_path()) {
                        going.extend(self.tree.keys().filter(|path| path.starts_with(of)).cloned());
                    }
                }
            }
        }
        let may = if line.has("-b") { self.at_backups(&going) } else { going };
        let removes = line.removes();
        let mut may: BTreeSet<PathBuf> = may;
        may.retain(|path| match sources.get(path.as_path()) {
            None => true,
            Some(_) if removes => false,
            // What is copied and replaced at once has its content at its own target, if only it goes there.
            Some(copies) => !copies.iter().any(|copy| {
                let same = self.given.iter().filter(|other| other.to == copy.to && !other.is_dir);
                copy.to != *path && same.count() == 1 && !line.skips() && !self.line.has("-b")
            }),
        });
        if let Some(partial) = line.value("--partial-dir") {
            // What lies there under the name of a file counts as a part of it.
            let dir = PathBuf::from(self.site.fill(partial));
            for given in self.given.iter().filter(|given| !given.is_dir) {
                let above = given.to.parent().unwrap_or(Path::new("/"));
                if let Some(dir) = self.site.real(&above.join(&dir)) {
                    let path = dir.join(OsStr::from_bytes(last(&given.to)));
                    if !sources.contains_key(path.as_path()) {
                        may.insert(path);
                    }
                }
            }
        }
        may
    }

    /// With backups only what stands at a backup's name is replaced.
    fn at_backups(&self, going: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let dir = self.line.value("--backup-dir").map(|dir| PathBuf::from(self.site.fill(dir)));
        let suffix = match self.line.value("--suffix") {
            Some(suffix) => suffix,
            None if dir.is_some() => "",
            None => "~",
        };
        let mut names = BTreeSet::new();
        for path in going {
            let mut name = match (&dir, path.strip_prefix(&self.root)) {
                (Some(dir), Ok(rest)) => {
                    let Some(dir) = self.site.real(&self.root.join(dir)) else { continue };
                    self.below(&dir, rest)
                }
                _ => path.clone(),
            };
            // More than one may go to one name in turn.
            for _ in 0..3 {
                let mut text = name.into_os_string();
                text.push(suffix);
                name = PathBuf::from(text);
                names.insert(name.clone());
                if suffix.is_empty() {
                    break;
                }
            }
        }
        names
    }
}

/// What went wrong, in words; the first word is its kind.
pub fn after(site: &Site, line: &Line, before: &Before, code: i32) -> Vec<String> {
    // Without removal, what was refused at its own target may be replaced where it stands, as in rsync and cp.
    let replaced = |path: &Path| {
        (code != 0 || has_both_kinds(before))
            && !line.removes()
            && before.given.iter().any(|given| given.to == path && given.real != path)
    };
    let mut wrong = Vec::new();
    let mut tree = site.scan();
    if let (Some(dir), Some(root)) = (line.value("--backup-dir"), &before.root) {
        // It may be outside of all that is looked through.
        site.scan_dir(&site.at(&root.join(site.fill(dir))), &mut tree);
    }
    let (had, has) = (contents(&before.tree), contents(&tree));
    for number in had.difference(&has) {
        let at: Vec<&PathBuf> = before
            .tree
            .iter()
            .filter(|(_, found)| **found == Found::File(Some(*number)))
            .map(|(path, _)| path)
            .collect();
        if at.iter().all(|path| before.may_go.contains(*path) || replaced(path)) {
            continue;
        }
        let source = before.given.iter().any(|given| at.contains(&&given.real));
        let kind = if source { "lost-source" } else { "lost-other" };
        wrong.push(format!("{kind} content {number} of {at:?}, code {code}"));
    }
    if tree.len() > 2 * before.tree.len() + before.given.len() + 20 {
        wrong.push(format!("endless {} entries of {}", tree.len(), before.tree.len()));
    }
    if !(0..=125).contains(&code) {
        wrong.push(format!("ended by a signal or the clock: code {code}"));
    }
    if code == 0 && !line.skips() {
        clashes(site, line, before, &tree, &mut wrong);
    }
    wrong
}

/// A folder and a file of the sources have one name: one of them is left out.
pub fn has_both_kinds(before: &Before) -> bool {
    before.given.iter().any(|given| {
        !given.is_dir && before.given.iter().any(|other| other.is_dir && other.to == given.to)
    })
}

/// With exit code 0 each source is where it belongs, and a move left none.
fn clashes(site: &Site, line: &Line, before: &Before, tree: &Tree, wrong: &mut Vec<String>) {
    let overlap = before.given.iter().any(|given| {
        before
            .given
            .iter()
            .any(|other| given.to.starts_with(&other.real) || other.real.starts_with(&given.to))
    });
    if overlap || line.value("--compare-dest").is_some() {
        return;
    }
    // Sources of the name of a folder for parts are left out, as by rsync.
    let partial = line.value("--partial-dir").filter(|name| !name.contains('/'));
    if partial.is_some_and(|name| {
        before.given.iter().any(|given| {
            given.to.components().any(|part| part.as_os_str() == std::ffi::OsStr::new(name))
        })
    }) {
        return;
    }
    // A folder and a file of one name: one of them is left out.
    let kinds = before.given.iter().any(|given| {
        before
            .given
            .iter()
            .any(|other| !given.is_dir && other.is_dir && other.to.starts_with(&given.to))
    });
    // What a source inside another one has may go with either.
    let nested = before.given.iter().any(|given| {
        given.named
            && before.given.iter().any(|other| {
                other.named && given.real != other.real && given.real.starts_with(&other.real)
            })
    });
    if kinds || nested {
        return;
    }
    for given in before.given.iter().filter(|given| !given.is_dir) {
        let Some(Found::File(Some(number))) = before.tree.get(&given.real) else { continue };
        let same: Vec<&Given> = before.given.iter().filter(|other| other.to == given.to).collect();
        let others = same.iter().any(|other| other.real != given.real);
        if others {
            // Two names of the source, one of the target.
            let differ = same.iter().any(|other| last(&other.real) != last(&given.real));
            if differ && site.is_caseless(&given.to) {
                wrong.push(format!(
                    "clash untold: {:?} and others for {:?}, code 0",
                    given.real, given.to
                ));
            }
            continue;
        }
        if tree.get(&given.to) != Some(&Found::File(Some(*number))) {
            wrong.push(format!(
                "absent {:?} has {:?} instead of content {number}, code 0",
                given.to,
                tree.get(&given.to)
            ));
        }
        let linked = before
            .links
            .get(&given.real)
            .is_some_and(|id| before.links.iter().filter(|(_, other)| *other == id).count() > 1);
        if line.removes() && !linked && tree.get(&given.real) == Some(&Found::File(Some(*number))) {
            wrong.push(format!("unmoved {:?} is still there, code 0", given.real));
        }
    }
}
