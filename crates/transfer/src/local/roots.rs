//! Start of a walk: the nodes of arguments and of the directories above them, and the first units.

use super::engine::LocalEngine;
use super::engine::Pass;
use super::engine::Worker;
use super::engine::{Chunk, DirListing, OpenDir, Unit};
use super::guard;
use super::target_dir::{Base, DirSide, Node, Selection, TargetDir};
use super::walk::{SourceFiles, filter_failure, read_merge_file};
use crate::failure::Failure;
use crate::policy::Delete;
use crate::policy::filter::{Origin, SidedRules};
use hakobu_core::error::{ErrorClass, Operation};
use hakobu_core::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use hakobu_tree::handle::DirectoryHandle;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum `st_size`, in bytes, of a target directory of single arguments that is searched for leftovers: a larger
/// one would take longer than the copy.
const PRUNED_BASE_BYTES_MAX: u64 = 256 << 10;

/// Reads a per-directory file of an open directory.
type ReadTop<'a> = dyn FnMut(BorrowedFd<'_>, &[u8]) -> std::io::Result<Option<Vec<u8>>> + 'a;

/// Maximum number of source devices among which workers are divided; further ones count as the first.
const VOLUMES_MAX: usize = 8;

/// The ends of an argument: open directories on both sides.
pub struct ArgumentEnds {
    /// Source directories, their paths as typed, and the names in them that are transferred (`None`: all, or those
    /// that are added one by one).
    pub sources: Vec<(OwnedFd, PathBuf, Option<Arc<Selection>>)>,
    /// The target directory; `None` if nothing is written.
    pub target: Option<OwnedFd>,
    /// Its path, starting as the user typed it.
    pub target_path: PathBuf,
    /// Whether this run just created the target directory.
    pub created: bool,
    /// Its path in the transfer.
    pub path: Vec<u8>,
    /// The name of the argument in the source directory, if the argument is only that name.
    pub first: Vec<u8>,
    /// Names in the target directory that other arguments provide: not extraneous.
    pub provided: Vec<Box<CStr>>,
    /// The node that sets the attributes of the same target directory: it is finished after this one.
    pub owner: Option<Arc<Node>>,
    /// Open `--link-dest` directories that belong to it.
    pub bases: Vec<Option<OwnedFd>>,
}

/// Returns the path from the root, as bytes, without accessing the file system. An empty path is the working
/// directory.
///
/// # Errors
/// The working directory is not known.
fn absolute(path: Option<&PathBuf>) -> Result<Vec<u8>, Failure> {
    let path = path.filter(|path| !path.as_os_str().is_empty());
    let path = path.map_or_else(std::env::current_dir, std::path::absolute);
    let path = path.map_err(Failure::of(Operation::Filter))?;
    Ok(path.into_os_string().into_encoded_bytes())
}

/// Returns the names of an existing directory that ignores case; none for others.
///
/// # Errors
/// Those of listing it.
pub(super) fn target_names(
    target: Option<(&OwnedFd, &TargetDir)>,
) -> Result<HashSet<Box<CStr>>, Failure> {
    match target.filter(|(_, info)| info.caseless && !info.fresh) {
        Some((fd, _)) => guard::names_of(fd.as_fd()).map_err(Failure::of(Operation::List)),
        None => Ok(HashSet::new()),
    }
}

