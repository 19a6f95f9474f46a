//! Regular files, from an open source to a target under its final name.
//!
//! A program killed at any moment leaves no file under its final name that a later run would take for finished, and
//! never damages an existing file. A copy has three steps, so that the steps of several files can be combined
//! (`local/file.rs`): the target is created, filled and published.

use super::attributes::{Have, Want};
use super::backup::Backups;
use super::content::{FileContent, Onto};
use super::engine::{Chunk, Context, LocalEngine, Pass, Rest, Station, TargetMode, Worker};
use super::entry::{CLASH, Decided, DirEntry, EntryResult, EntryState};
use super::fake_super::AttributeHandle;
use super::report::Report;
use super::source::{SourceDir, SourceFile, attributes_of};
use super::target_dir::{Node, TargetDir};
use super::{fake_super as fake, guard};
use crate::failure::{Failure, Stop, c_string};
use crate::policy::{self, Append};
use crate::publish::{
    DirName, Direct, Draft, DraftName, Drafts, TempEntry, TempNames, UNFINISHED, is_node,
};
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, stdio};
use parking_lot::Mutex;
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of tries for a source that changes while it is read.
const TRIES: usize = 3;

/// Initial and wanted attributes of a target file.
struct Shape {
    want: Want,
    /// Attributes that the kernel gives a new file.
    own: Have,
    /// The mode to create it with.
    mode: u32,
    /// Its mode comes from the directory's default ACL.
    inherits: bool,
}

/// A file between two steps of its copy.
pub(super) struct Copying<'a> {
    entry: DirEntry<'a>,
    from: SourceFile,
    source: Meta,
    existing: Option<Meta>,
    dir_info: &'a TargetDir,
    shape: Shape,
    draft: LocalDraft<'a>,
}

impl Copying<'_> {
    /// Returns whether it has its final name already, so that publishing only closes it.
    pub(super) fn is_public(&self) -> bool {
        self.draft.draft.is_public()
    }
}

/// Copies regular files. One instance serves all workers.
pub(super) struct FileCopier<'a> {
    context: Context<'a>,
    publisher: Arc<Publisher<'a>>,
}

