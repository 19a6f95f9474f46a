//! Checksums of files for display (rsync's `%C`). The source is read a second time: the kernel may have copied its content
//! without showing it to us.

use super::entry::Entry;
use super::state::Engine;
use crate::policy::Digest;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::{Class, Operation};
use hakobu_core::event::Change;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, file};
use md5::Digest as _;
use std::fmt::Write as _;
use std::io;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 128 << 10;

impl Engine<'_> {
    /// Returns the checksum of an entry, if it is requested and rsync shows one: of transferred files, with
    /// `--checksum` of all.
    pub(super) fn digest_of(
        &self,
        entry: &Entry<'_>,
        source: &Meta,
        change: &Change,
    ) -> Option<String> {
        let digest = self.digest?;
        if source.kind != Kind::File || !(change.transferred || self.context.policy.checksum) {
            return None;
        }
        let (dir, name) = entry.source().ok()?;
        let opened = self.context.open_source((dir, name), entry.follow);
        // A device without a size may have no end.
        let limit = if self.context.policy.copy_devices { source.size } else { u64::MAX };
        let read = opened.and_then(|fd| of(fd.as_fd(), digest, limit));
        if read.is_err() {
            let reason = "its checksum cannot be shown: it cannot be read again";
            let paths = (Some(entry.source_path()), None);
            self.reports.notice(Operation::Read, paths, reason, Class::Notice);
        }
        read.ok()
    }
}

/// Returns the checksum of an open file, of at most `limit` bytes, in hexadecimal, with its most significant byte first.
fn of(fd: BorrowedFd<'_>, digest: Digest, limit: u64) -> io::Result<String> {
    let mut buffer = AlignedBytes::zeroed(BUFFER_BYTES);
    let mut each = |take: &mut dyn FnMut(&[u8])| -> io::Result<()> {
        let mut left = limit;
        loop {
            let space = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match file::read(fd, &mut buffer[..space])? {
                0 => return Ok(()),
                got => {
                    left -= got as u64;
                    take(buffer.get(..got).unwrap_or_default());
                }
            }
        }
    };
    match digest {
        Digest::Xxh128 => {
            let mut hash = Xxh3::new();
            each(&mut |bytes| hash.update(bytes))?;
            Ok(format!("{:032x}", hash.digest128()))
        }
        Digest::Md5 => {
            let mut hash = md5::Md5::new();
            each(&mut |bytes| hash.update(bytes))?;
            Ok(hash.finalize().iter().fold(String::new(), |mut out, byte| {
                let _ = write!(out, "{byte:02x}");
                out
            }))
        }
    }
}
