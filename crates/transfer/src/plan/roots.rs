//! The first units of a walk, and the directory nodes that they belong to.

use super::arguments::{c_path, open_folder, or_here};
use super::target::basis_dirs;
use super::{Argument, EntrySelection, TargetPlace};
use crate::failure::{Failure, c_string};
use crate::local::target_dir::{Node, Selection};
use crate::local::{ArgumentEnds, LocalEngine, Unit};
use crate::policy::{MissingArgs, Policy, Symlinks};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::paths::Links;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use hakobu_tree::names::push_name;
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Builds the first units.
struct Roots<'e, 'p> {
    engine: &'e LocalEngine<'p>,
    policy: &'e Policy,
    place: &'e TargetPlace,
    units: Vec<Unit>,
    /// Parent nodes of names: (folder, path below it).
    nodes: HashMap<(PathBuf, Vec<u8>), Option<Arc<Node>>>,
    /// Nodes to release when all units are made.
    held: Vec<Arc<Node>>,
    /// The target directory is searched for leftovers.
    swept: bool,
    /// So are directories that lead to arguments.
    sweeps: bool,
    /// The node that sets the attributes of the target directory.
    owner: Option<Arc<Node>>,
}

/// An argument and its position on the command line.
type Numbered<'a> = (usize, &'a Argument);

/// The folder of a content argument, open.
struct Content<'a> {
    number: usize,
    fd: OwnedFd,
    argument: &'a Argument,
}

/// Arguments of several folders with the same target: one node has all their folders as sources.
struct Meeting<'a> {
    folders: Vec<PathBuf>,
    lent: Vec<Selection>,
    groups: Vec<Vec<Numbered<'a>>>,
}

/// Returns the path of an argument in its folder.
fn c_names(argument: &Argument) -> io::Result<Vec<CString>> {
    argument.names.iter().map(|name| c_string(name)).collect()
}

/// Divides the arguments such that none meets an earlier one of its batch at the target.
pub fn batches(arguments: &[Argument]) -> Vec<&[Argument]> {
    let mut batches = Vec::new();
    let (mut start, mut has_content) = (0, false);
    // The folders that provide a name; more than one argument may lead to the same one.
    let mut names: HashMap<&[u8], (&Path, &[Vec<u8>])> = HashMap::new();
    for (at, argument) in arguments.iter().enumerate() {
        let meets = match argument.names.first() {
            None => at > start,
            Some(name) => {
                has_content
                    || names.get(name.as_slice()).is_some_and(|(folder, names)| {
                        *folder != argument.folder || **names == argument.names
                    })
            }
        };
        if meets {
            batches.push(arguments.get(start..at).unwrap_or_default());
            (start, has_content) = (at, false);
            names.clear();
        }
        has_content |= argument.is_content();
        if let Some(name) = argument.names.first() {
            names.entry(name).or_insert((&argument.folder, &argument.names));
        }
    }
    batches.push(arguments.get(start..).unwrap_or_default());
    batches
}

/// Groups the arguments that are names: those with the same target, or with `nested` those inside each other there.
/// Empty if all come from one folder, which has no conflicts.
fn groups(arguments: &[Argument], nested: bool) -> Vec<Vec<Numbered<'_>>> {
    let mut groups: Vec<Vec<Numbered<'_>>> = Vec::new();
    let Some(first) = arguments.first() else { return groups };
    if arguments.iter().all(|argument| argument.folder == first.folder) {
        return groups;
    }
    let names = arguments.iter().enumerate().filter(|(_, argument)| !argument.is_content());
    let mut names: Vec<_> = names.collect();
    // A stable sort: entries of a directory come right after it.
    names.sort_by(|(_, a), (_, b)| a.names.cmp(&b.names));
    for named in names {
        let meets = |(_, top): &Numbered<'_>| match nested {
            true => named.1.names.starts_with(&top.names),
            false => named.1.names == top.names,
        };
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(meets) => group.push(named),
            _ => groups.push(vec![named]),
        }
    }
    groups
}