impl LocalEngine<'_> {
    /// Returns the node of an argument. `whole`: the directories are copied with their attributes; otherwise only
    /// names in them are. The caller holds it until [`LocalEngine::release_hold`].
    ///
    /// # Errors
    /// Those of examining the directories and of reading their filter rules.
    pub fn base(&self, ends: ArgumentEnds, whole: bool) -> Result<Arc<Node>, Failure> {
        let stat = || Failure::of(Operation::Stat);
        let mut worker = self.worker(0);
        let (mut paths, mut sides) = (Vec::new(), Vec::new());
        let mut source = None;
        for (fd, path, selection) in ends.sources {
            let meta = self.context.source_of_fd(&fd).map_err(stat())?;
            let mut volumes = self.volumes.lock();
            if volumes.len() < VOLUMES_MAX && !volumes.contains(&meta.dev) {
                volumes.push(meta.dev);
            }
            drop(volumes);
            sides.push(DirSide {
                parent_side: 0,
                name: c"".into(),
                handle: DirectoryHandle::pin(&self.budget, fd, meta.identity()),
                selection,
                volume: meta.dev,
            });
            paths.push(path);
            source.get_or_insert(meta);
        }
        let Some(source) = source else {
            return Err(stat()(std::io::Error::from_raw_os_error(errno::EINVAL)));
        };
        let target = match &ends.target {
            Some(fd) => {
                let meta = self.context.target_of_fd(fd).map_err(stat())?;
                let guard = self.context.guard;
                guard.add_target(meta.identity());
                let (fresh, swept) = match whole && !ends.created {
                    true => self.glance(&mut worker, fd)?,
                    false => (whole, whole),
                };
                let mut default_bits = worker.attributes.xattrs.default_bits(fd.as_fd())?;
                if ends.created && worker.attributes.disinherit(fd.as_fd())? {
                    default_bits = None;
                }
                let (created, follow) = (ends.created, true);
                let caseless = guard.ignores_case(fd.as_fd(), meta.dev);
                if !fresh && !created {
                    self.groups.park();
                }
                Some(TargetDir { fresh, swept, created, meta, default_bits, follow, caseless })
            }
            None => None,
        };
        let names = target_names(ends.target.as_ref().zip(target.as_ref()))?;
        let (from, to) = (absolute(paths.first())?, absolute(Some(&ends.target_path))?);
        let origin = Origin { source: &from, target: &to, first: &ends.first };
        let first =
            sides.first().map(|side: &DirSide| side.handle.fd()).transpose().map_err(stat())?;
        let ends_of = (first.as_deref(), ends.target.as_ref());
        let inside = whole.then_some(&*ends.path);
        let (rules, incomplete) = self.base_rules(&mut worker, &origin, inside, ends_of)?;
        let pin = |fd, identity| DirectoryHandle::pin(&self.budget, fd, identity);
        let target =
            ends.target.zip(target).map(|(fd, info)| (info, pin(fd, info.meta.identity())));
        let basis = |fd| Some((meta::of_fd(&fd).ok()?.identity(), fd));
        let bases = ends.bases.into_iter().flatten().filter_map(basis);
        let bases = bases.map(|(identity, fd)| pin(fd, identity)).collect();
        let node = Arc::new(Node {
            overlap: self.context.guard.target_overlap(),
            names,
            base: Some(Box::new(Base {
                sources: paths,
                target: ends.target_path,
                path: ends.path,
                provided: ends.provided,
                owner: ends.owner,
            })),
            owns_attributes: whole,
            target: Mutex::new(target),
            bases,
            ..Node::new(sides, source, rules, incomplete)
        });
        if whole {
            self.report_base(&mut worker, &node, 1);
        }
        self.flush(&mut worker);
        Ok(node)
    }

    /// Returns the rules of a base with this first source and target, and whether a file of the source was refused, so
    /// that nothing may be deleted. `inside`: its path in the transfer, if the directories are copied as a whole.
    fn base_rules(
        &self,
        worker: &mut Worker<'_>,
        origin: &Origin<'_>,
        inside: Option<&[u8]>,
        (source, target): (Option<&OwnedFd>, Option<&OwnedFd>),
    ) -> Result<(Option<SidedRules>, bool), Failure> {
        let Some(filter) = &self.context.policy.filter else { return Ok((None, false)) };
        let links = &self.context.policy.links;
        let rules = |origin: &Origin<'_>, top: Option<&OwnedFd>, read: &mut ReadTop<'_>| {
            let above = &mut |path: &[u8]| read_merge_file(links, dir::cwd(), path);
            let root = filter.root(origin, above)?;
            let Some((top, path)) = top.zip(inside) else { return Ok(root) };
            filter.enter(&root, path, &mut |name| read(top.as_fd(), name))
        };
        let mut files = SourceFiles::new(self.context.policy);
        let sides = rules(origin, source, &mut |top, name| files.read(top, name));
        let sides = SidedRules::new(sides.map_err(filter_failure)?);
        let refused = files.refused.is_some();
        if let Some(error) = files.refused {
            let source = OsStr::from_bytes(origin.source).into();
            let failure = Failure { operation: Operation::Filter, error };
            self.fail(worker, failure, (Some(source), None));
        }
        if !self.pruning.reads_target_rules() || target.is_none() {
            return Ok((Some(sides), refused));
        }
        let at_target = Origin { source: origin.target, ..*origin };
        let own = rules(&at_target, target, &mut |top, name| read_merge_file(links, top, name));
        let own = own.map_err(|error| {
            let target = OsStr::from_bytes(origin.target).into();
            self.fail(worker, filter_failure(error), (None, Some(target)));
        });
        Ok((Some(sides.with_target(own.ok())), refused))
    }

    pub(super) fn report_base(&self, worker: &mut Worker<'_>, node: &Arc<Node>, seen: u64) {
        worker.totals.seen_dirs += seen;
        worker.at.finished();
        let Some(info) = node.target_dir() else {
            return self.report_missing_dir(worker, node);
        };
        if self.context.pass == Pass::Transfer && !self.context.policy.prune_empty_dirs {
            worker.totals.dirs_created += u64::from(info.created);
            let fds = node.fds().ok();
            let own = fds.as_ref().and_then(|fds| fds.target());
            let change = self.dir_change(worker, node, &info, own);
            self.report_dir(node, change);
        }
    }

    /// Returns the unit that copies a whole base directory.
    pub fn list_base(&self, node: &Arc<Node>) -> Option<Unit> {
        let fds = match node.fds() {
            Ok(fds) => fds,
            Err(error) => {
                self.disable_deletion();
                let failure = Failure { operation: Operation::List, error };
                self.argument_failed(failure, &node.source_path(0, c""));
                return None;
            }
        };
        node.hold();
        node.listed.store(true, Ordering::Relaxed);
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        Some(Unit::List(DirListing::new(node, fds)))
    }

    /// Adds one name of a base to the units; `follow` follows a symlink. Consecutive names of one directory share a
    /// chunk.
    pub fn add_name(
        &self,
        units: &mut Vec<Unit>,
        node: &Arc<Node>,
        name: &CStr,
        target_name: Option<&CStr>,
        follow: bool,
    ) {
        if self.context.pass == Pass::Transfer {
            self.found_before(1);
        }
        self.add(units, node, (name, Kind::Unknown), target_name, (follow, true));
    }

    /// Adds a name of a base whose type is known. Consecutive names of one directory share a chunk.
    pub fn add_known(&self, units: &mut Vec<Unit>, node: &Arc<Node>, name: &CStr, kind: Kind) {
        self.found_before(1);
        self.add(units, node, (name, kind), None, (self.context.policy.follow_args, false));
    }

    fn add(
        &self,
        units: &mut Vec<Unit>,
        node: &Arc<Node>,
        (name, kind): (&CStr, Kind),
        target_name: Option<&CStr>,
        (follow, is_root): (bool, bool),
    ) {
        if let Some(Unit::Chunk(chunk)) = units.last_mut()
            && Arc::ptr_eq(&chunk.node, node)
            && chunk.target_name.is_none()
            && target_name.is_none()
            && chunk.follow == follow
            && !chunk.names.is_full()
        {
            chunk.names.push(name, kind);
            return;
        }
        node.hold();
        let target_name = target_name.map(Into::into);
        let mut chunk = Chunk { target_name, follow, is_root, ..Chunk::new(node, 0) };
        chunk.names.push(name, kind);
        self.unlisted.fetch_add(usize::from(is_root), Ordering::Relaxed);
        units.push(Unit::Chunk(chunk));
    }

    /// Removes a target name whose argument does not exist (`--delete-missing-args`). A non-empty directory is kept
    /// unless `--delete` or `--force` is given.
    ///
    /// # Errors
    /// The entry cannot be examined.
    pub fn remove_missing(&self, node: &Arc<Node>, name: &CStr) -> Result<(), Failure> {
        if self.context.pass == Pass::Delete {
            return Ok(());
        }
        let mut worker = self.worker(0);
        let fds = node.fds().map_err(Failure::of(Operation::Remove))?;
        let Some(target) = fds.target() else { return Ok(()) };
        let there = match meta::of(target, name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => return Ok(()),
            other => other.map_err(Failure::of(Operation::Remove))?,
        };
        let policy = self.context.policy;
        let empties = policy.force || policy.delete != Delete::No;
        let is_full = there.kind == Kind::Dir && !empties && {
            let fd = dir::open(target, name, false).map_err(Failure::of(Operation::Remove))?;
            !self.glance(&mut worker, &fd)?.0
        };
        if is_full {
            let reason = "it is a directory that is not empty (--force removes it)";
            let paths = (None, Some(node.target_path(name)));
            self.reports.notice(Operation::Remove, paths, reason, ErrorClass::Notice);
        } else {
            self.pruning.remove(&mut worker, node, &fds, name, there.kind);
        }
        self.flush(&mut worker);
        Ok(())
    }

    /// Records that the rules exclude the target from the sources that it is inside of.
    pub fn hide_target(&self) {
        self.context.guard.hide_target();
    }

    /// Returns whether the rules exclude an argument.
    pub fn hides(&self, node: &Node, path: &[u8], is_dir: bool) -> bool {
        node.rules.as_ref().is_some_and(|rules| self.is_hidden(rules, path, is_dir))
    }

    /// Returns the unit that removes leftovers from the target directory of single names, unless that directory is
    /// too large.
    pub fn sweep_base(&self, node: &Arc<Node>) -> Option<Unit> {
        let info = node.target_dir()?;
        (info.meta.size <= PRUNED_BASE_BYTES_MAX && !info.created).then(|| {
            node.hold();
            Unit::Prune(Arc::clone(node))
        })
    }

    /// Enters a directory of a base without listing it: the implied directories of `--relative`. The caller holds the
    /// node until [`LocalEngine::release_hold`].
    ///
    /// # Errors
    /// It cannot be opened or created: nothing below it can be copied.
    pub fn enter_implied(
        &self,
        parent: &Arc<Node>,
        name: &CStr,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let mut worker = self.worker(0);
        parent.hold();
        let dir = OpenDir {
            parent: Arc::clone(parent),
            side: 0,
            name: name.into(),
            target_name: None,
            follow: true,
            implied: self.context.policy.no_implied_dirs,
            lists: false,
        };
        let entered = self.try_open_dir(&mut worker, &dir);
        worker.at.finished();
        if !matches!(entered, Ok(Some(_))) {
            self.release(&mut worker, parent);
        }
        self.flush(&mut worker);
        entered
    }

    /// Releases the caller's hold on a node.
    pub fn release_hold(&self, node: &Arc<Node>) {
        let mut worker = self.worker(0);
        self.release(&mut worker, node);
        self.flush(&mut worker);
    }
}
