//! The first units of a walk, and the directory nodes that they hang from.

use super::{Argument, Place};
use crate::engine::node::{Failure, Lent, Node, c_string};
use crate::engine::{Ends, Engine, Unit};
use crate::error::Operation;
use crate::policy::{Policy, Symlinks};
use crate::unit::Kind;
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Builds the first units.
struct Seeds<'e, 'p> {
    engine: &'e Engine<'p>,
    policy: &'e Policy,
    place: &'e Place,
    units: Vec<Unit>,
    /// Nodes that names hang from: (folder, path below it).
    nodes: HashMap<(PathBuf, Vec<u8>), Option<Arc<Node>>>,
    /// Everything that must be let go when all units are there.
    held: Vec<Arc<Node>>,
    /// The target directory is looked through for leftovers.
    swept: bool,
}

/// An argument and its place on the command line.
type Numbered<'a> = (usize, &'a Argument);

/// The folder of a content argument, open.
struct Content<'a> {
    number: usize,
    fd: OwnedFd,
    argument: &'a Argument,
}

/// Arguments of several folders that meet at the target: one node has all their folders as
/// sources.
struct Meeting<'a> {
    folders: Vec<PathBuf>,
    lent: Vec<Lent>,
    groups: Vec<Vec<Numbered<'a>>>,
}

/// The path of an argument in its folder.
fn c_names(argument: &Argument) -> io::Result<Vec<CString>> {
    argument.names.iter().map(|name| c_string(name)).collect()
}

/// The arguments that are names, those together that are the same or lie in each other at the
/// target. None where all come from one folder, which cannot disagree with itself.
fn groups(arguments: &[Argument]) -> Vec<Vec<Numbered<'_>>> {
    let mut groups: Vec<Vec<Numbered<'_>>> = Vec::new();
    let Some(first) = arguments.first() else { return groups };
    if arguments.iter().all(|argument| argument.folder == first.folder) {
        return groups;
    }
    let names = arguments.iter().enumerate().filter(|(_, argument)| !argument.is_content());
    let mut names: Vec<_> = names.collect();
    // Stable, and what lies in a directory comes right after it.
    names.sort_by(|(_, a), (_, b)| a.names.cmp(&b.names));
    for named in names {
        match groups.last_mut() {
            Some(group)
                if group.first().is_some_and(|(_, top)| named.1.names.starts_with(&top.names)) =>
            {
                group.push(named);
            }
            _ => groups.push(vec![named]),
        }
    }
    groups
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    dir::open_root(&c_string(path.as_os_str().as_bytes())?)
}

/// Makes the first units for all arguments. Arguments that do not exist are reported to the
/// engine as failures of their own; the others go on.
pub fn seed(
    engine: &Engine<'_>,
    policy: &Policy,
    place: &Place,
    arguments: &[Argument],
) -> Vec<Unit> {
    let (nodes, held, units) = Default::default();
    let mut seeds = Seeds { engine, policy, place, units, nodes, held, swept: false };
    let contents = seeds.open_contents(arguments);
    let mut alone = vec![true; arguments.len()];
    let mut in_contents = Vec::new();
    let mut meetings = Vec::new();
    let groups = if policy.recurse { groups(arguments) } else { Vec::new() };
    for mut group in groups {
        let filled = seeds.is_in(&contents, &group);
        let differs = |(_, other): &Numbered<'_>| {
            group.first().is_some_and(|(_, first)| first.folder != other.folder)
        };
        if !filled && !group.iter().any(differs) {
            continue;
        }
        for (number, _) in &group {
            if let Some(alone) = alone.get_mut(*number) {
                *alone = false;
            }
        }
        let directories = seeds.drop_missing(&mut group);
        if filled {
            in_contents.append(&mut group);
        } else if let Some(depth) = group.iter().map(|(_, other)| other.names.len()).min() {
            // A directory comes before what is none, and then the command line decides.
            group.sort_by_key(|(number, other)| {
                (other.names.len() == depth && !directories.contains(number), *number)
            });
            meet(&mut meetings, group);
        }
    }
    seeds.contents(arguments, contents, &in_contents);
    for meeting in meetings {
        let typed = meeting.groups.iter().flatten().map(|(_, argument)| &argument.typed).next();
        let typed = typed.cloned().unwrap_or_default();
        if let Err(failure) = seeds.meeting(meeting) {
            engine.distrust();
            engine.argument_failed(failure, &typed);
        }
    }
    for (argument, alone) in arguments.iter().zip(alone) {
        if !alone || argument.is_content() {
            continue;
        }
        if let Err(failure) = seeds.name(argument) {
            engine.argument_failed(failure, &argument.typed);
        }
    }
    let Seeds { units, held, nodes, .. } = seeds;
    drop(nodes);
    for node in held.iter().rev() {
        engine.let_go(node);
    }
    units
}

