//! The source end of a transfer over a remote shell: what the walk finds is announced to the other end, which decides.

use super::attributes::Attributes;
use super::content::LARGE_BYTES_MIN;
use super::engine::{LocalEngine, Rest, Worker};
use super::entry::{Decided, DirEntry};
use super::fake_super::AttributeHandle;
use super::source::{SourceFile, attributes_of};
use super::target_dir::Node;
use crate::failure::{Failure, Stop};
use crate::policy::filter::SidedRules;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_remote::message::{
    CHUNK_ENTRIES_MAX, CONTENT_BYTES_MAX, DirRecord, EntryRecord, FAR_DEVICE, Xattr,
};
use hakobu_sys::{AsFd, BorrowedFd, errno, file};
use std::ffi::{CStr, CString};
use std::ops::ControlFlow::{Break, Continue};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Bytes of content in one message of entries.
pub(crate) const BATCH_BYTES_MAX: usize = 256 << 10;

/// Takes announcements, in an order in which a directory comes before what is in it.
pub trait Announcer: Sync {
    /// Announces a directory.
    fn dir(&self, dir: DirRecord);
    /// Announces entries of a directory; waits while the other end has enough.
    fn entries(&self, chunk: AnnouncedChunk);
    /// Announces that all below a directory was announced; `is_listed`: it was listed to its end. `asks`: the other end may
    /// ask for names of such a directory then, and says when it will not any more.
    fn end(&self, node: &Arc<Node>, is_listed: bool, asks: bool);
    /// Returns whether the content of files in a directory is wanted unasked.
    fn is_fresh(&self, node: &Node) -> bool;
}

/// Entries of one directory.
pub struct AnnouncedChunk {
    pub node: Arc<Node>,
    pub side: usize,
    pub entries: Vec<Announced>,
}

/// An entry, and how its content is read.
pub struct Announced {
    pub name: CString,
    pub opening: Opening,
    pub record: EntryRecord,
    /// What it is here, if it is removed when the other end has it.
    pub source: Option<Box<Meta>>,
}

/// How an announced file is opened.
#[derive(Clone, Copy)]
pub struct Opening {
    /// The name may be a symlink that is followed.
    pub follow: bool,
    /// It may be a device.
    pub devices: bool,
    /// Its access time stays.
    pub quietly: bool,
}

