//! The first units of a walk, and the directory nodes that they hang from.

use super::{Argument, Place};
use crate::engine::node::{Failure, Node, c_string};
use crate::engine::{Ends, Engine, Unit};
use crate::error::Operation;
use crate::policy::Policy;
use crate::unit::Kind;
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::collections::HashMap;
use std::ffi::CStr;
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
    let mut seeds = Seeds { engine, policy, place, units, nodes, held };
    seeds.contents(arguments);
    for argument in arguments.iter().filter(|argument| !argument.is_content()) {
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

    /// All arguments that mean a folder's content fill the target together.
    fn contents(&mut self, arguments: &[Argument]) {
        let mut sources = Vec::new();
        for argument in arguments.iter().filter(|argument| argument.is_content()) {
            if !self.policy.recurse && !self.policy.dirs {
                self.engine.argument_is_dir(&argument.typed);
                continue;
            }
            match open(&argument.folder) {
                Ok(fd) => sources.push((fd, argument.folder.clone())),
                Err(error) => {
                    let failure = Failure { operation: Operation::Read, error };
                    self.engine.argument_failed(failure, &argument.typed);
                }
            }
        }
        let Some((_, first)) = sources.first() else { return };
        let first_path = first.clone();
        let names = arguments.iter().filter_map(|argument| argument.names.first());
        let provided = names.filter_map(|name| Some(c_string(name).ok()?.into())).collect();
        let made = self.target().map_err(|error| Failure { operation: Operation::List, error });
        let made = made.and_then(|target| {
            let ends = Ends {
                sources,
                target,
                target_path: self.place.path.clone(),
                created: self.place.created,
                path: Vec::new(),
                first: Vec::new(),
                provided,
                link_dest: self.link_dest(),
            };
            self.engine.base(ends, true)
        });
        match made {
            Ok(node) => {
                self.units.extend(self.engine.list_base(&node));
                self.held.push(node);
            }
            Err(failure) => self.engine.argument_failed(failure, &first_path),
        }
    }

    /// An argument that is a name in a folder.
    fn name(&mut self, argument: &Argument) -> Result<(), Failure> {
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &Vec<u8>| c_string(name).map_err(Failure::of(Operation::Read));
        let mut node = self.base(argument, last)?;
        // A rule that leaves out the argument leaves out the directories above it, too.
        if self.policy.filter.is_some() {
            let full = argument.names.join(&b'/');
            let look = c_string(argument.path().as_os_str().as_bytes())
                .and_then(|path| meta::of(dir::cwd(), &path, false));
            let is_dir = look.is_ok_and(|source| source.kind == Kind::Dir);
            if self.engine.hides(&node, &full, is_dir) {
                return Ok(());
            }
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
        let follow = argument.follow || self.policy.follow_args;
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
            sources: vec![(fd, argument.folder.clone())],
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: argument.names.first().cloned().unwrap_or_else(|| last.to_vec()),
            provided: Vec::new(),
            link_dest: self.link_dest(),
        };
        let node = self.engine.base(ends, argument.dot)?;
        if self.nodes.is_empty() {
            self.units.extend(self.engine.sweep_base(&node));
        }
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