/// Adds a group to the meeting of its folders.
fn meet<'a>(meetings: &mut Vec<Meeting<'a>>, group: Vec<Numbered<'a>>) {
    let mut folders: Vec<PathBuf> = Vec::new();
    for (_, argument) in &group {
        if !folders.contains(&argument.folder) {
            folders.push(argument.folder.clone());
        }
    }
    match meetings.iter_mut().find(|meeting| meeting.folders == folders) {
        Some(meeting) => meeting.groups.push(group),
        None => {
            let lent = vec![Lent::default(); folders.len()];
            meetings.push(Meeting { folders, lent, groups: vec![group] });
        }
    }
}

impl Seeds<'_, '_> {
    fn target(&self) -> io::Result<Option<OwnedFd>> {
        self.place.dir.as_ref().map(|fd| dir::open(fd.as_fd(), c".", false)).transpose()
    }

    fn link_dest(&self) -> Vec<Option<OwnedFd>> {
        let base = |path: &PathBuf| match path.is_absolute() {
            true => path.clone(),
            false => self.place.path.join(path),
        };
        self.policy.link_dest.iter().map(|path| open(&base(path)).ok()).collect()
    }

    fn open_contents<'a>(&self, arguments: &'a [Argument]) -> Vec<Content<'a>> {
        let mut contents = Vec::new();
        for (number, argument) in arguments.iter().enumerate().filter(|(_, a)| a.is_content()) {
            if !self.policy.recurse && !self.policy.dirs {
                self.engine.argument_is_dir(&argument.typed);
                continue;
            }
            match open(&argument.folder) {
                Ok(fd) => contents.push(Content { number, fd, argument }),
                Err(error) => {
                    let failure = Failure { operation: Operation::Read, error };
                    self.engine.distrust();
                    self.engine.argument_failed(failure, &argument.typed);
                }
            }
        }
        contents
    }

    /// Whether the content arguments fill the top of a group, too, and not from its own folder.
    fn is_in(&self, contents: &[Content<'_>], group: &[Numbered<'_>]) -> bool {
        let Some(name) = group.first().and_then(|(_, argument)| argument.names.first()) else {
            return false;
        };
        let Ok(name) = c_string(name) else { return false };
        let same = |content: &Content<'_>| {
            group.iter().all(|(_, argument)| argument.folder == content.argument.folder)
        };
        // Not knowing is not knowing that it has none.
        let has = |content: &Content<'_>| match meta::of(content.fd.as_fd(), &name, false) {
            Ok(_) => true,
            Err(error) => !errno::is(&error, errno::ENOENT),
        };
        !contents.iter().all(same) && contents.iter().any(has)
    }

    /// Reports and drops the arguments of a group that are not there. Returns the numbers of
    /// those that are directories.
    fn drop_missing(&self, group: &mut Vec<Numbered<'_>>) -> Vec<usize> {
        let mut directories = Vec::new();
        group.retain(|(number, argument)| match self.is_dir(argument) {
            Ok(is_dir) => {
                if is_dir {
                    directories.push(*number);
                }
                true
            }
            Err(error) => {
                let failure = Failure { operation: Operation::Read, error };
                self.engine.distrust();
                self.engine.argument_failed(failure, &argument.typed);
                false
            }
        });
        directories
    }

    /// Whether an argument is copied as a directory.
    fn is_dir(&self, argument: &Argument) -> io::Result<bool> {
        let path = c_string(argument.path().as_os_str().as_bytes())?;
        let follow = argument.follow || self.policy.follow_args;
        let follow = follow || self.policy.symlinks == Symlinks::Follow;
        let source = meta::of(dir::cwd(), &path, follow)?;
        if argument.typed.as_os_str().as_bytes().ends_with(b"/") && source.kind != Kind::Dir {
            return Err(io::Error::from_raw_os_error(errno::ENOTDIR));
        }
        let dirlink = self.policy.copy_dirlinks
            && meta::of(dir::cwd(), &path, true).is_ok_and(|named| named.kind == Kind::Dir);
        Ok(source.kind == Kind::Dir || dirlink)
    }

    fn is_followed(&self, argument: &Argument) -> bool {
        argument.follow || self.policy.follow_args
    }

    /// All arguments that mean a folder's content fill the target together, and with them the
    /// names `more` of other folders that they have, too.
    fn contents(
        &mut self,
        arguments: &[Argument],
        contents: Vec<Content<'_>>,
        more: &[Numbered<'_>],
    ) {
        let Some(first) = contents.first() else { return };
        let first_path = first.argument.folder.clone();
        let made = self.content_base(arguments, contents, more);
        match made {
            Ok(node) => {
                self.units.extend(self.engine.list_base(&node));
                self.held.push(node);
                self.swept = true;
            }
            Err(failure) => {
                self.engine.distrust();
                self.engine.argument_failed(failure, &first_path);
            }
        }
    }

    fn content_base(
        &self,
        arguments: &[Argument],
        contents: Vec<Content<'_>>,
        more: &[Numbered<'_>],
    ) -> Result<Arc<Node>, Failure> {
        let read = || Failure::of(Operation::Read);
        let mut lenders: Vec<(usize, &Path, Lent)> = Vec::new();
        for (number, argument) in more {
            if contents.iter().any(|content| content.argument.folder == argument.folder) {
                continue;
            }
            let path = c_names(argument).map_err(read())?;
            let follow = self.is_followed(argument);
            match lenders.iter_mut().find(|(_, folder, _)| *folder == argument.folder) {
                Some((at, _, lent)) => {
                    *at = (*at).min(*number);
                    lent.add(&path, follow);
                }
                None => {
                    let mut lent = Lent::default();
                    lent.add(&path, follow);
                    lenders.push((*number, &argument.folder, lent));
                }
            }
        }
        let mut sources = Vec::new();
        for (number, folder, lent) in lenders {
            let fd = open(folder).map_err(read())?;
            sources.push((number, (fd, folder.to_owned(), Some(Arc::new(lent)))));
        }
        // The first one gives the target its attributes; only contents do.
        let mut top = None;
        if let Some(first) = contents.first()
            && sources.iter().any(|(number, _)| *number < first.number)
        {
            let fd = dir::open(first.fd.as_fd(), c".", false).map_err(read())?;
            top = Some((fd, first.argument.folder.clone(), Some(Arc::default())));
        }
        for Content { number, fd, argument } in contents {
            sources.push((number, (fd, argument.folder.clone(), None)));
        }
        sources.sort_by_key(|(number, _)| *number);
        let names = arguments.iter().filter_map(|argument| argument.names.first());
        let ends = Ends {
            sources: top.into_iter().chain(sources.into_iter().map(|(_, source)| source)).collect(),
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: Vec::new(),
            provided: names.filter_map(|name| Some(c_string(name).ok()?.into())).collect(),
            link_dest: self.link_dest(),
        };
        self.engine.base(ends, true)
    }

    /// Names that several folders provide: one node has them all as sources, so that none takes
    /// the files of another for extraneous.
    fn meeting(&mut self, meeting: Meeting<'_>) -> Result<(), Failure> {
        let read = || Failure::of(Operation::Read);
        let Meeting { folders, mut lent, groups } = meeting;
        let Some((_, first)) = groups.first().and_then(|group| group.first()) else {
            return Ok(());
        };
        for (_, argument) in groups.iter().flatten() {
            let side = folders.iter().position(|folder| *folder == argument.folder);
            if let Some(lent) = side.and_then(|side| lent.get_mut(side)) {
                lent.add(&c_names(argument).map_err(read())?, self.is_followed(argument));
            }
        }
        let mut sources = Vec::new();
        for (folder, lent) in folders.into_iter().zip(lent) {
            sources.push((open(&folder).map_err(read())?, folder, Some(Arc::new(lent))));
        }
        let ends = Ends {
            sources,
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: first.names.first().cloned().unwrap_or_default(),
            provided: Vec::new(),
            link_dest: self.link_dest(),
        };
        let dot = groups.iter().flatten().any(|(_, argument)| argument.dot);
        let base = self.engine.base(ends, dot)?;
        self.held.push(Arc::clone(&base));
        self.sweep_once(&base);
        let mut implied: HashMap<Vec<u8>, Option<Arc<Node>>> = HashMap::new();
        for group in &groups {
            let Some((_, argument)) = group.first() else { continue };
            let depth = group.iter().map(|(_, other)| other.names.len()).min().unwrap_or_default();
            let mut top = (*argument).clone();
            top.names.truncate(depth);
            // Symlinks above an argument are looked through.
            top.follow |= depth < argument.names.len();
            if let Err(failure) = self.met(&base, &top, &mut implied) {
                self.engine.distrust();
                self.engine.argument_failed(failure, &argument.typed);
            }
        }
        Ok(())
    }

    /// The shared name of a group; the first folder has it.
    fn met(
        &mut self,
        base: &Arc<Node>,
        argument: &Argument,
        implied: &mut HashMap<Vec<u8>, Option<Arc<Node>>>,
    ) -> Result<(), Failure> {
        if self.is_hidden(base, argument) {
            return Ok(());
        }
        let names = c_names(argument).map_err(Failure::of(Operation::Read))?;
        let Some((last, above)) = names.split_last() else { return Ok(()) };
        let (mut node, mut path) = (Arc::clone(base), Vec::new());
        for name in above {
            path.extend_from_slice(name.to_bytes_with_nul());
            let next = match implied.get(&path) {
                Some(known) => known.clone(),
                None => {
                    let made = self.engine.imply(&node, name)?;
                    if let Some(made) = &made {
                        self.units.extend(self.engine.sweep_base(made));
                        self.held.push(Arc::clone(made));
                    }
                    implied.insert(path.clone(), made.clone());
                    made
                }
            };
            match next {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let follow = self.is_followed(argument);
        self.engine.add_name(&mut self.units, &node, last, None, follow);
        Ok(())
    }

    fn is_hidden(&self, base: &Arc<Node>, argument: &Argument) -> bool {
        if self.policy.filter.is_none() {
            return false;
        }
        let look = c_string(argument.path().as_os_str().as_bytes())
            .and_then(|path| meta::of(dir::cwd(), &path, false));
        let is_dir = look.is_ok_and(|source| source.kind == Kind::Dir);
        self.engine.hides(base, &argument.names.join(&b'/'), is_dir)
    }

    fn sweep_once(&mut self, base: &Arc<Node>) {
        if !std::mem::replace(&mut self.swept, true) {
            self.units.extend(self.engine.sweep_base(base));
        }
    }

    /// An argument that is a name in a folder.
    fn name(&mut self, argument: &Argument) -> Result<(), Failure> {
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &Vec<u8>| c_string(name).map_err(Failure::of(Operation::Read));
        let mut node = self.base(argument, last)?;
        // A rule that leaves out the argument leaves out the directories above it, too.
        if self.is_hidden(&node, argument) {
            return Ok(());
        }
        let mut path: Vec<u8> = Vec::new();
        for name in above {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            match self.implied(argument, &path, &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        let fds = node.fds().map_err(Failure::of(Operation::Read))?;
        let source_dir = fds.source(0).map_err(Failure::of(Operation::Read))?;
        let follow = self.is_followed(argument);
        let source = meta::of(source_dir, &name, follow).map_err(Failure::of(Operation::Read))?;
        if argument.typed.as_os_str().as_bytes().ends_with(b"/") && source.kind != Kind::Dir {
            let error = io::Error::from_raw_os_error(errno::ENOTDIR);
            return Err(Failure { operation: Operation::Read, error });
        }
        let target_name = self.place.name.as_deref();
        self.engine.add_name(&mut self.units, &node, &name, target_name, follow);
        Ok(())
    }

    /// The node of an argument's folder: it lends names and is not copied itself.
    fn base(&mut self, argument: &Argument, last: &[u8]) -> Result<Arc<Node>, Failure> {
        // What lies above an argument's own name differs only for rules with merge files.
        let key = (argument.folder.clone(), if argument.dot { b".".to_vec() } else { Vec::new() });
        if let Some(Some(node)) = self.nodes.get(&key) {
            return Ok(Arc::clone(node));
        }
        let fd = open(&argument.folder).map_err(Failure::of(Operation::Read))?;
        let ends = Ends {
            sources: vec![(fd, argument.folder.clone(), None)],
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: argument.names.first().cloned().unwrap_or_else(|| last.to_vec()),
            provided: Vec::new(),
            link_dest: self.link_dest(),
        };
        let node = self.engine.base(ends, argument.dot)?;
        self.sweep_once(&node);
        self.held.push(Arc::clone(&node));
        self.nodes.insert(key, Some(Arc::clone(&node)));
        Ok(node)
    }

    fn implied(
        &mut self,
        argument: &Argument,
        path: &[u8],
        parent: &Arc<Node>,
        name: &CStr,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let key = (argument.folder.clone(), path.to_vec());
        if let Some(node) = self.nodes.get(&key) {
            return Ok(node.clone());
        }
        let node = self.engine.imply(parent, name)?;
        if let Some(node) = &node {
            self.units.extend(self.engine.sweep_base(node));
            self.held.push(Arc::clone(node));
        }
        self.nodes.insert(key, node.clone());
        Ok(node)
    }
}