impl LocalEngine<'_> {
    /// Announces a directory that was opened.
    ///
    /// # Errors
    /// Its extended attributes cannot be read.
    pub(super) fn announce_dir(
        &self,
        node: &Node,
        is_implied: bool,
        announcer: &dyn Announcer,
    ) -> Result<(), Failure> {
        let fds = node.fds().map_err(Failure::of(Operation::List))?;
        let own = fds.source(0).map_err(Failure::of(Operation::List))?;
        let above = node.parent.as_ref().and_then(|parent| parent.rules.as_ref());
        let record = EntryRecord {
            xattrs: self.told_xattrs(own.attributes(), above)?,
            ..self.record(&node.source, Vec::new())
        };
        let base = node.base.as_deref();
        let typed = base.and_then(|base| base.sources.first().cloned()).unwrap_or_default();
        announcer.dir(DirRecord {
            number: node.id,
            parent: node.parent.as_ref().map_or(0, |parent| parent.id),
            name: node.target_name.to_bytes().to_vec(),
            path: base.map(|base| base.path.clone()).unwrap_or_default(),
            typed: typed.into_os_string().into_vec(),
            entry: record,
            is_whole: node.owns_attributes,
            is_implied,
        });
        Ok(())
    }

    /// Announces the entries of a chunk; directories among them become units of their own.
    pub(super) fn announce(
        &self,
        worker: &mut Worker<'_>,
        rest: &Rest<'_>,
        announcer: &dyn Announcer,
    ) {
        let chunk = rest.chunk;
        let node = &chunk.node;
        let fds = match node.fds() {
            Ok(fds) => fds,
            Err(error) => {
                let failure = Failure { operation: Operation::List, error };
                let count = chunk.names.len() as u64;
                self.fail(worker, failure, (Some(node.source_path(chunk.side, c"")), None));
                worker.totals.failed += count - 1;
                return worker.at.lane.done(count);
            }
        };
        let pushes = announcer.is_fresh(node);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let send = |entries: Vec<Announced>| {
            if !entries.is_empty() {
                let node = Arc::clone(node);
                announcer.entries(AnnouncedChunk { node, side: chunk.side, entries });
            }
        };
        while let Some((name, kind)) = rest.next() {
            if self.is_over() {
                return;
            }
            let entry = DirEntry {
                node,
                fds: &fds,
                side: chunk.side,
                name,
                target_name: name,
                follow: chunk.follow,
                target: None,
                queue: rest.queue,
                rest: Some(rest),
            };
            let mut decided = Decided::new(entry);
            let looked = self.look(worker, &mut decided, kind, pushes);
            let announced = match looked {
                Ok(Break(outcome)) => Err(Ok(outcome)),
                Err(stop) => Err(Err(stop)),
                Ok(Continue(())) => {
                    if self.context.policy.checksum && decided.source.size >= LARGE_BYTES_MIN {
                        // Others go on while this one is read.
                        send(std::mem::take(&mut entries));
                        bytes = 0;
                        self.hand_over(rest);
                    }
                    self.announced(worker, &mut decided, pushes).map_err(Err)
                }
            };
            match announced {
                Ok(announced) => {
                    let EntryRecord { content, xattrs, .. } = &announced.record;
                    let xattrs = xattrs.iter().map(|(name, value)| name.len() + value.len());
                    bytes += content.as_ref().map_or(0, Vec::len) + xattrs.sum::<usize>();
                    entries.push(announced);
                    worker.at.finished_name();
                }
                Err(outcome) => self.ended(worker, &decided.entry, outcome),
            }
            if bytes >= BATCH_BYTES_MAX || entries.len() == CHUNK_ENTRIES_MAX {
                send(std::mem::take(&mut entries));
                bytes = 0;
            }
        }
        send(entries);
    }

    /// Announces an argument that does not exist and whose target is to be removed.
    pub(super) fn announce_missing(
        &self,
        node: &Arc<Node>,
        name: &CStr,
        announcer: &dyn Announcer,
    ) {
        let meta = Meta::bare(Kind::Unknown, 0, Time::default());
        let record = self.record(&meta, name.to_bytes().to_vec());
        let (name, node) = (name.to_owned(), Arc::clone(node));
        let opening = Opening { follow: false, devices: false, quietly: false };
        let entries = vec![Announced { name, opening, record, source: None }];
        announcer.entries(AnnouncedChunk { node, side: 0, entries });
    }

    /// Returns an entry that was looked at, with its content if that is wanted and short.
    fn announced(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        pushes: bool,
    ) -> Result<Announced, Stop> {
        let Decided { entry, source, opened, .. } = decided;
        let mut record = self.record(source, entry.name.to_bytes().to_vec());
        if source.kind == Kind::Symlink {
            worker.at.step(Phase::Read, 1);
            let text = self.context.source_text(entry.source()?);
            record.text = text.map_err(Failure::of(Operation::Read))?.into_bytes();
            record.meta.size = record.text.len() as u64;
        }
        if worker.attributes.wants_xattrs() {
            let attributes =
                attributes_of(entry.source()?).map_err(Failure::of(Operation::Read))?;
            record.xattrs = self.told_xattrs(attributes, entry.node.rules.as_ref())?;
        }
        let is_short = source.size > 0 && source.size <= CONTENT_BYTES_MAX as u64;
        if pushes
            && is_short
            && let Some(SourceFile::Here(fd)) = opened.take()
        {
            worker.at.pace(source.size);
            worker.at.step(Phase::Read, 1);
            let mut content = vec![0; source.size as usize];
            let got = file::read_full_at(fd.as_fd(), &mut content, 0);
            if got.map_err(Failure::of(Operation::Read))? < content.len() {
                return Err(Stop::Changed);
            }
            worker.at.lane.ahead(source.size);
            worker.at.lane.bytes(source.size);
            record.content = Some(content);
        }
        if self.context.policy.checksum && !pushes && source.kind == Kind::File && source.size > 0 {
            record.hash = self.hash_of_source(worker, entry, source.size)?;
        }
        let policy = self.context.policy;
        let (devices, quietly) = (policy.copy_devices, policy.open_noatime);
        let opening = Opening { follow: entry.follow, devices, quietly };
        let removed = policy.tells_arrivals().then(|| Box::new(*source));
        Ok(Announced { name: entry.name.to_owned(), opening, record, source: removed })
    }

    /// Returns the hash of a file; `None` if it cannot be read, which is reported when it is asked for.
    fn hash_of_source(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        size: u64,
    ) -> Result<Option<u128>, Stop> {
        worker.at.step(Phase::Look, 1);
        let Ok(SourceFile::Here(fd)) = self.context.open_source(entry.source()?, entry.follow)
        else {
            return Ok(None);
        };
        match worker.mover.hash_of(&worker.at, fd.as_fd(), size) {
            Err(Stop::Failed(_)) => Ok(None),
            other => other,
        }
    }

    /// Returns what is told of an entry. Its identity is told where it may have other names.
    fn record(&self, source: &Meta, name: Vec<u8>) -> EntryRecord {
        let policy = self.context.policy;
        let (nlink, dev, ino) = match policy.hard_links && source.nlink > 1 {
            true => (source.nlink, source.dev | FAR_DEVICE, source.ino),
            false => (1, 0, 0),
        };
        let keeps_atime = policy.preserve.atimes || policy.preserve.file_atimes;
        let atime = if keeps_atime { source.atime } else { source.mtime };
        let rdev = if source.kind.is_device() { source.rdev } else { 0 };
        let blocks = source.size.div_ceil(512);
        let meta = Meta { nlink, dev, ino, atime, rdev, blocks, ..*source };
        let (text, xattrs) = Default::default();
        EntryRecord { name, meta, text, xattrs, content: None, hash: None }
    }

    /// Returns the extended attributes that are kept. `rules`: those of the directory that holds the entry.
    fn told_xattrs(
        &self,
        of: AttributeHandle<'_>,
        rules: Option<&SidedRules>,
    ) -> Result<Vec<Xattr>, Failure> {
        let mut attributes = Attributes::new(self.context);
        match attributes.wants_xattrs() {
            true => attributes.within(rules).xattrs.told(of),
            false => Ok(Vec::new()),
        }
    }
}

