//! Where a walk begins: the nodes of arguments and of the directories above them, and the first
//! units.

use super::enter::filter_failure;
use super::node::{Base, Failure, Fds, Lent, Node, Side, TargetDir};
use super::pool::{Work, lock};
use super::sweep::{Pass, read_merge_file};
use super::walk::{CHUNK_NAMES, SWEPT_BASE_BYTES_MAX};
use super::walk::{Chunk, Enter, Unit};
use super::{Engine, State};
use crate::error::Operation;
use crate::event::Event;
use crate::policy::filter::Origin;
use crate::unit::{Kind, Totals};
use hakobu_sys::{AsFd, OwnedFd, errno, meta};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The ends of an argument: open directories on both sides.
pub struct Ends {
    /// Source directories, how the user would spell them, and the names in them that are
    /// transferred (`None`: all, or those that are added one by one).
    pub sources: Vec<(OwnedFd, PathBuf, Option<Arc<Lent>>)>,
    /// The target directory; `None` where nothing is made.
    pub target: Option<OwnedFd>,
    /// How the user would spell it.
    pub target_path: PathBuf,
    /// Whether the target directory was made just now.
    pub created: bool,
    /// Its path in the transfer.
    pub path: Vec<u8>,
    /// Where an argument is only a name in the source directory: that name.
    pub first: Vec<u8>,
    /// Names in the target directory that other arguments provide: not extraneous.
    pub provided: Vec<Box<CStr>>,
    /// Open `--link-dest` directories that belong to it.
    pub link_dest: Vec<Option<OwnedFd>>,
}

/// The path from the root, as bytes, without looking at the file system.
fn absolute(path: Option<&PathBuf>) -> Vec<u8> {
    let path = path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    path.unwrap_or_default().into_os_string().into_encoded_bytes()
}