/// Makes the first units for all arguments. Missing arguments are reported to the engine as failures of their own;
/// the others continue.
pub fn roots(
    engine: &LocalEngine<'_>,
    policy: &Policy,
    place: &TargetPlace,
    arguments: &[Argument],
) -> Vec<Unit> {
    let mut roots = Roots::new(engine, policy, place);
    let contents = roots.open_contents(arguments);
    let mut alone = vec![true; arguments.len()];
    let mut in_contents = Vec::new();
    let mut meetings = Vec::new();
    for mut group in groups(arguments, policy.recurse) {
        if !policy.recurse {
            roots.first_wins(&group, &mut alone);
            continue;
        }
        let filled = roots.is_in(&contents, &group);
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
        let directories = roots.drop_missing(&mut group);
        if filled {
            in_contents.append(&mut group);
        } else if let Some(depth) = group.iter().map(|(_, other)| other.names.len()).min() {
            // A directory comes before a non-directory, then the order of the command line decides.
            group.sort_by_key(|(number, other)| {
                (other.names.len() == depth && !directories.contains(number), *number)
            });
            meet(&mut meetings, group);
        }
    }
    roots.contents(arguments, contents, &in_contents);
    for meeting in meetings {
        let typed = meeting.groups.iter().flatten().map(|(_, argument)| &argument.typed).next();
        let typed = typed.cloned().unwrap_or_default();
        if let Err(failure) = roots.meeting(meeting) {
            engine.disable_deletion();
            engine.argument_failed(failure, &typed);
        }
    }
    for (argument, alone) in arguments.iter().zip(alone) {
        if !alone || argument.is_content() {
            continue;
        }
        match roots.name(argument) {
            Err(failure) if roots.is_removed(&failure) => {
                if let Err(failure) = roots.remove_missing(argument) {
                    engine.argument_failed(failure, &argument.typed);
                }
            }
            Err(failure) => engine.argument_failed(failure, &argument.typed),
            Ok(()) => {}
        }
    }
    roots.hide_target(arguments);
    roots.into_units()
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
            let lent = vec![Selection::default(); folders.len()];
            meetings.push(Meeting { folders, lent, groups: vec![group] });
        }
    }
}

impl Roots<'_, '_> {
    fn target(&self) -> io::Result<Option<OwnedFd>> {
        self.place.dir.as_ref().map(|fd| dir::open(fd.as_fd(), c".", false)).transpose()
    }

    fn bases(&self) -> Vec<Option<OwnedFd>> {
        let open = |path: PathBuf| {
            // Unopenable arguments were reported before the start.
            c_path(&path).and_then(|name| self.policy.links.open_dir(dir::cwd(), &name)).ok()
        };
        basis_dirs(self.policy, self.place).map(open).collect()
    }

