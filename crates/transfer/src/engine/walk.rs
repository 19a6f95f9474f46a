//! The walk: directories are entered on both sides, listed, and cut into chunks; the last unit
//! below a directory gives it its attributes.

use super::attributes::Have;
use super::entry::Entry;
use super::node::{Base, Failure, Fds, Node, Side, TargetDir, open_link_dest};
use super::pool::{Queue, Work, lock};
use super::sweep::{Pass, read_merge_file};
use super::temp::TempNames;
use super::{BUFFER_BYTES, Engine, State, TargetMode, attributes, data};
use crate::error::{Class, Operation};
use crate::event::Event;
use crate::policy::filter::Origin;
use crate::policy::{Change, Delete, Symlinks};
use crate::unit::{Kind, Meta, Totals};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Names in a chunk: enough to make the cost of handing it over vanish, few enough that the last
/// chunks of a tree end at the same time.
const CHUNK_NAMES: usize = 64;
/// Target directories of single arguments are searched for leftovers up to this `st_size`: a
/// larger one would take longer than the copy.
const SWEPT_BASE_BYTES_MAX: u64 = 256 << 10;

/// A piece of work.
pub enum Unit {
    /// A directory to open on both sides and to list.
    Enter(Enter),
    /// A listing to begin or to go on with.
    List(Listing),
    /// Names to handle.
    Chunk(Chunk),
    /// A target directory to look through.
    Sweep(Arc<Node>),
}

/// A directory that was found.
pub struct Enter {
    /// The directory that holds it.
    pub parent: Arc<Node>,
    /// Which of the parent's sources it was found in.
    pub side: usize,
    /// Its name there.
    pub name: Box<CStr>,
    /// Its name at the target, where that differs.
    pub target_name: Option<Box<CStr>>,
    /// It may be reached through a symlink.
    pub follow: bool,
}

impl Enter {
    /// The directory that an entry turned out to be.
    pub(super) fn of(entry: &Entry<'_>) -> Enter {
        Enter {
            parent: Arc::clone(entry.node),
            side: entry.side,
            name: entry.name.into(),
            target_name: (entry.name != entry.target_name).then(|| entry.target_name.into()),
            follow: entry.follow,
        }
    }
}

/// The listing of one directory, as far as it got.
pub struct Listing {
    node: Arc<Node>,
    /// Held while listing: the kernel keeps the position in the descriptor.
    fds: Arc<Fds>,
    side: usize,
    chunk: Chunk,
}

/// Up to 64 names of one directory.
pub struct Chunk {
    node: Arc<Node>,
    side: usize,
    /// The names, each ended by NUL.
    names: Vec<u8>,
    kinds: Vec<Kind>,
    /// For a single name: what it is called at the target.
    target_name: Option<Box<CStr>>,
    /// A symlink that is named in an argument is looked through.
    follow: bool,
    /// The names are arguments: the walk is not done before they are looked at.
    seed: bool,
}

impl Chunk {
    fn new(node: &Arc<Node>, side: usize) -> Chunk {
        let node = Arc::clone(node);
        let (names, kinds) = (Vec::new(), Vec::new());
        Chunk { node, side, names, kinds, target_name: None, follow: false, seed: false }
    }

    fn push(&mut self, name: &CStr, kind: Kind) {
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.kinds.push(kind);
    }
}

impl Node {
    /// Announces one more unit below this directory.
    pub(super) fn hold(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }
}