/// Bytes of the hash of a file (XXH3, 128 bits, little endian).
pub const HASH_BYTES: usize = 16;

/// Returns the hash of the first `size` bytes of a file; `None` if it is shorter, or `goes_on` is false after a piece of so many
/// bytes.
///
/// # Errors
/// Those of reading.
pub fn hash_of_file(
    fd: BorrowedFd<'_>,
    size: u64,
    mut goes_on: impl FnMut(u64) -> bool,
) -> std::io::Result<Option<u128>> {
    let most = size.min(CONTENT_BYTES_MAX as u64);
    let (mut hash, mut piece, mut offset) = (Xxh3::new(), vec![0; most as usize], 0);
    while offset < size {
        let want = (size - offset).min(most) as usize;
        let got = file::read_full_at(fd, piece.get_mut(..want).unwrap_or_default(), offset)?;
        hash.update(piece.get(..got).unwrap_or_default());
        offset += got as u64;
        if !goes_on(got as u64) || got < want {
            return Ok(None);
        }
    }
    Ok(Some(hash.digest128()))
}

/// Reads content of an announced entry, piece by piece.
pub struct AnnouncedReader {
    fd: hakobu_sys::OwnedFd,
    size: u64,
    offset: u64,
}

impl AnnouncedReader {
    /// Opens an announced file of `size` bytes.
    ///
    /// # Errors
    /// Those of opening it; ESTALE: the name is no regular file any more.
    pub fn open(
        (node, side): (&Node, usize),
        (name, opening): (&CStr, Opening),
        size: u64,
    ) -> std::io::Result<AnnouncedReader> {
        let fds = node.fds()?;
        let dir = fds.source(side)?.here()?;
        let fd = match opening.quietly {
            true => file::open_read_quietly(dir, name, opening.follow),
            false => file::open_read(dir, name, opening.follow),
        }?;
        match hakobu_sys::meta::of_fd(&fd)?.kind {
            kind if kind == Kind::File || opening.devices && kind.is_device() => {
                Ok(AnnouncedReader { fd, size, offset: 0 })
            }
            _ => Err(std::io::Error::from_raw_os_error(errno::ESTALE)),
        }
    }

    /// Begins at an offset, if the content before it has the hash `prefix`, or without one in any case; otherwise at the
    /// start. Returns where it begins; `None` once `is_over`.
    ///
    /// # Errors
    /// Those of reading.
    pub fn begin_at(
        &mut self,
        offset: u64,
        prefix: Option<u128>,
        is_over: impl Fn() -> bool,
    ) -> std::io::Result<Option<u64>> {
        let Some(prefix) = prefix else {
            self.offset = offset;
            return Ok(Some(offset));
        };
        let hash = hash_of_file(self.fd.as_fd(), offset, |_| !is_over())?;
        if is_over() {
            return Ok(None);
        }
        self.offset = if hash == Some(prefix) { offset } else { 0 };
        Ok(Some(self.offset))
    }

    /// Returns whether all bytes that were announced were read.
    pub fn is_complete(&self) -> bool {
        self.offset == self.size
    }

    /// Reads as many bytes at an offset as there are.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_at(&self, offset: u64, space: &mut [u8]) -> std::io::Result<usize> {
        file::read_full_at(self.fd.as_fd(), space, offset)
    }

    /// Returns the hash of the whole file; see [`hash_of_file`].
    ///
    /// # Errors
    /// Those of reading.
    pub fn hash(&self, goes_on: impl FnMut(u64) -> bool) -> std::io::Result<Option<u128>> {
        hash_of_file(self.fd.as_fd(), self.size, goes_on)
    }

    /// Reads at most `most` further bytes. Fewer than announced: the file is shorter now.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(&mut self, most: usize) -> std::io::Result<Vec<u8>> {
        let left = usize::try_from(self.size - self.offset).unwrap_or(usize::MAX);
        let mut piece = vec![0; most.min(left)];
        let got = self.read_at(self.offset, &mut piece)?;
        piece.truncate(got);
        self.offset += got as u64;
        Ok(piece)
    }
}