    fn open_contents<'a>(&self, arguments: &'a [Argument]) -> Vec<Content<'a>> {
        let mut contents = Vec::new();
        for (number, argument) in arguments.iter().enumerate().filter(|(_, a)| a.is_content()) {
            match self.open_folder(argument) {
                Ok(_) if !self.policy.recurse && !self.policy.dirs => {
                    self.engine.argument_is_dir(&argument.typed);
                }
                Ok(fd) => contents.push(Content { number, fd, argument }),
                Err(error) => {
                    let failure = Failure { operation: Operation::Read, error };
                    self.engine.disable_deletion();
                    self.engine.argument_failed(failure, &argument.typed);
                }
            }
        }
        contents
    }

    /// Returns whether the content arguments also fill the top of a group, other than from its own folder.
    fn is_in(&self, contents: &[Content<'_>], group: &[Numbered<'_>]) -> bool {
        let Some(name) = group.first().and_then(|(_, argument)| argument.names.first()) else {
            return false;
        };
        let Ok(name) = c_string(name) else { return false };
        let same = |content: &Content<'_>| {
            group.iter().all(|(_, argument)| argument.folder == content.argument.folder)
        };
        // An error does not prove that the name is missing.
        let has = |content: &Content<'_>| match meta::of(content.fd.as_fd(), &name, false) {
            Ok(_) => true,
            Err(error) => !errno::is(&error, errno::ENOENT),
        };
        !contents.iter().all(same) && contents.iter().any(has)
    }

    /// Reports and drops the missing arguments of a group. Returns the numbers of those that are directories.
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
                self.engine.disable_deletion();
                self.engine.argument_failed(failure, &argument.typed);
                false
            }
        });
        directories
    }

    /// Pairs all arguments that mean a folder's content with the target, together with the names `more` of other
    /// folders that they have, too.
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
                self.held.push(Arc::clone(&node));
                (self.owner, self.swept) = (Some(node), true);
            }
            Err(failure) => {
                self.engine.disable_deletion();
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
        let mut lenders: Vec<(usize, &Path, Selection)> = Vec::new();
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
                    let mut lent = Selection::default();
                    lent.add(&path, follow);
                    lenders.push((*number, &argument.folder, lent));
                }
            }
        }
        let mut sources = Vec::new();
        for (number, folder, lent) in lenders {
            let fd = open_folder(folder).map_err(read())?;
            sources.push((number, (fd, folder.to_owned(), Some(Arc::new(lent)))));
        }
        // The first one sets the attributes of the target; only contents do.
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
        let ends = ArgumentEnds {
            sources: top.into_iter().chain(sources.into_iter().map(|(_, source)| source)).collect(),
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: Vec::new(),
            provided: names.filter_map(|name| Some(c_string(name).ok()?.into())).collect(),
            bases: self.bases(),
            owner: None,
        };
        self.engine.base(ends, true)
    }

    /// Returns the node of the same target directory that is finished after this one, and holds it.
    fn held_owner(&self) -> Option<Arc<Node>> {
        self.owner.as_ref().inspect(|owner| owner.hold()).map(Arc::clone)
    }

    /// Adds names that several folders provide: one node has them all as sources, so that none takes the files of
    /// another for extraneous.
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
            sources.push((open_folder(&folder).map_err(read())?, folder, Some(Arc::new(lent))));
        }
        let ends = ArgumentEnds {
            sources,
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: first.names.first().cloned().unwrap_or_default(),
            provided: Vec::new(),
            bases: self.bases(),
            owner: self.held_owner(),
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
            // Symlinks above an argument are followed.
            top.follow |= depth < argument.names.len();
            if let Err(failure) = self.met(&base, &top, &mut implied) {
                self.engine.disable_deletion();
                self.engine.argument_failed(failure, &argument.typed);
            }
        }
        Ok(())
    }

    /// Adds the shared name of a group, from the first folder.
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
                    let made = self.engine.enter_implied(&node, name)?;
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
        let look = c_path(&argument.path()).and_then(|path| meta::of(dir::cwd(), &path, false));
        let is_dir = look.is_ok_and(|source| source.kind == Kind::Dir);
        self.engine.hides(base, &argument.names.join(&b'/'), is_dir)
    }

    /// Tells the engine if the target is inside of sources but the rules exclude it from all of them: `sync
    /// --remove-source-files --exclude=/done ./ ./done/`.
    fn hide_target(&self, arguments: &[Argument]) {
        let Ok(target) = or_here(&self.place.path).canonicalize() else { return };
        if self.policy.filter.is_none() || !self.policy.remove_source_files {
            return;
        }
        let mut contained = arguments.iter().filter_map(|argument| {
            let below = argument.path().canonicalize().ok()?;
            Some((argument, target.strip_prefix(below).ok()?))
        });
        let is_hidden = |(argument, below): (&Argument, &Path)| {
            let key = || {
                let dot = if argument.dot { b".".to_vec() } else { Vec::new() };
                (argument.folder.clone(), dot)
            };
            let node = match argument.is_content() {
                true => self.owner.as_ref(),
                false => self.nodes.get(&key()).and_then(Option::as_ref),
            };
            let mut path = argument.names.join(&b'/');
            node.is_some_and(|node| {
                below.components().any(|part| {
                    push_name(&mut path, part.as_os_str().as_bytes());
                    self.engine.hides(node, &path, true)
                })
            })
        };
        if contained.clone().next().is_some() && contained.all(is_hidden) {
            self.engine.hide_target();
        }
    }

    fn sweep_once(&mut self, base: &Arc<Node>) {
        if !std::mem::replace(&mut self.swept, true) {
            self.units.extend(self.engine.sweep_base(base));
        }
    }

    /// Adds an argument that is a name in a folder.
    fn name(&mut self, argument: &Argument) -> Result<(), Failure> {
        let read = || Failure::of(Operation::Read);
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &Vec<u8>| c_string(name).map_err(read());
        let mut node = self.base(argument, last)?;
        let path = |depth: usize| argument.names[..depth].join(&b'/');
        let is_known =
            |depth: usize| self.nodes.contains_key(&(argument.folder.clone(), path(depth)));
        // A missing argument is reported whatever the rules say, and nothing is created above it.
        if self.policy.filter.is_some() || !(1..=above.len()).all(is_known) {
            let source = self.look(argument).map_err(read())?;
            let descends = self.policy.recurse || self.policy.dirs || self.policy.cp_targets;
            if source.kind == Kind::Dir && !descends {
                self.engine.argument_is_dir(&argument.typed);
                return Ok(());
            }
        }
        // A rule that excludes the argument excludes the directories above it, too.
        if self.is_hidden(&node, argument) {
            return Ok(());
        }
        for (depth, name) in above.iter().enumerate() {
            match self.implied(argument, &path(depth + 1), &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        let fds = node.fds().map_err(read())?;
        let source_dir = fds.source(0).map_err(read())?;
        let source = self.look_at(source_dir, &name, argument).map_err(read())?;
        let follow = self.policy.follow_args || argument.follow && source.kind == Kind::Dir;
        let target_name = self.place.name.as_deref();
        self.engine.add_name(&mut self.units, &node, &name, target_name, follow);
        Ok(())
    }

    /// Returns the node of an argument's folder: it only provides names and is not copied itself.
    fn base(&mut self, argument: &Argument, last: &[u8]) -> Result<Arc<Node>, Failure> {
        // The path above an argument's own name only matters for rules with merge files.
        let key = (argument.folder.clone(), if argument.dot { b".".to_vec() } else { Vec::new() });
        if let Some(Some(node)) = self.nodes.get(&key) {
            return Ok(Arc::clone(node));
        }
        let fd = self.open_folder(argument).map_err(Failure::of(Operation::Read))?;
        let ends = ArgumentEnds {
            sources: vec![(fd, argument.folder.clone(), None)],
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: argument.names.first().cloned().unwrap_or_else(|| last.to_vec()),
            provided: Vec::new(),
            bases: self.bases(),
            owner: self.held_owner(),
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
        let fds = parent.fds().map_err(Failure::of(Operation::Read))?;
        let checked = fds.source(0).and_then(|dir| self.check_link(argument, dir, name));
        checked.map_err(Failure::of(Operation::Read))?;
        let node = self.engine.enter_implied(parent, name)?;
        if let Some(node) = &node {
            if self.sweeps {
                self.units.extend(self.engine.sweep_base(node));
            }
            self.held.push(Arc::clone(node));
        }
        self.nodes.insert(key, node.clone());
        Ok(node)
    }
}

// Entries that an earlier run chose (`Spec::chosen`). They are not examined here, one after the other: workers do
// that as they come to them.

/// Makes the units of chosen entries below a folder. Directories above them are created where they are missing, and
/// not searched for leftovers: other runs write there at the same time.
pub fn chosen_roots(
    engine: &LocalEngine<'_>,
    policy: &Policy,
    place: &TargetPlace,
    folder: &Path,
    chosen: &EntrySelection,
) -> Vec<Unit> {
    let mut roots = Roots::new(engine, policy, place);
    (roots.swept, roots.sweeps) = (true, false);
    let mut argument = Argument {
        typed: folder.to_owned(),
        folder: folder.to_owned(),
        names: Vec::new(),
        relative: true,
        dot: false,
        follow: false,
        top: Some(Arc::from(folder)),
        dir_only: false,
    };
    let mut known: Option<(&[u8], Option<Arc<Node>>)> = None;
    for (path, kind) in &chosen.names {
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..)),
            None => (&b""[..], Some(&**path)),
        };
        let name = name.unwrap_or_default();
        let entered = match &known {
            Some((folder, node)) if *folder == above => Ok(node.clone()),
            _ => roots.enter(&mut argument, above, name),
        };
        let added = entered.and_then(|node| {
            if let Some(node) = &node {
                roots.add(node, name, *kind)?;
            }
            known = Some((above, node));
            Ok(())
        });
        if let Err(failure) = added {
            known = None;
            engine.argument_failed(failure, &folder.join(OsStr::from_bytes(path)));
        }
    }
    engine.all_found();
    roots.into_units()
}