/// Reads a rule file above the transfer; `None` where there is none.
fn read_absolute(path: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::read(OsStr::from_bytes(path)) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Engine<'_> {
    /// The node of an argument. `whole`: the directories are copied onto each other, with their
    /// attributes; otherwise only names in them are. The caller holds it until
    /// [`Engine::let_go`].
    ///
    /// # Errors
    /// What looking at the directories or reading their filter rules says.
    pub fn base(&self, ends: Ends, whole: bool) -> Result<Arc<Node>, Failure> {
        let stat = || Failure::of(Operation::Stat);
        let mut state = self.start(0);
        let (mut fds, mut paths, mut sides) = (Vec::new(), Vec::new(), Vec::new());
        let mut source = None;
        for (fd, path, lent) in ends.sources {
            let meta = meta::of_fd(&fd).map_err(stat())?;
            sides.push(Side {
                parent_side: 0,
                name: c"".into(),
                identity: meta.identity(),
                follow: false,
                lent,
                volume: meta.dev,
            });
            fds.push(fd);
            paths.push(path);
            source.get_or_insert(meta);
        }
        let Some(source) = source else {
            return Err(stat()(std::io::Error::from_raw_os_error(errno::EINVAL)));
        };
        let target = match &ends.target {
            Some(fd) => {
                let meta = meta::of_fd(fd).map_err(stat())?;
                lock(&self.target_roots).push(meta.identity());
                let fresh = whole && (ends.created || self.is_empty(&mut state, fd)?);
                let default_acl = self.has_default_acl(&mut state, fd)?;
                let (identity, created) = (meta.identity(), ends.created);
                Some(TargetDir { identity, fresh, created, meta, default_acl, follow: true })
            }
            None => None,
        };
        let rules = match &self.policy.filter {
            Some(filter) => {
                let origin = Origin {
                    source: &absolute(paths.first()),
                    target: &absolute(Some(&ends.target_path)),
                    first: &ends.first,
                };
                let root = filter.root(&origin, &mut read_absolute).map_err(filter_failure)?;
                match fds.first().map(AsFd::as_fd).filter(|_| whole) {
                    Some(fd) => {
                        let read = &mut |name: &[u8]| read_merge_file(fd, name);
                        Some(filter.enter(&root, &ends.path, read).map_err(filter_failure)?)
                    }
                    None => Some(root),
                }
            }
            None => None,
        };
        let fds = Fds::new(fds, ends.target, ends.link_dest, &self.budget);
        let node = Arc::new(Node {
            parent: None,
            target_name: c"".into(),
            sides,
            source,
            base: Some(Box::new(Base {
                sources: paths,
                target: ends.target_path,
                path: ends.path,
                provided: ends.provided,
            })),
            rules,
            owns_attributes: whole,
            target: Mutex::new(target),
            fds: Mutex::new(Some(Arc::new(fds))),
            creating: Mutex::default(),
            pending: AtomicUsize::new(1),
            listed: AtomicBool::new(false),
            list_failed: AtomicBool::new(false),
            incomplete: false,
            needed: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            kept_sources: AtomicU64::new(0),
        });
        if whole {
            let mut totals = Totals { seen_dirs: 1, ..Totals::default() };
            std::mem::swap(&mut totals, &mut state.totals);
            self.tell_base(&mut state, &node, totals.seen_dirs);
        }
        self.flush(&mut state);
        Ok(node)
    }

    pub(super) fn tell_base(&self, state: &mut State, node: &Arc<Node>, seen: u64) {
        state.totals.seen_dirs += seen;
        self.finished(state);
        let Some(info) = node.target_dir() else {
            return self.tell_missing_dir(state, node);
        };
        if self.pass == Pass::Transfer && !self.policy.prune_empty_dirs {
            let change = self.dir_change(state, node, &info);
            self.tell_dir(node, change);
        }
    }

    /// The unit that copies a whole base directory.
    pub fn list_base(&self, node: &Arc<Node>) -> Option<Unit> {
        let fds = node.fds().ok()?;
        node.hold();
        node.listed.store(true, Ordering::Relaxed);
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        Some(self.listing(node, fds, 0))
    }

    /// Adds one name of a base to the units; `follow` looks through a symlink. Names of one
    /// directory that come one after the other share a chunk.
    pub fn add_name(
        &self,
        units: &mut Vec<Unit>,
        node: &Arc<Node>,
        name: &CStr,
        target_name: Option<&CStr>,
        follow: bool,
    ) {
        self.listener.event(Event::Found { entries: 1 });
        if let Some(Unit::Chunk(chunk)) = units.last_mut()
            && Arc::ptr_eq(&chunk.node, node)
            && chunk.target_name.is_none()
            && target_name.is_none()
            && chunk.follow == follow
            && chunk.kinds.len() < CHUNK_NAMES
        {
            chunk.push(name, Kind::Unknown);
            return;
        }
        node.hold();
        let mut chunk = Chunk::new(node, 0);
        chunk.push(name, Kind::Unknown);
        chunk.target_name = target_name.map(Into::into);
        chunk.follow = follow;
        chunk.seed = true;
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        units.push(Unit::Chunk(chunk));
    }

    /// Whether the rules leave out an argument.
    pub fn hides(&self, node: &Node, path: &[u8], is_dir: bool) -> bool {
        let filter = self.policy.filter.as_deref().zip(node.rules.as_deref());
        filter.is_some_and(|(filter, rules)| filter.check(rules, path, is_dir, false).hide)
    }

    /// The unit that clears leftovers from the target directory of single names, unless it is
    /// too large for that.
    pub fn sweep_base(&self, node: &Arc<Node>) -> Option<Unit> {
        let info = node.target_dir()?;
        (info.meta.size <= SWEPT_BASE_BYTES_MAX && !info.created).then(|| {
            node.hold();
            Unit::Sweep(Arc::clone(node))
        })
    }

    /// Enters a directory of a base without listing it: the implied directories of `--relative`.
    /// The caller holds the node until [`Engine::let_go`].
    ///
    /// # Errors
    /// Where it cannot be opened or made: nothing below it can be copied.
    pub fn imply(&self, parent: &Arc<Node>, name: &CStr) -> Result<Option<Arc<Node>>, Failure> {
        let mut state = self.start(0);
        parent.hold();
        let enter = Enter {
            parent: Arc::clone(parent),
            side: 0,
            name: name.into(),
            target_name: None,
            follow: true,
        };
        let entered = self.try_enter(&mut state, &enter);
        self.finished(&state);
        if !matches!(entered, Ok(Some(_))) {
            self.release(&mut state, parent);
        }
        self.flush(&mut state);
        entered
    }

    /// Ends the caller's hold on a node.
    pub fn let_go(&self, node: &Arc<Node>) {
        let mut state = self.start(0);
        self.release(&mut state, node);
        self.flush(&mut state);
    }
}
