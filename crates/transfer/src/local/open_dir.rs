//! Opening a directory: opens it on both sides, creates it at the target if it is missing, and makes it a node.

use super::context::Pass;
use super::node::{Fds, Node, Side};
use super::roots::target_names;
use super::rules::{SourceFiles, filter_failure, read_merge_file};
use super::state::Engine;
use super::target_dir::Opened;
use super::unit::OpenDir;
use super::worker::Worker;
use crate::failure::Failure;
use crate::policy::filter::SidedRules;
use hakobu_core::error::{Class, Operation};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, meta};
use hakobu_tree::handle::Handle;
use hakobu_tree::names::push_name;
use parking_lot::Mutex;
use std::ffi::CStr;
use std::sync::Arc;

/// Reason that a followed symlink is not copied.
const LEADS_BACK: &str = "it leads back to a directory above";
/// Reason that a target directory is not copied.
const INTO_ITSELF: &str = "the target is inside the source; it is not copied into itself";

/// Returns whether a name is a symlink to a directory that it is in: following it would never end. A directory itself
/// may be a source of its own below another one.
fn is_loop(parent: &Node, fds: &Fds, (side, name): (usize, &CStr), identity: (u64, u64)) -> bool {
    let is_link = || {
        let own = fds.source(side).and_then(|dir| meta::of(dir, name, false));
        own.map_or(true, |own| own.kind == Kind::Symlink)
    };
    parent.is_inside(identity) && is_link()
}