impl<'a> FileCopier<'a> {
    pub(super) fn new((context, publisher): (Context<'a>, Arc<Publisher<'a>>)) -> FileCopier<'a> {
        FileCopier { context, publisher }
    }

    /// Copies a regular file to a new name (`existing` is `None`), or over an existing entry. `opened` is the source
    /// if the caller has opened it.
    ///
    /// # Errors
    /// [`Stop`], with nothing incomplete under the final name. EEXIST of `Create` means that an entry appeared there
    /// in the meantime.
    pub(super) fn copy(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        opened: Option<SourceFile>,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Result<EntryResult, Stop> {
        let mut opened = opened;
        let mut source = *source;
        for _ in 0..TRIES {
            let from = match opened.take() {
                Some(fd) => fd,
                None => {
                    worker.at.step(Phase::Look, 1);
                    let (dir, name) = entry.source()?;
                    let opening = self.context.open_source((dir, name), entry.follow);
                    let fd = opening.map_err(Failure::of(Operation::Read))?;
                    source =
                        self.context.source_of_file(&fd).map_err(Failure::of(Operation::Stat))?;
                    if source.kind != Kind::File {
                        return Err(Stop::Changed);
                    }
                    fd
                }
            };
            let is_far = matches!(from, SourceFile::Far(_));
            match self.copy_once(worker, entry, from, &source, existing) {
                Err(Stop::Changed) if !is_far => {}
                other => return other,
            }
        }
        Err(Stop::Changed)
    }

    fn copy_once(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        from: SourceFile,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Result<EntryResult, Stop> {
        if self.context.mode == TargetMode::Null {
            let (from, helpers) = (from.here()?, entry.helpers());
            let (to, target_dev, onto) = (from, 0, Onto::New);
            let content = FileContent { from, to, source, target_dev, onto, helpers };
            return Ok(EntryResult::content(worker.mover.copy(&worker.at, content)?));
        }
        let Some(place) = entry.place() else { return Ok(EntryResult::content(source.size)) };
        let policy = self.context.policy;
        let into = |there: &Meta| {
            policy.inplace && there.kind == Kind::File || policy.appends(source, there)
        };
        if policy.backup && existing.is_some_and(into) {
            self.back_up_copy(worker, place, entry.node)?;
        }
        worker.at.step(Phase::Create, 1);
        let Some(copying) = self.create(worker, entry, from, source, existing)? else {
            return Ok(EntryResult::content(source.size));
        };
        match self.fill(worker, &copying) {
            Ok(done) => {
                if !copying.is_public() {
                    worker.at.step(Phase::Create, 1);
                }
                self.publish(copying)?;
                Ok(done)
            }
            Err(stop) => Err(self.give_up(copying, stop)),
        }
    }

    /// First step: creates the target. Returns `None` if there is no target directory.
    pub(super) fn create<'e>(
        &'e self,
        worker: &Worker<'_>,
        entry: &DirEntry<'e>,
        from: SourceFile,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Result<Option<Copying<'e>>, Failure> {
        let (Some((_, dir_info)), Some(place)) = (entry.target, entry.place()) else {
            return Ok(None);
        };
        let shape = self.shape(worker, dir_info, source, existing);
        let dev = dir_info.meta.dev;
        let draft = self.publisher.open(place, dev, source, existing, shape.mode)?;
        let (entry, source, existing) = (*entry, *source, existing.copied());
        Ok(Some(Copying { entry, from, source, existing, dir_info, shape, draft }))
    }

    /// Returns how to create the target of `source`. Attributes that the kernel sets need no further call: if owner
    /// and group are right, it gets its final mode at once.
    fn shape(
        &self,
        worker: &Worker<'_>,
        dir_info: &TargetDir,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Shape {
        let want = worker.attributes.want(source, existing, Some(dir_info));
        let (uid, gid) = (self.context.euid, dir_info.default_gid(self.context.egid));
        let own = Have { mode: want.mode, uid, gid, dev: dir_info.meta.dev };
        let same_owner =
            want.uid.is_none_or(|uid| uid == own.uid) && want.gid.is_none_or(|gid| gid == own.gid);
        // The group bits hold an ACL's mask: until the ACL is set they would admit the owning group.
        let simple = same_owner
            && want.mode & 0o6000 == 0
            && (want.mode & 0o200 != 0 || !worker.attributes.lends_write())
            && dir_info.default_bits.is_none()
            && !self.context.policy.preserve.acls;
        let inherits = dir_info.default_bits.is_some() && !self.context.policy.preserve.mode;
        let mode = if simple || inherits { want.mode } else { 0o600 };
        Shape { want, own, mode, inherits }
    }

    /// Second step: writes the content and sets the attributes. On failure the caller discards the target.
    pub(super) fn fill(
        &self,
        worker: &mut Worker<'_>,
        copying: &Copying<'_>,
    ) -> Result<EntryResult, Stop> {
        let Copying { entry, from, source, existing, dir_info, shape, draft } = copying;
        let overwrite = draft.is_in_place();
        let device = overwrite && existing.is_some_and(|there| there.kind != Kind::File);
        let to = draft.draft.fd.as_fd();
        let made = self.made(copying)?;
        let onto = match (overwrite, device) {
            (_, true) => Onto::Stream,
            (true, false) => Onto::Existing,
            (false, false) => Onto::New,
        };
        let (target_dev, helpers) = (dir_info.meta.dev, entry.helpers());
        let is_here = matches!(from, SourceFile::Here(_));
        let start = existing
            .as_ref()
            .filter(|there| is_here && overwrite && self.context.policy.appends(source, there));
        let start = start.map_or(Ok(None), |there| self.appends_from(worker, copying, there))?;
        let mut matched = 0;
        let (bytes, moved) = match start {
            _ if self.context.policy.attributes_only => (0, 0),
            Some(start) => {
                let (ends, range) = ((from.here()?, to), (start, source.size));
                (source.size, worker.mover.append(&worker.at, ends, range)?)
            }
            None => match from {
                SourceFile::Here(fd) => {
                    let from = fd.as_fd();
                    let content = FileContent { from, to, source, target_dev, onto, helpers };
                    let bytes = worker.mover.copy(&worker.at, content)?;
                    (bytes, bytes)
                }
                SourceFile::Far(file) => {
                    let begins = file.entry.begins_at();
                    let holds = |there: &Meta| overwrite && !device && there.size >= begins;
                    if begins > 0 && !existing.as_ref().is_some_and(holds) {
                        // What it was to be appended to is gone.
                        return Err(Stop::Changed);
                    }
                    let place = entry.place();
                    let basis = file.entry.delta().zip(place).map(|(_, place)| place);
                    let received = worker.mover.receive(&worker.at, file, (to, onto), basis)?;
                    matched = received.matched;
                    (source.size, received.bytes)
                }
            },
        };
        if overwrite && !device {
            file::set_len(to, bytes).map_err(Failure::of(Operation::Write))?;
        }
        // Before setting the times: without them no later run takes the file for finished, and setting them could
        // receive the error of a write and hide it from close(2).
        if !device && worker.mover.pair.reports_late(to) {
            worker.at.step(Phase::Write, 1);
            file::flush(to).map_err(Failure::of(Operation::Write))?;
        }
        let mut want = shape.want;
        let mut have = match existing {
            Some(there) if overwrite => Have::from(there),
            // With a default ACL the kernel has set the mode already.
            _ if shape.inherits => shape.own,
            _ => Have { mode: draft.mode, ..shape.own },
        };
        let mut fresh = dir_info.default_bits.is_none() && !overwrite;
        if let Some(made) = made {
            // A replacement is made later than its directory was looked at.
            fresh &= !draft.foreign && existing.is_none() && made.gid == have.gid;
            have = Have { dev: have.dev, ..made };
            if shape.inherits {
                want.mode = if draft.foreign { want.mode & !self.context.umask } else { made.mode };
            }
        }
        // Attributes that cannot be set are reported; the content is right and stays.
        let attributes = match device {
            true => Ok(()),
            false => {
                // The content may be from a tree beside the target.
                let told = match entry.source()? {
                    (SourceDir::Far(_), _) => {
                        attributes_of(entry.source()?).map_err(Failure::of(Operation::Stat))?
                    }
                    (SourceDir::Here(_), _) => from.attributes(),
                };
                let attributes = worker.attributes.within(entry.node.rules.as_ref());
                attributes.settle(&worker.at, Some(told), to, &want, have, fresh)
            }
        };
        let unprivileged = worker.attributes.count_unprivileged(source, &shape.want);
        let settled = attributes.is_ok() && !unprivileged;
        let checked = match self.context.policy.remove_source_files && settled {
            true => match from {
                SourceFile::Here(fd) => still_copied(fd, source, to, bytes).map(|()| true),
                // The other end looks at it before it removes it.
                SourceFile::Far(_) => Ok(true),
            },
            false => Ok(false),
        };
        if self.context.policy.fsync && !device {
            worker.at.step(Phase::Settle, 1);
            file::sync(to).map_err(Failure::of(Operation::Sync))?;
        }
        let (checked, kept) = match checked {
            Ok(checked) => (checked, None),
            Err(failure) => (false, Some(failure)),
        };
        let attributes = attributes.err();
        Ok(EntryResult { bytes: moved, matched, checked, kept, attributes, unprivileged })
    }

    /// Returns the attributes that the file system gave a new file, where they matter. They follow from its directory,
    /// whose group, setgid bit and default ACL another run may have set since this one looked at it.
    fn made(&self, copying: &Copying<'_>) -> Result<Option<Have>, Failure> {
        let Copying { existing, shape, draft, .. } = copying;
        let matters = draft.foreign
            || existing.is_some()
            || shape.want.uid.is_some()
            || shape.want.gid.is_some();
        if draft.is_in_place() || !matters {
            return Ok(None);
        }
        let to = draft.draft.fd.as_fd();
        let made = match self.context.policy.fake.target {
            true => self.context.target_of_fd(to),
            false => meta::of_created(to),
        };
        Ok(Some(Have::from(&made.map_err(Failure::of(Operation::Stat))?)))
    }

    /// Returns the offset where appending to a target begins; `None` if it is rewritten.
    fn appends_from(
        &self,
        worker: &mut Worker<'_>,
        copying: &Copying<'_>,
        there: &Meta,
    ) -> Result<Option<u64>, Stop> {
        // A source is removed only if all of its target was compared or written.
        let policy = self.context.policy;
        if policy.append == Append::Verified || policy.remove_source_files {
            let Some((dir, name)) = copying.entry.place() else { return Ok(None) };
            worker.at.step(Phase::Look, 1);
            let fd = file::open_read(dir, name, false).map_err(Failure::of(Operation::Compare))?;
            let ends = (copying.from.here()?, fd.as_fd());
            if !worker.mover.begins_like(&worker.at, ends, there.size)? {
                return Ok(None);
            }
        }
        Ok(Some(there.size))
    }

    /// Third step: closes the target and gives it its name, if it has none yet.
    pub(super) fn publish(&self, copying: Copying<'_>) -> Result<(), Stop> {
        let Copying { entry, source, existing, draft, .. } = copying;
        let policy = self.context.policy;
        let delays = policy.delay_updates && !(policy.hard_links && source.nlink > 1);
        self.publisher.publish(draft, existing.as_ref(), entry.node, delays)
    }

    /// Replaces the third step: removes the remains of a failed or stopped copy, or keeps them with `--partial`.
    pub(super) fn give_up(&self, copying: Copying<'_>, stop: Stop) -> Stop {
        if self.publisher.give_up(copying.draft, &stop, copying.entry.node) {
            copying.entry.node.touch();
        }
        stop
    }

    /// Keeps a copy of a file that is about to be overwritten under its backup name.
    fn back_up_copy(
        &self,
        worker: &mut Worker<'_>,
        (dir_fd, name): DirName<'_>,
        node: &Node,
    ) -> Result<(), Stop> {
        let path = node.path_of(name);
        let (folder, backup) = self.publisher.backups.place(name, &path)?;
        if folder.is_none() {
            node.provides(&backup);
        }
        let folder_fd = folder.as_ref().map_or(dir_fd, |folder| folder.as_fd());
        worker.at.step(Phase::Create, 2);
        let from = file::open_read(dir_fd, name, false).map_err(Failure::of(Operation::Compare))?;
        let old = self.context.target_of_fd(&from).map_err(Failure::of(Operation::Compare))?;
        let temp = self.publisher.drafts.temp_names.make();
        let to =
            file::create_new(folder_fd, &temp, 0o600).map_err(Failure::of(Operation::Create))?;
        // Removed if anything fails.
        let mut entry = TempEntry::new(folder_fd, temp);
        let made = meta::of_fd(&to).map_err(Failure::of(Operation::Stat))?;
        {
            let (from, to) = (from.as_fd(), to.as_fd());
            let (source, target_dev, onto) = (&old, made.dev, Onto::New);
            let content = FileContent { from, to, source, target_dev, onto, helpers: None };
            worker.mover.copy(&worker.at, content)?;
            if worker.mover.pair.reports_late(to) {
                file::flush(to).map_err(Failure::of(Operation::Write))?;
            }
            let root = self.context.is_root();
            let (uid, gid) = (root.then_some(old.uid), root.then_some(old.gid));
            let times = Some((None, Some(old.mtime)));
            let want = Want { mode: old.mode, uid, gid, times, rdev: 0 };
            let (attributes, have) = (worker.attributes.within(None), Have::from(&made));
            let handle = AttributeHandle::Open(from);
            attributes.settle(&worker.at, Some(handle), to, &want, have, false)?;
        }
        file::close(to).map_err(Failure::of(Operation::Write))?;
        worker.at.step(Phase::Create, 1);
        entry.rename((folder_fd, &backup), false).map_err(Failure::of(Operation::Rename))?;
        self.publisher.backups.report(&|| path.clone());
        Ok(())
    }
}

/// Checks that the source is unchanged and the target complete: only then may the source be removed.
fn still_copied(
    from: &OwnedFd,
    source: &Meta,
    to: BorrowedFd<'_>,
    bytes: u64,
) -> Result<(), Failure> {
    let now = meta::of_fd(from).map_err(Failure::of(Operation::Stat))?;
    let target = meta::of_fd(to).map_err(Failure::of(Operation::Compare))?;
    // Adding or removing another name changes the change time, too.
    let same = now.size == source.size
        && now.mtime == source.mtime
        && (now.ctime == source.ctime || now.nlink != source.nlink);
    let cause = if now.kind.is_device() {
        "it is a device, which is kept"
    } else if !same {
        "it changed while it was copied; it is kept"
    } else if target.size != bytes {
        "its copy does not have its size; it is kept"
    } else {
        return Ok(());
    };
    Err(Failure::reason(Operation::Remove, cause))
}

// The new regular files of a chunk, handled step by step instead of file by file: open all sources, create all
// targets, fill all.
//
// Creating a name holds the lock of its directory, and on XFS that is most of the work for a small file (57 %).
// Workers that take the lock for each file spend their time spinning on it and moving its cache lines; here a worker
// creates a whole chunk while the others fill theirs. Other file systems and small directories are slower with it
// (BENCHMARKS.md).

/// Maximum size of a file in a batch, in bytes; for larger files the gain at creation is negligible.
const BATCHED_BYTES_MAX: u64 = 1 << 20;

impl LocalEngine<'_> {
    /// Returns whether new files of a chunk are copied in steps.
    pub(super) fn batches(&self, chunk: &Chunk) -> bool {
        let full = chunk.names.is_full();
        self.batch_max > 1
            && (full || !self.publisher.drafts.direct.is_allowed())
            && self.context.pass == Pass::Transfer
            && !chunk.is_root
            && self.context.mode == TargetMode::Real
            && self.context.policy.content == policy::Content::Copy
            && self.context.policy.basis_dirs.is_empty()
    }

    /// Handles a chunk of an empty target directory; `of` makes the entry of a name.
    pub(super) fn batch<'e>(
        &'e self,
        worker: &mut Worker<'_>,
        rest: &'e Rest<'e>,
        of: impl Fn(&'e std::ffi::CStr) -> DirEntry<'e>,
    ) {
        let mut waiting = Vec::with_capacity(self.batch_max);
        while let Some((name, kind)) = rest.next() {
            if self.is_over() {
                break;
            }
            let mut decided = Decided::new(of(name));
            match self.join_batch(worker, &mut decided, kind) {
                Ok(Continue(())) => waiting.push(decided),
                Ok(Break(outcome)) => self.ended(worker, &decided.entry, Ok(outcome)),
                Err(stop) => self.ended(worker, &decided.entry, Err(stop)),
            }
            if waiting.len() >= self.batch_max {
                self.copy_together(worker, &mut waiting);
            }
            if rest.queue.is_shut_out() {
                self.hand_over(rest);
            }
        }
        self.copy_together(worker, &mut waiting);
    }

    /// Examines a new name and decides; continues if it is to be copied together with others.
    fn join_batch(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        kind: Kind,
    ) -> Result<ControlFlow<EntryState>, Stop> {
        if let Break(outcome) = self.look(worker, decided, kind, true)? {
            return Ok(Break(outcome));
        }
        match self.is_batched(decided) {
            true => self.decide(worker, decided, true),
            false => self.transfer(worker, decided, true).map(Break),
        }
    }

    /// Returns whether a source is a small regular file that is open.
    fn is_batched(&self, decided: &Decided<'_>) -> bool {
        let Decided { source, opened, .. } = decided;
        opened.is_some()
            && source.kind == Kind::File
            && source.size <= BATCHED_BYTES_MAX
            && !self.is_grouped(&decided.entry, source)
    }

    /// Performs each step of a copy for all files before the next step.
    fn copy_together<'e>(&'e self, worker: &mut Worker<'_>, waiting: &mut Vec<Decided<'e>>) {
        let Some(node) = waiting.first().map(|decided| decided.entry.node) else { return };
        let mut created = Vec::with_capacity(waiting.len());
        // Wait for the limits before taking the lock.
        worker.at.step(Phase::Create, waiting.len() as u64);
        {
            let _turn = node.creating.lock();
            for mut decided in waiting.drain(..) {
                let Some(from) = decided.opened.take() else { continue };
                let (entry, source) = (&decided.entry, &decided.source);
                let copying = self.files.create(worker, entry, from, source, None);
                created.push((decided, copying));
            }
        }
        let mut filled = Vec::new();
        for (mut decided, copying) in created {
            let missing = || Failure::code(Operation::MakeDir, errno::ENOENT);
            let copying = copying.and_then(|copying| copying.ok_or_else(missing));
            let copied = copying.map_err(Stop::from).and_then(|it| self.fill(worker, it));
            match copied {
                Ok((copying, done)) if copying.is_public() => {
                    let result = self.files.publish(copying);
                    self.published(worker, &mut decided, result, done);
                }
                Ok((copying, done)) => filled.push((decided, copying, done)),
                Err(stop) => self.again(worker, &mut decided, stop),
            }
        }
        if filled.is_empty() {
            return;
        }
        let mut published = Vec::with_capacity(filled.len());
        worker.at.step(Phase::Create, filled.len() as u64);
        {
            let _turn = node.creating.lock();
            for (decided, copying, done) in filled {
                published.push((decided, self.files.publish(copying), done));
            }
        }
        for (mut decided, result, done) in published {
            self.published(worker, &mut decided, result, done);
        }
    }

    fn fill<'e>(
        &self,
        worker: &mut Worker<'_>,
        copying: Copying<'e>,
    ) -> Result<(Copying<'e>, EntryResult), Stop> {
        let filled = match self.is_over() {
            true => Err(Stop::Asked),
            false => self.files.fill(worker, &copying),
        };
        match filled {
            Ok(done) => Ok((copying, done)),
            Err(stop) => Err(self.files.give_up(copying, stop)),
        }
    }

    fn published(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        result: Result<(), Stop>,
        done: EntryResult,
    ) {
        match result {
            Ok(()) => {
                let change = Change { created: true, transferred: true, ..Change::default() };
                let bytes_moved = done.bytes;
                let begun = decided.begun;
                let report = Report { change, bytes_moved, begun, ..Report::default() };
                self.arrived(worker, decided, report, done);
                self.ended(worker, &decided.entry, Ok(EntryState::Finished));
            }
            Err(stop) => self.again(worker, decided, stop),
        }
    }

    /// Retries a name that appeared in the meantime or a source that changed, on its own; reports other failures.
    fn again(&self, worker: &mut Worker<'_>, decided: &mut Decided<'_>, stop: Stop) {
        let anew = match &stop {
            Stop::Changed => true,
            Stop::Failed(failure) => errno::is(&failure.error, errno::EEXIST),
            Stop::Asked | Stop::Reported => false,
        };
        let outcome = match anew {
            true => self.transfer_again(worker, decided, &stop),
            false => Err(stop),
        };
        self.ended(worker, &decided.entry, outcome);
    }

    fn transfer_again(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        stop: &Stop,
    ) -> Result<EntryState, Stop> {
        if matches!(stop, Stop::Failed(_))
            && let Some(place) = decided.entry.place()
            && self.may_be_ours(place)?
        {
            return Err(Failure::reason(Operation::Overwrite, CLASH).into());
        }
        self.transfer(worker, decided, false)
    }
}