/// The ends of an argument: open directories on both sides.
pub struct Ends {
    /// Source directories and how the user would spell them.
    pub sources: Vec<(OwnedFd, PathBuf)>,
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
        let (fds, paths): (Vec<_>, Vec<_>) = ends.sources.into_iter().unzip();
        let mut sides = Vec::new();
        let mut source = None;
        for fd in &fds {
            let meta = meta::of_fd(fd).map_err(stat())?;
            let side =
                Side { parent_side: 0, name: c"".into(), identity: meta.identity(), follow: false };
            sides.push(side);
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
                let default_acl = self.has_default_acl(&mut state, fd);
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
        let fds = Fds::new(fds, ends.target, ends.link_dest, &self.open_dirs);
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
            pending: AtomicUsize::new(1),
            listed: AtomicBool::new(false),
            list_failed: AtomicBool::new(false),
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

    fn tell_base(&self, state: &mut State, node: &Arc<Node>, seen: u64) {
        state.totals.seen_dirs += seen;
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

    fn flush(&self, state: &mut State) {
        if state.totals != Totals::default() {
            let totals = std::mem::take(&mut state.totals);
            *lock(&self.totals) += totals;
            self.listener.event(Event::Unit(&totals));
        }
    }

    fn is_empty(&self, state: &mut State, fd: &OwnedFd) -> Result<bool, Failure> {
        let mut any = false;
        state
            .reader
            .next_batch(fd.as_fd(), |_, _, _| any = true)
            .map_err(Failure::of(Operation::List))?;
        Ok(!any)
    }

    fn listing(&self, node: &Arc<Node>, fds: Arc<Fds>, side: usize) -> Unit {
        let chunk = Chunk::new(node, side);
        Unit::List(Listing { node: Arc::clone(node), fds, side, chunk })
    }

    /// Opens a directory on both sides. On failure, or where it is left out, the hold that its
    /// unit had on the parent ends here; otherwise it passes to the node.
    fn enter(&self, state: &mut State, enter: Enter) -> Option<Arc<Node>> {
        let parent = Arc::clone(&enter.parent);
        let target_name = enter.target_name.as_deref().unwrap_or(&enter.name);
        match self.try_enter(state, &enter) {
            Ok(Some(node)) => return Some(node),
            Ok(None) => {}
            Err(failure) => {
                let source = parent.source_path(enter.side, &enter.name);
                let target = parent.target_path(target_name);
                parent.kept_sources.fetch_add(1, Ordering::Relaxed);
                self.fail(state, failure, Some(source), Some(target));
            }
        }
        self.release(state, &parent);
        None
    }

    fn try_enter(&self, state: &mut State, enter: &Enter) -> Result<Option<Arc<Node>>, Failure> {
        let Enter { parent, side, name, follow, .. } = enter;
        let target_name = enter.target_name.as_deref().unwrap_or(name);
        let parent_fds = parent.fds().map_err(Failure::of(Operation::Read))?;
        let (sides, sources, source) =
            self.open_sides(parent, &parent_fds, *side, name, *follow)?;
        let left_out = |reason| {
            let source = Some(parent.source_path(*side, name));
            let target = Some(parent.target_path(target_name));
            self.notice(Operation::MakeDir, source, target, reason, Class::Partial);
            parent.kept_sources.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        };
        if *follow && parent.is_inside(source.identity()) {
            state.totals.failed += 1;
            return left_out("it leads back to a directory above");
        }
        if lock(&self.target_roots).contains(&source.identity()) && !self.is_pass_through(parent) {
            state.totals.failed += 1;
            return left_out("the target lies inside the source; it is not copied into itself");
        }
        let mut path = std::mem::take(&mut state.path);
        path.clear();
        parent.push_path(&mut path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(target_name.to_bytes());
        let rules = match (&self.policy.filter, &parent.rules) {
            (Some(filter), Some(rules)) => {
                let first = sources.first().map(AsFd::as_fd);
                let rules = filter.enter(rules, &path, &mut |name| match first {
                    Some(fd) => read_merge_file(fd, name),
                    None => Ok(None),
                });
                Some(rules.map_err(filter_failure)?)
            }
            _ => None,
        };
        state.path = path;
        state.totals.seen_dirs += 1;
        let mut node = Node {
            parent: Some(Arc::clone(parent)),
            target_name: target_name.into(),
            sides,
            source,
            base: None,
            rules,
            owns_attributes: true,
            target: Mutex::new(None),
            fds: Mutex::new(None),
            pending: AtomicUsize::new(1),
            listed: AtomicBool::new(false),
            list_failed: AtomicBool::new(false),
            needed: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            kept_sources: AtomicU64::new(0),
        };
        let target = match parent_fds.target() {
            Some(dir_fd) => match self.open_target(state, &node, parent, dir_fd)? {
                Opened::Dir(fd, info) => {
                    node.target = Mutex::new(Some(info));
                    Some(fd)
                }
                Opened::Later => None,
                Opened::LeftOut => return Ok(None),
            },
            None if self.pass == Pass::Delete => return Ok(None),
            None => {
                self.tell_missing_dir(state, &node);
                None
            }
        };
        let fds =
            Fds::new(sources, target, open_link_dest(&parent_fds, target_name), &self.open_dirs);
        node.fds = Mutex::new(Some(Arc::new(fds)));
        Ok(Some(Arc::new(node)))
    }

    /// A base that only lends names (`sync a DST`) is not a source that is copied whole.
    fn is_pass_through(&self, parent: &Node) -> bool {
        parent.parent.is_none() && !parent.owns_attributes && self.policy.remove_source_files
    }

    /// Opens the directory in the source it was found in, and in later ones that have it, too.
    fn open_sides(
        &self,
        parent: &Node,
        parent_fds: &Fds,
        side: usize,
        name: &CStr,
        follow: bool,
    ) -> Result<(Vec<Side>, Vec<OwnedFd>, Meta), Failure> {
        let open = |side: usize| -> std::io::Result<(OwnedFd, Meta)> {
            let fd = dir::open(parent_fds.source(side)?, name, follow)?;
            let meta = meta::of_fd(&fd)?;
            Ok((fd, meta))
        };
        let (fd, source) = open(side).map_err(Failure::of(Operation::Read))?;
        let identity = source.identity();
        let mut sides = vec![Side { parent_side: side, name: name.into(), identity, follow }];
        let mut sources = vec![fd];
        for later in side + 1..parent.sides.len() {
            if let Ok((fd, meta)) = open(later) {
                let identity = meta.identity();
                sides.push(Side { parent_side: later, name: name.into(), identity, follow });
                sources.push(fd);
            }
        }
        Ok((sides, sources, source))
    }

    /// Opens or makes the directory at the target.
    fn open_target(
        &self,
        state: &mut State,
        node: &Node,
        parent: &Arc<Node>,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<Opened, Failure> {
        let name = &node.target_name;
        let parent_info = parent.target_dir();
        let stat = || Failure::of(Operation::Stat);
        let fresh_parent = parent_info.is_some_and(|info| info.fresh);
        let makes = self.mode == TargetMode::Real
            && self.pass == Pass::Transfer
            && !self.policy.prune_empty_dirs;
        if fresh_parent && makes && !self.policy.existing {
            match self.make_dir(state, node, parent, dir_fd) {
                Err(failure) if errno::is(&failure.error, errno::EEXIST) => {}
                other => return other.map(|(fd, info)| Opened::Dir(fd, info)),
            }
        }
        let mut follow = false;
        let existing = match meta::of(dir_fd, name, false) {
            Ok(there) if there.kind == Kind::Symlink && self.policy.keep_dirlinks => {
                match meta::of(dir_fd, name, true) {
                    Ok(named) if named.kind == Kind::Dir => {
                        follow = true;
                        Some(named)
                    }
                    _ => Some(there),
                }
            }
            Ok(there) => Some(there),
            Err(error) if errno::is(&error, errno::ENOENT) => None,
            Err(error) => return Err(stat()(error)),
        };
        match existing {
            Some(there) if there.kind == Kind::Dir => {
                let (fd, info) = self.open_existing(state, dir_fd, name, &there, follow)?;
                if self.pass == Pass::Transfer && !self.policy.prune_empty_dirs {
                    let change = self.dir_change(state, node, &info);
                    self.tell_dir(node, change);
                }
                return Ok(Opened::Dir(fd, info));
            }
            _ if self.pass == Pass::Delete => return Ok(Opened::LeftOut),
            Some(_) if self.policy.ignore_existing => {
                let error = std::io::Error::other("--ignore-existing keeps what is in its way");
                return Err(Failure { operation: Operation::MakeDir, error });
            }
            Some(_) if self.policy.cp_targets => {
                let error = std::io::Error::other("cannot overwrite non-directory with directory");
                return Err(Failure { operation: Operation::MakeDir, error });
            }
            None if self.policy.existing => {
                state.totals.skipped += 1;
                return Ok(Opened::LeftOut);
            }
            Some(_) if makes => self.clear_name(parent, dir_fd, name)?,
            _ => {}
        }
        if !makes {
            self.tell_missing_dir(state, node);
            return Ok(Opened::Later);
        }
        self.make_dir(state, node, parent, dir_fd).map(|(fd, info)| Opened::Dir(fd, info))
    }

    /// Takes away what is not a directory where a directory shall be.
    fn clear_name(
        &self,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Failure> {
        if self.policy.backup {
            self.back_up(dir_fd, name)?;
        }
        match dir::unlink(dir_fd, name) {
            Err(error) if !errno::is(&error, errno::ENOENT) => {
                Err(Failure { operation: Operation::Remove, error })
            }
            _ => {
                parent.touch();
                Ok(())
            }
        }
    }

    fn open_existing(
        &self,
        state: &mut State,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        there: &Meta,
        follow: bool,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let mut there = *there;
        // As an ordinary user we need our own directories open for writing until we are done.
        let closed = there.mode & 0o700 != 0o700 && self.euid != 0 && there.uid == self.euid;
        if closed && self.mode == TargetMode::Real && !follow {
            meta::set_mode(dir_fd, name, there.mode | 0o700)
                .map_err(Failure::of(Operation::SetMode))?;
        }
        let fd = dir::open(dir_fd, name, follow).map_err(Failure::of(Operation::List))?;
        let opened = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
        there.dev = opened.dev;
        there.ino = opened.ino;
        let fresh = self.is_empty(state, &fd)?;
        let default_acl = self.has_default_acl(state, &fd);
        let identity = opened.identity();
        Ok((fd, TargetDir { identity, fresh, created: false, meta: there, default_acl, follow }))
    }

    /// Makes a directory that is not there, open to us alone as far as its owner will differ.
    fn make_dir(
        &self,
        state: &mut State,
        node: &Node,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let name = &node.target_name;
        let parent_info = parent.target_dir();
        let want = self.want(&node.source, None, parent_info.as_ref());
        let gid = parent_info.map_or(self.egid, |info| info.default_gid(self.egid));
        let ours = want.uid.is_none_or(|uid| uid == self.euid) && want.gid.is_none_or(|g| g == gid);
        let mode = if ours { want.mode & 0o1777 | 0o700 } else { 0o700 };
        dir::create(dir_fd, name, mode).map_err(Failure::of(Operation::MakeDir))?;
        parent.touch();
        let fd = dir::open(dir_fd, name, false).map_err(Failure::of(Operation::MakeDir))?;
        let meta = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
        let default_acl = parent_info.is_some_and(|info| info.default_acl);
        state.totals.dirs_created += 1;
        let change = Change { created: true, ..Change::default() };
        self.tell_dir(node, change);
        let identity = meta.identity();
        Ok((
            fd,
            TargetDir { identity, fresh: true, created: true, meta, default_acl, follow: false },
        ))
    }

    /// A directory that a dry run does not make, or `--prune-empty-dirs` not yet.
    fn tell_missing_dir(&self, state: &mut State, node: &Node) {
        let told = self.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        if self.mode == TargetMode::Real || self.pass == Pass::Delete || told {
            return;
        }
        state.totals.dirs_created += 1;
        let change = Change { created: true, ..Change::default() };
        self.tell_dir(node, change);
    }

    /// Makes the target directory of a node, and those above it, now that something goes in.
    fn materialize(&self, state: &mut State, node: &Arc<Node>) -> Result<(), Failure> {
        let mut needed = Vec::new();
        let mut above = node;
        let _making = lock(&self.making);
        while !above.needed.swap(true, Ordering::Relaxed) {
            needed.push(above);
            match &above.parent {
                Some(parent) => above = parent,
                None => break,
            }
        }
        while let Some(node) = needed.pop() {
            if let Some(info) = node.target_dir() {
                let change = self.dir_change(state, node, &info);
                self.tell_dir(node, change);
                continue;
            }
            if self.mode != TargetMode::Real {
                self.tell_missing_dir(state, node);
                continue;
            }
            let Some(parent) = &node.parent else { continue };
            let fds = parent.fds().map_err(Failure::of(Operation::MakeDir))?;
            let Some(dir_fd) = fds.target() else { return Ok(()) };
            let made = match self.make_dir(state, node, parent, dir_fd) {
                Err(failure) if errno::is(&failure.error, errno::EEXIST) => {
                    self.clear_name(parent, dir_fd, &node.target_name)?;
                    self.make_dir(state, node, parent, dir_fd)
                }
                other => other,
            };
            *lock(&node.target) = Some(made?.1);
            node.close();
        }
        Ok(())
    }

    /// How the attributes of an existing directory differ from what they should be.
    fn dir_change(&self, state: &mut State, node: &Node, info: &TargetDir) -> Change {
        if info.created {
            return Change { created: true, ..Change::default() };
        }
        let want = self.want_dir(node, Some(&info.meta));
        let same =
            |mtime| crate::policy::same_time(mtime, info.meta.mtime, self.policy.modify_window_s);
        let change = Change {
            time: want.times.is_some_and(|(_, mtime)| !same(mtime)),
            mode: want.mode != info.meta.mode,
            owner: want.uid.is_some_and(|uid| uid != info.meta.uid),
            group: want.gid.is_some_and(|gid| gid != info.meta.gid),
            ..Change::default()
        };
        if change.any() {
            state.totals.metadata += 1;
        } else {
            state.totals.skipped += 1;
        }
        change
    }

    fn tell_dir(&self, node: &Node, change: Change) {
        if self.pass == Pass::Delete || !(change.any() || self.items_unchanged) {
            return;
        }
        let mut path = Vec::new();
        node.push_path(&mut path);
        if path.is_empty() {
            path.push(b'.');
        }
        let source = Some(node.source_path(0, c""));
        self.tell_other(&path, &node.source, source, Some(node.target_path(c"")), change);
    }

    /// Goes on with a listing until it ends or the queue is full.
    fn list(&self, state: &mut State, mut listing: Listing, queue: &Queue<'_, Unit>) {
        loop {
            if self.is_over() {
                listing.node.list_failed.store(true, Ordering::Relaxed);
                break;
            }
            if !queue.has_room() {
                queue.put_aside(Unit::List(listing));
                return;
            }
            match self.list_batch(state, &mut listing, queue) {
                Ok(true) => {}
                Ok(false) => {
                    self.send_chunk(&mut listing, queue);
                    listing.side += 1;
                    listing.chunk.side = listing.side;
                    if listing.side >= listing.fds.sources.len() {
                        break;
                    }
                }
                Err(error) => {
                    listing.node.list_failed.store(true, Ordering::Relaxed);
                    listing.node.kept_sources.fetch_add(1, Ordering::Relaxed);
                    let failure = Failure { operation: Operation::List, error };
                    let source = listing.node.source_path(listing.side, c"");
                    self.fail(state, failure, Some(source), None);
                    break;
                }
            }
        }
        self.send_chunk(&mut listing, queue);
        self.listed();
        let node = listing.node;
        drop(listing.fds);
        let sweeps = match (self.pass, node.target_dir()) {
            // What a killed run left lies where something was before this one.
            (Pass::Transfer, Some(info)) => !info.fresh,
            (Pass::Delete, Some(_)) => true,
            (_, None) => false,
        };
        if sweeps {
            node.hold();
            queue.push(Unit::Sweep(Arc::clone(&node)));
        }
        if !self.may_keep_open() {
            node.close();
        }
        self.release(state, &node);
    }

    fn list_batch(
        &self,
        state: &mut State,
        listing: &mut Listing,
        queue: &Queue<'_, Unit>,
    ) -> std::io::Result<bool> {
        let Listing { node, fds, side, chunk } = listing;
        let source_dir = fds.source(*side)?;
        let State { reader, path, .. } = state;
        let filter = self.policy.filter.as_deref().zip(node.rules.as_deref());
        path.clear();
        if filter.is_some() {
            node.push_path(path);
            if !path.is_empty() {
                path.push(b'/');
            }
        }
        let prefix = path.len();
        let mut found = 0;
        let more = reader.next_batch(source_dir, |name, kind, _| {
            if TempNames::is_temp(name) {
                return;
            }
            let mut kind = kind;
            if kind == Kind::Unknown && (filter.is_some() || self.policy.prune_empty_dirs) {
                kind = meta::of(source_dir, name, false).map_or(Kind::Unknown, |meta| meta.kind);
            }
            if let Some((filter, rules)) = filter {
                path.truncate(prefix);
                path.extend_from_slice(name.to_bytes());
                let is_dir = kind == Kind::Dir || self.is_followed_dir(source_dir, name, kind);
                if filter.check(rules, path, is_dir, false).hide {
                    return;
                }
            }
            // The first source that has a name provides it.
            let earlier = |side| {
                fds.source(side).is_ok_and(|fd: BorrowedFd<'_>| meta::of(fd, name, false).is_ok())
            };
            if *side > 0 && (0..*side).any(earlier) {
                return;
            }
            if kind == Kind::Dir {
                if self.policy.recurse || self.policy.dirs {
                    let enter = Enter {
                        parent: Arc::clone(node),
                        side: *side,
                        name: name.into(),
                        target_name: None,
                        follow: false,
                    };
                    self.push_enter(queue, enter);
                }
                return;
            }
            if self.pass == Pass::Delete && !self.is_followed_dir(source_dir, name, kind) {
                return;
            }
            found += 1;
            chunk.push(name, kind);
            if chunk.kinds.len() >= CHUNK_NAMES {
                let full = std::mem::replace(chunk, Chunk::new(node, *side));
                node.hold();
                queue.push(Unit::Chunk(full));
            }
        })?;
        if found > 0 && self.pass == Pass::Transfer {
            self.listener.event(Event::Found { entries: found });
        }
        Ok(more)
    }

    /// Whether a symlink stands for the directory that it names.
    fn is_followed_dir(&self, dir_fd: BorrowedFd<'_>, name: &CStr, kind: Kind) -> bool {
        let follows = self.policy.copy_dirlinks || self.policy.symlinks == Symlinks::Follow;
        matches!(kind, Kind::Symlink | Kind::Unknown)
            && (follows || kind == Kind::Unknown)
            && meta::of(dir_fd, name, follows).is_ok_and(|meta| meta.kind == Kind::Dir)
    }

    fn send_chunk(&self, listing: &mut Listing, queue: &Queue<'_, Unit>) {
        if !listing.chunk.kinds.is_empty() {
            let next = Chunk::new(&listing.node, listing.side);
            let chunk = std::mem::replace(&mut listing.chunk, next);
            listing.node.hold();
            queue.push(Unit::Chunk(chunk));
        }
    }

    fn chunk(&self, state: &mut State, chunk: &Chunk, queue: &Queue<'_, Unit>) {
        let node = &chunk.node;
        if self.policy.prune_empty_dirs
            && self.pass == Pass::Transfer
            && let Err(failure) = self.materialize(state, node)
        {
            self.fail(state, failure, None, Some(node.target_path(c"")));
            return;
        }
        let fds = match node.fds() {
            Ok(fds) => fds,
            Err(error) => {
                let failure = Failure { operation: Operation::Read, error };
                self.fail(state, failure, Some(node.source_path(chunk.side, c"")), None);
                return;
            }
        };
        let target = fds.target().zip(node.target_dir());
        if target.is_none() && self.mode == TargetMode::Real && self.pass == Pass::Transfer {
            let error = std::io::Error::from_raw_os_error(errno::ENOENT);
            let failure = Failure { operation: Operation::MakeDir, error };
            self.fail(state, failure, None, Some(node.target_path(c"")));
            return;
        }
        let fresh = target.is_none_or(|(_, info)| info.fresh);
        let names = chunk.names.split_inclusive(|byte| *byte == 0);
        for (name, kind) in names.zip(&chunk.kinds) {
            if self.is_over() {
                return;
            }
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            let mut entry = Entry {
                node,
                fds: &fds,
                side: chunk.side,
                name,
                target_name: chunk.target_name.as_deref().unwrap_or(name),
                follow: chunk.follow,
                target,
            };
            if self.pass == Pass::Delete {
                self.delete_pass_name(state, &entry, queue);
            } else {
                self.entry(state, &mut entry, *kind, fresh, Some(queue));
            }
        }
    }

    /// In the walk that only deletes, names matter only where they lead to directories.
    fn delete_pass_name(&self, state: &mut State, entry: &Entry<'_>, queue: &Queue<'_, Unit>) {
        let Ok(dir_fd) = entry.source_dir() else { return };
        let follows =
            entry.follow || self.policy.copy_dirlinks || self.policy.symlinks == Symlinks::Follow;
        if meta::of(dir_fd, entry.name, follows).is_ok_and(|meta| meta.kind == Kind::Dir) {
            let _ = state;
            self.push_enter(queue, Enter { follow: follows, ..Enter::of(entry) });
        }
    }

    /// Hands out a directory that was found.
    pub(super) fn push_enter(&self, queue: &Queue<'_, Unit>, enter: Enter) {
        enter.parent.hold();
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        queue.push(Unit::Enter(enter));
    }

    /// A directory is listed to its end, or left out. Says so when it was the last one.
    fn listed(&self) {
        let last = self.unlisted.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && self.pass == Pass::Transfer {
            self.listener.event(Event::WalkDone);
        }
    }

    /// Whether the content of a directory is wanted.
    fn descends(&self, node: &Node) -> bool {
        let crosses =
            node.parent.as_ref().is_some_and(|parent| parent.source.dev != node.source.dev);
        self.policy.recurse && !(self.policy.one_file_system && crosses)
    }

    /// One unit below `node` is finished; the last one finishes the node, and so on upwards.
    pub(super) fn release(&self, state: &mut State, node: &Arc<Node>) {
        let mut node = Arc::clone(node);
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish(state, &node);
            match &node.parent {
                Some(parent) => node = Arc::clone(parent),
                None => return,
            }
        }
    }

    /// Gives a directory its attributes, now that nothing in it will change any more.
    fn finish(&self, state: &mut State, node: &Arc<Node>) {
        if let Err(failure) = self.try_finish(state, node) {
            let (source, target) = (node.source_path(0, c""), node.target_path(c""));
            node.kept_sources.fetch_add(1, Ordering::Relaxed);
            self.fail(state, failure, Some(source), Some(target));
        }
        if self.policy.remove_source_dirs && self.mode == TargetMode::Real {
            self.remove_source_dir(state, node);
        }
        node.close();
    }

    fn try_finish(&self, state: &mut State, node: &Arc<Node>) -> Result<(), Failure> {
        let pruned = self.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        let later = self.pass == Pass::Delete && self.policy.delete == Delete::Before;
        if later || self.mode != TargetMode::Real || !node.owns_attributes || pruned {
            return Ok(());
        }
        let Some(info) = node.target_dir() else { return Ok(()) };
        let existing = (!info.created).then_some(&info.meta);
        let want = self.want_dir(node, existing);
        let times = self.policy.preserve.times && !self.policy.preserve.omit_dir_times;
        let mut have = Have::from(&info.meta);
        if existing.is_some() && have.mode & 0o700 != 0o700 && self.euid != 0 {
            // Opened for writing by `open_existing`.
            have.mode |= 0o700;
        }
        let touched = node.touched.load(Ordering::Relaxed);
        let differs = have.mode != want.mode
            || want.uid.is_some_and(|uid| uid != have.uid)
            || want.gid.is_some_and(|gid| gid != have.gid)
            || want.times.is_some_and(|(_, mtime)| {
                !crate::policy::same_time(mtime, info.meta.mtime, self.policy.modify_window_s)
            });
        let changes = info.created || differs || (touched && (times || self.policy.fsync));
        if !changes && !self.wants_xattrs() {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetTimes))?;
        let (Some(to), from) = (fds.target(), fds.source(0)) else { return Ok(()) };
        let from = from.map_err(Failure::of(Operation::Read))?;
        if !changes {
            let (from, to) = (attributes::Handle::Fd(from), attributes::Handle::Fd(to));
            self.copy_xattrs(state, &from, &to, false, false)?;
            return Ok(());
        }
        if self.count_unprivileged(&node.source, &want, state) {
            let error = std::io::Error::from_raw_os_error(errno::EPERM);
            return Err(Failure { operation: Operation::SetOwner, error });
        }
        if self.pass == Pass::Transfer || touched {
            let fresh = info.created && !info.default_acl;
            self.settle(state, Some(from), to, &want, have, fresh)?;
            if self.policy.fsync {
                dir::sync(to).map_err(Failure::of(Operation::Sync))?;
            }
        }
        Ok(())
    }

    /// `mv` across file systems: a source directory goes when everything in it has gone.
    fn remove_source_dir(&self, state: &mut State, node: &Arc<Node>) {
        let Some(parent) = &node.parent else { return };
        let kept = node.kept_sources.load(Ordering::Relaxed) > 0 || self.is_over();
        let removed = || {
            let fds = parent.fds()?;
            let Some(side) = node.sides.first() else { return Ok(()) };
            dir::rmdir(fds.source(side.parent_side)?, &side.name)
        };
        let result = if kept { Ok(()) } else { removed() };
        if let Err(error) = &result {
            let failure = Failure {
                operation: Operation::Remove,
                error: std::io::Error::from_raw_os_error(
                    error.raw_os_error().unwrap_or(errno::EIO),
                ),
            };
            self.fail(state, failure, Some(node.source_path(0, c"")), None);
        }
        if kept || result.is_err() {
            parent.kept_sources.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The target's side of a directory that is entered.
enum Opened {
    Dir(OwnedFd, TargetDir),
    /// Not made (dry run) or not yet (`--prune-empty-dirs`).
    Later,
    /// An option leaves the directory out with everything below it.
    LeftOut,
}

pub(super) fn filter_failure(error: crate::policy::filter::FilterError) -> Failure {
    let error = std::io::Error::other(error.to_string());
    Failure { operation: Operation::Filter, error }
}

impl Work for Engine<'_> {
    type Unit = Unit;
    type State = State;

    fn start(&self, _: usize) -> State {
        State {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            reader: dir::Reader::default(),
            totals: Totals::default(),
            xattrs: attributes::Scratch::default(),
            path: Vec::new(),
            pair: data::Pair::default(),
        }
    }

    fn run(&self, unit: Unit, state: &mut State, queue: &Queue<'_, Unit>) {
        match unit {
            Unit::Enter(enter) if self.is_over() => {
                self.listed();
                self.release(state, &enter.parent);
            }
            Unit::Enter(enter) => {
                let entered = self.enter(state, enter);
                if entered.is_none() {
                    self.listed();
                }
                if let Some(node) = entered {
                    match node.fds() {
                        Ok(fds) if self.descends(&node) => {
                            node.listed.store(true, Ordering::Relaxed);
                            if let Unit::List(listing) = self.listing(&node, fds, 0) {
                                self.list(state, listing, queue);
                            }
                        }
                        _ => {
                            self.listed();
                            self.release(state, &node);
                        }
                    }
                }
            }
            Unit::List(listing) => self.list(state, listing, queue),
            Unit::Chunk(chunk) => {
                self.chunk(state, &chunk, queue);
                if chunk.seed {
                    self.listed();
                }
                self.release(state, &chunk.node);
            }
            Unit::Sweep(node) => {
                self.sweep(state, &node);
                self.release(state, &node);
            }
        }
        self.flush(state);
    }
}