impl Engine<'_> {
    /// Opens a directory on both sides. On failure, or if it is skipped, releases its unit's hold on the parent;
    /// otherwise the hold passes to the node.
    pub(super) fn open_dir(&self, worker: &mut Worker<'_>, dir: OpenDir) -> Option<Arc<Node>> {
        let parent = Arc::clone(&dir.parent);
        let target_name = dir.target_name.as_deref().unwrap_or(&dir.name);
        match self.try_open_dir(worker, &dir) {
            Ok(Some(node)) => return Some(node),
            Ok(None) => {}
            Err(failure) => {
                let source = parent.source_path(dir.side, &dir.name);
                let target = parent.target_path(target_name);
                parent.keep_source();
                self.fail(worker, failure, (Some(source), Some(target)));
            }
        }
        self.release(worker, &parent);
        None
    }

    pub(super) fn try_open_dir(
        &self,
        worker: &mut Worker<'_>,
        dir: &OpenDir,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let OpenDir { parent, side, name, follow, .. } = dir;
        let target_name = dir.target_name.as_deref().unwrap_or(name);
        let parent_fds = parent.fds().map_err(Failure::of(Operation::List))?;
        let (sides, source, incomplete) = self.open_sides(worker, parent, &parent_fds, dir)?;
        let left_out = |reason| {
            let source = Some(parent.source_path(*side, name));
            let target = Some(parent.target_path(target_name));
            self.reports.notice(Operation::MakeDir, (source, target), reason, Class::Partial);
            parent.keep_source();
            Ok(None)
        };
        if *follow && is_loop(parent, &parent_fds, (*side, name), source.identity()) {
            worker.totals.failed += 1;
            return left_out(LEADS_BACK);
        }
        if self.context.guard.is_target(source.identity()) {
            worker.totals.failed += 1;
            return left_out(INTO_ITSELF);
        }
        let mut path = std::mem::take(&mut worker.path);
        path.clear();
        parent.push_path(&mut path);
        push_name(&mut path, target_name.to_bytes());
        let mut files = SourceFiles::new(self.context.policy);
        let rules = match (&self.context.policy.filter, &parent.rules) {
            (Some(filter), Some(rules)) => {
                let first = sides.first().map(|side| side.handle.fd());
                let first = first.transpose().map_err(Failure::of(Operation::List))?;
                let rules = filter.enter(rules.source(), &path, &mut |name| match &first {
                    Some(fd) => files.read((**fd).as_fd(), name),
                    None => Ok(None),
                });
                Some(SidedRules::new(rules.map_err(filter_failure)?))
            }
            _ => None,
        };
        let incomplete = incomplete || files.refused.is_some();
        if let Some(error) = files.refused {
            let failure = Failure { operation: Operation::Filter, error };
            self.fail(worker, failure, (Some(parent.source_path(*side, name)), None));
        }
        if self.context.policy.omit_mounts
            && !dir.lists
            && sides.first().is_some_and(|side| side.volume != source.dev)
        {
            return Ok(None);
        }
        worker.totals.seen_dirs += u64::from(!dir.implied);
        let source = match dir.implied {
            true => self.plain_dir(source),
            false => source,
        };
        let mut node = Node {
            parent: Some(Arc::clone(parent)),
            target_name: target_name.into(),
            overlap: parent.overlap,
            owns_attributes: !dir.implied,
            ..Node::new(sides, source, rules, incomplete)
        };
        match parent_fds.target().zip(parent.target_handle()) {
            Some((dir_fd, above)) => match self.open_target(worker, &node, parent, dir_fd)? {
                Opened::Dir(fd, info) => {
                    if self.is_dir_taken(parent, &parent_fds, target_name, &info)? {
                        parent.keep_source();
                        worker.totals.failed += 1;
                        let source = Some(parent.source_path(*side, name));
                        self.clash((source, Some(parent.target_path(target_name))));
                        return Ok(None);
                    }
                    if self.pruning.reads_target_rules() && !info.fresh {
                        node.rules = self.target_rules(worker, &node, parent, &path, fd.as_fd());
                    }
                    let identity = info.meta.identity();
                    node.overlap = self.context.guard.overlap(parent.overlap, identity);
                    node.names = target_names(Some((&fd, &info)))?;
                    let handle = above.join(target_name, fd, identity, info.follow);
                    node.target = Mutex::new(Some((info, handle)));
                }
                Opened::Later => {}
                Opened::LeftOut => return Ok(None),
            },
            None if self.context.pass == Pass::Delete => return Ok(None),
            None => self.report_missing_dir(worker, &node),
        }
        worker.path = path;
        // Absent ones are skipped.
        let below = |handle: &Arc<Handle>| Some(handle.child(target_name).ok()?.0);
        node.bases = parent.bases.iter().filter_map(below).collect();
        Ok(Some(Arc::new(node)))
    }

    /// Returns the metadata of a directory as mkdir(1) creates it, with the identity of another one.
    fn plain_dir(&self, like: Meta) -> Meta {
        let (uid, gid) = (self.context.euid, self.context.egid);
        Meta { mode: 0o777 & !self.context.umask, uid, gid, ..like }
    }

    /// Returns the rules of a node including those in its target directory's own files. Read before anything in that
    /// directory changes, as in rsync.
    fn target_rules(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        parent: &Node,
        path: &[u8],
        target: BorrowedFd<'_>,
    ) -> Option<SidedRules> {
        let (filter, rules) = (self.context.policy.filter.as_deref()?, node.rules.clone()?);
        let above = parent.rules.as_ref()?;
        let links = &self.context.policy.links;
        let read = &mut |name: &[u8]| read_merge_file(links, target, name);
        let (entered, done) = above.enter_target(filter, path, read);
        if let Err(error) = done {
            self.fail(worker, filter_failure(error), (None, Some(node.target_path(c""))));
        }
        Some(rules.with_target(entered.target().cloned()))
    }

    /// Opens the directory in the source it was found in, and in later sources that have it. Returns these sides, the
    /// metadata of the first one, and [`Node::incomplete`].
    fn open_sides(
        &self,
        worker: &mut Worker<'_>,
        parent: &Node,
        parent_fds: &Fds,
        dir: &OpenDir,
    ) -> Result<(Vec<Side>, Meta, bool), Failure> {
        let OpenDir { side: first, name, follow, .. } = dir;
        let open = |side: usize, follow: bool| -> std::io::Result<(Side, Meta)> {
            let fd = dir::open(parent_fds.source(side)?, name, follow)?;
            let meta = self.context.source_of_fd(&fd)?;
            let above = parent.sides.get(side).map(|side| &side.handle);
            let above = above.ok_or_else(|| std::io::Error::from_raw_os_error(errno::EBADF))?;
            let side = Side {
                parent_side: side,
                name: name.clone(),
                handle: above.join(name, fd, meta.identity(), follow),
                selection: parent.selection_below(side, name),
                volume: parent.volume_below(side, meta.dev),
            };
            Ok((side, meta))
        };
        worker.at.step(Phase::Look, 1);
        let (side, source) = open(*first, *follow).map_err(Failure::of(Operation::Read))?;
        let (mut sides, mut incomplete) = (vec![side], parent.incomplete);
        let follows = *follow
            || self.context.policy.copy_dirlinks
            || self.context.policy.symlinks == crate::policy::Symlinks::Follow;
        for later in first + 1..parent.sides.len() {
            if !parent.selects(later, name) {
                continue;
            }
            worker.at.step(Phase::Look, 1);
            let follows = follows || parent.selects_followed(later, name);
            match open(later, follows) {
                Ok((side, meta)) => {
                    let crosses = self.context.policy.one_file_system && side.volume != meta.dev;
                    if crosses {
                        incomplete = true;
                        continue;
                    }
                    let loops =
                        follows && is_loop(parent, parent_fds, (later, name), meta.identity());
                    if loops || self.context.guard.is_target(meta.identity()) {
                        incomplete = true;
                        worker.totals.failed += 1;
                        parent.keep_source();
                        let source = Some(parent.source_path(later, name));
                        let target = Some(parent.target_path(name));
                        let reason = if loops { LEADS_BACK } else { INTO_ITSELF };
                        let paths = (source, target);
                        self.reports.notice(Operation::MakeDir, paths, reason, Class::Partial);
                        continue;
                    }
                    sides.push(side);
                }
                Err(error) if errno::is_gone(&error) || errno::is_no_dir(&error) => {}
                // Its content is unknown, which is not the same as empty.
                Err(error) => {
                    incomplete = true;
                    parent.keep_source();
                    let failure = Failure { operation: Operation::List, error };
                    self.fail(worker, failure, (Some(parent.source_path(later, name)), None));
                }
            }
        }
        Ok((sides, source, incomplete))
    }
}