impl<'e, 'p> Roots<'e, 'p> {
    pub(super) fn new(
        engine: &'e LocalEngine<'p>,
        policy: &'e Policy,
        place: &'e TargetPlace,
    ) -> Roots<'e, 'p> {
        let (nodes, held, units) = Default::default();
        let (swept, sweeps, owner) = (false, true, None);
        Roots { engine, policy, place, units, nodes, held, swept, sweeps, owner }
    }

    pub(super) fn into_units(self) -> Vec<Unit> {
        let Roots { engine, units, held, nodes, .. } = self;
        drop(nodes);
        for node in held.iter().rev() {
            engine.release_hold(node);
        }
        units
    }
}

impl Roots<'_, '_> {
    /// Returns the node of the directory `above`, which has the entry `name`; `None` if nothing is transferred there.
    fn enter(
        &mut self,
        argument: &mut Argument,
        above: &[u8],
        name: &[u8],
    ) -> Result<Option<Arc<Node>>, Failure> {
        let mut node = self.base(argument, name)?;
        let mut end = 0;
        for step in above.split(|byte| *byte == b'/').filter(|_| !above.is_empty()) {
            let path = above.get(..end + step.len()).unwrap_or_default();
            end += step.len() + 1;
            let step = c_string(step).map_err(Failure::of(Operation::Read))?;
            match self.implied(argument, path, &node, &step)? {
                Some(next) => node = next,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn add(&mut self, node: &Arc<Node>, name: &[u8], kind: Kind) -> Result<(), Failure> {
        let name = c_string(name).map_err(Failure::of(Operation::Read))?;
        self.engine.add_known(&mut self.units, node, &name, kind);
        Ok(())
    }
}

// Examines arguments before anything is created: their types, symlinks in their paths, and those that are missing
// (`--delete-missing-args`).

impl Roots<'_, '_> {
    /// Opens the folder of an argument.
    pub(super) fn open_folder(&self, argument: &Argument) -> io::Result<OwnedFd> {
        let below = argument
            .top
            .as_deref()
            .and_then(|top| Some((top, argument.folder.strip_prefix(top).ok()?)));
        match (below, &self.policy.links) {
            (Some((top, below)), links)
                if *links != Links::Any && !below.as_os_str().is_empty() =>
            {
                let below = c_path(below)?;
                // Sources are not confined.
                Links::Trusted.open_dir(open_folder(top)?.as_fd(), &below)
            }
            _ => open_folder(&argument.folder),
        }
    }

    /// Rejects a disallowed symlink in the path of a listed name.
    pub(super) fn check_link(
        &self,
        argument: &Argument,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<()> {
        match argument.top {
            Some(_) => self.policy.links.check(dir, name),
            None => Ok(()),
        }
    }

    /// Of names that are the same at the target only the first existing one is transferred, as in rsync. Earlier ones
    /// stay in the list, to be reported.
    pub(super) fn first_wins(&self, group: &[Numbered<'_>], alone: &mut [bool]) {
        let there = |(_, argument): &Numbered<'_>| self.look(argument).is_ok();
        let after = group.iter().position(there).map_or(group.len(), |first| first + 1);
        for (number, argument) in group.iter().skip(after) {
            if let Some(alone) = alone.get_mut(*number)
                && self.look(argument).is_ok()
            {
                *alone = false;
            }
        }
    }

    /// Returns the metadata of an argument: with a slash at its end of a directory, also through a symlink.
    pub(super) fn look(&self, argument: &Argument) -> io::Result<Meta> {
        let path = c_path(&argument.path())?;
        self.look_at(dir::cwd(), &path, argument)
    }

    pub(super) fn look_at(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        argument: &Argument,
    ) -> io::Result<Meta> {
        if argument.follow && !argument.dir_only {
            // rsync's rule: the slash counts if it leads to a directory.
            match meta::of(dir, name, true) {
                Ok(named) if named.kind == Kind::Dir => {
                    self.check_link(argument, dir, name)?;
                    return Ok(named);
                }
                _ => {}
            }
        }
        let follow = argument.dir_only
            || self.policy.follow_args
            || self.policy.symlinks == Symlinks::Follow;
        let source = meta::of(dir, name, follow)?;
        if argument.dir_only && source.kind != Kind::Dir {
            return Err(io::Error::from_raw_os_error(errno::ENOTDIR));
        }
        Ok(source)
    }

    /// Returns whether an argument is copied as a directory.
    pub(super) fn is_dir(&self, argument: &Argument) -> io::Result<bool> {
        let source = self.look(argument)?;
        let path = c_path(&argument.path())?;
        let dirlink = self.policy.copy_dirlinks
            && meta::of(dir::cwd(), &path, true).is_ok_and(|named| named.kind == Kind::Dir);
        Ok(source.kind == Kind::Dir || dirlink)
    }

    pub(super) fn is_followed(&self, argument: &Argument) -> bool {
        let leads = || self.look(argument).is_ok_and(|source| source.kind == Kind::Dir);
        self.policy.follow_args || argument.follow && leads()
    }

    /// Returns whether a missing argument is removed from the target.
    pub(super) fn is_removed(&self, failure: &Failure) -> bool {
        self.policy.missing_args == MissingArgs::Delete && errno::is(&failure.error, errno::ENOENT)
    }

    /// Removes the target entry of a missing argument.
    pub(super) fn remove_missing(&mut self, argument: &Argument) -> Result<(), Failure> {
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &[u8]| c_string(name).map_err(Failure::of(Operation::Remove));
        let mut node = self.base(argument, last)?;
        for (depth, name) in above.iter().enumerate() {
            let path = argument.names[..=depth].join(&b'/');
            match self.implied(argument, &path, &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        self.engine.remove_missing(&node, self.place.name.as_deref().unwrap_or(&name))
    }
}