// Entries without content: symlinks, devices, FIFOs, sockets.

/// Creates special files. One instance serves all workers.
pub(super) struct Specials<'a> {
    context: Context<'a>,
    publisher: Arc<Publisher<'a>>,
}

impl<'a> Specials<'a> {
    pub(super) fn new((context, publisher): (Context<'a>, Arc<Publisher<'a>>)) -> Specials<'a> {
        Specials { context, publisher }
    }

    /// Creates a symlink with this text, or the source's device, FIFO or socket, and replaces an existing entry.
    ///
    /// # Errors
    /// The first failure; an existing entry is unchanged then.
    pub(super) fn make(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        source: &Meta,
        existing: Option<&Meta>,
        text: Option<&CStr>,
    ) -> Result<EntryResult, Failure> {
        let (Some(place), Some((dir, dir_info))) = (entry.place(), entry.target) else {
            return Ok(EntryResult::default());
        };
        let want = worker.attributes.want(source, existing, Some(dir_info));
        let kind = if text.is_some() { Kind::Symlink } else { source.kind };
        let make = |name: &CStr| match text {
            _ if self.context.policy.fake.target => fake::make(dir, name, text),
            Some(text) => dir::symlink(text, dir, name),
            None => dir::make_node(dir, name, source.kind, want.mode & 0o777, source.rdev),
        };
        // A temporary name makes the new entry appear complete, as a later run may not examine it again.
        let temp = (existing.is_some() || !self.publisher.drafts.direct.is_allowed())
            .then(|| self.publisher.drafts.temp_names.make());
        let name = temp.as_deref().unwrap_or(entry.target_name);
        worker.at.step(Phase::Create, 1);
        make(name).map_err(Failure::of(Operation::Create))?;
        let inherits = dir_info.default_bits.is_some() && !self.context.policy.preserve.mode;
        let attributes = settle(worker, entry, (dir, name), kind, want, inherits);
        if let Some(temp) = temp {
            worker.at.step(Phase::Create, 1);
            let mut made = TempEntry::new(dir, temp);
            self.publisher.rename(&mut made, place, existing, entry.node)?;
        }
        let unprivileged = worker.attributes.count_unprivileged(source, &want);
        let checked = attributes.is_ok() && !unprivileged;
        Ok(EntryResult {
            checked,
            attributes: attributes.err(),
            unprivileged,
            ..EntryResult::default()
        })
    }
}

