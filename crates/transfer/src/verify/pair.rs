//! Compares one name on both sides in every requested aspect.

use super::aspects::{Aspect, Aspects, Times, differences};
use super::attributes::{self, Pair as Attributes};
use super::content::{self, Buffers};
use super::links::Groups;
use crate::local::Side;
use hakobu_core::error::Operation;
use hakobu_core::limit::Limiter;
use hakobu_core::meter::{Doing, Phase};
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, file};
use parking_lot::Mutex;
use std::ffi::CStr;
use std::io;
use std::sync::Arc;

/// Minimum size, in bytes, of files that several workers compare.
const BIG_BYTES_MIN: u64 = 64 << 20;

/// A name in an open directory.
pub type Name<'a> = (BorrowedFd<'a>, &'a CStr);

/// An aspect that could not be compared.
pub struct Failure {
    /// The side that failed.
    pub side: Side,
    /// The operation that failed.
    pub operation: Operation,
    /// The cause.
    pub error: io::Error,
}

impl Failure {
    fn of(operation: Operation) -> impl Fn((Side, io::Error)) -> Failure {
        move |(side, error)| Failure { side, operation, error }
    }
}

/// The rules of a comparison, shared by all workers.
pub struct Comparer {
    pub aspects: Aspects,
    pub times: Times,
    pub links: Mutex<Groups>,
    /// Bytes of content a second.
    pub limit: Option<Arc<Limiter>>,
}

/// Buffers of one worker.
#[derive(Default)]
pub struct Scratch {
    pub buffers: Buffers,
    attributes: attributes::Scratch,
}

/// The findings about a pair.
#[derive(Default)]
pub struct Found {
    /// Aspects in which they differ.
    pub set: Aspects,
    /// Offset of the first difference in their contents.
    pub offset: Option<u64>,
    /// Bytes compared.
    pub bytes: u64,
    /// Failures of the comparison.
    pub failures: Vec<Failure>,
    /// The open files, if their contents remain to be compared by several workers.
    pub big: Option<(OwnedFd, OwnedFd)>,
}

impl Comparer {
    /// Compares two entries whose metadata is known.
    pub fn compare(
        &self,
        (source, a): (Name<'_>, &Meta),
        (target, b): (Name<'_>, &Meta),
        scratch: &mut Scratch,
        doing: &Doing,
    ) -> Found {
        let mut found =
            Found { set: differences(a, b, self.aspects, self.times), ..Found::default() };
        if found.set.has(Aspect::Type) {
            return found;
        }
        let same_file = a.identity() == b.identity();
        let done = match a.kind {
            Kind::File if !same_file => {
                self.file((source, a), (target, b), (scratch, doing), &mut found)
            }
            Kind::Symlink if self.aspects.has(Aspect::Link) => link(source, target, &mut found),
            _ => Ok(()),
        };
        found.failures.extend(done.err());
        if same_file && self.aspects.has(Aspect::Content) && a.kind == Kind::File {
            found.bytes = a.size;
        }
        if self.aspects.has(Aspect::HardLinks)
            && a.kind != Kind::Dir
            && (a.nlink > 1 || b.nlink > 1)
        {
            let (a, b) = ((a.identity(), a.nlink), (b.identity(), b.nlink));
            if !self.links.lock().agrees(a, b) {
                found.set = found.set.with(Aspect::HardLinks);
            }
        }
        if !same_file {
            let done = self.attributes(source, target, a.kind, scratch, &mut found);
            found.failures.extend(done.err());
        }
        found
    }

    fn file(
        &self,
        (source, a): (Name<'_>, &Meta),
        (target, b): (Name<'_>, &Meta),
        (scratch, doing): (&mut Scratch, &Doing),
        found: &mut Found,
    ) -> Result<(), Failure> {
        let (content, holes) = (self.aspects.has(Aspect::Content), self.aspects.has(Aspect::Holes));
        if a.size != b.size {
            if content && !self.aspects.has(Aspect::Size) {
                found.set = found.set.with(Aspect::Content);
            }
            return Ok(());
        }
        if a.size == 0 || !(content || holes) {
            return Ok(());
        }
        let read = Failure::of(Operation::Read);
        let open = |(dir, name): Name<'_>, side| {
            file::open_read(dir, name, false).map_err(|error| read((side, error)))
        };
        let fds = (open(source, Side::Source)?, open(target, Side::Target)?);
        let (one, two) = (fds.0.as_fd(), fds.1.as_fd());
        if holes && !content::same_holes(one, two, a.size).map_err(&read)? {
            found.set = found.set.with(Aspect::Holes);
        }
        if !content {
            return Ok(());
        }
        if a.size >= BIG_BYTES_MIN {
            found.big = Some(fds);
            return Ok(());
        }
        let sparse = a.may_have_holes() && b.may_have_holes();
        let _reading = doing.during(Phase::Read);
        let progress = (doing, self.limit.as_deref());
        let first = scratch.buffers.first_difference((one, two), (0, a.size), sparse, progress);
        found.offset = first.map_err(&read)?;
        found.bytes = found.offset.unwrap_or(a.size);
        if found.offset.is_some() {
            found.set = found.set.with(Aspect::Content);
        }
        Ok(())
    }

    fn attributes(
        &self,
        source: Name<'_>,
        target: Name<'_>,
        kind: Kind,
        scratch: &mut Scratch,
        found: &mut Found,
    ) -> Result<(), Failure> {
        let acl = self.aspects.has(Aspect::Acl) && kind != Kind::Symlink;
        let xattrs = self.aspects.has(Aspect::Xattrs);
        if !acl && !xattrs {
            return Ok(());
        }
        let failed = Failure::of(Operation::Compare);
        let pair = Attributes::open(source, target).map_err(&failed)?;
        let scratch = &mut scratch.attributes;
        if acl && !pair.same_acl(kind == Kind::Dir, scratch).map_err(&failed)? {
            found.set = found.set.with(Aspect::Acl);
        }
        if xattrs && !pair.same_xattrs(scratch).map_err(&failed)? {
            found.set = found.set.with(Aspect::Xattrs);
        }
        Ok(())
    }
}

fn link(source: Name<'_>, target: Name<'_>, found: &mut Found) -> Result<(), Failure> {
    let read = |(dir, name): Name<'_>, side| {
        dir::read_link(dir, name).map_err(|error| Failure::of(Operation::Read)((side, error)))
    };
    if read(source, Side::Source)? != read(target, Side::Target)? {
        found.set = found.set.with(Aspect::Link);
    }
    Ok(())
}