/// Sets the attributes of a new entry; `inherits`: it keeps the mode that it was created with.
fn settle(
    worker: &mut Worker<'_>,
    entry: &DirEntry<'_>,
    to: DirName<'_>,
    kind: Kind,
    mut want: Want,
    inherits: bool,
) -> Result<(), Failure> {
    let have = meta::of(to.0, to.1, false).map_err(Failure::of(Operation::Create))?;
    if inherits {
        want.mode = have.mode;
    }
    let sets_xattrs = worker.attributes.wants_xattrs();
    let (from, have) = (entry.source()?, Have::from(&have));
    let attributes = worker.attributes.within(entry.node.rules.as_ref());
    attributes.settle_named(&worker.at, (from, to), kind, &want, have, sets_xattrs)
}

// How local copies create, name and give up their files by the rules of [`crate::publish`]: also in the directory of
// `--temp-dir`, with backups, all at the end (`--delay-updates`), and with the parts of interrupted files
// (`--partial`, `--partial-dir`).

/// Maximum number of tries to link to a name that other runs replace meanwhile: several runs with one target need
/// that many until their pauses, which grow to 200 ms, differ enough. Ends early if the run is asked to stop.
const LINKS_MAX: u32 = 12;

/// A target file being copied.
pub(super) struct LocalDraft<'a> {
    pub(super) draft: Draft<BorrowedFd<'a>>,
    /// Its final place.
    target: DirName<'a>,
    /// The mode it was created with.
    pub(super) mode: u32,
    /// It was created in `--temp-dir`.
    pub(super) foreign: bool,
}

impl LocalDraft<'_> {
    /// Returns whether it is an existing file or device.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.draft.name, DraftName::InPlace)
    }
}

/// A finished file that waits for its name.
pub(super) struct Delayed {
    /// Its directory, which it holds until then.
    pub(super) node: Arc<Node>,
    pub(super) name: CString,
    temp: CString,
    /// The temporary name is in `--temp-dir`.
    foreign: bool,
    existing: Option<Meta>,
}

/// Creates target files and links their names. One instance serves all workers.
pub(super) struct Publisher<'a> {
    context: Context<'a>,
    /// Directory of `--temp-dir`, with its device.
    temp_dir: Option<(OwnedFd, u64)>,
    pub(super) drafts: Drafts,
    /// Backups of replaced or removed entries.
    pub(super) backups: Backups<'a>,
    /// Finished files that keep temporary names until all are finished.
    delayed: Mutex<Vec<Delayed>>,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(
        context: Context<'a>,
        temp_dir: Option<(OwnedFd, u64)>,
        backups: Backups<'a>,
        direct: Direct,
    ) -> Publisher<'a> {
        let drafts = Drafts::new(direct, context.control);
        Publisher { context, temp_dir, drafts, backups, delayed: Mutex::default() }
    }

    /// Returns the names for temporary files, if any may be created.
    pub(super) fn probes(&self) -> Option<&TempNames> {
        self.context.is_real().then_some(&self.drafts.temp_names)
    }

    /// Opens a file for the content of `source`, on the file system `dev`: a new one, or the existing one
    /// (`existing`) if that is written into.
    ///
    /// # Errors
    /// EEXIST if an entry appeared under the final name.
    pub(super) fn open<'d>(
        &'d self,
        target: DirName<'d>,
        dev: u64,
        source: &Meta,
        existing: Option<&Meta>,
        mode: u32,
    ) -> Result<LocalDraft<'d>, Failure> {
        let policy = self.context.policy;
        let (dir, name) = target;
        let create = Failure::of(Operation::Create);
        let here = |draft| LocalDraft { draft, target, mode, foreign: false };
        let Some(there) = existing else {
            let draft = match (&self.temp_dir, policy.inplace) {
                (_, true) => self.drafts.create_named(dir, name, mode),
                (None, false) => {
                    let early = Some((dev, source.size, source.mtime));
                    self.drafts.create(dir, name, early, mode)
                }
                (Some(_), false) => return self.open_temporary(target, dev, mode).map_err(create),
            };
            return draft.map(here).map_err(create);
        };
        let writable_node = policy.writes_through() && is_node(there.kind);
        let device = writable_node || policy.write_devices && there.kind.is_device();
        let into = policy.inplace && there.kind == Kind::File;
        if device || into || policy.appends(source, there) {
            let stop = || self.context.is_over();
            let fd = match there.kind {
                Kind::Fifo => stdio::open_fifo(dir, name, &stop),
                _ => file::open_write(dir, name),
            };
            return Ok(here(Draft { fd: fd.map_err(create)?, dir, name: DraftName::InPlace }));
        }
        self.open_temporary(target, dev, mode).map_err(create)
    }

    /// A temporary directory on another volume could not be renamed from: the target's own directory does the same
    /// there.
    fn open_temporary<'d>(
        &'d self,
        target: DirName<'d>,
        dev: u64,
        mode: u32,
    ) -> io::Result<LocalDraft<'d>> {
        let (dir, mode, foreign) = match &self.temp_dir {
            Some((fd, own)) if *own == dev => (fd.as_fd(), 0o600, true),
            _ => (target.0, mode, false),
        };
        let draft = Draft::temporary(dir, self.drafts.temp_names.make(), mode)?;
        Ok(LocalDraft { draft, target, mode, foreign })
    }

    /// Closes a finished file and gives it its name, as far as it has none yet; with `delays` at the end of the run.
    ///
    /// # Errors
    /// With nothing left under the final name that a later run would take for finished.
    pub(super) fn publish(
        &self,
        local: LocalDraft<'_>,
        existing: Option<&Meta>,
        node: &Arc<Node>,
        delays: bool,
    ) -> Result<(), Stop> {
        let delays = delays && !local.is_in_place();
        let LocalDraft { mut draft, target, foreign, .. } = local;
        let write = Failure::of(Operation::Write);
        if delays {
            let linked = draft.link_temporary(&self.drafts.temp_names);
            linked.map_err(Failure::of(Operation::Create))?;
            let entry = draft.close(&self.drafts, target, file::close).map_err(write)?;
            if let Some(entry) = entry {
                node.hold();
                let (node, name) = (Arc::clone(node), target.1.to_owned());
                let (temp, existing) = (entry.into_name(), existing.copied());
                self.delayed.lock().push(Delayed { node, name, temp, foreign, existing });
            }
            return Ok(());
        }
        if let Err(ended) = self.check_lease() {
            // If the final name is in use, it is another worker's by now.
            if let DraftName::Temporary(_) = &draft.name {
                draft.discard(&self.drafts, target);
            }
            return Err(ended.into());
        }
        draft.link(target).map_err(Failure::of(Operation::Create))?;
        let entry = draft.close(&self.drafts, target, file::close).map_err(write)?;
        if let Some(mut entry) = entry {
            self.rename(&mut entry, target, existing, node)?;
        }
        self.forget_partial(target);
        Ok(())
    }

    /// Renames a finished temporary entry to its final name, after the backup of an existing one.
    pub(super) fn rename(
        &self,
        entry: &mut TempEntry<BorrowedFd<'_>>,
        target: DirName<'_>,
        existing: Option<&Meta>,
        node: &Node,
    ) -> Result<(), Failure> {
        self.check_lease()?;
        let taken = existing.zip(node.target_dir()).filter(|(_, info)| info.caseless);
        let _alone = taken.map(|(_, info)| self.context.guard.replacing(info.meta.identity()));
        if let Some((existing, info)) = taken {
            self.claim_replacement(entry.place(), target, existing, info.meta.identity())?;
        }
        if existing.is_some() {
            self.back_up(target, node)?;
        }
        entry.rename(target, existing.is_none()).map_err(Failure::of(Operation::Rename))
    }

    /// In a directory that ignores case, checks that the entry to be replaced is still the one that was decided about, and
    /// claims the new one for the name.
    ///
    /// # Errors
    /// EEXIST if another name has replaced it meanwhile.
    fn claim_replacement(
        &self,
        temp: DirName<'_>,
        (dir, name): DirName<'_>,
        existing: &Meta,
        directory: (u64, u64),
    ) -> Result<(), Failure> {
        let made = meta::of(temp.0, temp.1, false).map_err(Failure::of(Operation::Rename))?;
        let is_other =
            meta::of(dir, name, false).is_ok_and(|now| now.identity() != existing.identity());
        match is_other {
            true => Err(Failure::code(Operation::Rename, errno::EEXIST)),
            false => {
                self.context.guard.claim(directory, made.identity(), name);
                Ok(())
            }
        }
    }

    /// Fails if the lease of this run has ended: no file may get its name then.
    fn check_lease(&self) -> Result<(), Failure> {
        self.drafts.check_lease().map_err(Failure::of(Operation::Rename))
    }

    /// Keeps the current entry of a name under its backup name as well, if backups are requested.
    pub(super) fn back_up(&self, place: DirName<'_>, node: &Node) -> Result<(), Failure> {
        let info = node.target_dir().filter(|info| info.caseless);
        let caseless = info.map(|info| (self.context.guard, info.meta.identity()));
        let (path, temp_names) = (|| node.path_of(place.1), &self.drafts.temp_names);
        self.backups.keep(place, &path, temp_names, caseless, &|backup| node.provides(backup))
    }

    /// Takes all files that wait for their names.
    pub(super) fn take_delayed(&self) -> Vec<Delayed> {
        std::mem::take(&mut self.delayed.lock())
    }

    /// Gives a finished file its name, or with `gives_up` removes it.
    ///
    /// # Errors
    /// It could not be named, and is gone.
    pub(super) fn name_delayed(&self, delayed: &Delayed, gives_up: bool) -> Result<(), Failure> {
        let node = &delayed.node;
        let lost = || Failure::of(Operation::Rename);
        let fds = node.fds().map_err(lost())?;
        let gone = || lost()(io::Error::from_raw_os_error(errno::ENOENT));
        let target = fds.target().ok_or_else(gone)?;
        let temp_dir: Option<BorrowedFd<'_>> = self.temp_dir.as_ref().map(|(fd, _)| fd.as_fd());
        let dir = temp_dir.filter(|_| delayed.foreign).unwrap_or(target);
        let mut entry = TempEntry::new(dir, delayed.temp.clone());
        if gives_up {
            return Ok(());
        }
        let place = (target, &*delayed.name);
        self.rename(&mut entry, place, delayed.existing.as_ref(), node)?;
        self.forget_partial(place);
        Ok(())
    }

    /// Removes a temporary name of a dead process; returns whether it was one. A name that cannot be removed is left
    /// to the next run.
    pub(super) fn remove_leftover(&self, dir: BorrowedFd<'_>, name: &CStr) -> bool {
        self.context.is_real()
            && self.drafts.temp_names.is_abandoned(name)
            && dir::unlink(dir, name).is_ok()
    }

    /// Removes leftovers from the directory of `--temp-dir`.
    pub(super) fn clear_temp_dir(&self) {
        let Some((fd, _)) = &self.temp_dir else { return };
        // A directory that cannot be listed has nothing to remove.
        drop(dir::Reader::default().for_each(fd.as_fd(), |name, _, _| {
            if TempNames::is_temp(name) {
                self.remove_leftover(fd.as_fd(), name);
            }
        }));
    }

    /// Removes the remains of a failed or stopped copy, or keeps them with `--partial`. Returns whether a name was
    /// removed from the directory.
    pub(super) fn give_up(&self, local: LocalDraft<'_>, stop: &Stop, node: &Node) -> bool {
        let policy = self.context.policy;
        let may_keep = policy.partial && matches!(stop, Stop::Asked | Stop::Failed(_));
        if may_keep
            && meta::of_fd(&local.draft.fd).is_ok_and(|meta| meta.size > 0)
            && meta::set_times_fd(&local.draft.fd, None, UNFINISHED).is_ok()
        {
            if local.draft.is_public() {
                return false;
            }
            if self.keep_partial(&local, node).is_ok() {
                // A new folder has changed the directory.
                return policy.partial_dir.is_some();
            }
        }
        // Content that was not written or flushed must not have the final times.
        if local.is_in_place()
            && let Stop::Failed(failure) = stop
            && matches!(failure.operation, Operation::Write | Operation::Sync)
            && meta::of_fd(&local.draft.fd).is_ok_and(|there| there.kind == Kind::File)
        {
            drop(meta::set_times_fd(&local.draft.fd, None, UNFINISHED));
        }
        // The first error is reported; the next run removes what remains.
        local.draft.discard(&self.drafts, local.target)
    }

    /// Gives an incomplete file its final name, after the backup of what has it, or that name in the folder of
    /// `--partial-dir`.
    fn keep_partial(&self, local: &LocalDraft<'_>, node: &Node) -> io::Result<()> {
        let (draft, (target, name)) = (&local.draft, local.target);
        let Some(path) = &self.context.policy.partial_dir else {
            let DraftName::Temporary(temp) = &draft.name else {
                return file::publish(draft.fd.as_fd(), target, name);
            };
            let there =
                !meta::of(target, name, false).is_err_and(|error| errno::is(&error, errno::ENOENT));
            if there && self.back_up(local.target, node).is_err() {
                return Err(io::Error::from_raw_os_error(errno::EEXIST));
            }
            return dir::rename(draft.dir, temp, target, name);
        };
        let folder = match self.open_partial(target, path) {
            Err(error) if errno::is(&error, errno::ENOENT) => {
                if path.is_absolute() {
                    self.context.policy.links.make_dir(path, 0o700, true)?;
                } else {
                    dir::create(target, &c_string(path.as_os_str().as_bytes())?, 0o700)?;
                }
                self.open_partial(target, path)?
            }
            other => other?,
        };
        match &draft.name {
            DraftName::Temporary(temp) => dir::rename(draft.dir, temp, folder.as_fd(), name),
            _ => {
                drop(dir::unlink(folder.as_fd(), name));
                file::publish(draft.fd.as_fd(), folder.as_fd(), name)
            }
        }
    }

    fn open_partial(&self, target: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
        let name = c_string(path.as_os_str().as_bytes())?;
        match path.is_absolute() {
            true => self.context.policy.links.open_dir(dir::cwd(), &name),
            false => dir::open(target, &name, false),
        }
    }

    /// Removes the kept part of a file that is complete now. A failure is harmless.
    fn forget_partial(&self, (target, name): DirName<'_>) {
        let Some(path) = &self.context.policy.partial_dir else { return };
        let Ok(folder) = self.open_partial(target, path) else { return };
        if dir::unlink(folder.as_fd(), name).is_ok()
            && !path.is_absolute()
            && let Ok(own) = c_string(path.as_os_str().as_bytes())
        {
            drop(dir::rmdir(target, &own));
        }
    }

    /// Creates a hard link to `from`, with `follow` to what a symlink there leads to, replacing an existing entry
    /// (`target`), which gets a backup if its directory is given. Returns whether it replaced one.
    pub(super) fn link(
        &self,
        at: &Station<'_>,
        (from, follow): (DirName<'_>, bool),
        (target_dir, name): DirName<'_>,
        target: Option<&Meta>,
        node: Option<&Node>,
    ) -> Result<bool, Failure> {
        let existing = target.filter(|target| target.kind != Kind::Dir);
        at.step(Phase::Create, if existing.is_none() { 1 } else { 2 });
        // Another run with the same target may replace the first name meanwhile: then linking finds an inode without
        // names (ENOENT), or links to a replaced one.
        let again = |error: &io::Error, left: u32| {
            errno::is(error, errno::EEXIST) || left > 0 && errno::is(error, errno::ENOENT)
        };
        let link = |name: &CStr| match follow {
            true => dir::link_to_referent(from.0, from.1, target_dir, name),
            false => dir::link(from.0, from.1, target_dir, name),
        };
        if existing.is_none() {
            match link(name) {
                // A name of the other case is not another run's: it is looked at again, and not replaced.
                Err(error)
                    if errno::is(&error, errno::EEXIST)
                        && guard::may_be_another((target_dir, name)) =>
                {
                    return Err(Failure { operation: Operation::Link, error });
                }
                Err(error) if again(&error, LINKS_MAX) => {}
                other => {
                    return other.map(|()| false).map_err(Failure::of(Operation::Link));
                }
            }
        }
        let mut backs_up = existing.is_some();
        let identity = |dir, name, follow| {
            meta::of(dir, name, follow).map(|m| m.identity()).map_err(Failure::of(Operation::Link))
        };
        for left in (0..LINKS_MAX).rev() {
            if self.context.is_over() {
                break;
            }
            let temp = self.drafts.temp_names.make();
            match link(&temp) {
                Err(error) if again(&error, left) => continue,
                other => other.map_err(Failure::of(Operation::Link))?,
            }
            if backs_up
                && let Some(node) = node
                && let Err(failure) = self.back_up((target_dir, name), node)
            {
                drop(dir::unlink(target_dir, &temp));
                return Err(failure);
            }
            backs_up = false;
            let renamed = dir::rename(target_dir, &temp, target_dir, name);
            // rename(2) between two names of one file does nothing and keeps both.
            drop(dir::unlink(target_dir, &temp));
            renamed.map_err(Failure::of(Operation::Rename))?;
            if identity(from.0, from.1, follow)? == identity(target_dir, name, false)? {
                return Ok(true);
            }
            // Random, because two runs that link to each other's names at the same pace would never finish.
            let random = RandomState::new().build_hasher().finish();
            std::thread::sleep(Duration::from_micros(random % (50 << (LINKS_MAX - left))));
        }
        Err(Failure::reason(Operation::Link, "another program keeps replacing the file"))
    }
}
